"""Axes and cells: the combinations of swept values, each under one arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from aqmlab.errors import UsageError, unknown


@dataclass(frozen=True)
class Axis:
    """One swept dimension.

    Attributes
    ----------
    name
        Name in the scenario; for a plain key, the full path: ``topology.rate``.
    short
        The shortest tail of the name that no other axis has: ``rate``.
    keys
        The keys that it sets.
    labels
        Its values as strings, in the order of the scenario.
    """

    name: str
    short: str
    keys: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One combination of swept values under one arm.

    Attributes
    ----------
    settings
        Pairs of an axis's name and a label, in the order of the axes; empty without a sweep.
    arm
        The arm's name.
    """

    settings: tuple[tuple[str, str], ...]
    arm: str

    def label(self, axis: str) -> str:
        """Return the label on an axis, for any unique tail of the axis's name: ``rate``, ``queue.limit``."""
        names = [name for name, _ in self.settings]
        return self.settings[_named(names, axis, names)][1]

    def __str__(self) -> str:
        shorts = short_names([name for name, _ in self.settings])
        parts = [f"{short} {label}" for short, (_, label) in zip(shorts, self.settings, strict=True)]
        return ", ".join([self.arm, *parts])


class LeftOut(NamedTuple):
    """A case of a sweep that cannot run.

    Attributes
    ----------
    labels
        Its labels, in the order of the axes.
    reason
        The error in the scenario for these values.
    """

    labels: tuple[str, ...]
    reason: str


def axis_named(axes: Sequence[Axis], name: str) -> Axis:
    """Return an axis by its name, or by an ending of its name that no other axis shares.

    Raises
    ------
    UsageError
        If no axis, or more than one, has this name; the message gives the nearest name.
    """
    return axes[_named([axis.name for axis in axes], name, [axis.short for axis in axes])]


def short_names(names: Sequence[str]) -> list[str]:
    """Return, for each dotted name, the shortest ending that no other name has."""
    return [_short(name, [other for other in names if other != name]) for name in names]


def _short(name: str, others: Sequence[str]) -> str:
    parts = name.split(".")
    tails = (".".join(parts[i:]) for i in range(len(parts) - 1, 0, -1))
    return next((t for t in tails if not any(f".{other}".endswith(f".{t}") for other in others)), name)


def _named(names: Sequence[str], given: str, shorts: Sequence[str]) -> int:
    """Return the index of the axis to which a name, or the end of one, refers."""
    if given in names:
        return names.index(given)
    found = [i for i, name in enumerate(names) if name.endswith(f".{given}")]
    if len(found) > 1:
        meant = ", ".join(f"`{names[i]}`" for i in found)
        raise UsageError(f"the axis `{given}` may mean {meant}: write a longer part of its name")
    if not found:
        raise unknown("axis", given, dict.fromkeys([*names, *shorts]))
    return found[0]


def axes_of(about: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of a scenario, from the core's form or from ``sweep.json``."""
    return tuple(
        Axis(str(axis["name"]), str(axis["short"]), tuple(axis["keys"]), tuple(map(str, axis["labels"])))
        for axis in about["axes"]
    )
