"""Classes whose load follows from one number: the rate of their connections, or the number of their users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.errors import UsageError, unknown
from aqmlab.recordings.plan import Plan, TrafficClass
from aqmlab.text.numbers import listed, number

MOST_USERS = 10**12
"""The largest number of users that the scenario language allows."""
MOST_A_SECOND = 10.0**9
LEAST_A_SECOND = 1e-6


@dataclass(frozen=True)
class Population:
    """A class of connections that open at a given rate, or of users who open them.

    Attributes
    ----------
    of
        The class in the plan.
    key
        The key of the number in the scenario: ``"rate"`` or ``"users"``.
    written
        The number in the scenario.
    """

    of: TrafficClass
    key: str
    written: float

    @property
    def name(self) -> str:
        """The class's name."""
        return self.of.name

    @property
    def path(self) -> str:
        """The number's place in a scenario: ``traffic.web.rate``."""
        return f"traffic.{self.name}.{self.key}"

    @property
    def closed(self) -> bool:
        """Whether users wait for responses before they continue."""
        return self.key == "users"

    @property
    def unit(self) -> str:
        """The unit of the number, for tables."""
        return "users" if self.closed else "connections/s"

    @property
    def most(self) -> float:
        """The largest number that a scenario accepts."""
        return MOST_USERS if self.closed else MOST_A_SECOND

    def rounded(self, value: float) -> float:
        """Return the nearest accepted number: whole users, or a rate with four significant digits."""
        if self.closed:
            return float(max(round(value), 1))
        value = max(value, LEAST_A_SECOND)
        return round(value, 3 - math.floor(math.log10(value)))

    def text(self, value: float) -> str:
        """Return a number for display: ``43.2/s``, ``250 users``."""
        return f"{self.digits(value)}{' users' if self.closed else '/s'}"

    def toml(self, value: float) -> str | int:
        """Return a number in the notation of a scenario: ``"43.2/s"``, ``250``."""
        value = self.rounded(value)
        return int(value) if self.closed else f"{self.digits(value)}/s"

    def digits(self, value: float) -> str:
        """Return a number without its unit: ``43.2``, ``250``."""
        return f"{value:.0f}" if self.closed else shortest(value)


def shortest(value: float) -> str:
    """Return four significant digits, without trailing zeros."""
    text = number(value) if value >= 1e-3 else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def populations(plan: Plan, names: Sequence[str]) -> tuple[Population, ...]:
    """Return the populations with these names.

    Raises
    ------
    UsageError
        If one of the names is not that of a class, or the class is not a population.
    """
    classes = {one.name: one for one in plan.classes}
    for name in names:
        if name not in classes:
            raise unknown("class", name, classes)
    if not names:
        raise UsageError("no class to calibrate: name at least one")
    found = [population_of(classes[name]) for name in dict.fromkeys(names)]
    for name, one in zip(dict.fromkeys(names), found, strict=True):
        if one is None:
            others = [f"`{each.name}`" for each in plan.classes if population_of(each) is not None]
            known = f"; here {listed(others)} can be calibrated" if others else ""
            raise UsageError(
                f"the class `{name}` is not a population: traffic of kind `{classes[name].kind}`"
                " has neither a"
                f" rate of connections nor users{known}"
            )
    return tuple(one for one in found if one is not None)


def population_of(one: TrafficClass) -> Population | None:
    """Return a class as a population, or ``None`` if it is not one."""
    if "rate_per_s" in one.workload:
        return Population(one, "rate", float(one.workload["rate_per_s"]))
    if one.workload.get("think_ns") is not None:
        return Population(one, "users", float(one.count))
    return None
