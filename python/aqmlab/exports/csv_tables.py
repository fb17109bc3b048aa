"""Recorded tables as CSV: one file per table, with all runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from aqmlab.errors import unknown
from aqmlab.exports.chosen import Chosen
from aqmlab.recordings.frames import column_names
from aqmlab.results.results import Results


def csv_files(results: Results, chosen: Sequence[Chosen], tables: Sequence[str]) -> dict[str, bytes]:
    """Return each table's contents by the name of its file; columns for the axes, arm and seed come first.

    Raises
    ------
    UsageError
        For a table that no run has.
    """
    known = list(dict.fromkeys(name for one in chosen for name in one.run.manifest.tables))
    for name in tables:
        if name not in known:
            raise unknown("table", name, known)
    return {f"{name}.csv": _content(results, chosen, name) for name in tables or known}


def _content(results: Results, chosen: Sequence[Chosen], table: str) -> bytes:
    having = [one for one in chosen if table in one.run.manifest.tables]
    runs = [one.run for one in having]
    columns = [name for name in results.tables.arrays(table, "*", "LIMIT 0", runs) if name != "run"]
    # Read as rows, not as NumPy arrays, which would convert integrals wider than 64 bits to floats.
    rows = results.tables.rows(table, "run, * EXCLUDE (run)", "ORDER BY run", runs)
    labels = [[*(label for _, label in one.cell.settings), one.run.arm, one.run.seed] for one in having]
    axes = column_names([axis.short for axis in results.axes], ["arm", "seed", *columns])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*axes, "arm", "seed", *columns])
    writer.writerows([*labels[i], *row] for i, *row in rows)
    return out.getvalue().encode()
