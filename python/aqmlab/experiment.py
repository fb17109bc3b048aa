"""Experiments: every arm of a single-case scenario with every seed, each run in its own directory.

The runs are on one host (:func:`run`), or on both (:func:`run_both`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.language.scenario import Scenario
from aqmlab.recordings.integrity import sealed
from aqmlab.results import both
from aqmlab.results.both import Both
from aqmlab.results.results import Results
from aqmlab.sweeps.cases import Cases
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
from aqmlab.sweeps.sweep import Sweep, Watcher
from aqmlab.sweeps.task import LIVE, SIMULATOR, Capture
from aqmlab.sweeps.where import LOCAL, Where

if TYPE_CHECKING:
    from aqmlab.sweeps.connection import Cluster
    from aqmlab.system.terminal import Streams

_Found = TypeVar("_Found", Results, Both)

ONE_CASE = "live runs have a single case: leave out the [sweep], or turn its cases into arms"


@typed
def run(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    host: str = SIMULATOR,
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
    streams: Streams | None = None,
) -> Results:
    """Run every arm of a scenario with every seed.

    Live runs take place in real time. All arms of a seed run before the next seed, so that gradual changes in
    the machine affect all arms alike. They are returned whether faithful or not;
    :func:`aqmlab.recordings.faithfulness.verdicts` judges them.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    host
        ``"sim"``, or ``"live"`` for runs between this machine's TCP stacks.
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
    force
        Whether to run live even if the router expects the load to exceed this machine's capacity.
    pcap
        The ports whose packets are written to ``packets.pcapng`` in each recording. A port is given by the
        name of its link; ``["all"]`` selects all ports.
    pcap_bytes
        Number of bytes kept of each packet; 128 if not given.
    progress
        Receives the progress of the runs (:class:`~aqmlab.sweeps.progress.Progress`), about ten
        times per second.
    interrupted
        Called once, when a live run has been asked to end.
    report
        Whether to make ``report.html``.
    resume
        Whether to continue in ``output`` (by default the latest directory of the same runs below
        ``runs``): intact runs are kept, others are repeated, and seeds that the directory lacks are added.
        If there is no such directory, all runs are executed.
    streams
        The standard streams of the program that a user has started directly, if there is one.

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
        If this machine cannot run it: no permission, no space, not enough memory. For live runs,
        ``aqmlab doctor`` reports why.
    KeyboardInterrupt
        If interrupted; finished runs are kept.
    """
    where = Where.chosen(host, executor, jobs, bring=RECORDINGS, overload=force, interrupted=interrupted)
    where = replace(where, streams=streams)
    capture = Capture.chosen(pcap, pcap_bytes)
    instead = ONE_CASE if host == LIVE else "run it with `aqmlab sweep`"
    cases = Cases(scenario, seed=seed, runs=runs, arms=arms, host=host, capture=capture, instead=instead)
    return _reported(_run(cases, output, where, progress, resume=resume), report)


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
    scenario, output, seed, runs, arms, jobs, force, pcap, pcap_bytes, progress, interrupted, report, resume
        As for :func:`run`.
    executor
        The executor of the simulation, as in :func:`run`; live runs use this machine.

    Raises
    ------
    AqmlabError
        As for :func:`run`.
    """
    computing = Where.chosen(SIMULATOR, executor, jobs, bring=RECORDINGS)
    measuring = Where.chosen(LIVE, overload=force, interrupted=interrupted)
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
        measured = _run(live, directory / both.LIVE, measuring, progress, resume=resume)
        computed = _run(simulated, directory / both.SIMULATED, computing, progress, resume=resume)
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


def _run(
    cases: Cases, output: Path | str | None, where: Where, watcher: Watcher | None, *, resume: bool
) -> Results:
    """Execute all runs of an experiment on one host."""
    place = (begun(cases, output) if resume else None) or begin(cases, output)
    with _nothing_empty_left(place):
        sweep = Sweep(cases, place, AskedExperiment(place), where, watcher=watcher)
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
