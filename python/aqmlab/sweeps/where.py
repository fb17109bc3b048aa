"""Where runs are executed: their host, and the processes or machines that execute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aqmlab.errors import UsageError, unknown
from aqmlab.sweeps.executor import Executor, LocalExecutor
from aqmlab.sweeps.parcel import Bring
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.task import LIVE, SIMULATOR
from aqmlab.system.machine import job_count, memory_cap

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster
    from aqmlab.system.terminal import Streams

LOCAL = "local"
DASK = "dask"


@dataclass(frozen=True)
class Where:
    """Where runs are executed.

    Attributes
    ----------
    host
        ``"sim"`` or ``"live"``.
    jobs
        Number of runs in parallel on this machine; live runs are executed one at a time.
    cluster
        The cluster that executes them; ``None`` for this machine.
    overload
        Whether to run live even if the router expects more load than this machine can carry.
    interrupted
        Called once, when a live run has been asked to end.
    streams
        The standard streams of the program that a user has started directly, if there is one.
    """

    host: str = SIMULATOR
    jobs: int = 1
    cluster: Cluster | None = None
    overload: bool = False
    interrupted: Callable[[], object] | None = None
    streams: Streams | None = None

    @staticmethod
    def chosen(  # noqa: PLR0913 (keyword arguments)
        host: str,
        executor: str | Cluster = LOCAL,
        jobs: int | None = None,
        *,
        bring: Bring | None = None,
        overload: bool = False,
        interrupted: Callable[[], object] | None = None,
    ) -> Where:
        """The host and the executor of a request; arguments as for :func:`aqmlab.sweep`.

        Raises
        ------
        UsageError
            If there is no such host or executor, or they do not fit together.
        HostError
            If Dask is not installed.
        """
        workers = job_count(jobs) if host != LIVE or jobs is not None else 1
        cluster = cluster_of(executor, jobs, bring)
        if host not in (SIMULATOR, LIVE):
            raise unknown("host", host, (SIMULATOR, LIVE))
        if host == LIVE and cluster is not None:
            raise UsageError("live runs use this machine: leave out the executor")
        return Where(host, workers, cluster, overload, interrupted)

    def executor(self, place: Place, workers: int, *, bring: Bring | None, replace: bool) -> Executor:
        """Start the executor.

        Parameters
        ----------
        place
            The place that receives the results.
        workers
            Number of processes on this machine.
        bring
            The part of each recording that a cluster sends back.
        replace
            Whether existing runs are repeated.
        """
        if self.host == LIVE:
            from aqmlab.sweeps.live_executor import LiveExecutor

            return LiveExecutor(
                place,
                force=self.overload,
                replace=replace,
                interrupted=self.interrupted,
                streams=self.streams,
            )
        if self.cluster is not None and bring is not None:
            from aqmlab.sweeps.cluster import DaskExecutor

            return DaskExecutor(self.cluster, place, bring=bring, replace=replace)
        return LocalExecutor(place.path, workers, memory_cap=memory_cap(workers), replace=replace)


def cluster_of(
    executor: str | Cluster, jobs: int | None = None, bring: Bring | None = None
) -> Cluster | None:
    """The requested cluster; ``None`` for this machine.

    Parameters
    ----------
    executor
        As for :func:`aqmlab.sweep`.
    jobs
        Number of runs in parallel, if given.
    bring
        The part of each recording that is sent back, unless the cluster specifies it.

    Raises
    ------
    UsageError
        If there is no such executor, or it does not accept a number of jobs.
    HostError
        If Dask is not installed.
    """
    if executor == LOCAL:
        return None
    if isinstance(executor, str):
        if executor != DASK:
            raise unknown("executor", executor, (LOCAL, DASK))
        from aqmlab.sweeps.connection import Cluster

        executor = Cluster()
    if jobs is not None:
        raise UsageError(
            f"`--jobs {jobs}` applies to this machine; a Dask cluster executes as many runs in parallel as"
            " its workers have threads; leave out `--jobs` (or `AQMLAB_JOBS`)"
        )
    return replace(executor.checked(), bring=executor.bring or bring)
