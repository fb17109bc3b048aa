"""Classes of traffic in reports: their table, and goodput against round-trip time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from aqmlab.metrics import EVERY_CLASS, Measured, Metric, find, flow_goodput
from aqmlab.metrics.flow_totals import LEAST_RTT_SPREAD
from aqmlab.metrics.phenomena import long_lived
from aqmlab.reports.charts import ChartAxis, PlainChart
from aqmlab.reports.looks import marker
from aqmlab.results.answers import Answer, Row, answer
from aqmlab.results.classes import classes_of
from aqmlab.results.results import Results
from aqmlab.text.numbers import display_unit, display_value

Points = dict[tuple[str, str], tuple[list[float], list[float]]]
"""RTTs in ms and goodputs in Mbit/s, one value per flow, by arm and class."""


def by_class_context(results: Results) -> dict[str, Any]:
    """Return the template's context for the table; empty where there is only one class."""
    if len(classes_of(results)) < 2:
        return {"by_class": None}
    table = answer(results, by="class")
    return {
        "by_class": {
            "heads": [*(axis.short for axis in results.axes), "arm", "class"],
            "columns": [_column(metric) for metric in table.shown],
            "rows": [_row(table, row) for row in table.rows],
        }
    }


def _column(metric: Metric) -> dict[str, str]:
    unit = display_unit(metric.unit)
    return {"label": metric.label, "unit": unit, "definition": metric.definition, "source": metric.source}


def _row(table: Answer, row: Row) -> dict[str, Any]:
    cells = []
    for metric in table.shown:
        mean, half = table.parts(row.cell, metric, row.class_name)
        seeds = table.defined_in(row.cell, metric.name, row.class_name)
        cells.append({"mean": mean, "half": half, "seeds": seeds})
    labels = [*(label for _, label in row.cell.settings), row.cell.arm]
    return {"labels": labels, "class": row.class_name, "cells": cells}


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


def rtt_chart(points: Points, arms: Sequence[str]) -> PlainChart | None:
    """Draw goodput against RTT, a colour per arm and a mark per class, unless RTTs are about equal."""
    if not rtts_differ(points):
        return None
    x, y = ChartAxis("RTT without queueing [ms]"), ChartAxis("goodput of a flow [Mbit/s]")
    chart = PlainChart("Goodput against RTT", x, y)
    marks = {name: marker(i) for i, name in enumerate(class_names(points))}
    for name, mark in marks.items():
        chart.entry(name, dash=None, mark=mark)
    for (arm, name), (rtts, goodputs) in points.items():
        chart.marks(arms.index(arm), f"{arm}, {name}", rtts, goodputs, marks[name])
    return chart


def class_names(points: Points) -> list[str]:
    """The classes that have at least one point, in order."""
    return list(dict.fromkeys(name for _, name in points))
