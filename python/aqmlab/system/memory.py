"""The memory that this process may use, and what happens without it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aqmlab.errors import HostError

if TYPE_CHECKING:
    import duckdb

# Measured with two processors: below 1.3 GB, DuckDB, NumPy or matplotlib fails at an unpredictable place,
# and sometimes ends the process. Each further thread of DuckDB reserves a stack and an arena of malloc.
_ADDRESS_SPACE = 1_400_000_000
_PER_PROCESSOR = 80_000_000

_SIGNS_OF_SHORTAGE = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    "out of memory",
    "error return without exception set",
)


def address_space() -> int | None:
    """Return the limit on this process's address space in bytes (``ulimit -v``); ``None`` without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def check_address_space() -> None:
    """Refuse to read recordings in an address space so small that a library could end the process.

    Raises
    ------
    HostError
        If the limit is too low.
    """
    limit = address_space()
    needed = _ADDRESS_SPACE + _PER_PROCESSOR * (os.cpu_count() or 1)
    if limit is not None and limit < needed:
        raise HostError(
            f"the address space of this process is limited to {limit / 1e9:.2g} GB (`ulimit -v`);"
            f" reading recordings needs {needed / 1e9:.2g} GB on this machine: raise the limit"
        )


def no_memory() -> HostError:
    """Return the error for work that ran out of memory."""
    limit = address_space()
    limited = "" if limit is None else f"; its address space is limited to {limit / 1e9:.2g} GB (`ulimit -v`)"
    return HostError(f"this machine does not have enough memory for this command{limited}")


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error, in whatever form a library raises it, means that there is no memory left."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(sign in text for sign in _SIGNS_OF_SHORTAGE)


def database(config: Mapping[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB database in memory.

    Raises
    ------
    HostError
        If the address space is too small.
    """
    check_address_space()
    import duckdb

    return duckdb.connect(":memory:", config=dict(config or {}))
