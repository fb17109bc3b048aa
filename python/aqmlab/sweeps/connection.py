"""The connection to a Dask scheduler, which is re-established when it is lost."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib.metadata
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aqmlab.arguments import check_type
from aqmlab.errors import HostError, UsageError
from aqmlab.sweeps.parcel import Bring
from aqmlab.sweeps.process import SILENCE_S

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_S = 30.0
"""Time limit for the first attempt to connect."""
_FILE_S = 0.1
_RETRY_S = 2.0
"""Time limit for each later attempt."""
_LOOK_S = 1.0
"""Interval at which the scheduler is asked for the list of workers."""
_UNANSWERED_S = 60.0
"""Time after which a scheduler that does not answer counts as lost."""
_CLOSE_S = 2.0


@dataclass(frozen=True)
class Cluster:
    """A Dask scheduler, and how to reach it.

    Attributes
    ----------
    address
        ``"tcp://host:8786"``, or ``"tls://..."``. Without an address and without a file, Dask's configuration
        applies: ``DASK_SCHEDULER_ADDRESS``.
    scheduler_file
        The file that ``dask scheduler --scheduler-file`` writes, in place of an address.
    bring
        The part that workers without access to the store send back: ``"summaries"`` or whole
        ``"recordings"``; by default, what the request needs.
    tls_ca_file, tls_cert, tls_key
        For ``tls://``: the authority's certificate, and this client's certificate and key; by
        default as in Dask's configuration.
    security
        In place of these files, a ``distributed.Security``, such as the ``security`` of a cluster object.
    silence_s
        Time without progress after which a run is ended and tried again.
    patience_s
        Time for which reconnection to a lost scheduler is attempted.
    """

    address: str | None = None
    scheduler_file: Path | str | None = None
    bring: Bring | None = None
    tls_ca_file: Path | str | None = None
    tls_cert: Path | str | None = None
    tls_key: Path | str | None = None
    security: Any = None
    silence_s: float = SILENCE_S
    patience_s: float = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_type(field.name, getattr(self, field.name), str(field.type))

    def __str__(self) -> str:
        where = self.address or self.scheduler_file or _configured()
        return f"the scheduler `{where}`"

    def client(self, timeout_s: float) -> Client:
        """A new connection.

        Raises
        ------
        OSError
            If the scheduler cannot be reached.
        """
        from distributed import Client

        # Dask's messages about a lost scheduler would duplicate ours.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        until = time.monotonic() + timeout_s
        while self.scheduler_file and not Path(self.scheduler_file).is_file():
            # A scheduler that is just starting may not have written the file yet.
            if time.monotonic() > until:
                raise OSError(f"there is no file `{self.scheduler_file}`")
            time.sleep(_FILE_S)
        where = {"scheduler_file": str(self.scheduler_file)} if self.scheduler_file else {}
        return Client(
            self.address,
            **where,
            security=self.security or self._security(),
            timeout=timeout_s,
            name="aqmlab",
            set_as_default=False,
        )

    def checked(self) -> Cluster:
        """Check the settings, and return them.

        Raises
        ------
        HostError
            If Dask is not installed.
        UsageError
            If the address of the scheduler is unknown or a file does not exist.
        """
        if find_spec("distributed") is None:
            raise HostError(
                "the executor `dask` needs the package distributed: `pip install aqmlab[cluster]`"
            )
        if self.address and self.scheduler_file:
            raise UsageError("an address and a scheduler file are both given; give only one of them")
        if not (self.address or self.scheduler_file or _configured()):
            raise UsageError(
                "the address of the scheduler is unknown: give `--scheduler tcp://HOST:8786` or"
                " `--scheduler-file FILE`, or set `DASK_SCHEDULER_ADDRESS`"
            )
        for file in (self.tls_ca_file, self.tls_cert, self.tls_key):
            if file is not None and not Path(file).is_file():
                raise UsageError(f"there is no file `{file}`")
        return self

    def _security(self) -> Any:  # noqa: ANN401 (of Dask)
        files = {"ca_file": self.tls_ca_file, "client_cert": self.tls_cert, "client_key": self.tls_key}
        given = {f"tls_{name}": str(file) for name, file in files.items() if file is not None}
        if not given:
            return None
        from distributed import Security

        return Security(require_encryption=True, **given)


class Connection:
    """A connection that is re-established after a loss.

    Parameters
    ----------
    cluster
        The cluster to connect to.
    heard
        Callbacks by topic; each is called with every event that workers log on its topic.

    Attributes
    ----------
    workers
        The number of threads of each known worker, by address.

    Raises
    ------
    HostError
        If the scheduler cannot be reached.
    """

    def __init__(self, cluster: Cluster, heard: Mapping[str, Callable[[Any], None]]) -> None:
        self._cluster, self._heard = cluster, heard
        self._client: Client | None = None
        self._lost_s: float | None = None
        self._tried_s = 0.0
        self.workers: dict[str, int] = {}
        try:
            self._begin(_CONNECT_S)
        except (OSError, ValueError) as error:
            raise HostError(f"cannot reach {cluster}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def note(self) -> str:
        """The current problems of the cluster; empty if there are none."""
        if self._lost_s is not None:
            return f"no scheduler for {time.monotonic() - self._lost_s:.0f} s"
        return "" if self.workers else "no workers yet"

    def look(self) -> bool:
        """Check or try to restore the connection; return ``False`` if it has just been lost with its tasks.

        Raises
        ------
        HostError
            If there has been no connection for too long.
        """
        now = time.monotonic()
        if self._client is not None:
            if self._client.status == "running" and now - self._answered_s < _UNANSWERED_S:
                self._ask(now)
                return True
            self._end()
            self._lost_s = now
            return False
        if now - self._tried_s < _LOOK_S:
            return True
        self._tried_s = now
        assert self._lost_s is not None
        try:
            self._begin(_RETRY_S)
        except (OSError, ValueError) as error:
            if now - self._lost_s > self._cluster.patience_s:
                raise HostError(
                    f"{self._cluster} has been gone for {now - self._lost_s:.0f} s: {error}; run the same"
                    " command again once it is back"
                ) from error
        return True

    @property
    def up(self) -> bool:
        """Whether there is a connection."""
        return self._client is not None

    def map(
        self,
        function: Any,  # noqa: ANN401 (any argument that Dask accepts)
        requests: Sequence[str],
        keys: Sequence[str],
        files: Mapping[str, bytes],
        allowed: Sequence[str],
    ) -> list[Future[Any]]:
        """Send tasks: a named function with one request each, and the files that all of them need.

        If workers are named in ``allowed``, tasks are sent only to these.
        """
        assert self._client is not None
        more: dict[str, Any] = {}
        if files:
            # The files are sent as a task, because scattered data would be lost with its worker.
            named = sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
            more["files"] = self._client.submit(dict, dict(files), key=f"files-{named}")
        futures: list[Future[Any]] = self._client.map(
            function, list(requests), key=list(keys), workers=list(allowed) or None, retries=0, **more
        )
        self._ended.update(futures)
        return futures

    def ended(self) -> Iterator[tuple[str, Any]]:
        """Yield key and result of each ended task: an exception if it raised one, ``None`` if it was lost."""
        if self._client is None:
            return
        for future, result in self._ended.next_batch(block=False):
            if future.status == "finished":
                yield future.key, result
            elif future.status == "error":
                error = result[1] if isinstance(result, tuple) else result
                yield future.key, error if isinstance(error, Exception) else RuntimeError(str(error))
            else:
                yield future.key, None

    def cancel(self, futures: Sequence[Future[Any]]) -> None:
        """Release tasks; those that have not begun are cancelled."""
        if self._client is not None:
            with suppress(Exception):
                self._client.cancel(list(futures), asynchronous=False)

    def lacking(self) -> dict[str, str]:
        """Return, by address, the workers that lack aqmlab, each with the remedy."""
        assert self._client is not None
        found = self._client.run(importlib.metadata.version, "aqmlab", on_error="return")
        own = importlib.metadata.version("aqmlab")
        return {
            address: f"it has no aqmlab; install aqmlab {own} there"
            for address, version in found.items()
            if not isinstance(version, str)
        }

    def _begin(self, timeout_s: float) -> None:
        from distributed import as_completed

        client = self._cluster.client(timeout_s)
        self.workers = dict(client.nthreads())
        for topic, hear in self._heard.items():
            client.subscribe_topic(topic, hear)
        self._ended = as_completed([], loop=client.loop, with_results=True, raise_errors=False)
        self._client, self._lost_s = client, None
        self._asked: concurrent.futures.Future[Any] | None = None
        self._answered_s = self._asked_s = time.monotonic()

    def _ask(self, now: float) -> None:
        """Request the list of workers, and read the reply when it arrives."""
        assert self._client is not None
        if self._asked is not None and self._asked.done():
            with suppress(Exception):
                self.workers = dict(self._asked.result())
                self._answered_s = now
            self._asked = None
        if self._asked is None and now - self._asked_s >= _LOOK_S:
            self._asked_s = now
            loop = self._client.loop.asyncio_loop
            self._asked = asyncio.run_coroutine_threadsafe(self._client.scheduler.ncores(), loop)

    def _end(self) -> None:
        client, self._client = self._client, None
        self.workers = {}
        if client is not None:
            with suppress(Exception):
                client.close(timeout=_CLOSE_S)


def _configured() -> str | None:
    """The address of the scheduler in Dask's configuration, which includes environment variables."""
    import dask

    found: str | None = dask.config.get("scheduler-address", None)
    return found
