"""Shapers that are adjusted: rates of the link and of the shaper, and delays of reflectors, over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.figures.looks import DASHED, MUTED, PALETTE
from aqmlab.figures.model import INK, Figure, Line, Look, Mark, over_time, warmup
from aqmlab.figures.view import View
from aqmlab.recordings.recording import Run
from aqmlab.results.results import Results

_TABLE = "autorate"
_COLUMNS = ("t_ns", "reflector", "delay_ns", "baseline_ns", "load", "action", "leaving_bps", "shaper_bps")


def autorate(results: Results, view: View, _queue: str) -> Figure:
    """Rates of changing links and of shapers, and delays with their baselines, for arms with a controller."""
    runs = [run for run in view.runs(results) if _is_adjusted(run)]
    if not runs:
        raise UsageError(
            "no shaper of these arms is adjusted; write `autorate` for a link, or choose another figure"
        )
    begin, end = view.limits(0.0, max(run.t1_ns for run in runs) / 1e9)
    rows: dict[str, list[list[Mark]]] = {"rate [Mbit/s]": [], "delay [ms]": []}
    for run in runs:
        before = warmup(run.t0_ns / 1e9, begin)
        answers = _answers(results, run)
        rows["rate [Mbit/s]"].append([*before, *_capacities(results, run), *_rates(answers)])
        rows["delay [ms]"].append([*before, *_delays(answers)])
    title = f"{results.title}: shapers, seed {runs[0].seed}"
    return over_time(title, [run.arm for run in runs], rows, (begin, end), bottom=0.0, legend="rows")


def autorate_rows(results: Results, view: View, _queue: str) -> Iterator[tuple[Any, ...]]:
    """Return the answers as numbers."""
    yield ("arm", *_COLUMNS)
    for run in view.runs(results):
        begin, end = view.limits(0.0, run.t1_ns / 1e9)
        for row in _answers(results, run):
            if begin <= row[0] / 1e9 <= end:
                yield (run.arm, *row)


def _is_adjusted(run: Run) -> bool:
    return _TABLE in run.manifest.tables


def _answers(results: Results, run: Run) -> list[tuple[Any, ...]]:
    if not _is_adjusted(run):
        return []
    rows = results.tables.rows(_TABLE, ", ".join(_COLUMNS), "ORDER BY t_ns, reflector", [run])
    return [tuple(row) for row in rows]


def _capacities(results: Results, run: Run) -> Iterator[Line]:
    """Yield the rate of each link that changes."""
    looks = (Look(INK, width=0.6), Look(MUTED, DASHED, width=0.6))
    names = [link.name for link in run.plan.links if run.changes(link.name)]
    for name, look in zip(names, looks, strict=False):
        rows = results.tables.rows(
            "capacity",
            "t_ns, capacity_bytes",
            f"WHERE queue = '{name}' AND t_ns > 0 ORDER BY t_ns",
            [run],
        )
        samples = [(float(at), float(size)) for at, size in rows]
        ends = [0.0, *(at for at, _ in samples)]
        rates = [8e3 * size / (at - before) for (at, size), before in zip(samples, ends, strict=False)]
        yield Line(f"{name}: capacity", [at / 1e9 for at, _ in samples], rates, look)


def _rates(answers: list[tuple[Any, ...]]) -> Iterator[Line]:
    if answers:
        times = [row[0] / 1e9 for row in answers]
        yield Line("leaves the shaper", times, [row[6] / 1e6 for row in answers], Look(PALETTE[0], width=0.6))
        yield Line("shaper", times, [row[7] / 1e6 for row in answers], Look(PALETTE[3], width=1.2))


def _delays(answers: list[tuple[Any, ...]]) -> Iterator[Line]:
    if answers:
        times = [row[0] / 1e9 for row in answers]
        yield Line(
            "delay of reflectors", times, [row[2] / 1e6 for row in answers], Look(PALETTE[0], width=0.6)
        )
        yield Line("baseline", times, [row[3] / 1e6 for row in answers], Look(PALETTE[3], DASHED, width=1.0))
