"""The facts about the flows of one run that metrics use: one row per flow, stored by column."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple, overload

from aqmlab.recordings.frames import TEXT, WHOLE, Columns, Framed
from aqmlab.text.numbers import counted

LEAST_RTT_SPREAD = 1.1
"""Smallest ratio of the longest to the shortest RTT at which a bias can be measured."""


class FlowTotals(NamedTuple):
    """The columns of ``flows`` that metrics need; ``None`` is a value that the kernel did not report."""

    flow: int
    class_name: str
    base_rtt_ns: int
    start_ns: int
    end_ns: int | None
    measured_received_bytes: int
    measured_delivered_bytes: int
    measured_sent_bytes: int
    measured_timeouts: int | None
    measured_retransmitted_segments: int | None
    measured_fast_retransmits: int | None
    measured_ecn_reductions: int | None
    measured_ce_received: int | None
    measured_spurious_retransmissions: int | None
    measured_multiple_loss_windows: int | None
    measured_lost_outside_queues_packets: int | None
    measured_received_by_client_bytes: int | None = None


_CLASS = FlowTotals._fields.index("class_name")
_COLUMN_NAMES = {"class_name": "class"}
"""The columns of fields without a column of the same name."""
FLOW_COLUMNS = ", ".join(_COLUMN_NAMES.get(name, name) for name in FlowTotals._fields)
"""The SQL select list that reads the rows of :class:`Flows` from the table ``flows``."""


class Flows(Framed, Sequence[FlowTotals]):
    """The flows of a run in the order of their numbers. As a data frame, it has a row per flow.

    Thousands of flows from each of a thousand runs are held in memory at once. Stored as numbers of eight
    bytes, they take a tenth of the memory of Python objects. The object of a row is created when
    the row is accessed.

    Parameters
    ----------
    rows
        The fields of :class:`FlowTotals`, for each flow.
    """

    __slots__ = ("_chosen", "_columns", "_count")

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._count = len(rows)
        self._columns = tuple(map(_packed, zip(*rows, strict=True)))
        self._chosen: Sequence[bool] | None = None
        """Whether each row of the columns is selected; ``None`` selects all."""

    def of_classes(self, belongs: Callable[[str], bool]) -> Flows:
        """Return the flows of the classes whose names a function accepts; the columns are shared."""
        names = self.column("class_name")
        classes = dict.fromkeys(names)
        kept = {name for name in classes if belongs(name)}
        if len(kept) == len(classes):
            return self
        part = Flows(())
        whole = self._columns[_CLASS] if self._columns else ()
        chosen = [name in kept for name in whole]
        if self._chosen is not None:
            chosen = [a and b for a, b in zip(chosen, self._chosen, strict=True)]
        part._columns, part._chosen, part._count = self._columns, chosen, sum(chosen)
        return part

    def column(self, name: str) -> Sequence[Any]:
        """Return one field of every flow."""
        return self._picked(self._columns[FlowTotals._fields.index(name)]) if self._columns else ()

    def _picked(self, column: Sequence[Any]) -> Sequence[Any]:
        return column if self._chosen is None else list(compress(column, self._chosen))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[FlowTotals]:
        return map(FlowTotals._make, zip(*map(self._picked, self._columns), strict=True))

    def __repr__(self) -> str:
        return f"<Flows: {counted(len(self), 'flow')}>"

    def _frame_columns(self) -> Columns:
        columns = tuple(map(self._picked, self._columns)) or [()] * len(FlowTotals._fields)
        return {
            _COLUMN_NAMES.get(name, name): (TEXT if name == "class_name" else WHOLE, column)
            for name, column in zip(FlowTotals._fields, columns, strict=True)
        }

    @overload
    def __getitem__(self, index: int) -> FlowTotals: ...
    @overload
    def __getitem__(self, index: slice) -> Flows: ...
    def __getitem__(self, index: int | slice) -> FlowTotals | Flows:
        if isinstance(index, slice):
            return Flows(list(self)[index])
        return FlowTotals._make(self._picked(column)[index] for column in self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flows):
            return False
        if self._chosen is None and other._chosen is None:
            return self._columns == other._columns
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _packed(values: Iterable[Any]) -> Sequence[Any]:
    """The values of a column: numbers in eight bytes each if none is missing, names stored once."""
    column = list(values)
    if isinstance(column[0], str):
        return [sys.intern(name) for name in column]
    return column if None in column else array("q", column)
