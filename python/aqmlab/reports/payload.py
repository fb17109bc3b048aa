"""The data of the page's charts: numbers in the displayed units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab.figures.differences import Contrast, Differences
from aqmlab.figures.distributions import DelayCdf, delay_cdf
from aqmlab.figures.looks import MUTED, UNIT_MARKS, color, dash_lengths, marker
from aqmlab.figures.trade_off import TradeOff, trade_off_points
from aqmlab.metrics import Metric
from aqmlab.results.answers import Answer
from aqmlab.results.cells import Cell
from aqmlab.stats import Estimate
from aqmlab.stats.ellipse import covariance_ellipse
from aqmlab.stats.sentence import spoken
from aqmlab.text.numbers import display_unit, display_value, estimate_parts


def payload(
    answer: Answer, compared: Sequence[Differences], trade_off: TradeOff, **more: object
) -> dict[str, Any]:
    """Axes, arms, metrics and cells, and for each chart its numbers in the order of the cells.

    Parameters
    ----------
    answer
        The answer with the cells.
    compared
        Differences between the arms, by metric.
    trade_off
        Queueing delay and its price in the same cells.
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
        "first": _first(answer, trade_off),
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
        "tradeOff": _trade_off(trade_off, cells),
        "cdf": [_curve(delay_cdf(answer.results, cell, answer.asked_queue)) for cell in cells],
        **more,
    }


def _first(answer: Answer, trade_off: TradeOff) -> str | None:
    """Return the metric that figures show first: the first one of the question, else p95 queueing delay."""
    shown = {metric.name: None for metric in answer.shown}
    wanted = (*(metric.name for metric in trade_off.question.asked), "queueing_delay_p95_s", *shown)
    return next((name for name in wanted if name in shown), None)


def _estimate(est: Estimate | None, unit: str) -> list[Any] | None:
    """The mean, its half-width and the number of values; then the mean and the half-width as text."""
    if est is None:
        return None
    half = None if est.half_width is None else _short(display_value(est.half_width, unit))
    return [_short(display_value(est.mean, unit)), half, est.n, _mean_text(est, unit)]


def _contrast(contrast: Contrast, metric: Metric, cells: Mapping[Cell, int]) -> list[Any]:
    """Return the cell's number, the difference in the form of :func:`_estimate`, and its significance."""
    return [cells[contrast.cell], _estimate(contrast.found.estimate, metric.unit), contrast.stands]


def _trade_off(found: TradeOff, cells: Mapping[Cell, int]) -> dict[str, Any] | None:
    """Return the figure of delay and its price: runs by seed, 1-sigma ellipses (RFC 7928, 2.7), fronts."""
    prices = [_price(found, price, cells) for price in found.prices]
    if not prices or not found.defined(found.question.delay):
        return None
    return {
        "delay": _titled(found.question.delay),
        "prices": prices,
        "starved": {
            str(cells[cell]): [_short(one.used.mean), one.queue] for cell, one in found.starved.items()
        },
    }


def _price(found: TradeOff, price: Metric, cells: Mapping[Cell, int]) -> dict[str, Any]:
    delay = found.question.delay
    means = [[found.mean(cell, metric) for metric in (delay, price)] for cell in cells]
    like = found.largest(price)
    fronts = found.fronts(price)
    return {
        **_titled(price, like),
        "better": price.better,
        "clouds": [_cloud(trade_off_points(found.answer, cell, delay, price, like)) for cell in cells],
        "means": [[_mean_text(x, delay.unit), _mean_text(y, price.unit, like)] for x, y in means],
        "fronts": [[cells[cell] for cell in front.best] for front in fronts],
    }


def _titled(metric: Metric, like: float | None = None) -> dict[str, str]:
    return {"name": metric.name, "label": spoken(metric.label), "unit": display_unit(metric.unit, like)}


def _mean_text(est: Estimate | None, unit: str, like: float | None = None) -> str:
    mean, half = estimate_parts(est, unit, like)
    return f"{f'{mean} ± {half}' if half else mean} {display_unit(unit, like)}".rstrip()


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
