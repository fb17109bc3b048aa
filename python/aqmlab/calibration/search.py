"""The search: from a first guess to a value that is confirmed by a fit around it."""

from __future__ import annotations

from typing import NamedTuple

from aqmlab.calibration.arithmetic import load_bps
from aqmlab.calibration.fit import Fit, fit
from aqmlab.calibration.trials import CongestedError, Loads, Trials
from aqmlab.errors import UsageError
from aqmlab.text.numbers import display_value, number

_PILOTS = 2
"""Number of seeds in the runs that search for the order of magnitude."""
_MOST_PILOTS = 12
_GREATEST_STEP = 16.0
_NEAR = 1.5
"""A pilot run within this factor of the target is close enough."""
_WIDE, _NARROW = 1.25, 1.05
"""Runs cover the values from the expected value divided by this factor to the expected value times this
factor. The wide factor shows whether the load is proportional to the value; if it is not, the narrow
one is used.
"""
_MOST_ROUNDS = 8
_CLOSE = 0.01
"""The search ends with a fit that moves the value by at most this share of the value, or by at most half of
the half-width of the fit's interval.
"""
_FOLLOWS = 0.25
"""The load follows the value if its relative growth exceeds this share of the value's relative growth."""


class Found(NamedTuple):
    """The outcome of the search.

    Attributes
    ----------
    fit
        The last fit.
    wide
        The last fit over a wide range of values, which shows whether the load is proportional.
    value
        The value at which the last fit reaches the target, in a form that a scenario accepts.
    loads
        Loads by value and seed: those of the fit, and those at the value.
    """

    fit: Fit
    wide: Fit
    value: float
    loads: Loads


def search(trials: Trials, runs: int) -> Found:
    """Return the value at which the load equals the target.

    The draws of a class may depend on the value itself (weakly in PackMime-HTTP), and users of a slow link
    delay each other. The line is therefore fitted around the value, and fitted again until the value
    no longer changes.

    Raises
    ------
    UsageError
        If the load cannot be reached.
    """
    value, wide = _pilot(trials, _guess(trials)), None
    for i in range(_MOST_ROUNDS):
        around = _around(trials, value, _WIDE if wide is None or wide.proportional else _NARROW)
        loads = trials.loads(around, runs, f"round {i + 1}")
        found = fit(loads, trials.asked.bps)
        _check_follows(trials, loads)
        bends = not found.proportional and (wide is None or wide.proportional)
        wide = found if wide is None or wide.proportional else wide
        before, value = value, _possible(trials, found.value)
        moved = abs(found.value / before - 1)
        if not bends and (value == before or moved <= max(_CLOSE, found.half_width / 2)):
            at = trials.loads([value], runs, "at the value")
            return Found(found, wide, value, {**loads, **at})
    raise UsageError(
        f"no value was found in {_MOST_ROUNDS} rounds: the search does not settle (its last values were"
        f" {trials.first.text(before)} and {trials.first.text(value)}); run longer (`--duration`), or with"
        " more seeds (`--seeds`)"
    )


def _guess(trials: Trials) -> float:
    """Return the estimate from mean sizes or, if there is none, the number in the scenario."""
    parts = [load_bps(one, trials.asked) for one in trials.network.populations]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return trials.first.written
    return trials.first.written * trials.asked.bps / sum(known)


def _pilot(trials: Trials, value: float) -> float:
    """Return a value whose load is near the target, from few runs per value."""
    target_bps = trials.asked.bps
    before: tuple[float, float] | None = None
    for _ in range(_MOST_PILOTS):
        value = _possible(trials, value)
        try:
            loads, congested = trials.loads([value], _PILOTS, "pilot"), None
        except CongestedError as error:
            loads, congested = error.loads, error
        load = sum(loads[value].values()) / len(loads[value])
        if congested is not None and load < target_bps:
            raise congested
        if congested is None and target_bps / _NEAR <= load <= target_bps * _NEAR:
            return value * target_bps / load
        if before is not None and value >= 2 * before[0]:
            _check_grows(trials, before, (value, load))
        before = (value, load)
        factor = target_bps / load if load else _GREATEST_STEP
        value *= min(max(factor, 1 / _GREATEST_STEP), _GREATEST_STEP)
    raise UsageError(
        f"no value with a load of {trials.asked} was found in {_MOST_PILOTS} attempts; the next would be"
        f" {trials.first.text(value)}; run longer (`--duration`), to have more connections"
    )


def _possible(trials: Trials, value: float) -> float:
    """Return the nearest number that a scenario accepts.

    Raises
    ------
    UsageError
        If the value is below one user or above the largest number that a scenario accepts.
    """
    first = trials.first
    if first.closed and value < 0.5:
        raise UsageError(
            f"one user of `{first.name}` offers more than {trials.asked}: it would take"
            f" {number(value, 2)} users"
        )
    if value > first.most:
        raise UsageError(
            f"a load of {trials.asked} cannot be reached: it would take {value:.3g} {first.unit} of"
            f" `{first.name}`, and at most {first.most:.3g} are allowed"
        )
    return first.rounded(value)


def _around(trials: Trials, value: float, factor: float) -> list[float]:
    """Return at least two values around the given one."""
    values = sorted({trials.first.rounded(part * value) for part in (1 / factor, 1.0, factor)})
    return values if len(values) > 1 else [values[0], values[0] + 1]


def _check_grows(trials: Trials, before: tuple[float, float], now: tuple[float, float]) -> None:
    """Raise an error if the load stays constant whatever the value."""
    grown, by = now[1] - before[1], now[0] / before[0] - 1
    if now[1] >= trials.asked.bps or (before[1] and grown > _FOLLOWS * by * before[1]):
        return
    if not before[1]:
        if now[1] or trials.first.closed:
            return
        raise UsageError(
            f"`{trials.first.name}` sends nothing over `{trials.asked.link.name}` in the measured interval,"
            f" neither at {trials.first.text(before[0])} nor at {trials.first.text(now[0])}:"
            " look at its `start` and `stop`"
        )
    raise UsageError(
        f"a load of {trials.asked} cannot be reached: it is {_mbit(before[1])} at"
        f" {trials.first.text(before[0])} and {_mbit(now[1])} at {trials.first.text(now[0])}; something else"
        " limits the class: links that keep their rate, or its own access links"
    )


def _check_follows(trials: Trials, loads: Loads) -> None:
    means = [(value, sum(by_seed.values()) / len(by_seed)) for value, by_seed in sorted(loads.items())]
    _check_grows(trials, means[0], means[-1])


def _mbit(bps: float) -> str:
    return f"{number(display_value(bps, 'bit/s'))} Mbit/s"
