"""Figures of laws: probability by average queue, or over time after a step in load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.laws import CURVES, RESPONSES, Bench, Curve, Response, law_curves, law_responses
from aqmlab.plots.draw import check_format, save, write_csv
from aqmlab.plots.kinds import single
from aqmlab.reports.charts import FAINT, color, dash

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
    arrange: Callable[[Figure], object] | None = None,
) -> Path:
    """Draw a discipline's law; see :func:`aqmlab.plot_law`.

    ``arrange`` may change the figure before it is written.
    """
    from aqmlab import _core
    from aqmlab.api import aqm_show

    file = Path(output) if output is not None else Path(f"law-{name}.pdf")
    check_format(file, (".csv",))
    bench = bench or Bench()
    title = aqm_show(name)["title"]
    if name in RESPONSES:
        responses = law_responses(name, settings, presets=presets, seed=seed, bench=bench)
        rows = [("line", "t_s", "p", "backlog_packets"), *_response_rows(responses)]
        figure = lambda: _response_figure(title, responses, bench)  # noqa: E731 (drawn in the style, not here)
    else:
        curves = law_curves(name, settings, presets=presets, bench=bench)
        rows = [("line", "unit", "avg", "p"), *_curve_rows(curves)]
        figure = lambda: _curve_figure(title, curves)  # noqa: E731
    if file.suffix.lower() == ".csv":
        write_csv(file, rows)
    else:
        save(lambda: _arranged(figure, arrange), file, f"{title}: law", _core.__version__)
    return file


def _arranged(figure: Callable[[], Figure], arrange: Callable[[Figure], object] | None) -> Figure:
    drawn = figure()
    if arrange is not None:
        arrange(drawn)
    return drawn


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


def _curve_figure(title: str, curves: Sequence[Curve]) -> Figure:
    """One axis for each unit that the averages are in."""
    units = list(dict.fromkeys(c.unit for c in curves))
    figure, axes = single(f"{title}: probability by average queue")
    if len(units) > 1:
        figure.clear()
        figure.suptitle(f"{title}: probability by average queue", fontsize=8)
    for number, unit in enumerate(units):
        shown, scale = _SHOWN[unit]
        if len(units) > 1:
            axes = figure.add_subplot(1, len(units), number + 1)
        for i, curve in enumerate(curves):
            if curve.unit == unit:
                axes.plot(curve.avg * scale, curve.p, color=color(i), linestyle=dash(i), label=curve.label)
        axes.set(xlabel=f"average queue [{shown}]", ylim=(0, 1.02))
        axes.set_xlim(left=0)
        if number == 0:
            axes.set_ylabel("probability of a notice, before spacing")
        axes.legend(loc="best")
    return figure


def _response_figure(title: str, responses: Sequence[Response], bench: Bench) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    probability, backlog = figure.subplots(2, 1, sharex=True)
    begin, end = bench.step_s
    probability.set_title(
        f"{title}: load {bench.load:g} of {bench.rate}, {bench.step_load:g} from {begin:g} to {end:g} s"
    )
    for i, of_run in enumerate(responses):
        style = {"color": color(i), "linestyle": dash(i), "label": of_run.label}
        probability.plot(of_run.t_s, of_run.p, **style)
        backlog.plot(of_run.t_s, of_run.backlog_packets, **style)
    for axes in (probability, backlog):
        axes.axvspan(begin, end, color="black", alpha=FAINT / 4, linewidth=0)
        axes.set_ylim(bottom=0)
    probability.set_ylabel("probability p")
    backlog.set(xlabel="time [s]", ylabel="backlog [packets]", xlim=(0, bench.duration_s))
    if len(responses) > 1:
        probability.legend(loc="best")
    return figure


__all__ = ["CURVES", "RESPONSES", "draw_law"]
