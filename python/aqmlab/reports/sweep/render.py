"""From the results of a sweep to the text of its report."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from aqmlab.answers import Answer
from aqmlab.answers import answer as answer_of
from aqmlab.claims import Scored, score
from aqmlab.reports.by_class import by_class_context
from aqmlab.reports.claims import claims_context
from aqmlab.reports.page import json_in_html, page, resource, unbroken
from aqmlab.reports.swatch import swatch
from aqmlab.reports.sweep.answer import answer
from aqmlab.reports.sweep.differences import comparisons, differences
from aqmlab.reports.sweep.payload import payload
from aqmlab.reports.sweep.table import table_context
from aqmlab.results import Missing, Results
from aqmlab.soundness import examine

SCRIPTS = ("chart.js", "sweep.js", "panels.js", "heat.js", "trade_off.js", "table.js")
_MOST_NAMED = 12


def render(results: Results, scored: Sequence[Scored] | None = None) -> str:
    """The report as one self-contained page."""
    cells = answer_of(results)
    of_metrics = [differences(cells, metric) for metric in cells.shown]
    data = payload(cells, of_metrics)
    several = comparisons(of_metrics)
    version, results_version = _versions(results)
    context = {
        "version": version,
        "results_version": results_version,
        "kicker": _kicker(results),
        "title": results.title,
        "question": results.question,
        "answer": unbroken(answer(cells, of_metrics)),
        "warnings": results.warnings,
        **claims_context(score(results) if scored is None else scored),
        "checks": examine(results),
        "runs_note": _runs_note(results),
        "missing": _by_cause(results.missing),
        "missing_summary": _missing_summary(results),
        **table_context(cells),
        **by_class_context(results),
        "interval_note": _interval_note(cells),
        "arms": [{"name": arm, "swatch": swatch(i)} for i, arm in enumerate(results.arms)],
        "axes": data["axes"],
        "comparisons": several.note,
        "command": _command(results),
        "path": results.path.name,
        "data": Markup(json_in_html(data)),
    }
    scripts = [resource("csv.js"), *(resource(f"sweep/{name}") for name in SCRIPTS)]
    return page("sweep/page.html.j2", scripts, context, styles=["claims.css", "sweep/sweep.css"])


def _versions(results: Results) -> tuple[str, str]:
    """Of aqmlab and of its results, as the runs have them; several where runs are of several."""
    manifests = [run.manifest for cell in results.cells for run in results.runs(cell)]
    program = sorted({manifest.aqmlab_version for manifest in manifests})
    numbers = sorted({str(manifest.results_version or "") for manifest in manifests})
    return ", ".join(program), ", ".join(numbers)


def _command(results: Results) -> str:
    """The command that asks for the same runs, to be given in the sweep's directory."""
    seeds = results.seeds
    return shlex.join(
        ["aqmlab", "sweep", "scenario.toml", "--seed", str(seeds[0]), "--runs", str(len(seeds))]
    )


def _kicker(results: Results) -> str:
    runs = sum(len(results.runs(cell)) for cell in results.cells)
    dimensions = [f"{len(axis.labels)} {axis.short}" for axis in results.axes]
    shape = " × ".join([f"{len(results.arms)} {'arm' if len(results.arms) == 1 else 'arms'}", *dimensions])
    seeds = f"{len(results.seeds)} {'seed' if len(results.seeds) == 1 else 'seeds'}"
    return f"{shape}: {len(results.cells)} cells, {seeds} each, {runs} runs"


def _interval_note(cells: Answer) -> str:
    results = cells.results
    queues = sorted({results.queue_of(cell) for cell in results.cells if results.runs(cell)})
    where = f"At {' or '.join(f'`{queue}`' for queue in queues)}. " if queues else ""
    if len(results.seeds) == 1:
        return f"{where}One run a cell (seed {results.seeds[0]}): no interval."
    seeds = f"{results.seeds[0]} to {results.seeds[-1]}"
    return f"{where}Mean ± half-width of the 95 % Student t interval over the seeds {seeds}."


def _runs_note(results: Results) -> str:
    done = sum(len(results.runs(cell)) for cell in results.cells)
    total = len(results.cells) * len(results.seeds)
    return f"{done} of {total} runs are there." if done < total else f"All {total} runs are there."


def _missing_summary(results: Results) -> str:
    count = len(results.missing)
    return "1 run is missing" if count == 1 else f"{count} runs are missing, by cause"


def _by_cause(missing: Sequence[Missing]) -> list[dict[str, Any]]:
    """Missing runs by the reason, the most frequent first. Numbers in a reason do not make it another one."""
    causes: dict[str, list[Missing]] = {}
    for entry in missing:
        causes.setdefault(re.sub(r"\d+", "#", entry.reason), []).append(entry)
    ordered = sorted(causes.values(), key=len, reverse=True)
    return [
        {"reason": of_cause[0].reason, "count": len(of_cause), "which": _which(of_cause)}
        for of_cause in ordered
    ]


def _which(missing: Sequence[Missing]) -> str:
    """Cells with their seeds, the first dozen."""
    cells: dict[str, list[int]] = {}
    for entry in missing:
        cells.setdefault(str(entry.cell), []).append(entry.seed)
    named = [
        f"{cell} ({'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))})"
        for cell, seeds in cells.items()
    ]
    more = len(named) - _MOST_NAMED
    return "; ".join(named[:_MOST_NAMED]) + (f"; and {more} more cells" if more > 0 else "")
