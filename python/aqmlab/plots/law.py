"""Figures of laws: probability against average queue, or over time after a step in load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.laws import CURVES, RESPONSES, Bench, Curve, Response, law_curves, law_responses
from aqmlab.plots.appearance import AS_MADE, Appearance, arm_look, entitle, legend_below, new_figure
from aqmlab.plots.draw import check_format, save, write_csv
from aqmlab.plots.kinds import single

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (4.9, 4.4)
_SHOWN = {"packets": ("packets", 1.0), "bytes": ("kB", 1e-3)}


def draw_law(  # noqa: PLR0913 (keyword arguments)
    name: str,
    settings: Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    *,
    presets: bool = False,
    seed: int = 1,
    bench: Bench | None = None,
    look: Appearance = AS_MADE,
    heading: str | None = None,
) -> Path:
    """Draw a discipline's law; see :func:`aqmlab.plot_law`.

    If given, ``heading`` replaces the figure's usual title.
    """
    from aqmlab import _core
    from aqmlab.disciplines.catalogue import aqm_show

    file = Path(output) if output is not None else Path(f"law-{name}.pdf")
    check_format(file, (".csv",))
    bench = bench or Bench()
    title = aqm_show(name)["title"]
    if name in RESPONSES:
        responses = law_responses(name, settings, presets=presets, seed=seed, bench=bench)
        rows = [("line", "t_s", "p", "backlog_packets"), *_response_rows(responses)]
        figure = lambda: _response_figure(title, responses, bench, heading)  # noqa: E731 (called by save())
    else:
        curves = law_curves(name, settings, presets=presets, bench=bench)
        rows = [("line", "unit", "avg", "p"), *_curve_rows(curves)]
        figure = lambda: _curve_figure(title, curves, heading)  # noqa: E731
    if file.suffix.lower() == ".csv":
        write_csv(file, rows)
    else:
        save(figure, file, f"{title}: law", _core.__version__, look)
    return file


def _curve_rows(curves: Sequence[Curve]) -> Iterable[tuple[Any, ...]]:
    return (
        (c.label, c.unit, *point) for c in curves for point in zip(c.avg.tolist(), c.p.tolist(), strict=True)
    )


def _response_rows(responses: Sequence[Response]) -> Iterable[tuple[Any, ...]]:
    return (
        (r.label, *point)
        for r in responses
        for point in zip(r.t_s.tolist(), r.p.tolist(), r.backlog_packets.tolist(), strict=True)
    )


def _curve_figure(title: str, curves: Sequence[Curve], heading: str | None) -> Figure:
    """Draw the curves, with one plot for each unit of the averages."""
    units = list(dict.fromkeys(c.unit for c in curves))
    figure, axes = single(heading or f"{title}: probability by average queue")
    if len(units) > 1:
        axes.remove()
    for number, unit in enumerate(units):
        shown, scale = _SHOWN[unit]
        if len(units) > 1:
            axes = figure.add_subplot(1, len(units), number + 1)
        for i, curve in enumerate(curves):
            if curve.unit == unit:
                axes.plot(curve.avg * scale, curve.p, label=curve.label, **arm_look(i))
        axes.set(xlabel=f"average queue [{shown}]", ylim=(0, 1.02))
        axes.set_xlim(left=0)
        if number == 0:
            axes.set_ylabel("probability of a notice, before spacing")
    legend_below(figure, figure.axes)
    return figure


def _response_figure(title: str, responses: Sequence[Response], bench: Bench, heading: str | None) -> Figure:
    figure = new_figure(*_SIZE, 2)
    probability, backlog = figure.subplots(2, 1, sharex=True)
    begin, end = bench.step_s
    step = f"load {bench.load:g} of {bench.rate}, {bench.step_load:g} from {begin:g} to {end:g} s"
    entitle(figure, heading or f"{title}: {step}")
    for i, of_run in enumerate(responses):
        style = {**arm_look(i), "label": of_run.label}
        probability.plot(of_run.t_s, of_run.p, **style)
        backlog.plot(of_run.t_s, of_run.backlog_packets, **style)
    for axes in (probability, backlog):
        axes.axvspan(begin, end, color="0.9", linewidth=0, zorder=0, label=f"load {bench.step_load:g}")
        axes.set_ylim(bottom=0)
    probability.set_ylabel("probability p")
    backlog.set(xlabel="time [s]", ylabel="backlog [packets]", xlim=(0, bench.duration_s))
    legend_below(figure, [probability])
    return figure


__all__ = ["CURVES", "RESPONSES", "draw_law"]
