"""The command that simulates a scenario and, if asked, runs it live as well."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from aqmlab.cli.beginnings import run_scenario
from aqmlab.cli.console import set_quiet
from aqmlab.cli.live import both
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
