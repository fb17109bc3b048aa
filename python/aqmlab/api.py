"""The public functions; each command of the command line calls one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from aqmlab.arguments import names, typed
from aqmlab.disciplines.contract import check as aqm_check
from aqmlab.language.scenario import Scenario, resolve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqmlab.claims import Scored
    from aqmlab.laws import Bench
    from aqmlab.plots import View
    from aqmlab.plots.appearance import Appearance


class LookOptions(TypedDict, total=False):
    """The look of a figure; :func:`plot` explains each option."""

    width: str | float | None
    height: str | float | None
    font_size: float | None
    title: bool
    style: str | None


class FigureOptions(LookOptions, total=False):
    """The content of a figure, and its look; :func:`plot` explains each option."""

    queue: str | None
    flows: str | Sequence[str]
    arms: str | Sequence[str]
    from_s: float | None
    until_s: float | None
    metrics: str | Sequence[str]
    x: str | None
    by: str | None
    where: Mapping[str, str] | None
    over: str
    class_name: str
    reference: str | None


@typed
def show(scenario: Scenario) -> dict[str, Any]:
    """Return the resolved form of a scenario, without running it.

    Returns
    -------
    dict
        ``title``, ``question``, ``seeds``, ``warnings`` and ``arms``; each arm with ``name``,
        ``digest``, ``plan`` and ``parameters`` (``path``, ``value`` with unit, ``origin``,
        ``source``, ``help``).

    Raises
    ------
    ScenarioError
        If the scenario has errors; the exception lists all of them.
    """
    return resolve(scenario)


@typed
def report(path: Path | str, output: Path | str | None = None) -> Path:
    """Make the report of a recording or a sweep.

    Parameters
    ----------
    path
        The directory of an experiment, a run or a sweep, or of a scenario that was both simulated
        and run live.
    output
        The file to write; by default ``report.html`` in that directory.

    Returns
    -------
    Path
        The file.
    """
    from aqmlab.paths import load, load_both
    from aqmlab.reports import write_report
    from aqmlab.results.both import is_both

    return write_report(load_both(path) if is_both(path) else load(path), output)


@typed
def score_claims(path: Path | str, file: Path | str | None = None) -> tuple[Scored, ...]:
    """Score claims against the runs of a recording or a sweep.

    Parameters
    ----------
    path
        The directory of the recording or the sweep.
    file
        A TOML file with the ``[[claim]]`` tables to score; by default those of the scenario.

    Returns
    -------
    tuple of aqmlab.claims.Scored
        Each claim with its ``verdict`` and all its comparisons.

    Raises
    ------
    ScenarioError
        If a claim in the file is invalid.
    """
    from aqmlab.claims import read_claims, score
    from aqmlab.paths import load

    return score(load(path), None if file is None else read_claims(file))


@typed
def plot(
    path: Path | str, kind: str, output: Path | str | None = None, **options: Unpack[FigureOptions]
) -> Path:
    """Draw one figure into a file; :func:`figure` returns one that can be changed.

    Parameters
    ----------
    path
        The directory of an experiment, a run or a sweep.
    kind
        One of ``aqmlab.plots.KINDS`` for an experiment or a run, such as ``"series"``, or one of
        ``aqmlab.plots.SWEEP_KINDS`` for a sweep, such as ``"lines"``; ``docs/figures.md`` describes them.
    output
        The file. Its extension selects PDF, SVG or PNG, and for most kinds CSV (the numbers). By
        default ``figures/<kind>.pdf`` in the directory.
    queue
        The queue to draw; the bottleneck if not given.
    flows
        Names (``"ftp 3"``) or classes, for the figures of flows; by default as many as fit into the figure.
    arms
        The arms to draw, for the figures of flows and of a sweep, and for boxes and bars; all if
        not given.
    from_s, until_s
        The range of time to show, for the figures of flows; all of the run if not given. In
        distributions, the range of response or page times: if not given, 0 to 2 s in
        ``"response-cdf"``, 0 to 20 s in ``"page-cdf"``, and all times in ``"response-ccdf"`` and
        ``"page-ccdf"``.
    metrics
        Names of metrics, for ``"lines"``, ``"heat"``, ``"differences"``, ``"box"`` and ``"bar"``;
        if not given, the 95th percentile of queueing delay, or goodput in boxes and bars.
    x, by
        Axes of a sweep: the horizontal axis of each plot, and the axis with one plot per label (in ``"heat"``
        and ``"differences"``, the vertical axis); if not given, the axes with the most labels.
    where
        Labels at which the other axes are fixed, by axis; by default the first label of each axis.
    over
        What ``"box"`` and ``"bar"`` show: ``"seeds"``, one value per seed; ``"classes"``, the same for each
        class of traffic; or ``"flows"``, the goodput of each flow.
    class_name
        The class whose response or page times are drawn; by default all classes.
    reference
        The arm whose response or page times are drawn in grey behind the others; by default the one
        called ``uncongested``.
    width, height
        The size: ``"88mm"``, ``"9cm"``, ``"3.5in"``, ``"252pt"``, ``"1col"``, or a number of
        inches. If only one is given, the other one follows the figure's proportions.
    font_size
        Font size in points; 8 unless this argument or a style sets another size.
    title
        Whether the figure has a title.
    style
        ``"paper"`` (the default), ``"slides"``, ``"gray"``, the name of a matplotlib style sheet, or
        the path of one.

    Returns
    -------
    Path
        The file.
    """
    from aqmlab.paths import load
    from aqmlab.plots import draw

    return draw(load(path), kind, output, **_choices(options))


@typed
def figure(path: Path | str, kind: str, **options: Unpack[FigureOptions]) -> Figure:
    """Return one figure as a matplotlib object, which can be changed, shown in a notebook and saved.

    Parameters
    ----------
    path, kind, queue, flows, arms, from_s, until_s, metrics, x, by, where, over, class_name, reference
        As in :func:`plot`.
    width, height, font_size, title, style
        As in :func:`plot`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; it belongs to no window and need not be closed.
    """
    from aqmlab.paths import load
    from aqmlab.plots.draw import figure_of

    return figure_of(load(path), kind, **_choices(options))


class _Choices(TypedDict):
    """The content of a figure, and its look, after both have been checked."""

    queue: str | None
    view: View
    look: Appearance


def _choices(options: FigureOptions) -> _Choices:
    from aqmlab.plots import View

    given: dict[str, Any] = dict(options)
    queue = given.pop("queue", None)
    look = _look({key: given.pop(key) for key in LookOptions.__annotations__ if key in given})
    for several in ("flows", "arms", "metrics"):
        given[several] = names(given.get(several, ())) or ()
    return {"queue": queue, "view": View(**{**given, "where": given.get("where") or {}}), "look": look}


def _look(options: Mapping[str, Any]) -> Appearance:
    from aqmlab.plots.appearance import Appearance, length_in

    lengths = {
        key: length_in(options[key], key) for key in ("width", "height") if options.get(key) is not None
    }
    return Appearance(**{**options, "width": lengths.get("width"), "height": lengths.get("height")})


@typed
def plot_law(  # noqa: PLR0913 (keyword arguments)
    name: str,
    settings: Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    *,
    presets: bool = False,
    seed: int = 1,
    bench: Bench | None = None,
    **options: Unpack[LookOptions],
) -> Path:
    """Draw a discipline's law, computed by the compiled discipline.

    Parameters
    ----------
    name
        ``red``, ``ared`` or ``scred``: probability against average queue, with the initial
        ``max_p``. ``pi``, ``rem`` or ``blue``: probability and backlog over time, after a step in
        the offered load.
    settings
        Parameters as in a scenario file: ``{"max_p": 0.1}``.
    output
        The file. Its extension selects PDF, SVG, PNG or CSV (the numbers). By default
        ``law-<name>.pdf``.
    presets
        Whether to draw the presets, one line each; ``settings`` are applied to each of them as well.
    seed
        Seed of the discipline's draws.
    bench
        The link, and the load on it: :class:`aqmlab.laws.Bench`.
    width, height, font_size, title, style
        As in :func:`plot`.

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

    return draw_law(name, settings, output, presets=presets, seed=seed, bench=bench, look=_look(options))


@typed
def schema(of: str = "scenario") -> dict[str, Any]:
    """Return the JSON Schema for a kind of file.

    Parameters
    ----------
    of
        The kind of file: ``"scenario"``; ``"plan"``, the resolved form of a scenario; ``"manifest"``,
        the description of a run in ``manifest.json``.

    Raises
    ------
    UsageError
        If no schema has this name.
    """
    from aqmlab import _core

    content: dict[str, Any] = json.loads(_core.schema(of))
    return content


def metric_list() -> list[dict[str, Any]]:
    """Return all metrics, each in the form of :func:`metric_show`."""
    from aqmlab.metrics import all_metrics

    return [metric.to_json() for metric in all_metrics()]


@typed
def metric_show(name: str) -> dict[str, Any]:
    """Return one metric.

    Returns
    -------
    dict
        ``name``, ``label``, ``unit``, ``definition``, ``formula`` and ``over`` (the recorded table
        from which the metric is computed), ``source``, ``better`` (``"less"``, ``"more"`` or empty),
        ``asked_of`` (which of ``queue``, ``class`` and ``window`` it depends on), ``from_samples``,
        and ``parameters`` (``name``, ``unit``, ``definition``, ``default``, which may be null).

    Raises
    ------
    UsageError
        If no metric has this name; the message gives the nearest name.
    """
    from aqmlab.metrics import find

    return find(name).to_json()


__all__ = [
    "aqm_check",
    "plot",
    "plot_law",
    "report",
    "schema",
    "show",
]
