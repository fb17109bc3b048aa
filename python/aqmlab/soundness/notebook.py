"""The display of results in notebooks: an experiment and the doubts about it."""

from __future__ import annotations

from aqmlab.errors import AqmlabError
from aqmlab.results.results import Results
from aqmlab.soundness import doubts
from aqmlab.text.notebook import block, facts, note, runs_text, seeds_text, title
from aqmlab.text.numbers import counted


def results_html(results: Results) -> str:
    """Return title, axes, arms, seeds, runs and directory as HTML; for a single case, also the doubts.

    In a sweep, finding the doubts takes a long time.
    """
    rows = [
        *((f"axis {axis.short}", ", ".join(axis.labels)) for axis in results.axes),
        ("arms", ", ".join(results.arms)),
        ("seeds", seeds_text(results.seeds).removeprefix("seeds ").removeprefix("seed ")),
        ("runs", runs_text(len(results.runs), len(results.missing))),
        ("directory", str(results.path)),
        *([] if results.axes else [("doubts", _doubts_text(results))]),
    ]
    question = note(results.question) if results.question else ""
    return block(title(results.title), question, facts(rows))


def _doubts_text(results: Results) -> str:
    if not results.runs:
        return "no run has finished"
    try:
        found = doubts(results)
    except AqmlabError as error:
        return f"not looked for: {error}"
    if not found:
        return "none"
    return f"{counted(len(found), 'doubt')}: " + "; ".join(f"{d.severity}: {d.sentence}" for d in found)
