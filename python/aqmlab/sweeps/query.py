"""SQL over all recordings of a store: one view per table, with the swept values in each row.

DuckDB works in memory and may read only the recordings. Only a single read-only statement is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.arguments import typed
from aqmlab.errors import HostError, UsageError
from aqmlab.recordings.frames import REAL, TEXT, WHOLE, YES_OR_NO, Columns, Framed, column_names
from aqmlab.recordings.manifest import parts_text
from aqmlab.recordings.recording import damage, parquet_source
from aqmlab.sweeps.catalogue import Catalogue, catalogue, labels
from aqmlab.sweeps.store import store_path
from aqmlab.system.memory import database
from aqmlab.system.stopping import answered
from aqmlab.text.numbers import counted, left_out
from aqmlab.text.tables import Grid
from aqmlab.text.units import si_numbers

if TYPE_CHECKING:
    import duckdb

_APART = "files"
"""A separate schema for tables that queries do not use directly."""
_Files = Mapping[str, Sequence[tuple[str, str]]]
"""The files of each table, each with the digest of its run."""
_RUN_COLUMNS = ("digest", "arm", "seed", "settings")


@dataclass(frozen=True, repr=False)
class QueryResult(Framed):
    """The answer to a query, which is also a data frame.

    Attributes
    ----------
    columns
        The names of the columns.
    rows
        The values of each row: numbers, strings and ``None``, or lists and dicts of these.
    skipped
        Files that cannot be read and are left out, with the reason.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    skipped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lost = f", {left_out(len(self.skipped), 'file')}" if self.skipped else ""
        return f"<QueryResult: {counted(len(self.rows), 'row')} of {', '.join(self.columns)}{lost}>"

    def __str__(self) -> str:
        return str(self.grid())

    def _repr_html_(self) -> str:
        return self.grid().html()

    def grid(self) -> Grid:
        """The rows, printed as text."""
        grid = Grid(*self.columns, keys=0)
        for row in self.rows:
            grid.add(*("" if value is None else str(value) for value in row))
        return grid

    def _frame_columns(self) -> Columns:
        names = column_names(self.columns, [])
        return {name: _kept([row[i] for row in self.rows]) for i, name in enumerate(names)}


_MOST_WHOLE = 2**63 - 1


def _kept(values: list[Any]) -> tuple[str, list[Any]]:
    """Return a column of one type: numbers and strings as they are, anything else as printed text."""
    there = [value for value in values if value is not None]
    if there and all(type(value) is bool for value in there):
        return YES_OR_NO, values
    if there and all(type(value) is int and abs(value) <= _MOST_WHOLE for value in there):
        return WHOLE, values
    if there and all(type(value) in (int, float) for value in there):
        return REAL, [None if value is None else float(value) for value in values]
    return TEXT, [None if value is None else str(value) for value in values]


@typed
def query(sql: str, path: Path | str | None = None) -> QueryResult:
    """Ask a question in SQL.

    Each table of recordings (``summary``, ``flows``, ``queues``, ...) has a view; besides the table's own
    columns, it has ``digest``, ``arm``, ``seed``, ``settings`` and one column per axis. The view ``runs`` has
    a row per recording, and ``cells`` a row for each run of each sweep, present or not.

    Parameters
    ----------
    sql
        One ``SELECT``, or another statement that only reads.
    path
        A store, or the directory of a sweep, an experiment or a run; ``AQMLAB_STORE``, or ``runs/store``, if
        not given.

    Raises
    ------
    UsageError
        If the statement is invalid, or does anything but read.
    HostError
        If the working directory no longer exists.
    RecordingError
        If there is nothing to query, or the recordings have another format than this program reads.
    """
    import duckdb

    _check(sql)
    known = catalogue(store_path(path))
    with database(_SHUT) as connection:
        # The views are created from the files found here; after that, no other file may be read.
        connection.execute(f"SET allowed_directories = [{_text(f'{known.root}/')}]")
        try:
            connection.execute("SET enable_external_access = false")
        except duckdb.IOException as error:
            # DuckDB resolves names against the working directory, which may no longer exist.
            raise HostError(f"cannot query `{known.root}`: {str(error).splitlines()[0]}") from error
        connection.execute("SET lock_configuration = true")
        connection.execute(f"CREATE SCHEMA {_APART}")
        axes = _make_runs(connection, known)
        files: _Files = {table: known.files(table) for table in _asked(known.tables(), sql)}
        try:
            columns, rows = _answer(connection, sql, files, axes, mixed=known.mixed())
        except duckdb.Error:
            # The cause is an unreadable file, a column that some files lack, or an error in the query.
            files = _without(_damaged(connection, files), files, known.skipped)
            try:
                columns, rows = _answer(connection, sql, files, axes, mixed=True)
            except duckdb.Error as error:
                raise UsageError(f"the query fails: {error}") from error
    return QueryResult(columns, rows, tuple(known.skipped))


_SHUT = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # No variable of the calling program may be used as a table.
    "python_enable_replacements": "false",
}


def _is_text(text: str) -> bool:
    """Whether a string is valid UTF-8; a string from the command line may contain other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check(sql: str) -> None:
    """Check that the text is one statement that only reads."""
    import duckdb

    if not _is_text(sql):
        raise UsageError("the query is not UTF-8 text")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(f"the query is not SQL: {error}") from error
    if len(statements) != 1:
        raise UsageError(f"a query is one statement, not {len(statements)}")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(f"a query may only read: `{statements[0].type.name}` is not allowed")


def _asked(tables: Sequence[str], sql: str) -> Sequence[str]:
    """Return the tables that a query may need: those it names, or all if it names none (``SHOW TABLES``)."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [table for table in tables if table in words] if words & {"runs", "cells", *tables} else tables


def _answer(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    files: _Files,
    axes: Sequence[str],
    *,
    mixed: bool,
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    for table, found in files.items():
        _make_view(connection, table, found, axes, mixed=mixed)

    def ask() -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        result = connection.execute(sql)
        columns = tuple(str(column[0]) for column in result.description)
        return columns, tuple(tuple(map(_plain, row)) for row in result.fetchall())

    return answered(connection, ask)


def _make_runs(connection: duckdb.DuckDBPyConnection, known: Catalogue) -> list[str]:
    """Create the tables ``runs`` and ``cells``; return the columns of axes in ``runs``."""
    axes = known.axes()
    entries = known.entries
    manifests = [entry.manifest for entry in entries]
    swept = [list(labels(entry.cell, axes)) for entry in entries]
    settings = [dict(entry.cell.settings) for entry in entries]
    of_axes = _axis_columns(axes, swept, _RUN_COLUMNS)
    _table(
        connection,
        "runs",
        {
            "digest": ("VARCHAR", [entry.digest for entry in entries]),
            "arm": ("VARCHAR", [entry.cell.arm for entry in entries]),
            "seed": ("BIGINT", [entry.seed for entry in entries]),
            **_settings(settings),
            **of_axes,
            "title": ("VARCHAR", [m.title for m in manifests]),
            "host": ("VARCHAR", [m.host for m in manifests]),
            "plan_digest": ("VARCHAR", [m.plan_digest for m in manifests]),
            "parts": ("VARCHAR", [parts_text([m]) for m in manifests]),
            "t0_ns": ("BIGINT", [m.t0_ns for m in manifests]),
            "t1_ns": ("BIGINT", [m.t1_ns for m in manifests]),
            "stopped_by": ("VARCHAR", [m.stopped_by for m in manifests]),
            "events": ("BIGINT", [m.events for m in manifests]),
            "wall_s": ("DOUBLE", [m.wall_s for m in manifests]),
            "path": ("VARCHAR", [str(entry.path) for entry in entries]),
        },
    )
    there = {entry.digest for entry in entries}
    swept = [list(labels(cell, axes)) for _, cell, _, _ in known.cells]
    _table(
        connection,
        "cells",
        {
            "sweep": ("VARCHAR", [sweep for sweep, _, _, _ in known.cells]),
            "arm": ("VARCHAR", [cell.arm for _, cell, _, _ in known.cells]),
            "seed": ("BIGINT", [seed for _, _, seed, _ in known.cells]),
            **_settings([dict(cell.settings) for _, cell, _, _ in known.cells]),
            **_axis_columns(axes, swept, ("sweep", *_RUN_COLUMNS, "finished")),
            "digest": ("VARCHAR", [digest for _, _, _, digest in known.cells]),
            "finished": ("BOOLEAN", [digest in there for _, _, _, digest in known.cells]),
        },
    )
    return list(of_axes)


def _settings(settings: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, list[Any]]]:
    return {"settings": ("MAP(VARCHAR, VARCHAR)", [dict(one) for one in settings])}


def _axis_columns(
    axes: Mapping[str, str], swept: Sequence[Sequence[str | None]], taken: Iterable[str]
) -> dict[str, tuple[str, list[Any]]]:
    """Return a column of labels for each axis, and one of numbers in SI units where all labels are numbers.

    Columns whose names are taken are left out; names in SQL are case-insensitive.
    """
    names = {name.lower() for name in taken}
    found: dict[str, tuple[str, list[Any]]] = {}
    for i, short in enumerate(axes.values()):
        column = [row[i] for row in swept]
        of_axis: dict[str, tuple[str, list[Any]]] = {short: ("VARCHAR", column)}
        in_si = si_numbers({label for label in column if label is not None})
        if in_si is not None:
            values = [None if label is None else in_si.values[label] for label in column]
            of_axis[f"{short}_{in_si.unit}"] = ("DOUBLE", values)
        for name, content in of_axis.items():
            if name.lower() not in names:
                names.add(name.lower())
                found[name] = content
    return found


def _table(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, tuple[str, list[Any]]]
) -> None:
    # Whole columns are passed as parameters, because one statement per row would take longer than the query.
    parts = [f"unnest(?::{kind}[]) AS {_name(column)}" for column, (kind, _) in columns.items()]
    connection.execute(
        f"CREATE OR REPLACE TABLE {name} AS SELECT {', '.join(parts)}",
        [values for _, values in columns.values()],
    )


def _make_view(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    files: Sequence[tuple[str, str]],
    axes: Iterable[str],
    *,
    mixed: bool,
) -> None:
    """Create the view of a table; the columns of ``mixed`` files may differ, so all are examined first."""
    if not files:
        return
    paths = [file for file, _ in files]
    source = parquet_source(paths, union_by_name=mixed)
    _table(
        connection,
        f"{_APART}.{_name(table)}",
        {"file": ("VARCHAR", paths), "digest": ("VARCHAR", [digest for _, digest in files])},
    )
    own = {str(row[0]).lower() for row in connection.execute(f"DESCRIBE FROM {source}").fetchall()}
    beside = [*_RUN_COLUMNS, *axes]
    columns = [f"r.{_name(column)}" for column in dict.fromkeys(beside) if column.lower() not in own]
    connection.execute(
        f"CREATE OR REPLACE VIEW {_name(table)} AS SELECT {', '.join(columns)}, t.* EXCLUDE (filename)"
        f" FROM {source} AS t JOIN {_APART}.{_name(table)} AS f"
        " ON t.filename = f.file JOIN runs AS r ON r.digest = f.digest"
    )


def _damaged(connection: duckdb.DuckDBPyConnection, files: _Files) -> dict[str, str]:
    """Return the files that cannot be read, each with a sentence that says why."""
    every = [file for found in files.values() for file, _ in found]
    checked = {path: damage(connection, path) for path in every}
    return {path: reason for path, reason in checked.items() if reason}


def _without(reasons: Mapping[str, str], files: _Files, skipped: list[str]) -> _Files:
    """Return the files that remain, and record why the others are left out."""
    skipped.extend(reasons.values())
    return {table: [f for f in found if f[0] not in reasons] for table, found in files.items()}


def _plain(value: object) -> object:
    """Return the value in a form that JSON can represent.

    A decimal without a fraction becomes an integer, however large it is.
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
