"""The commands that score a published paper: ``paper list``, ``reproduce``, ``live`` and ``text``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.console import Exit, say, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Jobs, Quiet, Seeds, StorePath, Where, on_executors
from aqmlab.cli.paper_options import (
    SEEDS,
    Figures,
    Findings,
    Folder,
    Key,
    Quick,
    Tables,
    folder_of,
    made,
    progress,
    resumable,
)
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.system.files import save

if TYPE_CHECKING:
    from aqmlab.papers.paper import Paper, PaperFigure
    from aqmlab.papers.reproduce import Reproduction
    from aqmlab.papers.required_cells import RequiredCells
    from aqmlab.papers.scorecard_json import Card


def paper_list(as_json: AsJson = False) -> None:
    """List the papers that can be reproduced and how long each takes."""
    from aqmlab.papers.folder import papers as known

    found = known()
    if as_json:
        tell_json({"format_version": 1, "papers": [_about(paper) for paper in found]})
        return
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.text.tables import Column, Grid

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
def paper_reproduce(
    key: Key,
    table: Tables = None,
    figure: Figures = None,
    finding: Findings = None,
    seeds: Annotated[int | None, typer.Option(*Seeds, help=SEEDS)] = None,
    quick: Quick = False,
    output: Folder = None,
    store: StorePath = None,
    jobs: Jobs = None,
    executor: Where = "local",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a paper: run its experiments, fill its tables, draw its figures, score its findings.

    An interrupted reproduction resumes when the command is repeated. Exits with 1 if a firm finding fails and
    the folder does not explain it.
    """
    from aqmlab.papers.reproduce import Wanted

    set_quiet(quiet)
    asked: dict[str, Any] = {
        "wanted": Wanted(table or (), figure or (), finding or ()),
        "seeds": seeds,
        "store": store,
        "jobs": jobs,
        "executor": executor,
    }
    _reproduce(key, output, asked, quick=quick, as_json=as_json, quiet=quiet)


def paper_live(
    key: Key,
    table: Tables = None,
    figure: Figures = None,
    finding: Findings = None,
    seeds: Annotated[int | None, typer.Option(*Seeds, help=SEEDS)] = None,
    quick: Quick = False,
    repeats: Annotated[
        int | None,
        typer.Option(min=0, help="How many times to repeat a run that is not faithful; 2 by default."),
    ] = None,
    output: Folder = None,
    store: StorePath = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a paper's testbed between this machine's TCP stacks, in real time, and score its findings.

    Only faithful runs count; the others are repeated. `live.md` shows the simulated value next to each
    number.
    """
    from aqmlab.cli.live import tell_stopping
    from aqmlab.papers.live import REPEATS
    from aqmlab.papers.reproduce import Wanted

    set_quiet(quiet)
    asked: dict[str, Any] = {
        "wanted": Wanted(table or (), figure or (), finding or ()),
        "seeds": seeds,
        "store": store,
        "jobs": jobs,
        "live": True,
        "repeats": REPEATS if repeats is None else repeats,
        "interrupted": tell_stopping,
    }
    _reproduce(key, output, asked, quick=quick, as_json=as_json, quiet=quiet)


def _reproduce(
    key: str, output: Path | None, asked: dict[str, Any], *, quick: bool, as_json: bool, quiet: bool
) -> None:
    from aqmlab.papers.folder import find_paper
    from aqmlab.papers.reproduce import reproduce

    paper = find_paper(key)
    folder = folder_of(paper, output, asked["store"])
    with resumable(asked["store"]):
        with progress(quiet=quiet) as watch:
            done = reproduce(paper, quick=quick, notify=_say_needed, progress=watch, **asked)
        _draw(done, folder)
        _tell(done, folder, as_json=as_json)
    if any(_is_unexplained(done, i) for i in range(len(done.findings))):
        raise typer.Exit(Exit.CHECK_FAILED)


def paper_text(
    key: Key,
    live: Annotated[bool, typer.Option("--live", help="The texts of the live scorecard.")] = False,
    output: Folder = None,
    store: StorePath = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the texts of a scorecard again, from its values and the paper's current texts; nothing is run.

    Texts, kinds, notes and causes are read again from the paper's folder, and the values from
    `scorecard.json` (with --live, from `live.json`). A changed statement or scenario is refused.
    """
    from aqmlab.papers.folder import find_paper

    set_quiet(quiet)
    paper = find_paper(key)
    _text(paper, folder_of(paper, output, store), live=live, as_json=as_json)


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
    from aqmlab.results.results import Results

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
    _show(done.paper, scorecard_json(done, made(done.paper), inference, causes), folder, as_json=as_json)


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
        say(f"inference  {save_inference(card['inference'], folder)}")


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
        say(f"causes     not scored yet: {untried}; `aqmlab paper causes {paper.key} -o {folder}`")


def _untried(paper: Paper, card: Card) -> Iterator[str]:
    """Yield the findings that do not hold, and were not scored under each reading named as their cause."""
    causes = {finding.name: len(finding.causes) for finding in paper.findings}
    for entry in card["findings"]:
        if entry["status"] != "holds" and len(entry["explained"]) < causes[entry["name"]]:
            yield entry["name"]


def _print(paper: Paper, card: Card) -> None:
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.papers.scorecard import cell_text, kinds_rows
    from aqmlab.text.tables import Column, Grid, Span

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


def save_inference(content: Mapping[str, Any], folder: Path) -> Path:
    """Write an inference and its page into a folder; return the page."""
    from aqmlab.papers.inference_json import FILE, inference_text
    from aqmlab.papers.inference_report import inference_markdown

    save(folder / FILE, inference_text(content))
    file = folder / "inference.md"
    save(file, inference_markdown(content))
    return file
