"""The commands and their options."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.main import get_command

from aqmlab.cli.aqm import aqm
from aqmlab.cli.beginnings import demo, new, run_scenario
from aqmlab.cli.bundle import bundle
from aqmlab.cli.calibrate import calibrate
from aqmlab.cli.cite import cite
from aqmlab.cli.claims import claims
from aqmlab.cli.compare import compare
from aqmlab.cli.console import Exit, guarded, set_quiet, tell_json
from aqmlab.cli.doctor import doctor
from aqmlab.cli.export import export
from aqmlab.cli.live import both, live
from aqmlab.cli.metrics import metrics
from aqmlab.cli.options import (
    Arms,
    AsJson,
    Force,
    Jobs,
    NoReport,
    Output,
    Pcap,
    PcapBytes,
    Quiet,
    Resume,
    Runs,
    ScenarioFile,
    Seed,
    Where,
    on_executors,
    ports_of,
)
from aqmlab.cli.paper import paper
from aqmlab.cli.plot import plot
from aqmlab.cli.quick_parse import read_quickly
from aqmlab.cli.report import report
from aqmlab.cli.sweep import merge, query, sweep
from aqmlab.cli.vectors import vectors
from aqmlab.cli.verify import verify
from aqmlab.system.memory import check_address_space

app = typer.Typer(
    name="aqmlab",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(aqm, name="aqm")
app.add_typer(plot, name="plot")
app.add_typer(paper, name="paper")
app.command()(demo)
app.command()(new)
app.command()(compare)
app.command()(claims)


def _version(wanted: bool) -> None:
    if wanted:
        from aqmlab import _core

        typer.echo(f"aqmlab {_core.__version__}")
        raise typer.Exit


_LIGHT = {"aqm", "cite", "doctor", "metrics", "new", "paper", "schema", "show", "verify"}
"""The commands that read no tables of recordings and draw nothing, so a small address space suffices."""


@app.callback()
def root(
    context: typer.Context,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A laboratory for active queue management: run scenarios and read the results.

    A scenario describes a network, its traffic and one or more arms; an arm is one queue configuration under
    comparison. A claim is an expected result that a run checks.

    Exit codes: 0 success, 1 a check or claim failed, 2 a usage or scenario error, 3 this machine lacks
    something (permission, disk, memory), 4 runs failed or a recording is corrupt, 5 a live run is not
    faithful, 6 an arm was skipped because the kernel lacks its queue, 130 interrupted.
    """
    if context.invoked_subcommand not in _LIGHT and not {"-h", "--help"} & set(sys.argv):
        check_address_space()


@app.command()
@on_executors
def run(
    scenario: ScenarioFile,
    output: Output = None,
    seed: Seed = None,
    runs: Runs = None,
    jobs: Jobs = None,
    executor: Where = "local",
    arm: Arms = None,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    as_json: AsJson = False,
    no_report: NoReport = False,
    and_live: Annotated[
        bool, typer.Option("--both", help="Run live as well, and compare the results arm by arm.")
    ] = False,
    force: Force = False,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Simulate every arm of a scenario with every seed; print the results and write a report.

    Exits with 1 if a firm claim of the scenario fails, and with 5 if --both is given and a live run is not
    faithful.
    """
    set_quiet(quiet)
    asked: dict[str, Any] = {
        "output": output,
        "seed": seed,
        "runs": runs,
        "arms": arm,
        "jobs": jobs,
        "executor": executor,
        "pcap": ports_of(pcap),
        "pcap_bytes": pcap_bytes,
        "resume": resume,
    }
    if and_live:
        both(scenario, {**asked, "force": force}, as_json=as_json, no_report=no_report, quiet=quiet)
        return
    run_scenario(scenario, asked, as_json=as_json, no_report=no_report, quiet=quiet)


@app.command()
def show(
    scenario: ScenarioFile,
    arm: Arms = None,
    as_json: AsJson = False,
) -> None:
    """Print a scenario with every value resolved.

    Lists the arms, queues, traffic classes, axes with their labels, seeds and the number of runs, then every
    value with its origin.
    """
    from aqmlab.api import show as resolved
    from aqmlab.cli.scenario_tables import print_scenario

    answer = resolved(scenario)
    if as_json:
        tell_json(answer)
    else:
        print_scenario(answer, arm or [])


app.command()(report)
app.command()(live)
app.command()(doctor)
app.command()(sweep)
app.command()(calibrate)
app.command()(merge)
app.command()(query)
app.command()(export)
app.command()(bundle)
app.command()(verify)
app.command()(vectors)
app.command()(metrics)
app.command()(cite)


@app.command()
def schema(
    of: Annotated[
        str,
        typer.Argument(help="scenario, plan (its resolved form), or manifest (the description of a run)."),
    ] = "scenario",
) -> None:
    """Print the JSON Schema of scenarios, plans or manifests."""
    from aqmlab.api import schema as content

    tell_json(content(of))


def execute() -> int:
    """Execute the command line and return the exit code."""
    return guarded(read_quickly(get_command(app)))


__all__ = ["Exit", "app", "execute"]
