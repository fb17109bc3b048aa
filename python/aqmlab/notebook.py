"""What a notebook shows of results: HTML without scripts, readable on light ground and on dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from aqmlab.errors import AqmlabError
from aqmlab.figures import counted
from aqmlab.grid import Column, Grid

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.comparison import Comparison
    from aqmlab.recording import Experiment
    from aqmlab.results import Results

_SOFT = "opacity:0.75;font-size:90%"


def block(*parts: str) -> str:
    """Parts of HTML as one."""
    return f"<div>{''.join(parts)}</div>"


def title(text: str) -> str:
    """A bold line."""
    return f"<p style='margin:0.3em 0'><b>{escape(text)}</b></p>"


def said(text: str) -> str:
    """A line."""
    return f"<p style='margin:0.3em 0'>{escape(text)}</p>"


def note(text: str) -> str:
    """A line of less weight."""
    return f"<p style='margin:0.3em 0;{_SOFT}'>{escape(text)}</p>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A table of two columns."""
    grid = Grid("", Column("", prose=True))
    for what, of in pairs:
        grid.add(what, of)
    return grid.html()


def seeds_text(seeds: Sequence[int]) -> str:
    """``seed 1``, ``seeds 1 to 10``; all of them where one is left out."""
    if not seeds:
        return "no seeds"
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def names_text(names: Sequence[str], most: int = 6) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def experiment_html(experiment: Experiment) -> str:
    """Title, arms, seeds, directory, and what speaks against believing it."""
    rows = [
        ("arms", ", ".join(experiment.arms)),
        ("seeds", seeds_text(experiment.seeds).removeprefix("seeds ").removeprefix("seed ")),
        ("runs", _runs_text(len(experiment.runs), len(experiment.missing))),
        ("directory", str(experiment.path)),
        ("doubts", _doubts_text(experiment)),
    ]
    question = note(experiment.question) if experiment.question else ""
    return block(title(experiment.title), question, facts(rows))


def results_html(results: Results) -> str:
    """Title, axes, arms, seeds and directory."""
    rows = [
        *((f"axis {axis.short}", ", ".join(axis.labels)) for axis in results.axes),
        ("arms", ", ".join(results.arms)),
        ("seeds", seeds_text(results.seeds).removeprefix("seeds ").removeprefix("seed ")),
        ("runs", _runs_text(sum(len(results.runs(c)) for c in results.cells), len(results.missing))),
        ("directory", str(results.path)),
    ]
    question = note(results.question) if results.question else ""
    return block(title(results.title), question, facts(rows))


def comparison_html(found: Comparison) -> str:
    """A row per comparison, and what they say together."""
    rest = [text for text in (found.several.note, *found.unpaired) if text]
    return block(title(f"{found.second} against {found.first}"), found.grid().html(), *map(note, rest))


def claims_html(scored: Scored) -> str:
    """A claim, whether it holds, and the sentence of what decided it."""
    from aqmlab.claims.text import MOST_SHOWN, placed_sentence

    sentences = [placed_sentence(part) for part in scored.deciding()[:MOST_SHOWN]]
    head = f"{scored.status}: {scored.claim.name}"
    reason = [scored.verdict.reason] if scored.status == "undecided" and scored.verdict.reason else []
    return block(
        title(head), said(scored.claim.text or scored.claim.expect), *map(note, [*reason, *sentences])
    )


def _runs_text(done: int, missing: int) -> str:
    return f"{done} finished" + (f", {missing} missing" if missing else "")


def _doubts_text(experiment: Experiment) -> str:
    from aqmlab.results import Results
    from aqmlab.soundness import doubts

    if not experiment.runs:
        return "no run has finished"
    try:
        found = doubts(Results.of_experiment(experiment))
    except AqmlabError as error:
        return f"not looked for: {error}"
    if not found:
        return "none"
    return f"{counted(len(found), 'doubt')}: " + "; ".join(f"{d.severity}: {d.sentence}" for d in found)
