"""Metrics of laws that control a queue: accuracy, speed and steadiness.

The times and the spread describe how the run evolves and are therefore, unlike all other metrics here,
computed from samples. They cover the whole run, including the warm-up.
"""

from __future__ import annotations

from collections.abc import Callable

from aqmlab.metrics.measured import EVERY_CLASS, Measured, Samples
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import QUEUE


def target_packets(run: Measured, queue: str) -> float | None:
    """The law's target for the queue length, ``q_ref``; ``None`` if it has none, or one in bytes."""
    link = run.run.plan.link(queue)
    target = link.settings.get("q_ref_packets") if link else None
    return None if target is None else float(target)


def _against_target(
    run: Measured, queue: str, compute: Callable[[Samples, float], float | None]
) -> float | None:
    target = target_packets(run, queue)
    return None if target is None else compute(run.samples("queues", "backlog_packets", queue), target)


@metric(
    "backlog_error_percent",
    label="backlog off q_ref",
    unit="%",
    definition="time-weighted mean number of waiting packets minus the law's q_ref, divided by q_ref",
    source="steady-state error of a controller: Hollot, Misra, Towsley, Gong 2001",
    takes=QUEUE,
    from_samples=True,
)
def backlog_error(run: Measured, queue: str) -> float | None:
    """(Mean backlog - q_ref) / q_ref, from exact integrals."""
    totals, target = run.queues.get((queue, EVERY_CLASS)), target_packets(run, queue)
    if totals is None or target is None:
        return None
    return 100.0 * (totals["backlog_packets_integral_ns"] / run.interval_ns - target) / target


@metric(
    "backlog_reach_s",
    label="q_ref reached after",
    unit="s",
    definition="time from the start of the run until the mean backlog of the preceding 10 s is first within"
    " 20 % of q_ref",
    source="rise time of a controller; window and band are ours",
    better="less",
    takes=QUEUE,
    from_samples=True,
)
def backlog_reach(run: Measured, queue: str) -> float | None:
    """Time until the queue reaches q_ref."""
    from aqmlab.metrics.settling import reach_time

    return _against_target(run, queue, reach_time)


@metric(
    "backlog_settling_s",
    label="q_ref held after",
    unit="s",
    definition="time from the start of the run until the mean backlog of the preceding 10 s comes within 20 %"
    " of q_ref and then stays there until the end; not defined if it stays there for less than the last 60 s",
    source="settling time of a controller; window and band are ours",
    better="less",
    takes=QUEUE,
    from_samples=True,
)
def backlog_settling(run: Measured, queue: str) -> float | None:
    """Time after which the queue stays at q_ref."""
    from aqmlab.metrics.settling import settling_time

    return _against_target(run, queue, settling_time)


@metric(
    "probability_spread_percent",
    label="spread of p",
    unit="%",
    definition="standard deviation of the means of the law's probability over bins of 1 s in the second half"
    " of the run, divided by the mean of these means",
    source="stability of the marking probability: Feng, Kandlur, Saha, Shin 2002",
    better="less",
    takes=QUEUE,
    from_samples=True,
)
def probability_spread(run: Measured, queue: str) -> float | None:
    """Remaining movement of the probability after it has had time to settle."""
    from aqmlab.metrics.settling import coefficient_of_variation

    spread = coefficient_of_variation(run.samples("law", "p", queue), run.run.t1_ns / 2e9)
    return None if spread is None else 100.0 * spread
