"""What the charts of the page are drawn from: numbers as people see them, in the units that they see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aqmlab.answers import Answer
from aqmlab.figures import display_unit, display_value, estimate_text
from aqmlab.metrics import Metric
from aqmlab.reports import charts
from aqmlab.reports.swatch import UNIT_MARKS
from aqmlab.reports.sweep.differences import Contrast, Differences
from aqmlab.reports.sweep.distributions import DelayCdf, delay_cdf
from aqmlab.results import Cell
from aqmlab.stats import Estimate
from aqmlab.stats.ellipse import covariance_ellipse

DELAY = "queueing_delay_mean_s"
GOODPUT = "goodput_bps"


def payload(cells: Answer, of_metrics: Sequence[Differences]) -> dict[str, Any]:
    """Axes, arms, metrics and cells, and for each chart its numbers in the order of the cells."""
    results = cells.results
    places = {axis.name: {label: i for i, label in enumerate(axis.labels)} for axis in results.axes}
    arms = {arm: i for i, arm in enumerate(results.arms)}
    return {
        "axes": [{"name": axis.name, "short": axis.short, "labels": axis.labels} for axis in results.axes],
        "arms": [
            {
                "name": arm,
                "color": charts.color(i),
                "dash": charts.dash_lengths(i),
                "mark": UNIT_MARKS[charts.marker(i)],
            }
            for arm, i in arms.items()
        ],
        "metrics": [
            {"name": m.name, "label": m.label, "unit": display_unit(m.unit), "better": m.better}
            for m in cells.shown
        ],
        "cells": [
            {"at": [places[axis][label] for axis, label in cell.settings], "arm": arms[cell.arm]}
            for cell in results.cells
        ],
        "estimates": {
            m.name: [_estimate(cells.estimate(cell, m.name), m.unit) for cell in results.cells]
            for m in cells.shown
        },
        "pairs": [[arms[arm], arms[other]] for arm, other in of_metrics[0].pairs] if of_metrics else [],
        "differences": {
            entry.metric.name: [
                [_contrast(contrast, entry.metric, cells) for contrast in of_pair]
                for of_pair in entry.contrasts
            ]
            for entry in of_metrics
        },
        "tradeOff": _trade_off(cells),
        "cdf": [_curve(delay_cdf(results, cell)) for cell in results.cells],
    }


def _estimate(est: Estimate | None, unit: str) -> list[Any] | None:
    """Mean, half-width, how many values, and mean and half-width as text."""
    if est is None:
        return None
    half = None if est.half_width is None else _short(display_value(est.half_width, unit))
    text = f"{estimate_text(est, unit)} {display_unit(unit)}".rstrip()
    return [_short(display_value(est.mean, unit)), half, est.n, text]


def _contrast(contrast: Contrast, metric: Metric, cells: Answer) -> list[Any]:
    """Number of the cell, the difference as :func:`_estimate` has it, and whether it stands."""
    est = contrast.found.estimate
    return [cells.number(contrast.cell), _estimate(est, metric.unit), contrast.stands]


def _trade_off(cells: Answer) -> list[dict[str, Any] | None]:
    """Of each cell delay and goodput of its runs, by seed, and their 1-sigma ellipse (RFC 7928, 2.7)."""
    shown = {metric.name: metric for metric in cells.shown}
    if not {DELAY, GOODPUT} <= shown.keys():
        return []
    return [_cloud(cells, cell, shown[DELAY], shown[GOODPUT]) for cell in cells.results.cells]


def _cloud(cells: Answer, cell: Cell, delay: Metric, goodput: Metric) -> dict[str, Any] | None:
    of_delay, of_goodput = (cells.by_seed(cell, m.name) for m in (delay, goodput))
    runs = [
        (seed, display_value(x, delay.unit), display_value(y, goodput.unit))
        for seed, x in of_delay.items()
        if x is not None and (y := of_goodput.get(seed)) is not None
    ]
    if not runs:
        return None
    xs, ys = [x for _, x, _ in runs], [y for _, _, y in runs]
    outline = covariance_ellipse(xs, ys)
    ellipse = None
    if outline is not None:
        ellipse = [_short(v) for v in (*outline.centre, *outline.half_axes, outline.angle_degrees)]
    return {"runs": [[seed, _short(x), _short(y)] for seed, x, y in runs], "ellipse": ellipse}


def _curve(cdf: DelayCdf | None) -> dict[str, Any] | None:
    if cdf is None:
        return None
    columns = {"x": cdf.delay_ms, "mean": cdf.share, "low": cdf.low, "high": cdf.high}
    rounded = {name: [float(f"{value:.4g}") for value in column] for name, column in columns.items()}
    return {**rounded, "n": cdf.n, "p99": _short(cdf.p99_ms)}


def _short(value: float) -> float:
    """Six digits: more than a screen shows."""
    return float(f"{value:.6g}")
