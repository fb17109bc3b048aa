"""Counts by kind of packet: the role of a packet in its connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.recordings.recording import Run, Tables

KINDS = ("syn", "data", "ack", "fin", "other")
"""SYN and SYN-ACK; segments with payload; pure ACKs; FIN without payload; all others."""
EVERY_KIND = "*"

Counts: TypeAlias = Mapping[tuple[str, str], Mapping[str, int]]
"""Columns of ``kinds`` by queue and class; class ``*`` is the sum over the classes."""


class KindCounts:
    """The ``kinds`` tables of several runs, all read when the first of them is needed.

    Parameters
    ----------
    tables
        The tables of the runs.
    columns
        The counts to read, which are also columns of ``summary``.
    """

    def __init__(self, tables: Tables, columns: tuple[str, ...]) -> None:
        self._tables = tables
        self._columns = columns

    def of(self, run: Run, kind: str) -> Counts:
        """Return the counts of one kind in a run."""
        return self._of_runs[run.path][kind]

    @cached_property
    def _of_runs(self) -> Mapping[Path, Mapping[str, Counts]]:
        runs = self._tables.runs
        found: dict[Path, dict[str, dict[tuple[str, str], dict[str, int]]]] = {
            run.path: {kind: {} for kind in KINDS} for run in runs
        }
        columns = f"run, queue, class, kind, {', '.join(self._columns)}"
        for index, queue, class_name, kind, *counts in self._tables.rows("kinds", columns):
            of_kind = found[runs[int(index)].path][kind]
            row = dict(zip(self._columns, map(int, counts), strict=True))
            of_kind[queue, class_name] = row
            sums = of_kind.setdefault((queue, "*"), defaultdict(int))
            for name, count in row.items():
                sums[name] += count
        return found
