"""A scenario live and simulated, into one directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from aqmlab.both import FILE, LIVE, SIMULATED, Both, load_both
from aqmlab.experiment import Progress as SimulationProgress
from aqmlab.experiment import begin_directory, job_count, prepare
from aqmlab.experiment import run_prepared as simulate
from aqmlab.live.experiment import ONE_CASE, Progress, Wishes, told_to_be_live
from aqmlab.live.experiment import run_prepared as run_live
from aqmlab.scenario import Scenario


def run_both(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    jobs: int | None = None,
    wishes: Wishes = Wishes(),  # noqa: B008 (a tuple cannot change)
    progress: SimulationProgress | None = None,
    live_progress: Progress | None = None,
    interrupted: Callable[[], object] | None = None,
) -> Both:
    """Run a scenario live, then simulate it, and compare.

    Live comes first: a machine that cannot, says so before it has simulated for an hour.

    Parameters
    ----------
    scenario, output, seed, runs, arms, jobs
        As of :func:`aqmlab.run`.
    wishes, live_progress, interrupted
        As of :func:`aqmlab.run_live`.
    progress
        Told how far the simulations are.

    Raises
    ------
    AqmlabError
        As of both.
    """
    asked = prepare(scenario, seed=seed, runs=runs, arms=arms, instead=ONE_CASE)
    jobs = job_count(jobs)
    about = json.dumps({"format_version": 1, "title": asked.about["title"]}) + "\n"
    directory = begin_directory(output, asked.about, {FILE: about})
    try:
        as_live = told_to_be_live(asked)
        run_live(as_live, as_live.begin(directory / LIVE), wishes, live_progress, interrupted)
        simulate(asked, asked.begin(directory / SIMULATED), jobs, progress, wishes.capture)
    except BaseException:
        if not any((directory / name).exists() for name in (LIVE, SIMULATED)):
            (directory / FILE).unlink()
            directory.rmdir()
        raise
    return load_both(directory)


__all__ = ["run_both"]
