"""Information for repeating the runs: the effective parameters, the command and the digests."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any

from aqmlab import _core
from aqmlab.errors import AqmlabError
from aqmlab.results.both import Both
from aqmlab.results.results import Results


def repeat_context(of: Results | Both, results: Results) -> dict[str, Any]:
    """Return the template's context for the last sections of the page."""
    return {
        "parameters": _of_first_case(results) if results.axes else _parameters(results),
        "command": command(of),
        "digests": [] if results.axes else _digests(results),
        "path": of.path.name,
    }


def command(of: Results | Both) -> str:
    """The command that requests the same runs, for use in their directory."""
    if isinstance(of, Both):
        results = of.simulated
        words = ["sweep" if results.axes else "run", "--both"]
    else:
        live = any(run.manifest.live for run in of.runs)
        results = of
        words = ["sweep", *(["--host", "live"] if live else [])] if of.axes else ["live" if live else "run"]
    words += ["scenario.toml", "--seed", str(results.seeds[0]), "--runs", str(len(results.seeds))]
    if list(results.arms) != results.details.get("all_arms", list(results.arms)):
        words += [word for arm in results.arms for word in ("--arm", arm)]
    return shlex.join(["aqmlab", *words])


def _parameters(results: Results) -> list[dict[str, Any]]:
    described = {arm["name"]: arm["parameters"] for arm in results.details.get("arms", ())}
    found = []
    for arm in results.finished_arms:
        origins = results.runs_of(arm)[0].plan.origins or {}
        parameters = described.get(arm) or [
            {"path": path, "value": "", "origin": origin, "source": "", "help": ""}
            for path, origin in origins.items()
        ]
        found.append({"name": arm, "parameters": parameters})
    return found


def _of_first_case(results: Results) -> list[dict[str, Any]]:
    """Return the parameters of a sweep's first case, if its scenario still resolves to the plans that ran."""
    cells = [cell for cell in results.cells if cell.settings == results.cells[0].settings]
    ran = {runs[0].manifest.plan_digest for cell in cells if (runs := results.runs_of(cell))}
    file = results.path / "scenario.toml"
    try:
        first = json.loads(_core.Sweep(file.read_text(encoding="utf-8"), str(file)).case(0))
        plan = json.loads(_core.plan(first["toml"], str(file)))
    except (OSError, ValueError, AqmlabError):
        return []
    return [
        {"name": arm["name"], "parameters": arm["parameters"]} for arm in plan["arms"] if arm["digest"] in ran
    ]


def _digests(results: Results) -> list[dict[str, str]]:
    """Return the digests of the plans, and one digest per run over all of its tables."""
    digests = []
    for cell in results.cells:
        runs = results.runs_of(cell)
        if runs:
            digests.append({"name": f"plan of {cell}", "value": runs[0].manifest.plan_digest})
        for run in runs:
            tables = {name: facts.digest for name, facts in run.manifest.tables.items()}
            text = json.dumps(tables, sort_keys=True, separators=(",", ":"))
            digests.append(
                {"name": f"{cell}, seed {run.seed}", "value": hashlib.sha256(text.encode()).hexdigest()}
            )
    return digests
