"""Work that ends promptly on request.

Python handles a signal only in the main thread, between two steps of that thread. Another thread receives a
request to end through a :class:`Stop`, which it checks regularly (:func:`raise_if_stopped`). A query, which
may take a long time, is interrupted in either case (:func:`answered`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

HEARD_S = 0.05
"""Interval at which a waiting main thread checks for signals and, after one, interrupts a query again until
the query ends.

A library may have set `SA_RESTART` for a signal that Python handles (polars does for SIGINT). The
kernel then resumes the interrupted call, so a wait without a time limit would never end.
"""
_here = threading.local()
"""In each thread, the attribute ``stop`` is the request that the thread obeys, if there is one."""


class Stopped(BaseException):
    """The thread was asked to end its work."""


class Stop:
    """A request to end a thread's work."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._queries: list[duckdb.DuckDBPyConnection] = []

    @property
    def asked(self) -> bool:
        """Whether the request was made."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Make the request; repeat it if needed, as it does not interrupt a query that has not begun."""
        self._asked.set()
        with self._lock:
            for connection in self._queries:
                connection.interrupt()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Make the current thread obey the request in this block."""
        before = getattr(_here, "stop", None)
        _here.stop = self
        try:
            yield
        finally:
            _here.stop = before

    @contextmanager
    def interrupting(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """While this block runs, let the request interrupt the queries of a connection."""
        with self._lock:
            self._queries.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._queries.remove(connection)


def raise_if_stopped() -> None:
    """End the thread's work here if requested.

    Raises
    ------
    Stopped
        If a stop was requested.
    """
    stop: Stop | None = getattr(_here, "stop", None)
    if stop is not None and stop.asked:
        raise Stopped


def answered(connection: duckdb.DuckDBPyConnection, ask: Callable[[], T]) -> T:
    """Return DuckDB's result; a request to end the thread, or a signal, interrupts the query.

    Parameters
    ----------
    connection
        The connection that ``ask`` uses.
    ask
        A function that executes the query and fetches its rows.

    Raises
    ------
    Stopped
        If the thread was asked to end.
    """
    stop: Stop | None = getattr(_here, "stop", None)
    if stop is not None:
        with stop.interrupting(connection):
            raise_if_stopped()
            try:
                return ask()
            except Exception:
                raise_if_stopped()
                raise
    if threading.current_thread() is not threading.main_thread():
        return ask()
    return _heard(connection, ask)


def wait_heeding_signals(event: threading.Event) -> None:
    """Wait for an event; a signal is handled soon after its arrival, even if a library set `SA_RESTART`."""
    while not event.wait(HEARD_S):
        pass


def _heard(connection: duckdb.DuckDBPyConnection, ask: Callable[[], T]) -> T:
    """Return DuckDB's result, computed in another thread.

    DuckDB checks for signals only between its tasks, and may wait indefinitely for the tasks of other
    threads. The main thread therefore waits in Python.
    """
    found: list[T] = []
    wrong: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            found.append(ask())
        except BaseException as error:
            wrong.append(error)
        finally:
            over.set()

    threading.Thread(target=run, name="query", daemon=True).start()
    try:
        wait_heeding_signals(over)
    except BaseException:
        connection.interrupt()
        while not over.wait(HEARD_S):
            # An interrupt that comes just before the query begins has no effect.
            connection.interrupt()
        raise
    for error in wrong:
        raise error
    return found[0]
