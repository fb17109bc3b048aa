"""The commands that run a paper under other readings: ``paper causes``, ``multiverse`` and ``infer``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.console import say, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Jobs, Quiet, Seeds, StorePath, Where, on_executors
from aqmlab.cli.paper_options import SEEDS, Findings, Folder, Key, folder_of, made, progress, resumable
from aqmlab.cli.paper_scores import save_inference
from aqmlab.errors import UsageError
from aqmlab.system.files import save

if TYPE_CHECKING:
    from aqmlab.papers.scoring import ScoredFinding
    from aqmlab.papers.variants import Reading


@on_executors
def paper_causes(
    key: Key,
    finding: Findings = None,
    seeds: Annotated[int | None, typer.Option(*Seeds, help=SEEDS)] = None,
    output: Folder = None,
    store: StorePath = None,
    jobs: Jobs = None,
    executor: Where = "local",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score the findings that do not hold in a scorecard under the readings that may explain them.

    The readings are those that paper.toml names as a finding's `cause`. `causes.md` shows what was measured,
    and the scorecard names the outcomes; findings that are not requested keep their entries.
    """
    from aqmlab.papers.causes import add, causes_markdown, explained, rewrite, score_causes, to_explain
    from aqmlab.papers.folder import find_paper
    from aqmlab.papers.reproduce import Wanted, choose
    from aqmlab.papers.runner import Runner
    from aqmlab.papers.scorecard import write_scorecard
    from aqmlab.papers.scoring import reading_text
    from aqmlab.papers.stored_scorecard import stored_scorecard
    from aqmlab.sweeps.store import store_path

    set_quiet(quiet)
    paper = find_paper(key)
    folder = folder_of(paper, output, store)
    wanted = Wanted(findings=finding or ())
    wanting = to_explain(paper, folder, choose(paper, wanted)[0])
    if not wanting and finding:
        raise UsageError(
            f"nothing to explain: in {folder / 'scorecard.json'}, no requested finding that names a `cause`"
            " fails or is undecided"
        )
    stored_scorecard(paper, folder)  # refuses one of other statements or scenarios before anything is run
    content = rewrite(paper, folder)
    entries = {one.name: entry for one, entry in wanting}
    tried: dict[str, list[tuple[Reading, ScoredFinding]]] = {name: [] for name in entries}
    with resumable(store), progress(quiet=quiet) as watch:
        runner = Runner(paper, store_path(store), jobs, seeds, watch, executor)
        for reading, scored in score_causes([one for one, _ in wanting], runner):
            for one in scored:
                tried[one.finding.name].append((reading, one))
            done = [(one.finding, entries[one.finding.name], tried[one.finding.name]) for one in scored]
            content = add(paper, folder, [explained(paper, *of, made(paper)) for of in done])
            say(f"tried      {reading_text(reading)}: {', '.join(of.name for of, _, _ in done)}")
    if as_json:
        tell_json(content)
    else:
        print(causes_markdown(paper, content))
    write_scorecard(paper, stored_scorecard(paper, folder), folder)
    say(f"causes     {folder / 'causes.md'}")


@on_executors
def paper_multiverse(
    key: Key,
    finding: Findings = None,
    seeds: Annotated[int | None, typer.Option(*Seeds, help=SEEDS)] = None,
    output: Folder = None,
    store: StorePath = None,
    jobs: Jobs = None,
    executor: Where = "local",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score every reading of a paper, not only the one that its folder fixes, into `multiverse.md`."""
    from aqmlab.papers.folder import find_paper
    from aqmlab.papers.multiverse import multiverse
    from aqmlab.papers.multiverse_report import multiverse_json, multiverse_markdown
    from aqmlab.papers.reproduce import Wanted

    set_quiet(quiet)
    paper = find_paper(key)
    folder = folder_of(paper, output, store)
    with resumable(store), progress(quiet=quiet) as watch:
        table = multiverse(
            paper,
            wanted=Wanted(findings=finding or ()),
            seeds=seeds,
            store=store,
            jobs=jobs,
            executor=executor,
            progress=watch,
        )
    text = multiverse_markdown(table, made(paper))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "multiverse.md"
    save(file, text)
    if as_json:
        tell_json(multiverse_json(table))
    else:
        print(text)
    say(f"multiverse {file}")


@on_executors
def paper_infer(
    key: Key,
    minutes: Annotated[float | None, typer.Option(help="The budget; overrides the paper's folder.")] = None,
    seeds: Annotated[int | None, typer.Option(*Seeds, help=SEEDS)] = None,
    output: Folder = None,
    store: StorePath = None,
    jobs: Jobs = None,
    executor: Where = "local",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Search for the reading that fits one part of a paper's results, and test it on the other part.

    Nothing is scored: `inference.md` reports which reading fits the part that paper.toml names, its error on
    the other part, and the evidence for each setting.
    """
    from aqmlab.papers.folder import find_paper
    from aqmlab.papers.inference import infer
    from aqmlab.papers.inference_json import inference_json

    set_quiet(quiet)
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"`--minutes {minutes:g}` is not a valid budget; give a number above 0")
    paper = find_paper(key)
    folder = folder_of(paper, output, store)
    asked: dict[str, Any] = {"seeds": seeds, "store": store, "jobs": jobs, "executor": executor}
    with resumable(store), progress(quiet=quiet) as watch:
        found = infer(
            paper,
            minutes=minutes,
            progress=watch,
            notify=lambda what: say(f"infer      {what}"),
            **asked,
        )
    content = inference_json(found, made(paper))
    folder.mkdir(parents=True, exist_ok=True)
    file = save_inference(content, folder)
    if as_json:
        tell_json(content)
    else:
        print(file.read_text(encoding="utf-8"))
    say(f"inference  {file}")
