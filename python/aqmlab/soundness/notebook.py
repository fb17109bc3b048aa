"""What a notebook shows of an experiment: with what speaks against believing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.errors import AqmlabError
from aqmlab.figures import counted
from aqmlab.notebook import block, facts, note, runs_text, seeds_text, title
from aqmlab.results import Results
from aqmlab.soundness import doubts

if TYPE_CHECKING:
    from aqmlab.recording import Experiment


def experiment_html(experiment: Experiment) -> str:
    """Title, arms, seeds, directory, and what speaks against believing it."""
    rows = [
        ("arms", ", ".join(experiment.arms)),
        ("seeds", seeds_text(experiment.seeds).removeprefix("seeds ").removeprefix("seed ")),
        ("runs", runs_text(len(experiment.runs), len(experiment.missing))),
        ("directory", str(experiment.path)),
        ("doubts", _doubts_text(experiment)),
    ]
    question = note(experiment.question) if experiment.question else ""
    return block(title(experiment.title), question, facts(rows))


def _doubts_text(experiment: Experiment) -> str:
    if not experiment.runs:
        return "no run has finished"
    try:
        found = doubts(Results.of_experiment(experiment))
    except AqmlabError as error:
        return f"not looked for: {error}"
    if not found:
        return "none"
    return f"{counted(len(found), 'doubt')}: " + "; ".join(f"{d.severity}: {d.sentence}" for d in found)
