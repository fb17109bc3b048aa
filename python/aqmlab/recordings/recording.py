"""Recordings: the directories that runs write, opened for reading.

``docs/recording.md`` describes the files. DuckDB reads the tables of many runs in one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.arguments import typed
from aqmlab.errors import DamageError, RecordingError, unknown
from aqmlab.recordings.integrity import damaged_tables, unreadable
from aqmlab.recordings.manifest import LinkInfo, Manifest, read_manifest
from aqmlab.recordings.plan import Plan
from aqmlab.system.memory import database
from aqmlab.system.stopping import answered

if TYPE_CHECKING:
    import duckdb

_COLUMNS_SINCE = 3
"""The first version of the part `recording` that writes all columns and bins that this version reads."""


@dataclass(frozen=True, repr=False)
class Run:
    """One finished run.

    Attributes
    ----------
    path
        Its directory.
    manifest
        Its description.
    """

    path: Path
    manifest: Manifest

    def __repr__(self) -> str:
        return f"<Run of {self.arm!r}, seed {self.seed}, in {str(self.path)!r}>"

    @property
    def arm(self) -> str:
        """The arm's name."""
        return self.manifest.arm

    @property
    def seed(self) -> int:
        """The seed."""
        return self.manifest.seed

    @property
    def t0_ns(self) -> int:
        """Beginning of the measured interval, in nanoseconds since the start of the run."""
        return self.manifest.t0_ns

    @property
    def t1_ns(self) -> int:
        """End of the measured interval and of the run, in nanoseconds."""
        return self.manifest.t1_ns

    @property
    def plan(self) -> Plan:
        """The plan, every value with its origin."""
        return self.manifest.plan

    @property
    def links(self) -> tuple[LinkInfo, ...]:
        """The links in the plan's order: ``name``, ``rate_bps``, ``delay_ns``."""
        return self.manifest.links

    @property
    def flow_count(self) -> int:
        """Number of its flows."""
        return self.manifest.tables["flows"].rows

    def file(self, table: str) -> str:
        """The path of the file of one of its tables.

        Raises
        ------
        RecordingError
            If the file was left on the worker of a cluster, or its columns are not those of today.
        """
        if table in self.manifest.left_behind:
            raise RecordingError(
                f"`{self.path}` is a summary: its table `{table}` was not brought from the cluster; repeat"
                " the sweep with `--bring recordings`, or with `--force` on this machine"
            )
        version = self.manifest.parts.get("recording", 0)
        if version < _COLUMNS_SINCE:
            raise RecordingError(
                f"`{self.path}` has tables of version {version} of the part `recording`; this version of"
                f" aqmlab reads them from version {_COLUMNS_SINCE} on: run the scenario again"
            )
        return str(self.path / f"{table}.parquet")

    def damage(self, tables: Iterable[str] | None = None) -> tuple[str, ...]:
        """A sentence for each table that has changed since the run wrote it.

        Parameters
        ----------
        tables
            Names of the tables to check; by default all.
        """
        return tuple(damaged_tables(self.path, self.manifest.file_digests, tables).values())

    def changes(self, queue: str) -> bool:
        """Whether the capacity of the link behind a queue changes during the run."""
        return "links" in self.manifest.tables and any(
            link.name == queue and link.changes is not None for link in self.plan.links
        )

    def rate_bps(self, queue: str) -> int:
        """Capacity of the link behind a queue in bit/s; if it changes, its mean in the measured interval."""
        for link in self.links:
            if link.name == queue:
                return link.rate_bps
        raise RecordingError(f"`{self.path}` has no queue `{queue}`")


class Tables:
    """The recorded tables of several runs, read by SQL.

    Parameters
    ----------
    runs
        The runs.
    remedy
        The remedy for damage, where known.
    """

    def __init__(self, runs: Sequence[Run], remedy: str = "") -> None:
        self.runs = tuple(runs)
        self._remedy = remedy

    @typed
    def to_frame(self, table: str, library: str | None = None, *, runs: Sequence[Run] | None = None) -> Any:  # noqa: ANN401 (the type belongs to an optional package)
        """A recorded table of the runs as a data frame, with the columns ``arm`` and ``seed`` in front.

        Parameters
        ----------
        table
            Its name, as ``docs/recording.md`` describes it: ``"flows"``.
        library
            ``"pandas"`` or ``"polars"``; if not given, the first of them that is installed.
        runs
            All if not given.

        Raises
        ------
        UsageError
            If the runs have no such table (the message gives the nearest name), or ``library`` has
            another value.
        HostError
            If the library is not installed.
        RecordingError
            If a file is missing or cannot be read.
        """
        from aqmlab.recordings.frames import of_arrays

        chosen = self.runs if runs is None else tuple(runs)
        known = list(dict.fromkeys(name for run in chosen for name in run.manifest.tables))
        if chosen and table not in known:
            raise unknown("table", table, known)
        arrays = self.arrays(table, "*", "ORDER BY run", chosen)
        number = arrays.pop("run")
        own: dict[str, list[Any]] = {
            "arm": [chosen[int(i)].arm for i in number],
            "seed": [chosen[int(i)].seed for i in number],
        }
        return of_arrays(own, arrays).to_frame(library)

    @typed
    def rows(
        self, table: str, columns: str, clauses: str = "", runs: Sequence[Run] | None = None
    ) -> list[Any]:
        """Rows of one table, from several runs.

        Parameters
        ----------
        table
            Its name: ``"summary"``.
        columns
            The SQL selection; ``run`` is the index into ``runs``.
        clauses
            The SQL clauses after ``FROM``: ``"WHERE class = '*' ORDER BY run"``.
        runs
            All if not given.

        Raises
        ------
        RecordingError
            If a file is missing or cannot be read.
        """
        return self.select(table, f"SELECT {columns} FROM {table} {clauses}", runs)

    @typed
    def select(self, table: str, statement: str, runs: Sequence[Run] | None = None) -> list[Any]:
        """Return rows like :meth:`rows`, from a complete SQL statement that uses the table's name."""
        rows: list[Any] = self._query(table, statement, runs, "fetchall")
        return rows

    @typed
    def arrays(
        self, table: str, columns: str, clauses: str = "", runs: Sequence[Run] | None = None
    ) -> dict[str, Any]:
        """Like :meth:`rows`, but returns a NumPy array for each selected column."""
        return dict(self._query(table, f"SELECT {columns} FROM {table} {clauses}", runs, "fetchnumpy"))

    def _query(self, table: str, statement: str, runs: Sequence[Run] | None, fetch: str) -> Any:  # noqa: ANN401 (any DuckDB type)
        import duckdb

        asked = self.runs if runs is None else runs
        files = [run.file(table) for run in asked]
        if not files:
            raise RecordingError("there is no finished run to read")
        if any("\udc80" <= sign <= "\udcff" for sign in files[0]):
            raise RecordingError(
                f"cannot read `{files[0]}`: its name is not UTF-8 text; rename the directory"
            )
        if any(run.damage([table]) for run in asked):
            raise DamageError([reason for run in asked for reason in run.damage()], self._remedy)
        numbered = (
            "SELECT * EXCLUDE (filename), list_position($files, filename) - 1 AS run"
            f" FROM {parquet_source(files)}"
        )
        connection = self._connection

        def ask() -> Any:  # noqa: ANN401 (any DuckDB type)
            # DuckDB reads on demand, so damage may be detected in either call.
            result = connection.execute(f"WITH {table} AS ({numbered}) {statement}", {"files": files})
            return getattr(result, fetch)()

        try:
            return answered(connection, ask)
        except duckdb.Error as error:
            raise _unreadable(connection, files, error) from error

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        # A separate cursor, so that threads that read different runs do not share one.
        return _database().cursor()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    """The engine that reads tables, created once: creating it takes longer than reading a small recording."""
    return database({"threads": "2"})


def load_run(path: Path, plans: dict[str, Plan] | None = None) -> Run:
    """Open the recording of one run.

    Parameters
    ----------
    path
        Its directory.
    plans
        The plans of runs opened before, by digest: many seeds share a plan, which is read and kept
        once.

    Raises
    ------
    RecordingError
        If there is no recording, or it is incomplete, corrupt or of another format.
    """
    manifest = read_manifest(path, plans)
    for table in manifest.tables:
        if not (path / f"{table}.parquet").is_file():
            raise DamageError([f"`{path}` is incomplete: `{table}.parquet` is missing"])
    return Run(path, manifest)


def parquet_source(files: Iterable[str], *, union_by_name: bool = False) -> str:
    """Return the SQL to put after ``FROM`` to read the rows of files, with a column ``filename``.

    Parameters
    ----------
    files
        At least one.
    union_by_name
        Whether the files may differ in their columns; missing values are null.
    """
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
    return f"read_parquet([{listed}], filename = true, union_by_name = {str(union_by_name).lower()})"


def _unreadable(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], error: Exception
) -> RecordingError:
    """Name the damaged file, which a query over many files does not always identify."""
    for file in files:
        if why := unreadable(file):
            return RecordingError(why)
        if reason := damage(connection, file):
            return DamageError([reason])
    return RecordingError(f"cannot read the tables of the recording: {_first_line(error)}")


def damage(connection: duckdb.DuckDBPyConnection, file: Path | str) -> str:
    """Describe why one Parquet file, which is read to its end, cannot be read; empty if it can.

    A file is called corrupt only if its bytes can be read.
    """
    import duckdb

    if why := unreadable(file):
        return why

    statement = "SELECT count(*), any_value(t) FROM read_parquet([$file]) AS t"
    try:
        answered(connection, lambda: connection.execute(statement, {"file": str(file)}))
    except duckdb.OutOfMemoryException as cause:
        return f"cannot read `{file}`: {_first_line(cause)}"
    except duckdb.Error as cause:
        return f"`{file}` is corrupt: {_first_line(cause)}"
    return ""


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
