"""Goodput against round-trip time: the cost of a longer path, with one mark per flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.figures.looks import marker
from aqmlab.figures.model import Axis, Entry, Figure, Line, Look, Panel
from aqmlab.figures.view import View
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured, find, flow_goodput
from aqmlab.metrics.flow_totals import LEAST_RTT_SPREAD
from aqmlab.metrics.phenomena import long_lived
from aqmlab.results.answers import Answer
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_value

Points = dict[tuple[str, str], tuple[list[float], list[float]]]
"""RTTs in ms and goodputs in Mbit/s, one value per flow, by arm and class."""


def rtt_points(runs: Sequence[Measured], arms: Sequence[str], queue: str) -> Points:
    """Return goodput, and RTT without queueing, of the long-lived responsive flows that cross a queue.

    There is one point per flow and RTT: the flow's mean goodput over the seeds in which it has that RTT.
    """
    of_flow: dict[tuple[str, str], dict[tuple[int, int], list[float]]] = {}
    classes = dict.fromkeys(flow.class_name for run in runs for flow in run.at(queue).flows_of(EVERY_CLASS))
    for arm in arms:
        for name in classes:
            of_flow[arm, name] = defaultdict(list)
    for run in runs:
        if run.run.arm not in arms or not run.interval_ns:
            continue
        for flow in long_lived(run.at(queue), EVERY_CLASS):
            key = (flow.flow, flow.base_rtt_ns)
            of_flow[run.run.arm, flow.class_name][key].append(flow_goodput(run, flow))
    goodput = find("goodput_bps")
    return {
        key: (
            [rtt_ns / 1e6 for _, rtt_ns in flows],
            [display_value(fsum(values) / len(values), goodput.unit) for values in flows.values()],
        )
        for key, flows in of_flow.items()
        if flows
    }


def rtts_differ(points: Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]) -> bool:
    """Return whether RTTs vary enough for a dependence of goodput on them to be measured."""
    rtts = [rtt for of_class, _ in points.values() for rtt in of_class]
    return bool(rtts) and min(rtts) > 0 and max(rtts) >= LEAST_RTT_SPREAD * min(rtts)


def class_names(points: Points) -> list[str]:
    """The classes that have at least one point, in order."""
    return list(dict.fromkeys(name for _, name in points))


_X, _Y = Axis("RTT without queueing [ms]"), Axis("goodput of a flow [Mbit/s]")


def goodput_rtt(results: Results, view: View, queue: str) -> Figure:
    """Goodput of each long-lived flow against RTT without queueing; one plot per arm, one mark per flow."""
    points = _points(results, view, queue)
    arms, classes = list(dict.fromkeys(arm for arm, _ in points)), class_names(points)
    # All plots share an axis that covers the data of every plot.
    up = replace(_Y, begin=0.0)
    panels = [
        Panel(
            arm,
            _X,
            up,
            tuple(
                Line(
                    f"a flow of {name}",
                    *points[arm, name],
                    Look(i, mark=marker(i), size=1.3, line=False, alpha=0.7),
                )
                for i, name in enumerate(classes)
                if (arm, name) in points
            ),
        )
        for arm in arms
    ]
    rows = tuple(tuple(panels[i : i + _COLUMNS]) for i in range(0, len(panels), _COLUMNS))
    whose = "all flows" if queue == EVERY_QUEUE else f"flows that cross {queue}"
    size = (7.0, 0.7 + 2.5 * len(rows))
    return Figure(f"{results.title}: {whose}", rows, size=size, share=("all", "all"))


_COLUMNS = 3


def of_answer(answer: Answer) -> Figure | None:
    """The figure that a report shows of an experiment, with all arms in one plot."""
    if answer.results.axes:
        return None
    measured = [run for row in answer.rows for run in answer.results.measured(row.cell)]
    return of_arms(rtt_points(measured, answer.arms, answer.queue), answer.arms)


def of_arms(points: Points, arms: Sequence[str]) -> Figure | None:
    """The same in one plot, with a colour per arm and a mark per class, unless RTTs are about equal."""
    if not rtts_differ(points):
        return None
    marks = {name: marker(i) for i, name in enumerate(class_names(points))}
    lines = tuple(
        Line(f"{arm}, {name}", *of, Look(arms.index(arm), mark=marks[name], line=False))
        for (arm, name), of in points.items()
    )
    notes = tuple(Entry(name, Look("", mark=mark, line=False)) for name, mark in marks.items())
    return Figure("Goodput against RTT", ((Panel("Goodput against RTT", _X, _Y, lines),),), notes)


def goodput_rtt_rows(results: Results, view: View, queue: str) -> Iterator[tuple[Any, ...]]:
    """The points of :func:`goodput_rtt`."""
    yield ("arm", "class", "rtt_ms", "goodput_mbit_s")
    for (arm, name), (rtts, goodputs) in _points(results, view, queue).items():
        for rtt, goodput in zip(rtts, goodputs, strict=True):
            yield (arm, name, rtt, goodput)


def _points(results: Results, view: View, queue: str) -> Points:
    points = rtt_points(results.measured(), [run.arm for run in view.runs(results)], queue)
    if not points:
        raise UsageError(
            f"no flow that reacts to congestion lasts through the measured interval and crosses"
            f" `{queue}`: there is no goodput to draw against RTT"
        )
    return points
