"""The commands that a newcomer begins with: ``demo`` and ``new``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import interruptible, say, set_quiet
from aqmlab.cli.options import AsJson, Jobs, NoReport, Output, Quiet, Runs
from aqmlab.cli.outcome import tell_experiment
from aqmlab.cli.progress import ProgressLine
from aqmlab.language.templates import DEMO, TEMPLATES
from aqmlab.language.templates import new as write_template


def run_scenario(
    scenario: Path, asked: Mapping[str, Any], *, as_json: bool, no_report: bool, quiet: bool
) -> None:
    """Run a scenario on one host, print the results and write the report."""
    from aqmlab import experiment as experiments

    with interruptible(), ProgressLine(enabled=not quiet) as line:
        experiment = experiments.run(scenario, **asked, progress=line.update, report=False)
    tell_experiment(experiment, as_json=as_json, no_report=no_report)


def demo(
    output: Output = None,
    runs: Runs = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Run the demonstration: seven queues under twenty downloads; print a table and write a report.

    The scenario is part of the package, so no file is needed. It takes about ten seconds.
    """
    set_quiet(quiet)
    asked = {"output": output, "runs": runs, "jobs": jobs}
    run_scenario(DEMO, asked, as_json=as_json, no_report=no_report, quiet=quiet)


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The file to write; .toml is added if it is missing.", show_default=False
        ),
    ],
    template: Annotated[
        str,
        typer.Option(
            "--template",
            metavar="NAME",
            help=f"The template: {', '.join(TEMPLATES)}.",
            autocompletion=completion.templates,
        ),
    ] = "dumbbell",
    quiet: Quiet = False,
) -> None:
    """Write a commented scenario that runs without changes; an existing file is never overwritten."""
    set_quiet(quiet)
    file = write_template(name, template)
    typer.echo(str(file))
    say(f"run it     aqmlab {TEMPLATES[template]} {shlex.quote(str(file))}")
