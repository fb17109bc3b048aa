"""The columns of recorded tables under their present names, whichever version wrote the tables.

Format version 3 gave some columns more accurate names. Tables are read through
:func:`parquet_source`, so no other code needs to know an earlier name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import duckdb

RENAMED_IN = 3
"""The first ``format_version`` with the present names."""
RENAMED: Mapping[str, Mapping[str, str]] = {
    "queues": {
        "dropped_early_packets": "dropped_by_law_packets",
        "dropped_overflow_packets": "dropped_not_by_law_packets",
    },
    "summary": {
        "initial_backlog_packets": "initial_in_system_packets",
        "final_backlog_packets": "final_in_system_packets",
    },
    "run": {
        "lost_packets": "lost_outside_queues_packets",
        "lost_bytes": "lost_outside_queues_bytes",
    },
    "flows": {
        "lost_packets": "lost_outside_queues_packets",
        "measured_lost_packets": "measured_lost_outside_queues_packets",
    },
}
"""The present name of each renamed column, by table."""


class TableFile(NamedTuple):
    """A file of a table, and whether its columns have the names used before :data:`RENAMED_IN`."""

    path: str
    early: bool


def has_early_names(format_version: int) -> bool:
    """Return whether a recording's tables have the column names used before :data:`RENAMED_IN`."""
    return format_version < RENAMED_IN


def parquet_source(table: str, files: Sequence[TableFile], *, union_by_name: bool) -> str:
    """Return the SQL to put after ``FROM`` to read rows with present column names and a column ``filename``.

    Parameters
    ----------
    table
        The table's name, such as ``"queues"``.
    files
        At least one.
    union_by_name
        Whether the files may differ in other columns; missing values are null.
    """

    def read(paths: Iterable[str]) -> str:
        listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        return f"read_parquet([{listed}], filename = true, union_by_name = {str(union_by_name).lower()})"

    early = [file.path for file in files if file.early and table in RENAMED]
    if not early:
        return read(file.path for file in files)
    renamed = ", ".join(f"{before} AS {name}" for before, name in RENAMED[table].items())
    parts = [f"SELECT * RENAME ({renamed}) FROM {read(early)}"]
    if len(early) < len(files):
        parts.append(f"FROM {read(file.path for file in files if not file.early)}")
    return f"({' UNION ALL BY NAME '.join(parts)})"


def without_columns(
    connection: duckdb.DuckDBPyConnection, table: str, files: Sequence[TableFile]
) -> dict[str, str]:
    """Return, by path, a message for each file that lacks a renamed column, as named by the file's version.

    Raises
    ------
    duckdb.Error
        If a file cannot be read.
    """
    if table not in RENAMED or not files:
        return {}
    rows = connection.execute(
        "SELECT file_name, list(name) FROM parquet_schema($files) GROUP BY file_name",
        {"files": [file.path for file in files]},
    ).fetchall()
    names = dict(rows)
    found: dict[str, str] = {}
    for file in files:
        for before, now in RENAMED[table].items():
            right = before if file.early else now
            if right not in names[file.path]:
                found.setdefault(
                    file.path,
                    f"`{file.path}` is corrupt: it has no column `{right}` (recordings of format versions"
                    f" below {RENAMED_IN} name it `{before}`, later ones name it `{now}`)",
                )
    return found


__all__ = ["RENAMED", "RENAMED_IN", "TableFile", "has_early_names", "parquet_source", "without_columns"]
