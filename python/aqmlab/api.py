"""What can be done: each command of the command line is one of these functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.checks import check as aqm_check
from aqmlab.experiment import run
from aqmlab.given import names
from aqmlab.recording import Experiment, load
from aqmlab.scenario import Scenario, resolve

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.laws import Bench


def show(scenario: Scenario) -> dict[str, Any]:
    """What a scenario resolves to, without running it.

    Returns
    -------
    dict
        ``title``, ``question``, ``seeds``, ``warnings`` and ``arms``; each arm with ``name``, ``digest``,
        ``plan`` and ``parameters`` (``path``, ``value`` with unit, ``origin``, ``source``, ``help``).

    Raises
    ------
    ScenarioError
        With everything that is wrong.
    """
    return resolve(scenario)


def report(path: Path | str, output: Path | str | None = None) -> Path:
    """Make the report of a recording or a sweep.

    Parameters
    ----------
    path
        The directory of an experiment, a run or a sweep.
    output
        The file to write; ``report.html`` in that directory if not given.

    Returns
    -------
    Path
        The file.
    """
    from aqmlab.reports import write_report, write_sweep_report
    from aqmlab.results import is_sweep, load_results

    if is_sweep(path):
        return write_sweep_report(load_results(path), output)
    return write_report(load(path), output)


def score_claims(path: Path | str, file: Path | str | None = None) -> tuple[Scored, ...]:
    """Score claims by the runs of a recording or a sweep.

    Parameters
    ----------
    path
        Its directory.
    file
        A TOML file with the ``[[claim]]`` tables to score; those of the scenario if not given.

    Returns
    -------
    tuple of aqmlab.claims.Scored
        Each with its ``verdict`` and every comparison that was made.

    Raises
    ------
    ScenarioError
        If a claim of the file is wrong.
    """
    from aqmlab.claims import read_claims, score
    from aqmlab.results import load_results

    return score(load_results(path), None if file is None else read_claims(file))


def plot(  # noqa: PLR0913 (keyword arguments)
    path: Path | str,
    kind: str,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    flows: str | Sequence[str] = (),
    arms: str | Sequence[str] = (),
    from_s: float | None = None,
    until_s: float | None = None,
) -> Path:
    """Draw one figure.

    Parameters
    ----------
    path
        The directory of an experiment or a run.
    kind
        ``"series"``, ``"delay-cdf"``, ``"goodput-delay"``; of flows ``"cumulative-ack"``; of single flows,
        if they were recorded, ``"cwnd"``, ``"srtt"`` (``trace``), ``"time-sequence"``, ``"ladder"``
        (``packets``).
    output
        The file; its ending chooses PDF, SVG or PNG, and for the figures of flows CSV (the numbers).
        ``figures/<kind>.pdf`` in the directory if not given.
    queue
        The queue to draw; the bottleneck if not given.
    flows
        Names (``"ftp 3"``) or classes, for the figures of flows; the first ones if not given.
    arms
        The arms to draw, for the figures of flows; all if not given.
    from_s, until_s
        The time to show, for the figures of flows; all of the run if not given.

    Returns
    -------
    Path
        The file.
    """
    from aqmlab.plots import View, draw

    view = View(names(flows) or (), from_s, until_s, names(arms) or ())
    return draw(load(path), kind, output, queue=queue, view=view)


def plot_law(  # noqa: PLR0913 (keyword arguments)
    name: str,
    settings: Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    *,
    presets: bool = False,
    seed: int = 1,
    bench: Bench | None = None,
) -> Path:
    """Draw a discipline's law, by the compiled discipline.

    Parameters
    ----------
    name
        ``red``, ``ared`` or ``scred``: probability against average queue, with the ``max_p`` of
        the start.
        ``pi``, ``rem`` or ``blue``: probability and backlog over time, after a step in the offered load.
    settings
        Parameters as in a scenario file: ``{"max_p": 0.1}``.
    output
        The file; its ending chooses PDF, SVG, PNG or CSV (the numbers). ``law-<name>.pdf`` if not given.
    presets
        One line for each preset, with ``settings`` on top.
    seed
        Of the discipline's draws.
    bench
        The link, and the load on it: :class:`aqmlab.laws.Bench`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If the discipline has no such law, or a parameter is wrong.
    HostError
        If the file cannot be written.
    """
    from aqmlab.plots.law import draw_law

    return draw_law(name, settings, output, presets=presets, seed=seed, bench=bench)


def schema() -> dict[str, Any]:
    """The scenario language as JSON Schema."""
    from aqmlab import _core

    content: dict[str, Any] = json.loads(_core.schema())
    return content


def metric_list() -> list[dict[str, Any]]:
    """All metrics, each as :func:`metric_show` has it."""
    from aqmlab.metrics import all_metrics

    return [metric.to_json() for metric in all_metrics()]


def metric_show(name: str) -> dict[str, Any]:
    """One metric.

    Returns
    -------
    dict
        ``name``, ``label``, ``unit``, ``definition``, ``source``, ``better`` (``"less"``, ``"more"`` or
        empty), ``asked_of`` (which of ``queue``, ``class`` and ``window`` it depends on), ``from_samples``,
        and ``parameters`` (``name``, ``unit``, ``definition``, ``default``, which may be null).

    Raises
    ------
    UsageError
        If there is none of that name, with the nearest one.
    """
    from aqmlab.metrics import find

    return find(name).to_json()


def aqm_list() -> list[dict[str, Any]]:
    """All queue disciplines: ``name``, ``title``, ``summary``, ``maturity``, ``decides``."""
    from aqmlab import _core

    content: list[dict[str, Any]] = json.loads(_core.aqm_list())
    return content


def aqm_show(name: str) -> dict[str, Any]:
    """One discipline, also with ``params`` and ``presets``.

    A parameter has ``name``, ``kind``, ``values`` (its range), ``unit`` (those it may be written with),
    ``default``, ``source``, ``help`` and ``aliases`` (``of``, ``name``, ``meaning``);
    a preset ``name``, ``title`` and ``values``.

    Raises
    ------
    UsageError
        If there is none of that name.
    """
    from aqmlab import _core

    content: dict[str, Any] = json.loads(_core.aqm_show(name))
    return content


__all__ = [
    "Experiment",
    "aqm_check",
    "aqm_list",
    "aqm_show",
    "load",
    "plot",
    "plot_law",
    "report",
    "run",
    "schema",
    "show",
]
