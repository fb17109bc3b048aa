"""The two sides of a comparison: the cells that each side selects, and how they correspond."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aqmlab.errors import UsageError, unknown
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results

ARM = "arm"


@dataclass(frozen=True, eq=False)
class Side:
    """The cells of one side, and the results that contain them.

    Attributes
    ----------
    text
        The text that selected the cells.
    results
        The results that contain the cells.
    fixed
        The requested arm, under ``arm``, and the requested labels, each under the name of its axis.
    cells
        The selected cells.
    """

    text: str
    results: Results
    fixed: Mapping[str, str]
    cells: tuple[Cell, ...]

    def open(self) -> tuple[str, ...]:
        """The axes in which its cells differ, including ``arm``."""
        names = [*(axis.name for axis in self.results.axes), ARM]
        return tuple(name for name in names if len({_place(cell)[name] for cell in self.cells}) > 1)


def side_of(results: Results, which: str, text: str = "") -> Side:
    """The cells that ``WHICH`` selects in results: ``RED``, ``rate=5Mbit``, ``RED,rate=5Mbit``, or all."""
    fixed = _fixed(results, which)
    labels = {name: label for name, label in fixed.items() if name != ARM}
    cells = results.select(fixed.get(ARM), labels)
    if not cells:
        raise UsageError(f"no case of `{results.path}` has {', '.join(fixed.values())}")
    return Side(text or which, results, fixed, cells)


def match(one: Side, other: Side) -> tuple[list[tuple[str, Cell, Cell]], tuple[str, ...]]:
    """Return pairs of cells, each with its case, and the cells without a counterpart.

    Raises
    ------
    UsageError
        If the two sides leave different axes open, or no two cells correspond.
    """
    open_ = one.open()
    if set(open_) != set(other.open()):
        raise UsageError(
            f"`{one.text}` leaves {_listed(one)} open, and `{other.text}` leaves {_listed(other)} open: name"
            " arms or labels, as in PATH:ARM,axis=label, until both leave the same axes open"
        )
    if one.results is other.results and set(one.cells) == set(other.cells):
        raise UsageError(f"`{one.text}` and `{other.text}` are the same; give two things to compare")
    ours, theirs = ({_key(cell, open_): cell for cell in s.cells} for s in (one, other))
    pairs = [(_case(cell, open_), cell, theirs[key]) for key, cell in ours.items() if key in theirs]
    if not pairs:
        raise UsageError(f"`{one.text}` and `{other.text}` have no case in common")
    unmatched = [
        str(cell) for key, cell in (*ours.items(), *theirs.items()) if (key in ours) != (key in theirs)
    ]
    return pairs, tuple(unmatched)


def named(one: Side, other: Side) -> tuple[str, str]:
    """Return short names of the sides: the settings in which they differ, or else their paths."""
    open_ = set(one.open())
    ours, theirs = (_place(s.cells[0]) for s in (one, other))
    differing = [
        name for name in {**ours, **theirs} if name not in open_ and ours.get(name) != theirs.get(name)
    ]
    if not differing:
        first, second = (s.results.path for s in (one, other))
        return (first.name, second.name) if first.name != second.name else (str(first), str(second))
    return _name(one, ours, differing), _name(other, theirs, differing)


def _name(of: Side, place: Mapping[str, str], differing: list[str]) -> str:
    parts: list[str] = []
    for name in differing:
        if name == ARM:
            parts.insert(0, place[ARM])
        elif name in place:
            parts.append(f"{of.results.axis(name).short} {place[name]}")
    return ", ".join(parts) or str(of.results.path)


def _place(cell: Cell) -> dict[str, str]:
    return {**dict(cell.settings), ARM: cell.arm}


def _key(cell: Cell, open_: tuple[str, ...]) -> tuple[str, ...]:
    place = _place(cell)
    return tuple(place[name] for name in open_)


def _case(cell: Cell, open_: tuple[str, ...]) -> str:
    if not open_:
        return ""
    kept = tuple((name, label) for name, label in cell.settings if name in open_)
    return str(Cell(kept, cell.arm)) if ARM in open_ else str(Cell(kept, "")).removeprefix(", ")


def _listed(of: Side) -> str:
    names = [name if name == ARM else of.results.axis(name).short for name in of.open()]
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def _fixed(results: Results, which: str) -> dict[str, str]:
    """The arm and the labels in a string such as ``RED,rate=5Mbit``; a comma may be quoted."""
    if which in results.arms:
        return {ARM: which}
    fixed: dict[str, str] = {}
    for part in re.findall(r'(?:[^,"]|"[^"]*")+', which):
        name, equals, label = part.strip().replace('"', "").partition("=")
        if not equals:
            name, label = ARM, name
        if name.strip() == ARM:
            if label.strip() not in results.arms:
                raise unknown("arm", label.strip(), results.arms)
            fixed[ARM] = label.strip()
        else:
            fixed[results.axis(name.strip()).name] = label.strip()
    return fixed
