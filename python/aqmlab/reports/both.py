"""Live beside simulated: the section that compares the two sides, arm by arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aqmlab.both import LIVE, SIMULATED, Both, by_arm
from aqmlab.comparison import Compared
from aqmlab.figures import change_text, display_unit, estimate_text
from aqmlab.reports.charts import ChartAxis, PlainChart
from aqmlab.reports.distributions import delay_cdf
from aqmlab.results import Results

_SIDES: tuple[tuple[str, tuple[int, ...]], ...] = ((SIMULATED, ()), (LIVE, (6, 3)))


def beside_context(both: Both) -> dict[str, Any]:
    """What the template needs to compare the two sides."""
    return {
        "arms": [{"name": arm, "rows": [_row(one) for one in found]} for arm, found in by_arm(both).items()],
        "first": both.comparison.first,
        "second": both.comparison.second,
        "note": both.note,
        "links": [{"name": name, "file": f"{name}/report.html"} for name, _ in _SIDES],
    }


def _row(one: Compared) -> dict[str, Any]:
    unit, relative = one.metric.unit, one.found.relative.estimate
    shown = display_unit(unit)
    return {
        "label": f"{one.metric.label} [{shown}]" if shown else one.metric.label,
        "definition": one.metric.definition,
        "first": estimate_text(one.first, unit),
        "second": estimate_text(one.second, unit),
        "difference": estimate_text(one.found.estimate, unit).replace("-", "\u2212"),
        "relative": "" if relative is None else change_text(relative),
        "unclear": one.found.p_value is not None and not one.stands,
        "missing": _missing(one),
    }


def _missing(one: Compared) -> str:
    """Which side has no figure, if one has not."""
    if one.first is not None and one.second is not None:
        return ""
    return "not measured live" if one.second is None else "not measured in the simulation"


def sides_chart(sides: Sequence[Results], arms: Sequence[str]) -> PlainChart:
    """Distributions of queueing delay: a colour per arm, simulated solid and live dashed."""
    of_arms = [
        (i, arm, name, dash, delay_cdf(side, cell))
        for i, arm in enumerate(arms)
        for side, (name, dash) in zip(sides, _SIDES, strict=True)
        for cell in side.select(arm)
    ]
    longest = max((cdf.p99_ms for *_, cdf in of_arms if cdf is not None), default=0.0)
    chart = PlainChart(
        "Queueing delay",
        ChartAxis("queueing delay [ms]", begin=0.0, end=longest * 1.02 or 1.0),
        ChartAxis("share of packets", begin=0.0, end=1.0),
    )
    for name, dash in _SIDES:
        chart.entry(name, dash=dash)
    for i, arm in enumerate(arms):
        chart.entry(arm, arm=i, dash=())
    for i, arm, name, dash, cdf in of_arms:
        if cdf is not None:
            band = (cdf.low, cdf.high) if cdf.n > 1 else None
            chart.line(i, f"{arm}, {name}", cdf.delay_ms, cdf.share, dash=dash, band=band)
    return chart
