"""The commands that run scenarios between real TCP stacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab.cli.beginnings import run_scenario
from aqmlab.cli.claims import end_with, scored_claims
from aqmlab.cli.console import interruptible, say, set_quiet
from aqmlab.cli.doctor import tell_selftest
from aqmlab.cli.options import (
    Arms,
    AsJson,
    Force,
    NoReport,
    Output,
    Pcap,
    PcapBytes,
    Quiet,
    Resume,
    Runs,
    Seed,
    ports_of,
)
from aqmlab.cli.outcome import (
    complain_of_lost_packets,
    end_if_skipped,
    end_unless_faithful,
    tell_both,
)
from aqmlab.cli.progress import ProgressLine
from aqmlab.errors import UsageError

_SELFTEST = "selftest"


def live(
    scenario: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO|selftest",
            help="A scenario file (TOML), or `selftest`: a five-second test of how well this machine keeps"
            " time.",
            show_default=False,
        ),
    ],
    output: Output = None,
    seed: Seed = None,
    runs: Runs = None,
    arm: Arms = None,
    force: Force = False,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    as_json: AsJson = False,
    no_report: NoReport = False,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Run every arm of a scenario live, between this kernel's TCP stacks; print the results.

    Runs in real time. Root is not needed where user namespaces are allowed; `aqmlab doctor` checks this.

    Exits with 1 if a firm claim of the scenario fails, with 3 if this machine cannot run it or cannot store
    the requested packets, with 5 if a run is NOT FAITHFUL: its figures show the machine, not the disciplines,
    and with 6 if an arm was skipped because the kernel lacks its queue.
    """
    set_quiet(quiet)
    if str(scenario) == _SELFTEST:
        _refuse_for_selftest(
            {"--output": output, "--runs": runs, "--arm": arm, "--force": force}
            | {"--seed": None if "AQMLAB_SEED" in os.environ else seed}
            | {"--pcap": pcap, "--pcap-bytes": pcap_bytes, "--no-report": no_report, "--resume": resume}
        )
        tell_selftest(as_json=as_json, quiet=quiet, interrupted=tell_stopping)
        return
    asked: dict[str, Any] = {
        "host": "live",
        "output": output,
        "seed": seed,
        "runs": runs,
        "arms": arm,
        "force": force,
        "pcap": ports_of(pcap),
        "pcap_bytes": pcap_bytes,
        "interrupted": tell_stopping,
        "resume": resume,
    }
    run_scenario(scenario, asked, as_json=as_json, no_report=no_report, quiet=quiet)


def _refuse_for_selftest(options: Mapping[str, object]) -> None:
    """Refuse options that the self-test does not have: it has only one plan and keeps no recordings."""
    given = [f"`{name}`" for name, value in options.items() if value not in (None, False)]
    if given:
        raise UsageError(
            f"the self-test does not accept {', '.join(given)}; it accepts `--json` and `--quiet`"
        )


def both(
    scenario: Path,
    asked: Mapping[str, Any],
    *,
    as_json: bool,
    no_report: bool,
    quiet: bool,
) -> None:
    """Run a scenario live and simulated, and print how the results differ."""
    from aqmlab.experiment import run_both

    with interruptible(), ProgressLine(enabled=not quiet) as line:
        found = run_both(scenario, **asked, progress=line.update, interrupted=tell_stopping, report=False)
    for warning in found.live.warnings:
        say(f"warning: {warning}")
    scored = {name: scored_claims(side) for name, side in found.sides.items()}
    tell_both(found, scored, as_json=as_json)
    say(f"recordings {found.path}")
    complain_of_lost_packets(found.verdicts)
    if not no_report:
        from aqmlab.reports import write_report

        say(f"report     {write_report(found)}")
    end_unless_faithful(found.verdicts)
    end_with([claim for of_side in scored.values() for claim in of_side])
    end_if_skipped(lost.cell.arm for lost in found.live.missing if lost.skipped)


def tell_stopping() -> None:
    """Notify a user who has interrupted a live run."""
    say("stopping: packets in flight are still forwarded; press Ctrl-C again to end the run now")
