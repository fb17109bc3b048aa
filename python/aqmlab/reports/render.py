"""From an experiment to the text of its report."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from aqmlab.answers import Answer
from aqmlab.answers import answer as answer_of
from aqmlab.faithfulness import verdicts
from aqmlab.figures import display_unit, display_value, estimate_parts, estimate_text, listed, time_text
from aqmlab.metrics import EVERY_CLASS, EVERY_QUEUE, Measured, find, measure
from aqmlab.recording import Experiment, Run
from aqmlab.reports import charts
from aqmlab.reports.answer import answer, best_arm, best_arms
from aqmlab.reports.by_class import CHART as RTT_CHART
from aqmlab.reports.by_class import by_class_context, rtt_chart, rtt_context, rtt_points, rtts_differ
from aqmlab.reports.figures import Figure
from aqmlab.reports.live import CHART, lateness_chart, live_context
from aqmlab.reports.network_svg import network_svg
from aqmlab.reports.page import page, resource, unbroken
from aqmlab.reports.swatch import swatch
from aqmlab.results import Results
from aqmlab.series import MOST_FLOWS, RunSeries, run_series
from aqmlab.soundness import examine

_OTHER_QUEUES = (
    *("utilisation_percent", "backlog_mean_packets", "drop_percent"),
    *("goodput_bps", "jain_index"),
)


def render(experiment: Experiment, queue: str | None = None, class_name: str = EVERY_CLASS) -> str:
    """The report as one self-contained page; its answer is of one queue, and of one class if one is named."""
    runs = measure(experiment)
    as_results = Results.of_experiment(experiment)
    results = answer_of(as_results, queue=queue, class_name=class_name)
    firsts = [experiment.runs_of(arm)[0] for arm in results.arms]
    series = run_series(experiment, firsts, results.queue)
    shown = results.arms.index(best_arm(results))
    first = firsts[0]
    end_s = max(run.t1_ns for run in firsts) / 1e9
    over_time = charts.time_charts(series, shown, end_s, first.t0_ns / 1e9)
    overviews = _overviews(runs, results)
    found = verdicts(experiment.runs)
    late = lateness_chart(found, results.arms)
    figures = overviews | {f"chart-{name}": chart.figure for name, chart in over_time.items()}
    figures |= {} if late is None else {CHART: late}
    points = rtt_points(runs, results.arms, results.queue)
    if rtts_differ(points):
        figures[RTT_CHART] = rtt_chart(points, results.arms)
    scripts = [resource("script.js")] if figures else []
    of_class = "" if class_name == EVERY_CLASS else f"Class {class_name} alone. "
    context = {
        "version": experiment.version,
        "results_version": first.manifest.results_version or "",
        "kicker": _kicker(results, experiment, runs),
        "title": experiment.title,
        "question": experiment.question,
        "answer": unbroken(answer(results)),
        "warnings": experiment.warnings,
        "queue": results.queue,
        **_answer_table(results),
        "interval_note": of_class + _interval_note(results, runs),
        "crossing": _crossing(results),
        **by_class_context(as_results),
        "rtt_chart": rtt_context(points, results.queue),
        "other_queues": _other_queues(results, runs),
        **_claims(as_results),
        "checks": examine(as_results),
        "live": live_context(found, results.arms),
        "lateness_chart": "" if late is None else CHART,
        "overviews": list(overviews),
        "network": Markup(network_svg(first.plan, _queue_labels(experiment, results))),
        "legend": [{"arm": arm, "swatch": swatch(i)} for i, arm in enumerate(results.arms)],
        "time_charts": [
            {"place": f"chart-{name}", "arms": " ".join(map(str, sorted(chart.arms)))}
            for name, chart in over_time.items()
        ],
        "first_arm": shown,
        "series_seed": first.seed,
        "arms": results.arms,
        "bin_text": _bin_text(series),
        "flows_text": _flows_text(firsts),
        "parameters": _parameters(experiment, results),
        "command": command(experiment),
        "digests": _digests(experiment, results),
        "path": experiment.path.name,
    }
    styles = ["claims.css", *(["live.css"] if found else [])]
    return page("report.html.j2", scripts, context, figures, styles=styles)


def command(experiment: Experiment) -> str:
    """The command that repeats the experiment, to be given in its directory."""
    words = ["aqmlab", "live" if is_live(experiment) else "run", "scenario.toml"]
    seeds = experiment.seeds
    words += ["--seed", str(seeds[0]), "--runs", str(len(seeds))]
    planned = experiment.details.get("all_arms", list(experiment.arms))
    if list(experiment.arms) != planned:
        for arm in experiment.arms:
            words += ["--arm", arm]
    return shlex.join(words)


def is_live(experiment: Experiment) -> bool:
    """Whether its runs were live."""
    return any(run.manifest.live is not None for run in experiment.runs)


def _claims(results: Results) -> dict[str, Any]:
    """What holds of the scenario's claims. Scoring them takes NumPy, which most scenarios do without."""
    if not results.claims:
        return {"claims": [], "claims_summary": ""}
    from aqmlab.claims import score
    from aqmlab.reports.claims import claims_context

    return claims_context(score(results))


def _kicker(results: Answer, experiment: Experiment, runs: Sequence[Measured]) -> str:
    arms, seeds = len(results.arms), len(results.results.seeds)
    plural = "" if arms == 1 else "s"
    most = "" if len({run.run.t1_ns for run in runs}) == 1 else "at most "
    end_s = max(run.run.t1_ns for run in runs) / 1e9
    return (
        f"{arms} arm{plural}, {seeds} seed{'' if seeds == 1 else 's'} each,"
        f" {most}{time_text(end_s)} {'live' if is_live(experiment) else 'simulated'} in each run"
    )


def _ends(runs: Sequence[Measured]) -> str:
    """When the runs ended: each at its own time where a condition or a count stops them."""
    first, last = (choose(run.run.t1_ns for run in runs) / 1e9 for choose in (min, max))
    return (
        time_text(last)
        if first == last
        else f"{time_text(first)} at the earliest, {time_text(last)} at the latest"
    )


def _interval_note(results: Answer, runs: Sequence[Measured]) -> str:
    interval = f"measured from {time_text(runs[0].run.t0_ns / 1e9)} to {_ends(runs)}"
    done = results.results.finished_seeds
    if len(done) == 1:
        return f"One run: no interval. Seed {done[0]}, {interval}."
    seeds = f"{done[0]} to {done[-1]}"
    chance = f"; {note}" if (note := results.chance_note()) else ""
    return f"Mean ± half-width of the 95 % Student t interval over the seeds {seeds}; {interval}{chance}."


def _answer_table(results: Answer) -> dict[str, Any]:
    shown = results.shown
    best = {metric.name: _best(results, metric.name, metric.better) for metric in shown}
    rows = []
    for arm in results.arms:
        cells = []
        for metric in shown:
            mean, half = estimate_parts(results.estimate(arm, metric.name), metric.unit)
            seeds = results.defined_in(arm, metric.name)
            cells.append({"mean": mean, "half": half, "seeds": seeds, "best": arm in best[metric.name]})
        rows.append({"arm": arm, "cells": cells})
    columns = [
        {"label": m.label, "unit": display_unit(m.unit), "definition": m.definition, "source": m.source}
        for m in shown
    ]
    return {"columns": columns, "rows": rows, "marks_best": any(best.values())}


def _best(results: Answer, metric: str, better: str) -> frozenset[str]:
    means = {arm: est.mean for arm in results.arms if (est := results.estimate(arm, metric)) is not None}
    return best_arms(means, better, lambda arm, other: results.difference(arm, other, metric))


def _other_queues(results: Answer, runs: Sequence[Measured]) -> list[dict[str, Any]]:
    rows = []
    others = sorted({queue for run in runs for queue, _ in run.queues} - {results.queue})
    # The whole network is worth a row where the queue is not that of all flows.
    everywhere = [EVERY_QUEUE] if results.crossed_by != results.classes else []
    for queue in [*others, *everywhere]:
        of_queue = answer_of(results.results, _OTHER_QUEUES, queue=queue)
        for arm in of_queue.arms:
            texts = [estimate_text(of_queue.estimate(arm, name), find(name).unit) for name in _OTHER_QUEUES]
            name = "all flows of the network" if queue == EVERY_QUEUE else queue
            rows.append({"queue": name, "arm": arm, "texts": texts})
    return rows


def _crossing(results: Answer) -> str:
    """Whose the figures of flows are, where they are not those of all."""
    if results.class_name != EVERY_CLASS or results.crossed_by == results.classes:
        return ""
    others = [name for name in results.classes if name not in results.crossed_by]
    return (
        f"Figures of flows are of those that cross `{results.queue}`: {listed(results.crossed_by)}, not"
        f" {listed(others)}."
    )


def _queue_labels(experiment: Experiment, results: Answer) -> dict[str, str]:
    """The disciplines that the arms put at a link, where they differ."""
    labels: dict[str, list[str]] = {}
    for arm in results.arms:
        for link in experiment.runs_of(arm)[0].plan.links:
            kinds = labels.setdefault(link.name, [])
            if link.queue not in kinds:
                kinds.append(link.queue)
    return {name: " / ".join(kinds) for name, kinds in labels.items()}


def _overviews(runs: Sequence[Measured], results: Answer) -> dict[str, Figure]:
    """The charts of all arms together, by their places."""
    cdf = charts.delay_cdf_chart(runs, results.arms, results.queue)
    trade_off = charts.trade_off_chart(trade_off_points(runs, results))
    figures = {"chart-cdf": cdf, "chart-trade_off": trade_off}
    return {place: fig for place, fig in figures.items() if fig is not None}


def trade_off_points(runs: Sequence[Measured], results: Answer) -> dict[str, tuple[list[float], list[float]]]:
    """Mean queueing delay in ms and goodput in Mbit/s of each run, by arm."""
    delay, goodput = find("queueing_delay_mean_s"), find("goodput_bps")
    points: dict[str, tuple[list[float], list[float]]] = {arm: ([], []) for arm in results.arms}
    for run in runs:
        x = delay.compute(run, results.queue, EVERY_CLASS)
        y = goodput.compute(run, results.queue, EVERY_CLASS)
        if x is not None and y is not None:
            points[run.run.arm][0].append(display_value(x, delay.unit))
            points[run.run.arm][1].append(display_value(y, goodput.unit))
    return points


def _flows_text(firsts: Sequence[Run]) -> str:
    """Of how many flows windows are drawn, where not of all."""
    most = max(run.flow_count for run in firsts)
    return f"; windows are drawn of the first {MOST_FLOWS} of {most} flows" if most > MOST_FLOWS else ""


def _bin_text(series: Sequence[RunSeries]) -> str:
    for of_run in series:
        if len(of_run.queue.t_s) > 1:
            return time_text(of_run.queue.t_s[1] - of_run.queue.t_s[0])
    return "the sampling interval"


def _parameters(experiment: Experiment, results: Answer) -> list[dict[str, Any]]:
    described = {arm["name"]: arm["parameters"] for arm in experiment.details.get("arms", ())}
    result = []
    for arm in results.arms:
        plan = experiment.runs_of(arm)[0].plan
        parameters = described.get(arm) or [
            {"path": path, "value": "", "origin": origin, "source": "", "help": ""}
            for path, origin in (plan.origins or {}).items()
        ]
        result.append({"name": arm, "parameters": parameters})
    return result


def _digests(experiment: Experiment, results: Answer) -> list[dict[str, str]]:
    """Of the plans, and of each run's tables together."""
    digests = []
    for arm in results.arms:
        runs = experiment.runs_of(arm)
        digests.append({"name": f"plan of {arm}", "value": runs[0].manifest.plan_digest})
        for run in runs:
            tables = {name: facts.digest for name, facts in run.manifest.tables.items()}
            text = json.dumps(tables, sort_keys=True, separators=(",", ":"))
            digests.append(
                {"name": f"{arm}, seed {run.seed}", "value": hashlib.sha256(text.encode()).hexdigest()}
            )
    return digests
