"""Figures of laws: probability against average queue, or over time after a step in load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aqmlab.figures.model import Axis, Figure, Line, Mark, Panel, Span, alone, arm_look, over_time
from aqmlab.laws import CURVES, RESPONSES, Bench, Curve, Response, law_curves, law_responses
from aqmlab.plots.appearance import AS_MADE, Appearance
from aqmlab.plots.draw import check_format, save, write_csv

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
        figure = _response_figure(title, responses, bench, heading)
    else:
        curves = law_curves(name, settings, presets=presets, bench=bench)
        rows = [("line", "unit", "avg", "p"), *_curve_rows(curves)]
        figure = _curve_figure(title, curves, heading)
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
    panels = []
    for number, unit in enumerate(dict.fromkeys(c.unit for c in curves)):
        shown, scale = _SHOWN[unit]
        lines = tuple(
            Line(c.label, c.avg * scale, c.p, arm_look(i)) for i, c in enumerate(curves) if c.unit == unit
        )
        label = "probability of a notice, before spacing" if number == 0 else ""
        up = Axis(label, begin=0.0, end=1.02)
        panels.append(Panel("", Axis(f"average queue [{shown}]", begin=0.0), up, lines))
    made = alone(heading or f"{title}: probability by average queue", panels[0])
    return replace(made, rows=(tuple(panels),))


def _response_figure(title: str, responses: Sequence[Response], bench: Bench, heading: str | None) -> Figure:
    begin, end = bench.step_s
    step = f"load {bench.load:g} of {bench.rate}, {bench.step_load:g} from {begin:g} to {end:g} s"
    load: list[Mark] = [Span(f"load {bench.step_load:g}", begin, end, "#e6e6e6")]
    p = [Line(of.label, of.t_s, of.p, arm_look(i)) for i, of in enumerate(responses)]
    backlog = [Line(of.label, of.t_s, of.backlog_packets, arm_look(i)) for i, of in enumerate(responses)]
    rows = {"probability p": [[*p, *load]], "backlog [packets]": [[*backlog, *load]]}
    made = over_time(heading or f"{title}: {step}", [""], rows, size=_SIZE)
    of_rows = tuple(
        tuple(
            replace(p, x=replace(p.x, begin=0.0, end=bench.duration_s), y=replace(p.y, begin=0.0))
            for p in row
        )
        for row in made.rows
    )
    return replace(made, rows=of_rows)


__all__ = ["CURVES", "RESPONSES", "draw_law"]
