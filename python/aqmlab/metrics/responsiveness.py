"""Round trips per minute under load, after draft-ietf-ippm-responsiveness.

The draft measures while connections that it adds one by one load the network. Here, a scenario has the load
and the probes as classes: up to 16 greedy flows whose starts are a second apart, short requests on
connections of their own (foreign probes) and, for the responsiveness on the loaded connections themselves,
the smoothed round-trip times of the greedy flows, which the draft permits in place of multiplexed requests.
DEVIATES from the draft: the load does not depend on the goodput so far, and the measured interval takes the
place of the last four intervals of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.metrics.histograms import Histogram
from aqmlab.metrics.measured import Measured, Window, is_of
from aqmlab.metrics.registry import Parameter, metric
from aqmlab.metrics.scope import CLASS, FLOWS, WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

TRIMMED = 0.95
"""Share of the probes that enters the single-sided trimmed mean: ``TMP`` of the draft."""

_SOURCE = "draft-ietf-ippm-responsiveness, sections 4.2 and 4.3 (parameter `TMP`: 95 %)"
_ROUND_TRIPS = Parameter(
    "round_trips",
    "",
    "number of round trips in a response time: 2 for requests that open a connection (TCP and HTTP, without"
    " TLS), 1 for pings",
    2.0,
)


def trimmed_mean(values: Sequence[float]) -> float | None:
    """Mean of the lowest 95 % of the values (a whole number, rounded up); ``None`` without values."""
    from math import ceil

    kept = sorted(values)[: ceil(TRIMMED * len(values) - 1e-9)]
    return sum(kept) / len(kept) if kept else None


def trimmed_mean_of(histogram: Histogram) -> float | None:
    """Mean of the lowest 95 % of the weight, taking the middle of each bin; ``None`` if it is empty."""
    left = TRIMMED * histogram.total
    if left <= 0:
        return None
    kept, total = left, 0.0
    for low, high, weight in zip(histogram.low, histogram.high, histogram.weight, strict=True):
        part = min(left, weight)
        total += part * (low + high) / 2
        left -= part
    return total / kept


def _foreign(run: Measured, class_name: str, round_trips: float) -> float | None:
    probes = [totals.response_time for totals in run.requests_of(class_name)]
    mean_ns = trimmed_mean_of(Histogram.merged(probes))
    return 60e9 * round_trips / mean_ns if mean_ns else None


def _loaded(run: Measured, names: set[str], window: Window) -> float | None:
    samples = run.flow_samples("srtt_ns")
    chosen = [flow.flow for flow in run.flows if flow.class_name in names]
    values = [
        float(value) for flow in chosen if flow in samples for value in samples[flow].within(window).values
    ]
    mean_ns = trimmed_mean([value for value in values if value > 0])
    return 60e9 / mean_ns if mean_ns else None


@metric(
    "foreign_rpm",
    label="responsiveness, foreign",
    unit="1/min",
    definition="round trips per minute of probes on connections of their own: 60 s divided by the trimmed"
    " mean of their response times per round trip; probes that failed or had not ended do not count",
    source=_SOURCE,
    better="more",
    takes=FLOWS | CLASS,
    parameters=(_ROUND_TRIPS,),
)
def foreign_rpm(run: Measured, class_name: str, *, round_trips: float) -> float | None:
    """Responsiveness on separate connections."""
    return _foreign(run, class_name, round_trips)


@metric(
    "loaded_rpm",
    label="responsiveness, loaded",
    unit="1/min",
    definition="round trips per minute on the connections that load the network: 60 s divided by the trimmed"
    " mean of the sampled smoothed round-trip times of the responsive flows",
    source=f"{_SOURCE}; the draft permits TCP's round-trip time in place of multiplexed requests",
    better="more",
    takes=FLOWS | CLASS | WINDOW,
    from_samples=True,
)
def loaded_rpm(run: Measured, class_name: str, window: Window) -> float | None:
    """Responsiveness on the connections with load."""
    return _loaded(run, {name for name in run.responsive if is_of(name, class_name)}, window)


@metric(
    "rpm",
    label="responsiveness",
    unit="1/min",
    definition="mean of `foreign_rpm` of a class of probes and `loaded_rpm` of all responsive flows of other"
    " classes",
    source=_SOURCE,
    better="more",
    takes=FLOWS | CLASS,
    parameters=(_ROUND_TRIPS,),
    from_samples=True,
)
def rpm(run: Measured, class_name: str, *, round_trips: float) -> float | None:
    """Responsiveness under working conditions."""
    probes = {totals.class_name for totals in run.requests_of(class_name)}
    foreign = _foreign(run, class_name, round_trips)
    loaded = _loaded(run, set(run.responsive) - probes - run.left_out, run.window)
    return None if foreign is None or loaded is None else (foreign + loaded) / 2
