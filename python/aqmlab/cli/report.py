"""The command that prints the results of runs, and writes their report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.cli.console import refuse_damage, say, set_quiet
from aqmlab.cli.options import AsJson, By, ClassName, Metrics, Queue, Quiet, RecordingPath
from aqmlab.cli.outcome import tell_both, tell_results
from aqmlab.cli.tables import SHORT, tell_losses
from aqmlab.errors import UsageError

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.results.results import Results


def report(
    path: RecordingPath,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file to write; PATH/report.html by default, or PATH/report-NAME.html for one class"
            " or queue.",
        ),
    ] = None,
    metric: Metrics = None,
    queue: Queue = None,
    class_name: ClassName = "*",
    by: By = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print the results of a recording or a sweep and write its report."""
    from aqmlab.metrics import EVERY_CLASS
    from aqmlab.paths import is_sweep, load
    from aqmlab.reports import write_report
    from aqmlab.results.answers import answer
    from aqmlab.results.both import is_both

    set_quiet(quiet)
    if is_both(path):
        _report_both(path, output, as_json=as_json)
        return
    if by in ("class", "kind") and class_name != EVERY_CLASS:
        raise UsageError(f"`--by {by}` shows every class; leave `--class` out")
    of_kinds = by == "kind"
    if of_kinds and (metric or queue):
        raise UsageError(
            "`--by kind` shows every queue, with its own metrics; leave `--metric` and `--queue` out"
        )
    results = load(path)
    if is_sweep(path) or by:
        results = results.sound()
    whole = not (metric or queue or by) and class_name == EVERY_CLASS
    scored = _scored(results) if whole else None
    if results.axes and not (as_json or metric or by):
        metric = [*(results.metrics or SHORT)]
    found = None if of_kinds else answer(results, metric, queue=queue, class_name=class_name, by=by)
    file = write_report(results, output, queue=None if by else queue, class_name=class_name, scored=scored)
    if found is None:
        tell_losses(results, as_json=as_json)
    else:
        tell_results(found, scored or (), as_json=as_json)
    say(f"report     {file}")
    refuse_damage(results)


def _scored(results: Results) -> tuple[Scored, ...]:
    """Return the scenario's claims with their verdicts; write nothing, as the recording may be read-only."""
    if not results.claims:
        return ()
    from aqmlab.claims import score

    return score(results)


def _report_both(path: Path, output: Path | None, *, as_json: bool) -> None:
    """Print how the live results of a scenario differ from the simulated ones, and write the report."""
    from aqmlab.paths import load_both
    from aqmlab.reports import write_report

    found = load_both(path)
    file = write_report(found, output)
    tell_both(found, {name: _scored(side) for name, side in found.sides.items()}, as_json=as_json)
    say(f"report     {file}")
