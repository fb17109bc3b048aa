"""The data of the page's charts: numbers in the displayed units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab.answers import Answer
from aqmlab.cells import Cell
from aqmlab.figures import display_unit, display_value, estimate_text
from aqmlab.metrics import Metric
from aqmlab.reports.differences import Contrast, Differences
from aqmlab.reports.distributions import DelayCdf, delay_cdf
from aqmlab.reports.looks import MUTED, UNIT_MARKS, color, dash_lengths, marker
from aqmlab.stats import Estimate
from aqmlab.stats.ellipse import covariance_ellipse

DELAY = "queueing_delay_mean_s"
GOODPUT = "goodput_bps"


def payload(answer: Answer, compared: Sequence[Differences], **more: object) -> dict[str, Any]:
    """Axes, arms, metrics and cells, and for each chart its numbers in the order of the cells.

    Parameters
    ----------
    answer
        The answer with the cells.
    compared
        Differences between the arms, by metric.
    more
        The data of further charts.
    """
    axes = answer.results.axes
    places = {axis.name: {label: i for i, label in enumerate(axis.labels)} for axis in axes}
    arms = {arm: i for i, arm in enumerate(answer.arms)}
    cells = {row.cell: i for i, row in enumerate(answer.rows)}
    return {
        "axes": [{"name": axis.name, "short": axis.short, "labels": axis.labels} for axis in axes],
        "arms": [
            {
                "name": arm,
                "color": MUTED if arm == answer.results.reference else color(i),
                "dash": () if arm == answer.results.reference else dash_lengths(i),
                "mark": UNIT_MARKS[marker(i)],
            }
            for arm, i in arms.items()
        ],
        "reference": arms.get(answer.results.reference or ""),
        "metrics": [
            {"name": m.name, "label": m.label, "unit": display_unit(m.unit), "better": m.better}
            for m in answer.shown
        ],
        "cells": [
            {"at": [places[axis][label] for axis, label in cell.settings], "arm": arms[cell.arm]}
            for cell in cells
        ],
        "estimates": {
            m.name: [_estimate(answer.estimate(cell, m.name), m.unit) for cell in cells] for m in answer.shown
        },
        "pairs": [[arms[arm], arms[other]] for arm, other in compared[0].pairs] if compared else [],
        "differences": {
            entry.metric.name: [
                [_contrast(contrast, entry.metric, cells) for contrast in of_pair]
                for of_pair in entry.contrasts
            ]
            for entry in compared
        },
        "tradeOff": _trade_off(answer),
        "cdf": [_curve(delay_cdf(answer.results, cell, answer.asked_queue)) for cell in cells],
        **more,
    }


def _estimate(est: Estimate | None, unit: str) -> list[Any] | None:
    """The mean, its half-width and the number of values; then the mean and the half-width as text."""
    if est is None:
        return None
    half = None if est.half_width is None else _short(display_value(est.half_width, unit))
    text = f"{estimate_text(est, unit)} {display_unit(unit)}".rstrip()
    return [_short(display_value(est.mean, unit)), half, est.n, text]


def _contrast(contrast: Contrast, metric: Metric, cells: Mapping[Cell, int]) -> list[Any]:
    """Return the cell's number, the difference in the form of :func:`_estimate`, and its significance."""
    return [cells[contrast.cell], _estimate(contrast.found.estimate, metric.unit), contrast.stands]


def trade_off_points(answer: Answer, cell: Cell) -> dict[int, tuple[float, float]]:
    """By seed, the mean queueing delay (ms) and goodput (Mbit/s) of those runs in a cell that have both."""
    delays, goodputs = (answer.by_seed(cell, name) for name in (DELAY, GOODPUT))
    return {
        seed: (display_value(x, "s"), display_value(y, "bit/s"))
        for seed, x in delays.items()
        if x is not None and (y := goodputs.get(seed)) is not None
    }


def _trade_off(answer: Answer) -> list[dict[str, Any] | None]:
    """Return delay and goodput of each cell's runs by seed, and their 1-sigma ellipse (RFC 7928, 2.7)."""
    if not {DELAY, GOODPUT} <= {metric.name for metric in answer.shown}:
        return []
    return [_cloud(trade_off_points(answer, row.cell)) for row in answer.rows]


def _cloud(points: Mapping[int, tuple[float, float]]) -> dict[str, Any] | None:
    if not points:
        return None
    xs, ys = zip(*points.values(), strict=True)
    outline = covariance_ellipse(xs, ys)
    ellipse = None
    if outline is not None:
        ellipse = [_short(v) for v in (*outline.centre, *outline.half_axes, outline.angle_degrees)]
    return {"runs": [[seed, _short(x), _short(y)] for seed, (x, y) in points.items()], "ellipse": ellipse}


def _curve(cdf: DelayCdf | None) -> dict[str, Any] | None:
    if cdf is None:
        return None
    columns = {"x": cdf.delay_ms, "mean": cdf.share, "low": cdf.low, "high": cdf.high}
    rounded = {name: [float(f"{value:.4g}") for value in column] for name, column in columns.items()}
    return {**rounded, "n": cdf.n, "p99": _short(cdf.p99_ms)}


def _short(value: float) -> float:
    """Round to six digits, which is more than a screen shows."""
    return float(f"{value:.6g}")
