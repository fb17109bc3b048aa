"""Renders the report of results: one page, whose sections depend on what the results contain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.figures.differences import comparisons, differences
from aqmlab.figures.kinds import KINDS, SWEEP_KINDS
from aqmlab.figures.looks import swatch
from aqmlab.figures.model import Figure
from aqmlab.figures.trade_off import TradeOff
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, find
from aqmlab.recordings.faithfulness import Faithfulness, verdicts
from aqmlab.recordings.manifest import parts_text
from aqmlab.recordings.recording import Run
from aqmlab.reports.answer import best_arm, sentences
from aqmlab.reports.beside import beside_context, sides_chart, two_arms
from aqmlab.reports.by_kind import by_kind_context
from aqmlab.reports.charts import charts_json
from aqmlab.reports.courses import courses_context
from aqmlab.reports.live import lateness_chart, live_context
from aqmlab.reports.missing import missing_context
from aqmlab.reports.network_svg import drawn_network
from aqmlab.reports.page import page, unbroken
from aqmlab.reports.parts import by_class_context, by_queue_context
from aqmlab.reports.payload import payload
from aqmlab.reports.repeat import repeat_context
from aqmlab.reports.table import table_context
from aqmlab.reports.waits import waits_context, waits_data
from aqmlab.results.answers import Answer
from aqmlab.results.answers import answer as answer_of
from aqmlab.results.both import LIVE, SIMULATED, Both
from aqmlab.results.results import Results
from aqmlab.soundness import examine
from aqmlab.text.numbers import counted, estimate_text, listed, time_text

if TYPE_CHECKING:
    from aqmlab.claims import Scored

_PLACED = ("goodput-rtt", "lateness", "sides", "inner-delay", "class-delay", "inner-series")
"""The charts that have a place in a section; each of the others gets a section of its own."""
_OTHER_QUEUES = (
    *("utilisation_percent", "backlog_mean_packets", "drop_percent"),
    *("goodput_bps", "jain_index"),
)


def render(
    of: Results | Both,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
    scored: Sequence[Scored] | None = None,
) -> str:
    """The report as one self-contained page.

    Parameters
    ----------
    of
        The results; for a scenario that was run both simulated and live, the page compares live with
        simulated runs.
    queue, class_name
        The subject of the answer.
    scored
        The scored claims, if they have been scored already.
    """
    both = of if isinstance(of, Both) else None
    results = of.live if isinstance(of, Both) else of
    answer = answer_of(results, queue=queue, class_name=class_name)
    compared = [differences(answer, metric) for metric in answer.shown]
    runs = [run for row in answer.rows for run in results.runs_of(row.cell)]
    found = verdicts(runs)
    trade_off = TradeOff(answer)
    courses = courses_context(answer, best_arm(trade_off) if runs else "")
    charts = charts_json(_plain_charts(answer, found, both))
    waits = waits_data(answer)
    more = {"waits": waits} if waits else {}
    data = payload(answer, compared, trade_off, charts=charts, courses=courses.pop("data"), **more)
    context = {
        "version": results.version,
        "parts": parts_text(run.manifest for run in runs),
        "kicker": _kicker(answer, runs, both),
        "title": results.title,
        "question": results.question,
        "answer": [unbroken(text) for text in ([both.summary] if both is not None else sentences(trade_off))],
        "warnings": results.warnings,
        "beside": None if both is None else beside_context(both),
        "queues": answer.queues,
        **table_context(answer, compared),
        "interval_note": _interval_note(answer, runs),
        "other_queues": [] if results.axes else _other_queues(answer),
        **_claims(results, scored),
        "checks": _checks(results, both),
        **missing_context(results),
        "live": live_context(found, answer.arms),
        "charts": charts,
        "more": [(name, of[0]["title"]) for name, of in charts.items() if name not in _PLACED],
        "shares_delays": any(curve is not None for curve in data["cdf"]),
        "trade_off": data["tradeOff"] is not None,
        "one_panel": len(trade_off.groups) == 1,
        "arms": [
            {"name": arm, "swatch": swatch(i, reference=arm == results.reference)}
            for i, arm in enumerate(answer.arms)
        ],
        "axes": data["axes"],
        "comparisons": comparisons(compared).note,
        "two_arms": two_arms(answer),
        **waits_context(results),
        **by_class_context(results),
        **by_queue_context(answer),
        **by_kind_context(results),
        "network": drawn_network(results),
        "courses": courses,
        **repeat_context(of, results),
    }
    return page("report.html.j2", context, data)


def _plain_charts(
    answer: Answer, found: Sequence[Faithfulness], both: Both | None
) -> dict[str, Figure | None]:
    """Return the charts without selectors, by their position on the page."""
    results = answer.results
    sides = () if both is None or results.axes else (both.simulated, results)
    return {
        **{name: kind.of_answer(answer) for name, kind in {**KINDS, **SWEEP_KINDS}.items()},
        "lateness": lateness_chart(found, answer.arms),
        "sides": sides_chart(sides, answer.arms) if sides else None,
    }


def _kicker(answer: Answer, runs: Sequence[Run], both: Both | None) -> str:
    """Return the extent of the runs: arms, axes, cells, seeds, and the length of each run."""
    results = answer.results
    arms = counted(len(answer.arms), "arm")
    shape = " × ".join([arms, *(f"{len(axis.labels)} {axis.short}" for axis in results.axes)])
    if results.axes:
        shape = f"{shape}: {counted(len(results.cells), 'cell')}"
    seeds = f"{counted(len(results.seeds), 'seed')} each"
    if not runs:
        return f"{shape}, {seeds}"
    most = "" if len({run.t1_ns for run in runs}) == 1 else "at most "
    how = f"{SIMULATED} and {LIVE}" if both else LIVE if runs[0].manifest.live is not None else SIMULATED
    return f"{shape}, {seeds}, {most}{time_text(max(run.t1_ns for run in runs) / 1e9)} {how} in each run"


def _ends(runs: Sequence[Run]) -> str:
    """State when the runs ended; if a condition or a count stops them, each ends at its own time."""
    first, last = (choose(run.t1_ns for run in runs) / 1e9 for choose in (min, max))
    return (
        time_text(last)
        if first == last
        else f"{time_text(first)} at the earliest, {time_text(last)} at the latest"
    )


def _interval_note(answer: Answer, runs: Sequence[Run]) -> str:
    """State what the figures cover: the queue, the seeds and the time."""
    if not runs:
        return ""
    of_class = "" if answer.class_name == EVERY_CLASS else f"Class {answer.class_name} alone. "
    begins = sorted({time_text(run.t0_ns / 1e9) for run in runs})
    measured = f"measured from {' or '.join(begins)} to {_ends(runs)}"
    where = f"At {' or '.join(f'`{queue}`' for queue in answer.queues)}. " if answer.results.axes else ""
    seeds = answer.results.finished_seeds
    start = f"{_crossing(answer)}{of_class}{where}"
    if len(seeds) == 1:
        each = "One run per cell" if answer.results.axes else "One run"
        return f"{start}{each} (seed {seeds[0]}): no interval; {measured}."
    chance = f"; {note}" if not answer.results.axes and (note := answer.chance_note()) else ""
    interval = f"95 % Student t interval over the seeds {seeds[0]} to {seeds[-1]}"
    return f"{start}Mean ± half-width of the {interval}; {measured}{chance}."


def _crossing(answer: Answer) -> str:
    """State which flows the figures cover, unless they cover all."""
    if answer.class_name != EVERY_CLASS or answer.crossed_by == answer.classes:
        return ""
    others = [name for name in answer.classes if name not in answer.crossed_by]
    where = " or ".join(f"`{queue}`" for queue in answer.queues)
    crossing = f"{listed(answer.crossed_by)}, not {listed(others)}"
    return f"Metrics of flows cover the flows that cross {where}: {crossing}. "


def _other_queues(answer: Answer) -> list[dict[str, Any]]:
    rows = []
    every = {
        queue for row in answer.rows for run in answer.results.measured(row.cell) for queue, _ in run.queues
    }
    # If some flows do not cross the queue, the whole network gets a row of its own.
    everywhere = [EVERY_QUEUE] if answer.crossed_by != answer.classes else []
    # Queues inside the answer's queue have a section of their own.
    others = (name for name in sorted(every - {answer.queue}) if not name.startswith(f"{answer.queue}/"))
    for queue in [*others, *everywhere]:
        of_queue = answer_of(answer.results, _OTHER_QUEUES, queue=queue)
        for arm in of_queue.arms:
            texts = [estimate_text(of_queue.estimate(arm, name), find(name).unit) for name in _OTHER_QUEUES]
            name = "all flows of the network" if queue == EVERY_QUEUE else queue
            rows.append({"queue": name, "arm": arm, "texts": texts})
    return rows


def _claims(results: Results, scored: Sequence[Scored] | None) -> dict[str, Any]:
    """Return the verdicts on the scenario's claims; NumPy is imported only if there are claims to score."""
    if not results.claims:
        return {"claims": [], "claims_summary": ""}
    from aqmlab.claims import score
    from aqmlab.reports.claims import claims_context

    return claims_context(score(results) if scored is None else scored)


def _checks(results: Results, both: Both | None) -> list[dict[str, Any]]:
    """Return the checks of the results or, if there are two sides, of each side."""
    sides = [("", results)]
    if both is not None:
        sides = [(SIMULATED, both.simulated), (LIVE, results)]
    return [{"name": name, "checks": examine(side)} for name, side in sides]
