"""Delay against the rate of a link that changes: which queue lets delay grow when the rate falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from statistics import median
from typing import Any, NamedTuple

from aqmlab.errors import UsageError
from aqmlab.figures.looks import DASHED
from aqmlab.figures.model import Axis, Figure, Line, Look, Panel
from aqmlab.figures.over_time import draining_ms
from aqmlab.figures.view import View
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import run_series
from aqmlab.results.answers import Answer
from aqmlab.results.results import Results
from aqmlab.text.numbers import listed

GROUPS = 10
"""Groups of equal size into which the bins of an arm's runs are divided by the rate of the link."""
LEAST_MS = 0.01
"""The beginning of the axis of delays: shorter ones, and empty queues, are drawn there."""


class _Group(NamedTuple):
    """Bins in which the link had about the same rate."""

    rate_mbit_s: float
    """The mean of the rates."""
    median_ms: float
    p90_ms: float
    """Quantiles of the draining times."""


def delay_capacity(results: Results, view: View, queue: str) -> Figure:
    """Median and 90th percentile of the draining time against the rate of the link, with a colour per arm.

    Raises
    ------
    UsageError
        If the rate of the link does not change, or a choice does not apply.
    """
    by_arm = {arm: _groups(results, runs, queue) for arm, runs in _chosen(results, view, queue).items()}
    return _figure(f"{results.title}: {queue}", by_arm)


def delay_capacity_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`delay_capacity`."""
    yield ("arm", *_Group._fields)
    for arm, runs in _chosen(results, view, queue).items():
        for group in _groups(results, runs, queue):
            yield (arm, *(f"{value:.9g}" for value in group))


def of_answer(answer: Answer) -> Figure | None:
    """The figure that a report shows of an experiment with a link whose rate changes."""
    results = answer.results
    if results.axes:
        return None
    runs = {row.cell.arm: _sampled(results.runs_of(row.cell), answer.queue) for row in answer.rows}
    by_arm = {arm: _groups(results, its, answer.queue) for arm, its in runs.items() if its}
    title = "Delay against the rate of the link"
    return _figure(title, by_arm, title) if by_arm else None


def _figure(title: str, by_arm: dict[str, list[_Group]], panel: str = "") -> Figure:
    lines = []
    for i, (arm, groups) in enumerate(by_arm.items()):
        rates = [group.rate_mbit_s for group in groups]
        of_arm = {arm: Look(i), f"{arm}, 90 %": Look(i, DASHED, width=0.7)}
        for (name, look), column in zip(of_arm.items(), ("median_ms", "p90_ms"), strict=True):
            lines.append(Line(name, rates, [max(getattr(group, column), LEAST_MS) for group in groups], look))
    x, y = Axis("rate of the link [Mbit/s]", log=True), Axis("draining time [ms]", log=True, begin=LEAST_MS)
    return Figure(title, ((Panel(panel, x, y, tuple(lines)),),))


def _groups(results: Results, runs: Sequence[Run], queue: str) -> list[_Group]:
    pairs: list[tuple[float, float]] = []
    for of_run in run_series(results.tables, runs, queue):
        times, draining = draining_ms(of_run)
        rates = of_run.queue.values["capacity_bps"]
        begin_s = of_run.run.t0_ns / 1e9
        pairs.extend(
            (rate / 1e6, ms) for t_s, rate, ms in zip(times, rates, draining, strict=False) if t_s > begin_s
        )
    pairs.sort()
    found = []
    for i in range(min(GROUPS, len(pairs))):
        part = pairs[i * len(pairs) // GROUPS : (i + 1) * len(pairs) // GROUPS]
        if part:
            delays = sorted(ms for _, ms in part)
            rate = fsum(rate for rate, _ in part) / len(part)
            found.append(_Group(rate, median(delays), delays[min(len(delays) * 9 // 10, len(delays) - 1)]))
    return found


def _sampled(runs: Sequence[Run], queue: str) -> list[Run]:
    return [run for run in runs if "queues" in run.manifest.tables and run.changes(queue)]


def _chosen(results: Results, view: View, queue: str) -> dict[str, list[Run]]:
    if given := [option for option in view.chosen() if option != "`--arm`"]:
        raise UsageError(f"`delay-capacity` shows whole runs of all flows; leave out {listed(given)}")
    found = {run.arm: _sampled(results.runs_of(run.arm), queue) for run in view.runs(results)}
    if not any(found.values()):
        raise UsageError(f"the rate of `{queue}` does not change, or its queue is not sampled")
    return {arm: runs for arm, runs in found.items() if runs}
