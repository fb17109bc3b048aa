"""Experiments: every arm of a single-case scenario with every seed, each run in its own directory.

The runs are simulated (:func:`run`), live (:func:`run_live`), or both (:func:`run_both`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.language.scenario import Scenario
from aqmlab.recordings.integrity import sealed
from aqmlab.results import both
from aqmlab.results.both import Both
from aqmlab.results.results import Results
from aqmlab.sweeps.cases import Cases
from aqmlab.sweeps.executor import Executor
from aqmlab.sweeps.experiment_directory import (
    AskedExperiment,
    ExperimentDirectory,
    begin,
    begin_directory,
    begun,
    continues,
    latest,
)
from aqmlab.sweeps.parcel import RECORDINGS
from aqmlab.sweeps.sweep import LOCAL, Sweep, Watcher, cluster_of
from aqmlab.sweeps.task import LIVE, SIMULATOR, Capture
from aqmlab.system.machine import job_count

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster

_Found = TypeVar("_Found", Results, Both)

ONE_CASE = "live runs have a single case: leave out the [sweep], or turn its cases into arms"


@typed
def run(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Watcher | None = None,
    report: bool = True,
    resume: bool = False,
) -> Results:
    """Run every arm of a scenario with every seed.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    output
        The directory to create, which must not exist; ``runs/<utc>-<title>-<digest>`` if not given.
    seed, runs
        The first seed, and the number of seeds; by default as in the scenario.
    arms
        Names of the arms to run, or one name; all if not given.
    jobs
        Number of runs in parallel on this machine; one per processor by default. Results do not
        depend on it.
    executor
        The executor, as in :func:`aqmlab.sweep`; a cluster returns whole recordings unless set
        otherwise.
    pcap
        The ports whose packets are written to ``packets.pcapng`` in each recording. A port is given by the
        name of its link; ``["all"]`` selects all ports.
    pcap_bytes
        Number of bytes kept of each packet; 128 if not given.
    progress
        Receives the progress of the runs (:class:`~aqmlab.sweeps.progress.Progress`), about ten
        times per second.
    report
        Whether to make ``report.html``.
    resume
        Whether to continue in ``output`` (by default the latest directory of the same runs below
        ``runs``): intact runs are kept, others are repeated, and seeds that the directory lacks are added.
        If there is no such directory, all runs are executed.

    Returns
    -------
    Results
        The finished runs.

    Raises
    ------
    ScenarioError
        If the scenario is wrong; nothing is written then.
    UsageError
        If an argument is invalid.
    RunError
        If runs failed; the others are kept.
    HostError
        If this machine cannot run it: no permission, no space, not enough memory.
    KeyboardInterrupt
        If interrupted; finished runs are kept.
    """
    wishes = _Wishes(resume, job_count(jobs), cluster_of(executor, jobs, RECORDINGS), progress)
    capture = Capture.chosen(pcap, pcap_bytes)
    cases = Cases(
        scenario, seed=seed, runs=runs, arms=arms, capture=capture, instead="run it with `aqmlab sweep`"
    )
    return _reported(_run(cases, output, wishes), report)


@typed
def run_live(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    force: bool = False,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    report: bool = True,
    resume: bool = False,
) -> Results:
    """Run every arm of a scenario with every seed between real TCP stacks.

    Runs take place in real time. All arms of a seed run before the next seed, so that gradual changes in the
    machine affect all arms alike.

    Parameters
    ----------
    scenario, output, seed, runs, arms, pcap, pcap_bytes, progress, report, resume
        As for :func:`run`.
    force
        Whether to run even if the router expects the load to exceed this machine's capacity.
    interrupted
        Called once, when a run has been asked to end.

    Returns
    -------
    Results
        The finished runs, faithful or not; :func:`aqmlab.recordings.faithfulness.verdicts` judges them.

    Raises
    ------
    ScenarioError, UsageError
        If the request is wrong; nothing is written then.
    HostError
        If this machine cannot run it; ``aqmlab doctor`` reports why.
    RunError
        If runs failed; the others are kept.
    KeyboardInterrupt
        If interrupted; finished runs are kept.
    """
    capture = Capture.chosen(pcap, pcap_bytes)
    cases = Cases(scenario, seed=seed, runs=runs, arms=arms, host=LIVE, capture=capture, instead=ONE_CASE)
    wishes = _Wishes(resume=resume, watcher=progress, force=force, interrupted=interrupted)
    return _reported(_run(cases, output, wishes), report)


@typed
def run_both(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    jobs: int | None = None,
    executor: str | Cluster = LOCAL,
    force: bool = False,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    report: bool = True,
    resume: bool = False,
) -> Both:
    """Run a scenario live, then simulate it, and compare the two.

    Live runs come first, so that a machine that cannot run them reports this before an hour of simulation.

    Parameters
    ----------
    scenario, output, seed, runs, arms, jobs, pcap, pcap_bytes, progress, report, resume
        As for :func:`run`.
    executor
        The executor of the simulation, as in :func:`run`; live runs use this machine.
    force, interrupted
        As for :func:`run_live`.

    Raises
    ------
    AqmlabError
        As for :func:`run` and :func:`run_live`.
    """
    cluster = cluster_of(executor, jobs, RECORDINGS)
    wishes = _Wishes(resume, job_count(jobs), cluster, progress, force, interrupted)
    capture = Capture.chosen(pcap, pcap_bytes)
    live, simulated = (
        Cases(scenario, seed=seed, runs=runs, arms=arms, host=host, capture=capture, instead=ONE_CASE)
        for host in (LIVE, SIMULATOR)
    )
    directory = _begun_both(live, output) if resume else None
    if directory is None:
        about = sealed({"format_version": both.FORMAT_VERSION, "title": live.about["title"]})
        directory = begin_directory(output, simulated, {both.FILE: about})
    try:
        measured = _run(live, directory / both.LIVE, wishes)
        computed = _run(simulated, directory / both.SIMULATED, wishes)
    except BaseException:
        if not any((directory / name).exists() for name in (both.LIVE, both.SIMULATED)):
            (directory / both.FILE).unlink()
            directory.rmdir()
        raise
    return _reported(both.of_sides(directory, computed, measured), report)


def _begun_both(cases: Cases, output: Path | str | None) -> Path | None:
    """Return the directory in which live and simulated runs of a scenario were begun, if there is one."""
    if output is not None:
        path = Path(output)
        if path.exists() and not both.is_both(path):
            raise UsageError(
                f"`{path}` cannot be resumed: it does not hold a scenario that ran both live and simulated;"
                " name another directory"
            )
        return path if path.exists() else None
    found = filter(both.is_both, latest(cases))
    return next((path for path in found if continues(path / both.LIVE, cases)), None)


class _Wishes(NamedTuple):
    """The options of the runs of an experiment."""

    resume: bool
    jobs: int = 1
    cluster: Cluster | None = None
    watcher: Watcher | None = None
    force: bool = False
    interrupted: Callable[[], object] | None = None


def _run(cases: Cases, output: Path | str | None, wishes: _Wishes) -> Results:
    """Execute all runs of an experiment on one host."""
    place = (begun(cases, output) if wishes.resume else None) or begin(cases, output)

    def live_executor() -> Executor:
        from aqmlab.sweeps.live_executor import LiveExecutor

        return LiveExecutor(place, force=wishes.force, interrupted=wishes.interrupted)

    with _nothing_empty_left(place):
        sweep = Sweep(
            cases,
            place,
            AskedExperiment(place),
            jobs=wishes.jobs,
            watcher=wishes.watcher,
            cluster=None if cases.host == LIVE else wishes.cluster,
            executor=live_executor if cases.host == LIVE else None,
        )
        results = sweep.wait()
        missing = tuple(
            lost._replace(reason=sweep.skipped[lost.cell.arm], skipped=True)
            if lost.cell.arm in sweep.skipped
            else lost
            for lost in results.missing
        )
        return replace(results, warnings=(*results.warnings, *sweep.remarks), missing=missing)


def _reported(found: _Found, report: bool) -> _Found:
    if report:
        from aqmlab.reports import write_report

        write_report(found)
    return found


@contextmanager
def _nothing_empty_left(place: ExperimentDirectory) -> Iterator[None]:
    """Remove the directory if the block fails before any run has finished."""
    try:
        yield
    except BaseException as error:
        try:
            place.remove_if_empty()
        except OSError as left:
            # The first error is the one to report.
            error.add_note(f"`{left.filename}` cannot be removed: {left.strerror}")
        raise


__all__ = ["run", "run_both", "run_live"]
