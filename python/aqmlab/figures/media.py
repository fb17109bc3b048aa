"""Media: the delay of frames by arm, and the rates of senders over time next to that of the link."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from aqmlab.errors import UsageError
from aqmlab.figures.delay_cdf import cdf_panel
from aqmlab.figures.distributions import DelayCdf, cdf_of
from aqmlab.figures.looks import DASHED, PALETTE, dash_lengths
from aqmlab.figures.model import BAND, INK, Figure, Line, Look, Mark, arm_look, over_time, warmup
from aqmlab.figures.over_time import queue_columns
from aqmlab.figures.panel_grid import MEAN_DELAY, PanelGrid, panel_grid
from aqmlab.figures.view import View
from aqmlab.metrics.measured import is_of
from aqmlab.recordings.recording import Run
from aqmlab.recordings.time_series import run_series
from aqmlab.results.results import Results

Curves = dict[str, DelayCdf]
"""Distributions by arm."""

_TO = {"client": "to clients", "server": "to servers"}


def _found(results: Results, view: View, queue: str | None) -> tuple[PanelGrid, list[tuple[str, Curves]]]:
    """Return the distributions by class and direction, each with the title of its plot."""
    if view.metrics:
        raise UsageError("`frame-delay-cdf` shows frame delay: leave out the metric")
    grid = panel_grid(results, view, queue, along=False, metrics=(MEAN_DELAY,))
    found: dict[str, Curves] = {}
    for subject, arm in product(grid.subjects, grid.arms):
        cell = grid.cell(arm, subject, "")
        runs = [] if cell is None else results.measured(cell)
        parts = {(part.class_name, part.to) for run in runs for part in run.frames_of(view.class_name)}
        for class_name, to in sorted(parts):
            both = {other for name, other in parts if name == class_name}
            name = f"{class_name}, {_TO[to]}" if len(both) > 1 else class_name
            title = f"{name}, {subject.title}" if subject.title else name
            of_seeds = [part.delay() for run in runs for part in run.frames_of(class_name) if part.to == to]
            if (cdf := cdf_of(of_seeds)) is not None:
                found.setdefault(title, {})[arm] = cdf
    if not found:
        raise UsageError("`frame-delay-cdf` has nothing to show: no class has frames that arrived")
    return grid, list(found.items())


def frame_delay_cdf(results: Results, view: View, queue: str | None) -> Figure:
    """Distributions of frame delay, one plot per class: the mean over the seeds and its 95 % interval."""
    grid, found = _found(results, view, queue)
    panels = [
        cdf_panel(
            title,
            [(arm, arm_look(grid.arms[arm]), cdf) for arm, cdf in curves.items()],
            ("frame delay [ms]", "share of frames"),
        )
        for title, curves in found
    ]
    notes = (BAND,) if len(results.seeds) > 1 else ()
    return Figure(grid.title("frame delay"), (tuple(panels),), notes, wraps=True)


def frame_delay_rows(results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`frame_delay_cdf`."""
    yield ("class", "arm", "delay_ms", "share", "low_95", "high_95", "n")
    for title, curves in _found(results, view, queue)[1]:
        for arm, cdf in curves.items():
            for delay, *share in zip(cdf.delay_ms, cdf.share, cdf.low, cdf.high, strict=True):
                yield (title, arm, f"{delay:.9g}", *(f"{value:.9g}" for value in share), cdf.n)


def _senders(results: Results, run: Run, view: View) -> dict[str, dict[str, Any]]:
    """Return the samples of a run's media senders, by the names of their flows."""
    if "media_series" not in run.manifest.tables:
        return {}
    rows = results.tables.rows("flows", 'flow, class, "index"', "ORDER BY flow", [run])
    names = {int(flow): (str(class_name), int(index)) for flow, class_name, index in rows}
    found = results.tables.arrays(
        "media_series",
        "flow, t_ns / 1e9 AS t_s, target_bps / 1e6 AS target, coalesce(rtt_ns, 0) / 1e6 AS rtt",
        "ORDER BY flow, t_ns",
        [run],
    )
    senders: dict[str, dict[str, Any]] = {}
    flow_numbers = np.asarray(found["flow"])
    for flow in np.unique(flow_numbers):
        class_name, index = names[int(flow)]
        if not is_of(class_name, view.class_name):
            continue
        chosen = flow_numbers == flow
        columns_of = {name: np.asarray(found[name])[chosen] for name in ("t_s", "target", "rtt")}
        senders[f"{class_name} {index}"] = columns_of
    return senders


def media_rate(results: Results, view: View, queue: str) -> Figure:
    """Target rates and round-trip times of media senders over time, and the rates of the link."""
    firsts = view.runs(results)
    if not firsts:
        raise UsageError("none of these arms has a finished run")
    senders = [_senders(results, run, view) for run in firsts]
    if not any(senders):
        raise UsageError(
            "`media-rate` has nothing to show: no media sender was sampled; set `flows` in [record] to an"
            " interval"
        )
    rates: list[list[Mark]] = []
    trips: list[list[Mark]] = []
    names = list(dict.fromkeys(name for of_run in senders for name in of_run))
    for of_run, of_senders in zip(run_series(results.tables, firsts, queue), senders, strict=True):
        before = [*warmup(of_run.run.t0_ns / 1e9, view.from_s or 0.0)]
        link = Line(
            "link", of_run.queue.t_s, queue_columns(of_run)["departures"], Look(INK, width=0.5, alpha=0.5)
        )
        lines: list[Mark] = [*before, link]
        if (capacity := of_run.queue.values.get("capacity_bps")) is not None:
            mbps = [bps / 1e6 for bps in capacity]
            lines.append(Line("capacity", of_run.queue.t_s, mbps, Look(INK, DASHED, width=0.6)))
        round_trips: list[Mark] = [*before]
        for name, of in of_senders.items():
            number = names.index(name)
            look = Look(PALETTE[number % len(PALETTE)], dash_lengths(number), width=1.0)
            lines.append(Line(name, of["t_s"], of["target"], look))
            if of["rtt"].any():
                round_trips.append(Line("", of["t_s"], of["rtt"], look))
        rates.append(lines)
        trips.append(round_trips)
    limits = view.limits(0.0, max(run.t1_ns for run in firsts) / 1e9)
    rows = {"rate [Mbit/s]": rates, "round trip [ms]": trips}
    title = f"{results.title}: media senders, seed {firsts[0].seed}"
    return over_time(title, [run.arm for run in firsts], rows, limits, bottom=0.0)


def media_rate_rows(results: Results, view: View, _queue: str) -> Iterator[tuple[Any, ...]]:
    """The samples of the senders: one row per flow and time."""
    yield ("arm", "flow", "t_s", "target_bps", "rtt_ms")
    for run in view.runs(results):
        begin, end = view.limits(0.0, run.t1_ns / 1e9)
        for name, of in _senders(results, run, view).items():
            for t_s, target, rtt in zip(of["t_s"], of["target"], of["rtt"], strict=True):
                if begin <= t_s <= end:
                    yield (run.arm, name, f"{t_s:.9f}", f"{target * 1e6:.0f}", f"{rtt:.6f}")
