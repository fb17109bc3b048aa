"""The commands about published papers: ``papers``, ``reproduce``."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import Exit, interruptible, say, set_quiet, tell_json
from aqmlab.cli.options import (
    AsJson,
    Jobs,
    Quiet,
    Seeds,
    StorePath,
    Where,
    on_executors,
)
from aqmlab.cli.progress import ProgressLine, titled_text
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.files import save

if TYPE_CHECKING:
    from aqmlab.papers.paper import Paper, PaperFigure
    from aqmlab.papers.reproduce import Reproduction, Wanted
    from aqmlab.papers.required_cells import RequiredCells
    from aqmlab.papers.runner import Watcher
    from aqmlab.papers.scorecard_json import Card
    from aqmlab.papers.scoring import ScoredFinding
    from aqmlab.papers.variants import Reading
    from aqmlab.sweeps.progress import Progress

Names = list[str] | None


def papers(as_json: AsJson = False) -> None:
    """List the papers that can be reproduced and how long each takes."""
    from aqmlab.papers.folder import papers as known

    found = known()
    if as_json:
        tell_json({"format_version": 1, "papers": [_about(paper) for paper in found]})
        return
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.grid import Column, Grid

    numbers = (Column("experiments", right=True), Column("findings", right=True))
    table = Grid("key", Column("paper", prose=True), *numbers, Column("takes", prose=True))
    for paper in found:
        takes = "; ".join(f"{which}: {cost}" for which, cost in paper.cost.items())
        title = f"{paper.authors[0]} {paper.year}: {paper.title}" if paper.authors else paper.title
        table.add(paper.key, title, str(len(paper.experiments)), str(len(paper.findings)), takes)
    print_grid(answer_console(), table)


def _about(paper: Paper) -> dict[str, Any]:
    return {
        "key": paper.key,
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "published": paper.published,
        "summary": paper.summary,
        "path": str(paper.path),
        "experiments": [{"file": e.file, "title": e.title} for e in paper.experiments],
        "findings": [finding.name for finding in paper.findings],
        "tables": [table.name for table in paper.tables],
        "figures": [figure.name for figure in paper.figures],
        "cost": dict(paper.cost),
    }


@on_executors
def reproduce(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="A paper as listed by `aqmlab papers`, or its folder.",
            autocompletion=completion.papers,
        ),
    ],
    table: Annotated[
        Names,
        typer.Option(
            "--table", help="Only this table and its cells (III includes `III, 72`); may be repeated."
        ),
    ] = None,
    figure: Annotated[
        Names, typer.Option("--figure", help="Only this figure and the cells it needs; may be repeated.")
    ] = None,
    finding: Annotated[
        Names, typer.Option("--finding", help="Only this finding and the cells it needs; may be repeated.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(*Seeds, help="Number of seeds per cell; overrides the paper's folder.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version, as a smoke test.")] = False,
    multiverse: Annotated[
        bool,
        typer.Option(
            "--multiverse", help="Score every reading of the paper, not only the one that its folder fixes."
        ),
    ] = False,
    causes: Annotated[
        bool,
        typer.Option(
            "--causes",
            help="Score only the findings that do not hold in the output directory's scorecard, under the"
            " readings that may explain them.",
        ),
    ] = False,
    infer: Annotated[
        bool,
        typer.Option(
            "--infer",
            help="Search for the reading that fits one part of the published results, and test it on the"
            " other part.",
        ),
    ] = False,
    text: Annotated[
        bool,
        typer.Option(
            "--text",
            help="Run nothing; write the texts of the output directory's scorecard again, from its values and"
            " the paper's current texts.",
        ),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Run the paper's live experiments between this machine's TCP stacks, in real time.",
        ),
    ] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats", min=0, help="How many times to repeat a live run that is not faithful; 2 by default."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="The budget of --infer; overrides the paper's folder."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The output directory; STORE/papers/KEY by default."),
    ] = None,
    store: StorePath = None,
    jobs: Jobs = None,
    executor: Where = "local",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a paper: run its experiments, fill its tables, draw its figures, score its findings.

    An interrupted reproduction resumes when the command is repeated. Exits with 1 if a firm finding fails and
    the folder does not explain it. With --causes, the findings that do not hold in the scorecard are scored
    under each reading that paper.toml names as their cause; `causes.md` shows what was measured, the
    scorecard names the outcomes, and findings that were not requested keep their entries. With --infer,
    nothing is scored: `inference.md` reports which reading fits the part of the results that paper.toml
    names, its error on the other part, and the evidence for each setting. With --live, the paper's testbed
    runs between this machine's TCP stacks; only faithful runs count, the others are repeated, and `live.md`
    shows the simulated value next to each number. With --text, nothing is run: texts, kinds, notes and
    causes are read again from the paper's folder, and the values from `scorecard.json` (with --live, from
    `live.json`); a changed statement or scenario is refused.
    """
    from aqmlab.papers.folder import find_paper
    from aqmlab.papers.reproduce import Wanted
    from aqmlab.sweeps.store import store_path

    set_quiet(quiet)
    wanted = Wanted(table or (), figure or (), finding or ())
    _check_options(wanted, quick=quick, multiverse=multiverse, infer=infer, minutes=minutes)
    _check_live(live=live, other=multiverse or infer or causes, repeats=repeats)
    _check_causes(wanted, causes=causes, other=quick or multiverse or infer)
    if text and (quick or multiverse or causes or infer or seeds or not wanted.everything):
        raise UsageError(
            "`--text` runs nothing; leave out --table, --figure, --finding, --seeds, --quick, --multiverse,"
            " --causes and --infer"
        )
    paper = find_paper(key)
    folder = output or store_path(store) / "papers" / paper.key
    if text:
        _text(paper, folder, live=live, as_json=as_json)
        return
    common: dict[str, Any] = {
        "wanted": wanted,
        "seeds": seeds,
        "store": store,
        "jobs": jobs,
        "executor": executor,
    }
    with interruptible(), _resumable(store_path(store)):
        if multiverse:
            _multiverse(paper, folder, common, as_json=as_json, quiet=quiet)
            return
        if causes:
            _causes(paper, folder, common, as_json=as_json, quiet=quiet)
            return
        if infer:
            del common["wanted"]
            _infer(paper, folder, {**common, "minutes": minutes}, as_json=as_json, quiet=quiet)
            return
        from aqmlab.papers.reproduce import reproduce as run_again

        if live:
            from aqmlab.cli.live import tell_stopping
            from aqmlab.papers.live import REPEATS

            common |= {"live": True, "repeats": REPEATS if repeats is None else repeats}
            common["interrupted"] = tell_stopping
        with _progress(quiet=quiet) as watch:
            done = run_again(paper, quick=quick, told=_say_needed, progress=watch, **common)
        _draw(done, folder)
        _tell(done, folder, as_json=as_json)
    if any(_is_unexplained(done, i) for i in range(len(done.findings))):
        raise typer.Exit(Exit.CHECK_FAILED)


@contextmanager
def _resumable(store: Path) -> Iterator[None]:
    """Keep all finished runs whenever the command is interrupted, even between sweeps or while drawing."""
    from aqmlab.sweeps.store import kept_in

    try:
        yield
    except KeyboardInterrupt as stop:
        if not getattr(stop, "__notes__", []):
            stop.add_note(kept_in(store))
        raise


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Watcher]:
    """Show the current experiment and its progress."""
    with ProgressLine(enabled=not quiet, text=titled_text) as line:

        def watch(what: str, now: Progress) -> None:
            line.update((what, now))

        yield watch


def _say_needed(parts: Mapping[str, RequiredCells]) -> None:
    for file, part in parts.items():
        if part.cells is not None:
            say(f"cells      {part.count} of the {part.of} in {file}: those that are scored or shown")


def _is_unexplained(done: Reproduction, place: int) -> bool:
    scored = done.findings[place]
    return scored.status == "fails" and scored.finding.strength == "firm" and not scored.finding.note


def _draw(done: Reproduction, folder: Path) -> None:
    from aqmlab import _core
    from aqmlab.papers.figures import draw_figure
    from aqmlab.papers.scorecard import figures_folder
    from aqmlab.results import Results

    for figure in done.figures:
        results: Results | None = done.results.get(figure.experiment)
        try:
            file = draw_figure(
                figure, results, figures_folder(folder, live=done.live is not None), _core.__version__
            )
        except (ScenarioError, UsageError) as error:
            if done.live is not None:
                say(f"figure     {figure.name} cannot be drawn from the faithful runs: {error}")
                continue
            if not done.quick:
                raise
            say(f"figure     {figure.name} is not in the small version: {_left_out(done, figure) or error}")
            continue
        say(f"figure     {file}")


def _left_out(done: Reproduction, figure: PaperFigure) -> str:
    from aqmlab.claims import Names
    from aqmlab.papers.scoring import missing_labels_of

    where = {str(axis): str(label) for axis, label in figure.content.get("where", {}).items()}
    whole = done.whole.get(figure.experiment)
    lacking = (
        missing_labels_of(where, whole, Names.of_results(done.results[figure.experiment])) if whole else ""
    )
    return f"{lacking}: left out by --quick (`keep` in paper.toml)" if lacking else ""


def _tell(done: Reproduction, folder: Path, *, as_json: bool) -> None:
    from aqmlab.papers.causes import read_causes
    from aqmlab.papers.inference_json import read_inference
    from aqmlab.papers.scorecard_json import as_json as scorecard_json

    inference = None if done.live else read_inference(folder)
    causes = [] if done.live else read_causes(done.paper, folder)
    _show(done.paper, scorecard_json(done, _made(done.paper), inference, causes), folder, as_json=as_json)


def _text(paper: Paper, folder: Path, *, live: bool, as_json: bool) -> None:
    from aqmlab.papers.causes import rewrite
    from aqmlab.papers.folder import papers as known
    from aqmlab.papers.live import live_part
    from aqmlab.papers.stored_scorecard import stored_scorecard

    part = live_part(paper, known) if live else paper
    card = stored_scorecard(part, folder, live=live)
    if "scenarios" not in card:
        say(
            f"note       this scorecard of {card['date']} does not say which scenarios it is of, so it is not"
            " known whether they have changed"
        )
    _show(part, card, folder, as_json=as_json)
    if live:
        return
    if rewrite(part, folder)["findings"]:
        say(f"causes     {folder / 'causes.md'}")
    if card["inference"]:
        say(f"inference  {_save_inference(card['inference'], folder)}")


def _show(paper: Paper, card: Card, folder: Path, *, as_json: bool) -> None:
    """Print a scorecard, and write it into the folder."""
    from aqmlab.papers.live import live_text
    from aqmlab.papers.scorecard import headline, write_scorecard

    if as_json:
        tell_json(card)
    else:
        _print(paper, card)
        print(headline(card))
        if live := card.get("live"):
            print(live_text(live["faithful"], live["total"], live["refused"]))
    folder.mkdir(parents=True, exist_ok=True)
    markdown, html = write_scorecard(paper, card, folder)
    say(f"scorecard  {markdown}")
    say(f"           {html}")
    if untried := ", ".join(() if card["quick"] or "live" in card else _untried(paper, card)):
        say(f"causes     not scored yet: {untried}; `aqmlab reproduce {paper.key} --causes -o {folder}`")


def _untried(paper: Paper, card: Card) -> Iterator[str]:
    """Yield the findings that do not hold, and were not scored under each reading named as their cause."""
    causes = {finding.name: len(finding.causes) for finding in paper.findings}
    for entry in card["findings"]:
        if entry["status"] != "holds" and len(entry["explained"]) < causes[entry["name"]]:
            yield entry["name"]


def _print(paper: Paper, card: Card) -> None:
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.grid import Column, Grid, Span
    from aqmlab.papers.scorecard import cell_text, kinds_rows

    console = answer_console()
    console.print(paper.title, style="bold", markup=False)
    table = Grid("finding", "score", "strength", "kind", Column("what was measured", prose=True))
    for finding in card["findings"]:
        colour = {"holds": "green", "fails": "red"}.get(finding["status"], "yellow")
        row = (finding["name"], Span(finding["status"], colour), finding["strength"], finding["kind"])
        table.add(*row, "\n".join(finding["evidence"]))
    if card["findings"]:
        print_grid(console, table)
        head, *rows = kinds_rows(card)
        kinds = Grid(*head)
        for counts in rows:
            kinds.add(*counts)
        print_grid(console, kinds)
    titles = {table.name: (table.title, table.unit) for table in paper.tables}
    for filled in card["tables"]:
        title, unit = titles[filled["name"]]
        console.print(f"\nTable {filled['name']}: {title}{f' [{unit}]' if unit else ''}", markup=False)
        ours = Grid("", *(Column(label, right=True) for label in filled["columns"]), turns=True)
        for row_of in filled["rows"]:
            ours.add(row_of["label"], *map(cell_text, row_of["cells"]))
        print_grid(console, ours)


def _multiverse(paper: Paper, folder: Path, common: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from aqmlab.papers.multiverse import multiverse as go_through
    from aqmlab.papers.multiverse_report import multiverse_json, multiverse_markdown

    with _progress(quiet=quiet) as watch:
        table = go_through(paper, progress=watch, **common)
    text = multiverse_markdown(table, _made(paper))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "multiverse.md"
    save(file, text)
    if as_json:
        tell_json(multiverse_json(table))
    else:
        print(text)
    say(f"multiverse {file}")


def _check_options(
    wanted: Wanted, *, quick: bool, multiverse: bool, infer: bool, minutes: float | None
) -> None:
    if minutes is not None and not infer:
        raise UsageError("`--minutes` is the budget of `--infer`; add `--infer`, or leave it out")
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"`--minutes {minutes:g}` is not a valid budget; give a number above 0")
    if infer and (quick or multiverse or not wanted.everything):
        raise UsageError(
            "`--infer` uses what [infer] in paper.toml names; leave out --table, --figure, --finding,"
            " --quick and --multiverse"
        )


def _check_live(*, live: bool, other: bool, repeats: int | None) -> None:
    if repeats is not None and not live:
        raise UsageError("`--repeats` applies to live runs; add `--live`, or leave it out")
    if live and other:
        raise UsageError("`--live` scores the live experiments; leave out --multiverse, --infer and --causes")


def _check_causes(wanted: Wanted, *, causes: bool, other: bool) -> None:
    if causes and (other or wanted.tables or wanted.figures):
        raise UsageError(
            "`--causes` scores findings; leave out --table, --figure, --quick, --multiverse and --infer"
        )


def _causes(paper: Paper, folder: Path, common: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from aqmlab.papers.causes import add, causes_markdown, explained, rewrite, score_causes, to_explain
    from aqmlab.papers.reproduce import choose
    from aqmlab.papers.runner import Runner
    from aqmlab.papers.scorecard import write_scorecard
    from aqmlab.papers.scoring import reading_text
    from aqmlab.papers.stored_scorecard import stored_scorecard
    from aqmlab.sweeps.store import store_path

    wanted = common["wanted"]
    among = choose(paper, wanted)[0]
    wanting = to_explain(paper, folder, among)
    if not wanting and not wanted.everything:
        raise UsageError(
            f"nothing to explain: in {folder / 'scorecard.json'}, no requested finding that names a `cause`"
            " fails or is undecided"
        )
    stored_scorecard(paper, folder)  # refuses one of other statements or scenarios before anything is run
    content = rewrite(paper, folder)
    with _progress(quiet=quiet) as watch:
        runner = Runner(
            paper, store_path(common["store"]), common["jobs"], common["seeds"], watch, common["executor"]
        )
        entries = {finding.name: entry for finding, entry in wanting}
        tried: dict[str, list[tuple[Reading, ScoredFinding]]] = {name: [] for name in entries}
        for reading, scored in score_causes([finding for finding, _ in wanting], runner):
            for one in scored:
                tried[one.finding.name].append((reading, one))
            done = [(one.finding, entries[one.finding.name], tried[one.finding.name]) for one in scored]
            content = add(paper, folder, [explained(paper, *of, _made(paper)) for of in done])
            say(f"tried      {reading_text(reading)}: {', '.join(of.name for of, _, _ in done)}")
    if as_json:
        tell_json(content)
    else:
        print(causes_markdown(paper, content))
    write_scorecard(paper, stored_scorecard(paper, folder), folder)
    say(f"causes     {folder / 'causes.md'}")


def _infer(paper: Paper, folder: Path, common: dict[str, Any], *, as_json: bool, quiet: bool) -> None:
    from aqmlab.papers.inference import infer as search_for
    from aqmlab.papers.inference_json import inference_json

    with _progress(quiet=quiet) as watch:
        found = search_for(paper, progress=watch, told=lambda what: say(f"infer      {what}"), **common)
    content = inference_json(found, _made(paper))
    folder.mkdir(parents=True, exist_ok=True)
    file = _save_inference(content, folder)
    if as_json:
        tell_json(content)
    else:
        print(file.read_text(encoding="utf-8"))
    say(f"inference  {file}")


def _save_inference(content: Mapping[str, Any], folder: Path) -> Path:
    from aqmlab.papers.inference_json import FILE, inference_text
    from aqmlab.papers.inference_report import inference_markdown

    save(folder / FILE, inference_text(content))
    file = folder / "inference.md"
    save(file, inference_markdown(content))
    return file


def _made(paper: Paper) -> dict[str, str]:
    from aqmlab import _core
    from aqmlab.papers.scorecard import making

    return making(_core.__version__, _commit(paper.path))


def _commit(folder: Path) -> str:
    """Return the git commit of the folder, or an empty string outside a repository."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
