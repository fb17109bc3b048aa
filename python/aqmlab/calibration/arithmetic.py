"""Estimates of a load from mean sizes, as the starting point of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aqmlab.calibration.places import PAYLOAD, Load
from aqmlab.calibration.population import Population
from aqmlab.recordings.plan import PACKMIME, Drawn

_EXCHANGES = 1.2
_REQUEST_BYTES = 584.0
_RESPONSE_BYTES = 8.6e3
"""The means of PackMime-HTTP's distributions, computed by integrating its tables."""
PACKMIME_TAIL = 1.231
"""Index of the Pareto tail of PackMime-HTTP's responses; for its requests, see :data:`_REQUEST_TAIL`."""
_REQUEST_TAIL = 1.485
_BEYOND_100_KB = 0.00663
"""Share of PackMime-HTTP's responses that are longer than 100 kB; from there on, the tail is exact."""


def mean_of(drawn: Drawn) -> float:
    """The mean of a distribution, in its unit."""
    if not isinstance(drawn, Mapping):
        return float(drawn)
    if "exponential" in drawn:
        return float(drawn["exponential"] + drawn.get("offset", 0))
    if "pareto" in drawn:
        return _pareto_mean(float(drawn["pareto"]), float(drawn["shape"]), drawn.get("max"))
    if "empirical" in drawn:
        return _empirical_mean(drawn["empirical"])
    (values,) = drawn.values()
    return float(sum(values) / len(values))


def _pareto_mean(mean: float, shape: float, most: float | None) -> float:
    if most is None:
        return mean
    least = mean * (shape - 1) / shape
    inside = 1 - (least / most) ** shape
    return float(shape * least / (shape - 1) * (1 - (least / most) ** (shape - 1)) / inside)


def _empirical_mean(points: Sequence[tuple[float, float]]) -> float:
    before, below, total = float(points[0][0]), 0.0, 0.0
    for value, share in points:
        total += (share - below) * (before + value) / 2
        before, below = value, share
    return float(total)


def load_bps(population: Population, asked: Load) -> float | None:
    """Return the approximate load at the scenario's rate or number of users; ``None`` if it is unknown."""
    sent = _bytes_sent(population)
    if sent is None:
        return None
    exchanges, request, response = sent
    payload: float = exchanges * (response if asked.responses else request)
    tcp = population.of.tcp or {}
    headers = (
        0.0 if asked.count == PAYLOAD else tcp["header_bytes"] * (payload / tcp["mss_bytes"] + exchanges + 2)
    )
    bits = 8 * (payload + headers) * population.written
    return bits / _cycle_s(population, exchanges) if population.closed else bits


def _bytes_sent(population: Population) -> tuple[float, float, float] | None:
    """Return the mean number of exchanges per connection, and the mean sizes of requests and responses."""
    workload = population.of.workload
    if population.of.kind == PACKMIME:
        return (
            _EXCHANGES,
            _REQUEST_BYTES,
            packmime_response_bytes(population.of.workload.get("max_response_bytes")),
        )
    if not {"exchanges", "request_bytes", "response_bytes"} <= workload.keys():
        return None
    means = (mean_of(workload[key]) for key in ("exchanges", "request_bytes", "response_bytes"))
    exchanges, request, response = means
    return exchanges, request, response


def packmime_response_bytes(most: float | None) -> float:
    """Return the mean of PackMime-HTTP's responses if those above ``most`` bytes are drawn again.

    ``most`` is at least 100 kB.
    """
    if most is None:
        return _RESPONSE_BYTES
    beyond = _BEYOND_100_KB * (1e5 / most) ** PACKMIME_TAIL
    cut = beyond * most * PACKMIME_TAIL / (PACKMIME_TAIL - 1)
    return float((_RESPONSE_BYTES - cut) / (1 - beyond))


def _cycle_s(population: Population, exchanges: float) -> float:
    """Return the mean time from the start of a user's connection to the start of the next one."""
    workload, access = population.of.workload, population.of.access
    rtt_ns = mean_of(access.rtt_ns) if access else 0.0
    waits_ns = exchanges * (mean_of(workload["server_delay_ns"]) + 2 * rtt_ns)
    pauses_ns = (exchanges - 1) * mean_of(workload["pause_ns"])
    return (mean_of(workload["think_ns"]) + waits_ns + pauses_ns) / 1e9


def tail_index(population: Population, asked: Load) -> float | None:
    """Return the Pareto index of the sizes if their variance is infinite, otherwise ``None``."""
    if population.of.kind == PACKMIME and not asked.responses:
        return _REQUEST_TAIL
    if population.of.kind == PACKMIME:
        return None if "max_response_bytes" in population.of.workload else PACKMIME_TAIL
    drawn = population.of.workload.get("response_bytes" if asked.responses else "request_bytes")
    if not isinstance(drawn, Mapping) or "pareto" not in drawn or drawn.get("max") is not None:
        return None
    shape = float(drawn["shape"])
    return shape if shape < 2 else None
