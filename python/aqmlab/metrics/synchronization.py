"""Joint behaviour of flows: bytes per time window, common losses, congestion windows that move together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from aqmlab.metrics.flow_totals import LEAST_RTT_SPREAD, FlowTotals
from aqmlab.metrics.measured import Measured, Window

Floats = npt.NDArray[np.float64]

WINDOW_S = 10.0
"""Length of a window in which every flow should receive something: forty round-trip times of 250 ms."""
JAIN_OF_LOCKOUT = 0.7
"""Jain's index below which a few flows have nearly everything; 0.7 if seven of ten share all equally."""
STARVED = 0.1
"""Share of the mean below which a flow counts as shut out."""


def amounts_between(
    run: Measured, flows: Sequence[FlowTotals], column: str, edges: Sequence[float]
) -> Floats:
    """Return a column's growth in ``flow_series`` from edge to edge: a row per interval, a column per flow.

    Edges are in seconds. Between samples, a flow is assumed to progress evenly. The result is empty if flows
    were not sampled, or if an edge lies beyond the samples by more than their interval.
    """
    of_flow = run.flow_samples(column)
    columns = []
    for flow in flows:
        samples = of_flow.get(flow.flow)
        if samples is None or len(samples.t_s) < 2:
            return np.zeros((0, len(flows)))
        step = float(samples.t_s[1] - samples.t_s[0])
        if edges[-1] > samples.t_s[-1] + 1.5 * step:
            return np.zeros((0, len(flows)))
        # Before its start, a flow had received nothing.
        times = np.concatenate([[flow.start_ns / 1e9], samples.t_s])
        columns.append(np.diff(np.interp(edges, times, np.concatenate([[0.0], samples.values]))))
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def shares_by_window(run: Measured, flows: Sequence[FlowTotals], part: Window) -> Floats:
    """Return the bytes received in each full 10 s window of a part: a row per window, a column per flow."""
    # Rounding of the times must not lose a window.
    count = int(part.length_s / WINDOW_S + 1e-9)
    if not count:
        return np.zeros((0, len(flows)))
    edges = part.from_s + WINDOW_S * np.arange(count + 1)
    return amounts_between(run, flows, "received_bytes", edges.tolist())


def jain_by_window(amounts: Floats) -> Floats:
    """Jain's index of each row, without the rows in which all are zero."""
    some = amounts[amounts.any(axis=1)]
    index: Floats = some.sum(axis=1) ** 2 / (some.shape[1] * (some**2).sum(axis=1))
    return index


def starved_share(amounts: Floats) -> float | None:
    """Share of the entries below a tenth of their row's mean; ``None`` if all entries are zero.

    Rows in which all are zero do not count: nothing was shared.
    """
    some = amounts[amounts.any(axis=1)]
    return float((some < STARVED * some.mean(axis=1, keepdims=True)).mean()) if len(some) else None


def synchronisation_ratio(
    t_s: Floats, flows: npt.NDArray[np.int64], of: Sequence[int], rtt_s: float
) -> float | None:
    """Mean over loss events of the fraction of flows, among those in ``of``, that have a loss in that event.

    Parameters
    ----------
    t_s, flows
        Times of losses, ascending, with their flows. Losses of flows that are not in ``of`` do
        not count.
    of
        The flows that could have a loss.
    rtt_s
        Duration of an event, starting at its first loss.

    Returns
    -------
    float or None
        ``None`` without losses.
    """
    counted = np.isin(flows, of)
    times, losers = t_s[counted], flows[counted]
    shares = []
    begin = 0
    while begin < len(times):
        end = int(np.searchsorted(times, times[begin] + rtt_s, side="right"))
        shares.append(len(np.unique(losers[begin:end])) / len(of))
        begin = end
    return float(np.mean(shares)) if shares else None


def common_samples(run: Measured, flows: Sequence[FlowTotals], column: str, part: Window) -> list[Floats]:
    """Samples of each flow in a part of the run; empty unless they all have the same number, at least two."""
    of_flow = run.flow_samples(column)
    series = []
    for flow in flows:
        samples = of_flow.get(flow.flow)
        if samples is None:
            return []
        series.append(samples.within(part).values)
    return series if len({len(values) for values in series}) == 1 and len(series[0]) > 1 else []


def mean_correlation(series: Sequence[Floats]) -> float | None:
    """Mean covariance over all pairs of series, divided by the mean variance; ``None`` if nothing varies."""
    variances = float(np.sum([np.var(values) for values in series]))
    if variances == 0:
        return None
    ratio = float(np.var(np.sum(series, axis=0))) / variances
    return (ratio - 1) / (len(series) - 1)


def power_law_exponent(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Exponent a of the least-squares fit of ``log y = c - a log x``.

    ``None`` if x does not vary, or if some y is zero and has no logarithm.
    """
    if len(x) < 2 or min(y) <= 0 or max(x) < LEAST_RTT_SPREAD * min(x):
        return None
    log_x, log_y = np.log(x), np.log(y)
    centred = log_x - log_x.mean()
    return float(-(centred @ log_y) / (centred @ centred))
