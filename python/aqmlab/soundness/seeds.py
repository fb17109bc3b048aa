"""Checks that there are enough independent runs: that all have finished, and that none copies another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from aqmlab.errors import RecordingError
from aqmlab.soundness.doubt import CellDoubt, Check, merged
from aqmlab.soundness.queue_history import queue_histories
from aqmlab.stats.batch_means import batch_means
from aqmlab.stats.student import quantile
from aqmlab.stats.verdict import LEAST_SEEDS
from aqmlab.text.numbers import counted, estimate_text

if TYPE_CHECKING:
    from aqmlab.metrics import Measured
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

PLENTY = 10
"""Number of seeds whose interval serves as the reference for widths.

The t quantile at this number is within a seventh of the normal one.
"""


def finished(results: Results) -> Check:
    """Check for missing runs, which are seldom missing by chance: failed runs may be the interesting ones."""
    kind, asked = "finished", len(results.seeds)
    total = len(results.cells) * asked
    findings = []
    for cell in results.cells:
        lost = [run for run in results.missing if run.cell == cell]
        if lost:
            verb = "is" if len(lost) == 1 else "are"
            sentence = (
                f"{len(lost)} of {counted(asked, 'run')} {verb} missing, the first with seed {lost[0].seed}"
                f" ({lost[0].reason})"
            )
            findings.append(CellDoubt(cell, "serious", sentence, _RUN_AGAIN, len(lost)))
    return Check(kind, "all runs finished", f"{total} of {total}", merged(kind, results, findings))


_RUN_AGAIN = "run the missing seeds: the finished ones may not be representative"


def enough(results: Results) -> Check:
    """Check the number of runs: a single run has no interval, and intervals over few runs are wide."""
    kind, findings, counts = "seeds", [], []
    for cell in results.cells:
        n = len(results.runs_of(cell))
        counts.append(n)
        if n == 1:
            sentence = f"one run: no interval over seeds{_by_batches(results, cell)}"
            findings.append(CellDoubt(cell, "warning", sentence, _MORE_SEEDS))
        elif 1 < n < LEAST_SEEDS:
            sentence = (
                f"{n} seeds: intervals are {_width(n) / _width(PLENTY):.1f} times as wide as with {PLENTY},"
                f" and no claim is decided with fewer than {LEAST_SEEDS}"
            )
            findings.append(CellDoubt(cell, "note", sentence, _MORE_SEEDS, -n))
    least = min((n for n in counts if n), default=0)
    finding = f"{least} {'in each cell' if len(counts) > 1 else ''}".strip()
    return Check(kind, "there are several seeds", finding, merged(kind, results, findings))


_MORE_SEEDS = f"set `runs` to {LEAST_SEEDS} or more"


def _by_batches(results: Results, cell: Cell) -> str:
    """Return the interval by batch means of a single run, in words, if the results have only one cell."""
    if len(results.cells) > 1:
        return ""
    try:
        series = queue_histories(results).get(cell, ())
    except RecordingError:
        return ""  # the check of the warm-up reports this error
    for course in series[:1]:
        after = math.ceil(results.runs_of(cell)[0].t0_ns / 1e9 / course.step_s)
        found = batch_means(course.values[after:])
        if found.estimate is not None and found.independent:
            text = estimate_text(found.estimate, "packets")
            return f"; by batch means its mean backlog is {text} packets"
    return ""


def _width(n: int) -> float:
    """Half-width of a t interval over ``n`` values, divided by their standard deviation."""
    return quantile(0.95, n - 1) / math.sqrt(n)


def differ(results: Results) -> Check:
    """Check that the runs differ: intervals over copies of one run would suggest a false certainty."""
    kind, findings, compared = "chance", [], 0
    for cell in results.cells:
        runs = results.measured(cell)
        if len(runs) < 2:
            continue
        compared += 1
        copies = _copies(runs)
        if len(copies) == len(runs):
            sentence = f"all {len(runs)} seeds gave identical counts for every queue and flow"
            remedy = (
                "one run is enough if the scenario draws nothing at random; for intervals, draw the flows'"
                " `start` or `rtt`"
            )
            findings.append(CellDoubt(cell, "warning", sentence, remedy, len(runs)))
        elif copies:
            sentence = f"seeds {' and '.join(map(str, copies))} gave identical results"
            remedy = "check that the scenario draws something at random: identical runs are not independent"
            findings.append(CellDoubt(cell, "warning", sentence, remedy, len(copies)))
    finding = "all runs differ" if compared else "one run: nothing to compare"
    return Check(kind, "seeds differ", finding, merged(kind, results, findings))


def _copies(runs: tuple[Measured, ...]) -> list[int]:
    """The seeds of the first set of runs that agree in every count of every queue and flow."""
    for i, first in enumerate(runs):
        same = [run.run.seed for run in runs[i:] if run.queues == first.queues and run.flows == first.flows]
        if len(same) > 1:
            return same
    return []
