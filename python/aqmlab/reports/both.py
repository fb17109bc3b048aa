"""The report of a scenario simulated and live: the two side by side, arm by arm."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from aqmlab.both import LIVE, SIMULATED, Both, by_arm
from aqmlab.comparison import Compared
from aqmlab.figures import change_text, counted, display_unit, estimate_text
from aqmlab.metrics import Measured, measure
from aqmlab.reports import charts
from aqmlab.reports.figures import ChartAxis, Dash, Figure, interval, source
from aqmlab.reports.live import CHART, lateness_chart, live_context
from aqmlab.reports.page import page
from aqmlab.reports.render import command
from aqmlab.reports.swatch import swatch
from aqmlab.results import Results
from aqmlab.soundness import examine

_CDF = "chart-cdf"
_SIDES: tuple[tuple[str, Dash], ...] = ((SIMULATED, "solid"), (LIVE, "dashed"))


def render(both: Both) -> str:
    """The report as one self-contained page."""
    live = both.live
    arms = tuple(arm for arm in live.arms if live.runs_of(arm))
    results = Results.of_experiment(live)
    queue = results.queue_of(results.select(arms[0])[0])
    drawn = {
        _CDF: delay_chart(measure(both.simulated), measure(live), arms, queue),
        CHART: lateness_chart(both.verdicts, arms),
    }
    figures = {place: figure for place, figure in drawn.items() if figure is not None}
    context = {
        "version": live.version,
        "kicker": f"simulated and live, {counted(len(arms), 'arm')}, {_seeds(both)}",
        "title": live.title,
        "question": live.question,
        "answer": both.summary,
        "warnings": live.warnings,
        "arms": _tables(both),
        "first": both.comparison.first,
        "second": both.comparison.second,
        "note": both.note,
        "live": live_context(both.verdicts, arms),
        "lateness_chart": CHART if CHART in figures else "",
        "cdf_chart": _CDF if _CDF in figures else "",
        "queue": queue,
        "legend": [{"arm": arm, "swatch": swatch(i, plain=True)} for i, arm in enumerate(arms)],
        "checks": [
            {"name": name, "checks": examine(Results.of_experiment(of))}
            for name, of in ((SIMULATED, both.simulated), (LIVE, live))
        ],
        "links": (f"{SIMULATED}/report.html", f"{LIVE}/report.html"),
        "command": shlex.join(["aqmlab", "run", "--both", *shlex.split(command(both.simulated))[2:]]),
        "path": both.path.name,
    }
    return page("both.html.j2", [], context, figures, styles=["live.css"])


def _seeds(both: Both) -> str:
    seeds = both.live.finished_seeds
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _tables(both: Both) -> list[dict[str, Any]]:
    return [{"name": arm, "rows": [_row(one) for one in found]} for arm, found in by_arm(both).items()]


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


def delay_chart(
    simulated: Sequence[Measured], live: Sequence[Measured], arms: Sequence[str], queue: str
) -> Figure | None:
    """Distributions of queueing delay: a colour an arm, simulated solid and live dashed."""
    pairs = [(arm, [charts.delay_histogram(runs, arm, queue) for runs in (simulated, live)]) for arm in arms]
    longest = max((h.quantile(0.999) or 0.0 for _, both in pairs for h in both), default=0.0) / 1e6
    fig = Figure(
        "Queueing delay, all seeds together",
        x=ChartAxis("queueing delay [ms]", range=interval(0, longest * 1.02 or 1.0)),
        y=ChartAxis("share of packets", range=interval(0, 1.01)),
    )
    for i, (arm, both) in enumerate(pairs):
        for (name, dash), histogram in zip(_SIDES, both, strict=True):
            if histogram.total:
                x, y = charts.cdf_points(histogram)
                data = source({"t": x, "share": y})
                fig.line(data, "t", "share", color=charts.color(i), width=2, dash=dash, name=f"{arm}, {name}")
    return None if fig.empty else fig
