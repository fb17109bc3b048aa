"""Results as data frames: through the Arrow C stream, which many libraries read, or for a named library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from aqmlab.errors import HostError, UsageError, unknown
from aqmlab.system.memory import database

if TYPE_CHECKING:
    import duckdb

TEXT, WHOLE, REAL, YES_OR_NO = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"

Columns = Mapping[str, tuple[str, Sequence[Any]]]
"""For each column, by name: its type (:data:`TEXT`, ...) and its values; ``None`` is an undefined value."""

LIBRARIES = ("pandas", "polars")


class Framed:
    """A base class for results that can become a data frame.

    ``polars.DataFrame(it)``, ``pandas.DataFrame.from_arrow(it)``, ``pyarrow.table(it)`` and
    ``narwhals.from_arrow(it, ...)`` accept it directly, because it has the Arrow PyCapsule interface.
    """

    __slots__ = ()

    def _frame_columns(self) -> Columns:
        """The columns of the frame."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return _relation(self._frame_columns()).__arrow_c_stream__(requested_schema)

    def to_frame(self, library: str | None = None) -> Any:  # noqa: ANN401 (the type belongs to an optional package)
        """Return a data frame.

        Parameters
        ----------
        library
            ``"pandas"`` or ``"polars"``; by default the first of them that is installed.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Its columns have units in their names.

        Raises
        ------
        UsageError
            For an unknown library.
        HostError
            If the library is not installed.
        """
        package, name = _library(library)
        if name == "polars":
            return package.DataFrame(self)
        return _pandas(package, self._frame_columns())


class _Frame(Framed):
    def __init__(self, columns: Columns) -> None:
        self._held = columns

    def _frame_columns(self) -> Columns:
        return self._held


def of_arrays(own: Mapping[str, Sequence[Any]], arrays: Mapping[str, Any]) -> Framed:
    """Return a frame made of uniform lists and NumPy arrays, in which masked values are null."""
    kinds = {"i": WHOLE, "u": WHOLE, "f": REAL, "b": YES_OR_NO}
    return _Frame(
        {
            **{name: (TEXT if name == "arm" else WHOLE, values) for name, values in own.items()},
            **{
                name: (kinds.get(array.dtype.kind, TEXT), array.tolist())
                for name, array in arrays.items()
                if name not in own
            },
        }
    )


def column_names(wanted: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Return distinct column names that also differ from those ``taken``: ``rate``, ``rate_2``."""
    used = set(taken)
    found = []
    for name in wanted:
        free = next(n for n in _numbered(name) if n not in used)
        used.add(free)
        found.append(free)
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{i}" for i in count(2))


def _library(asked: str | None) -> tuple[Any, str]:
    """The imported package, and its name."""
    if asked is not None and asked not in LIBRARIES:
        raise unknown("data frame library", asked, LIBRARIES)
    for name in LIBRARIES if asked is None else (asked,):
        try:
            return import_module(name), name
        except ImportError:
            continue
    missing = asked or "pandas"
    which = f"`{missing}` is not installed" if asked else "neither `pandas` nor `polars` is installed"
    raise HostError(f"{which}: `pip install {missing}`")


def _pandas(pandas: Any, columns: Columns) -> Any:  # noqa: ANN401 (as above)
    """Return a pandas frame, made without pyarrow, which pandas would need for Arrow."""
    kinds = {REAL: "float64", WHOLE: "Int64", YES_OR_NO: "boolean"}
    series = {}
    for name, (kind, values) in columns.items():
        listed = list(values)
        whole = kind == WHOLE and None not in listed
        dtype = "int64" if whole else kinds.get(kind)
        series[name] = pandas.Series(listed, dtype=dtype) if dtype else pandas.Series(listed, dtype=object)
        if kind == TEXT:
            series[name] = series[name].infer_objects()
    return pandas.DataFrame(series)


def _relation(columns: Columns) -> duckdb.DuckDBPyRelation:
    if not columns:
        raise UsageError("a data frame needs at least one column")
    names = list(columns)
    parts = (
        f'unnest($c{i}::{columns[name][0]}[]) AS "{name.replace(chr(34), 2 * chr(34))}"'
        for i, name in enumerate(names)
    )
    values = {f"c{i}": list(columns[name][1]) for i, name in enumerate(names)}
    return database().sql(f"SELECT {', '.join(parts)}", params=values)
