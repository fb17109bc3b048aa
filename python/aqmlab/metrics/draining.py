"""How long what waits will wait: metrics of a queue whose link's rate may change, from samples.

A queue is *slow* at an instant if more bytes wait than its link can send within a limit from then on. In a
queue served in order, the packet that came last then waits for longer than the limit, unless packets before
it are dropped. No packet needs to arrive or to leave, so it is defined during an outage, too.
"""

from __future__ import annotations

from aqmlab.metrics.measured import Measured, Window
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.scope import QUEUE, WINDOW

LIMIT_S = 0.1
"""What a call tolerates behind a queue if its path takes 50 of the 150 ms that ITU-T G.114 recommends."""
HOLD_S = 1.0
_LIMIT = Parameter("limit", "s", "delay above which the queue counts as slow", LIMIT_S)


@metric(
    "slow_percent",
    label="time with a slow queue",
    unit="%",
    definition="share of the samples at which more bytes wait than the link sends in the following 100 ms;"
    " samples too late in the run to tell are left out",
    source="limit: ITU-T G.114 recommends 150 ms at most from mouth to ear; the share of it that a queue may"
    " have is ours",
    better="less",
    takes=QUEUE | WINDOW,
    parameters=(_LIMIT,),
    from_samples=True,
)
def slow(run: Measured, queue: str, window: Window, *, limit: float = LIMIT_S) -> float | None:
    """Share of the time in which the queue is slow."""
    from aqmlab.metrics.queue_samples import slow_at

    mean = slow_at(run, queue, limit).within(window).mean()
    return None if mean is None else 100.0 * mean


@metric(
    "slow_until_s",
    label="queue no longer slow after",
    unit="s",
    definition="time from the beginning of the window to the first interval of 1 s in which, at all"
    " samples, no more bytes wait than the link sends in the following 100 ms; not defined if there is no"
    " such interval",
    source="recovery from a change of the capacity: RFC 7928, section 8.2; limit and interval are ours",
    better="less",
    takes=QUEUE | WINDOW,
    parameters=(_LIMIT, Parameter("hold", "s", "required time without interruption", HOLD_S)),
    from_samples=True,
)
def slow_until(
    run: Measured, queue: str, window: Window, *, limit: float = LIMIT_S, hold: float = HOLD_S
) -> float | None:
    """Time after which the queue stays fast."""
    from aqmlab.metrics.queue_samples import slow_at
    from aqmlab.metrics.settling import stretches_between

    samples = slow_at(run, queue, limit).within(window)
    if len(samples.t_s) < 2:
        return None
    step = float(samples.t_s[1] - samples.t_s[0])
    stays = stretches_between(samples.values, -0.5, 0.5)
    first = next((begin for begin, length in stays if length * step >= hold - 1e-6), None)
    # A sample covers the time up to it.
    return None if first is None else max(float(samples.t_s[first]) - step - window.from_s, 0.0)
