"""The cumulative ACK diagram: the progress of each flow, and the spread between flows.

Miskovic, Petrovic, Trajkovic (Implementation and performance analysis of AQM mechanisms, Fig. 7) plot the
highest cumulative acknowledgment of each flow over time; a wide fan indicates unfairness, and bundles of
lines indicate privileged groups of flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab.errors import UsageError
from aqmlab.figures.looks import dash_lengths
from aqmlab.figures.model import INK, Figure, Line, Look, Mark, over_time, warmup
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured
from aqmlab.recordings.recording import Run
from aqmlab.recordings.traces import FlowName, chosen
from aqmlab.results.results import Results

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Field:
    """The progress of the flows of a run, sampled at the same times.

    Attributes
    ----------
    t_s
        Times of the samples.
    acked_bytes
        Acknowledged bytes by flow, at these times: zero before the flow starts, and the last value
        after it ends.
    """

    t_s: Floats
    acked_bytes: dict[FlowName, Floats]

    @property
    def width_bytes(self) -> Floats:
        """The difference between the largest and the smallest number of acknowledged bytes, at each time."""
        width: Floats = np.ptp(np.stack(list(self.acked_bytes.values())), axis=0)
        return width


def field_of(run: Measured, view: View) -> Field:
    """Return the progress of the flows of the responsive classes that cross the queue, or of chosen ones.

    Raises
    ------
    UsageError
        If flows were not sampled, if no TCP flow crosses the queue, or if a flow does not exist.
    """
    samples = run.flow_samples("acked_bytes")
    names = []
    counts: dict[str, int] = {}
    for flow in run.flows_of(EVERY_CLASS):
        index = counts.get(flow.class_name, 0)
        counts[flow.class_name] = index + 1
        if flow.flow in samples and flow.class_name in run.responsive:
            names.append(FlowName(flow.flow, flow.class_name, index))
    if not samples:
        raise UsageError(f"`{run.run.path}` has no samples of flows: set `flows` in [record] to an interval")
    if not names:
        raise UsageError(f"`{run.run.path}` has no TCP flow across this queue: choose another with `--queue`")
    names = chosen(names, view.flows, len(names))
    t_s = np.unique(np.concatenate([samples[name.flow].t_s for name in names]))
    lines = {
        name: np.interp(t_s, samples[name.flow].t_s, samples[name.flow].values, left=0.0) for name in names
    }
    return Field(t_s, lines)


def fields_of(results: Results, view: View, queue: str) -> list[tuple[Run, Field]]:
    """Return the first run of each arm, with the progress of its flows across a queue, or of chosen flows."""
    of_run = {run.run.path: run for run in results.measured()}
    queue = EVERY_QUEUE if view.flows else queue
    return [(run, field_of(of_run[run.path].at(queue), view)) for run in view.runs(results)]


def cumulative_ack(results: Results, view: View, queue: str) -> Figure:
    """Draw acknowledged bytes per flow over time and, below, the spread between flows; one column per arm."""
    columns = fields_of(results, view, queue)
    classes = list(dict.fromkeys(name.class_name for _, field in columns for name in field.acked_bytes))
    rows: dict[str, list[list[Mark]]] = {"acknowledged\n[MB]": [], "width\n[MB]": []}
    for run, field in columns:
        named: set[str] = set()
        lines: list[Mark] = [*warmup(run.t0_ns / 1e9, view.from_s or 0.0)]
        width = [*lines, Line("fastest less slowest flow", field.t_s, field.width_bytes / 1e6, Look(INK))]
        for name, acked in field.acked_bytes.items():
            label = f"a flow of {name.class_name}" if name.class_name not in named else ""
            named.add(name.class_name)
            number = classes.index(name.class_name)
            look = Look(number, dash_lengths(number), width=0.7, alpha=0.7)
            lines.append(Line(label, field.t_s, acked / 1e6, look))
        for row, marks in zip(rows.values(), (lines, width), strict=True):
            row.append(marks)
    limits = view.limits(0.0, max(run.t1_ns for run, _ in columns) / 1e9)
    title = f"{results.title}: cumulative ACKs, seed {columns[0][0].seed}"
    return over_time(title, [run.arm for run, _ in columns], rows, limits, bottom=0.0)


def cumulative_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """Return the diagram as numbers: one row per flow and time, and one called ``width`` per time."""
    yield ("arm", "flow", "t_s", "acked_bytes")
    for run, field in fields_of(results, view, queue):
        begin, end = view.limits(0.0, run.t1_ns / 1e9)
        lines: list[tuple[object, Floats]] = [*field.acked_bytes.items(), ("width", field.width_bytes)]
        for name, values in lines:
            for t_s, value in zip(field.t_s, values, strict=True):
                if begin <= t_s <= end:
                    yield (run.arm, name, f"{t_s:.9f}", f"{value:.0f}")
