"""Live experiments: every arm of a scenario with every seed, one run at a time, on this machine's clock."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aqmlab.errors import RunError
from aqmlab.experiment import NO_CAPTURE, Capture, Prepared, keeping_what_finished, prepare
from aqmlab.live import supervisor
from aqmlab.recording import Experiment, load
from aqmlab.scenario import Scenario

Progress = Callable[[Mapping[str, Any]], object]
"""Told ten times a second: ``arm``, ``seed``, ``phase``, ``runs_done``, ``runs_total``, ``done_s``,
``total_s``, ``lateness_max_s``.
"""


ONE_CASE = "live runs are of one case: leave the [sweep] out, or make arms of it"


class Wishes(NamedTuple):
    """What is asked of each run besides its scenario.

    Attributes
    ----------
    force
        Run also what the router expects to be too much for this machine.
    capture
        Which packets are kept, in ``packets.pcapng`` of each recording.
    """

    force: bool = False
    capture: Capture = NO_CAPTURE


def run_live(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    wishes: Wishes = Wishes(),  # noqa: B008 (a tuple cannot change)
    progress: Progress | None = None,
    interrupted: Callable[[], object] | None = None,
    report: bool = True,
) -> Experiment:
    """Run every arm of a scenario with every seed between real TCP stacks.

    It takes as long as the runs last. Runs follow each other, all arms of a seed before the next seed, so
    that what changes slowly on the machine meets all arms.

    Parameters
    ----------
    scenario, output, seed, runs, arms
        As of :func:`aqmlab.run`.
    wishes
        What is asked of each run besides.
    progress
        Told how far it is.
    interrupted
        Called once, when Ctrl-C has been passed on to a run.
    report
        Whether to make ``report.html``.

    Returns
    -------
    Experiment
        The finished runs, faithful or not: :func:`aqmlab.faithfulness.verdicts` says which.

    Raises
    ------
    ScenarioError, UsageError
        If the request is wrong; nothing is written then.
    HostError
        If this machine cannot: ``aqmlab doctor`` says why.
    RunError
        If a run failed; those before it are kept.
    KeyboardInterrupt
        If interrupted; finished runs are kept.
    """
    asked = told_to_be_live(prepare(scenario, seed=seed, runs=runs, arms=arms, instead=ONE_CASE))
    directory = asked.begin(output)
    run_prepared(asked, directory, wishes, progress, interrupted)
    experiment = load(directory)
    if report:
        from aqmlab.reports import write_report

        write_report(experiment)
    return experiment


def told_to_be_live(asked: Prepared) -> Prepared:
    """The same, its ``experiment.json`` saying that the runs are live."""
    return replace(asked, about={**asked.about, "host": "live"})


def lasts_s(asked: Prepared) -> float:
    """How long the runs take at the longest, in seconds, apart from their beginnings and ends."""
    return sum(float(arm["end_ns"]) for arm in asked.arms) / 1e9 * len(asked.seeds)


def run_prepared(
    asked: Prepared,
    directory: Path,
    wishes: Wishes,
    progress: Progress | None = None,
    interrupted: Callable[[], object] | None = None,
) -> None:
    """Do the runs, one after the other, their recordings in ``directory``."""
    orders = [_Order(arm, seed) for seed in asked.seeds for arm in asked.arms]
    place = _Place(0, len(orders), 0.0, lasts_s(asked))
    with keeping_what_finished(directory):
        for order in orders:
            job = order.job(asked, directory, wishes)
            told = None if progress is None else _told(progress, order, place)
            try:
                supervisor.ask(job, progress=told, interrupted=interrupted)
            except RunError as error:
                raise RunError(f"arm `{job['arm']}`, seed {order.seed}: {error}") from error
            finally:
                _sweep_up(Path(job["out"]))
            place = place.after(order)


class _Order(NamedTuple):
    """A run to be done."""

    arm: Mapping[str, Any]
    seed: int

    def job(self, asked: Prepared, directory: Path, wishes: Wishes) -> dict[str, Any]:
        """What its process is told."""
        out = directory / str(self.arm["slug"]) / f"seed-{self.seed}"
        return {
            "do": "run",
            "toml": asked.text,
            "file_name": asked.file_name,
            "arm": str(self.arm["name"]),
            "seed": self.seed,
            "out": str(out.absolute()),
            "force": wishes.force,
            "pcap": list(wishes.capture.ports),
            "pcap_bytes": wishes.capture.bytes,
        }


class _Place(NamedTuple):
    """How far all runs are when one begins."""

    runs_done: int
    runs_total: int
    before_s: float
    total_s: float

    def after(self, order: _Order) -> _Place:
        lasted_s = order.arm["end_ns"] / 1e9
        return self._replace(runs_done=self.runs_done + 1, before_s=self.before_s + lasted_s)


def _told(progress: Progress, order: _Order, place: _Place) -> Progress:
    """What a run says of itself, told as a part of all runs."""
    known = {
        "arm": order.arm["name"],
        "seed": order.seed,
        "runs_done": place.runs_done,
        "runs_total": place.runs_total,
        "total_s": place.total_s,
    }
    return lambda now: progress({**now, **known, "done_s": place.before_s + now["done_s"]})


def _sweep_up(out: Path) -> None:
    """Remove what a process that was killed has left of a recording."""
    for partial in out.parent.glob(f".{out.name}.partial-*"):
        shutil.rmtree(partial, ignore_errors=True)


__all__ = ["ONE_CASE", "Progress", "Wishes", "lasts_s", "run_live", "run_prepared", "told_to_be_live"]
