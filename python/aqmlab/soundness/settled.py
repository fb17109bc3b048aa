"""Checks that the initial transient is over when measurement begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqmlab.errors import RecordingError
from aqmlab.soundness.doubt import CellDoubt, Check, Doubt, merged
from aqmlab.soundness.queue_history import QueueHistory, queue_histories
from aqmlab.stats.intervals import estimate
from aqmlab.stats.warmup import mser
from aqmlab.text.numbers import time_text

if TYPE_CHECKING:
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

SETTLING_RTTS = 10
"""Number of round trips that a flow should have completed before it is measured (our choice)."""
LEAST_BIAS = 0.01
BIAS_OF_ONE_RUN = 0.05
"""The effect of the beginning of a run on a mean is reported only above this share of it (our choice).

The second value applies to a single run, which has no interval for comparison.
"""


def flows_have_started(results: Results) -> Check:
    """Check that measurement begins after the flows that start with the run have found their rate."""
    kind, findings = "start", []
    latest = begin = 0.0
    for cell in results.cells:
        late, last = 0, 0.0
        for run in results.measured(cell):
            begin = run.run.t0_ns / 1e9
            # Transfers that arrive during the whole run are a workload, not an initial phase.
            long_lived = {entry.name for entry in run.run.plan.greedy}
            for flow in run.flows:
                if flow.class_name in long_lived:
                    last = max(last, flow.start_ns / 1e9)
                    late += flow.start_ns + SETTLING_RTTS * flow.base_rtt_ns > run.run.t0_ns
        latest = max(latest, last)
        if late:
            sentence = (
                f"the last flow starts at {last:.2f} s and measurement at {time_text(begin)}: over all runs,"
                f" {late} flows have fewer than {SETTLING_RTTS} round trips to settle"
            )
            findings.append(CellDoubt(cell, "warning", sentence, "make `warmup` longer", last))
    finding = (
        f"the last flow starts at {latest:.2f} s and measurement at {time_text(begin)}"
        if latest
        else f"measurement starts at {time_text(begin)}; every greedy flow starts with the run"
    )
    return Check(kind, "flows have started before measurement", finding, merged(kind, results, findings))


@dataclass(frozen=True)
class _Beginning:
    """How the mean of a series changes if more of the beginning of a run is omitted."""

    cut_s: float
    settled: bool
    bias: float
    mean: float


def warm_up_is_long_enough(results: Results) -> Check:
    """Compare the configured warm-up with MSER-5's for backlog and throughput, each averaged over the seeds.

    A later cut than the configured one is reported only if it would change the mean by more than the
    half-width of its interval over seeds.
    """
    kind, findings, seen = "warm-up", [], 0
    question = "the warm-up is long enough"
    try:
        by_cell = queue_histories(results)
    except RecordingError as error:
        unread = (Doubt(results.cells, "serious", kind, str(error), "run it again: `--force` in a sweep"),)
        return Check(kind, question, "", unread)
    for cell, series in by_cell.items():
        t0_s, found = results.runs_of(cell)[0].t0_ns / 1e9, []
        for course in series:
            seen += 1
            beginning = _beginning(course, t0_s)
            if beginning is not None and _matters(beginning, course, results, cell):
                found.append(_told(cell, beginning, course, t0_s))
        findings += [max(found, key=lambda told: told.badness)] if found else []
    finding = (
        "MSER-5 would not start later, or a later start changes nothing"
        if seen
        else "queues were not sampled, so MSER-5 cannot be applied"
    )
    return Check(kind, question, finding, merged(kind, results, findings))


def _told(cell: Cell, beginning: _Beginning, course: QueueHistory, t0_s: float) -> CellDoubt:
    change = beginning.bias / beginning.mean if beginning.mean else math.inf
    if abs(change) < 1:
        instead = f"{100 * abs(change):.2g} % {'higher' if change > 0 else 'lower'}"
    else:
        instead = f"{1 + change:.2g} times as high"
    if not math.isfinite(change):
        zero = f"{course.what} has a mean of zero from {time_text(beginning.cut_s, 3)} on, but not from"
        sentence = f"{zero} {time_text(t0_s)}, where the measured interval begins"
        remedy = "make `warmup` longer, or state that the scenario studies a transient"
    elif beginning.settled:
        sentence = (
            f"MSER-5 would measure {course.what} from {time_text(beginning.cut_s, 3)}"
            f" instead of {time_text(t0_s)}, which makes its mean {instead}"
        )
        remedy = "make `warmup` longer"
    else:
        sentence = (
            f"MSER-5 finds no steady state in {course.what}: measured from {time_text(t0_s)}, its mean"
            f" is {instead} {'than' if abs(change) < 1 else 'as'} from {time_text(beginning.cut_s, 3)} on"
        )
        remedy = "make the run longer, or state that the scenario studies a transient"
    return CellDoubt(cell, "warning", sentence, remedy, abs(change))


def _beginning(course: QueueHistory, t0_s: float) -> _Beginning | None:
    """Return MSER-5's result for a series; ``None`` if it would cut no more than the warm-up."""
    found = mser(course.values)
    if found is None or found.cut * course.step_s <= t0_s:
        return None
    configured = course.values[math.ceil(t0_s / course.step_s) :]
    rest = course.values[found.cut :]
    if not configured or not rest:
        return None
    mean = math.fsum(rest) / len(rest)
    bias = math.fsum(configured) / len(configured) - mean
    return _Beginning(found.cut * course.step_s, found.settled, bias, mean)


def _matters(beginning: _Beginning, course: QueueHistory, results: Results, cell: Cell) -> bool:
    """Whether the beginning changes the mean by more than chance does."""
    bias = abs(beginning.bias)
    over_seeds = estimate(results.values(course.metric, cell).values())
    if over_seeds is None or over_seeds.half_width is None:
        return bias > max(course.trifle, BIAS_OF_ONE_RUN * abs(beginning.mean))
    return bias > max(course.trifle, LEAST_BIAS * abs(beginning.mean), over_seeds.half_width)
