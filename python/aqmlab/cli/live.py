"""The commands that run scenarios between real TCP stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.claims import claims_json, end_with, print_claims, scored_claims
from aqmlab.cli.console import Exit, complain, interruptible, say, set_quiet, tell_json
from aqmlab.cli.doctor import tell_selftest
from aqmlab.cli.options import (
    Arms,
    AsJson,
    Force,
    NoReport,
    Pcap,
    PcapBytes,
    Quiet,
    Resume,
    Runs,
    Seed,
    ports_of,
)
from aqmlab.cli.progress import ProgressLine

if TYPE_CHECKING:
    from aqmlab.both import Both
    from aqmlab.faithfulness import Faithfulness
    from aqmlab.results import Results

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
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The directory to create; runs/<time>-<title>-<digest> by default."
        ),
    ] = None,
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

    Runs in real time. Needs no root where user namespaces are allowed; `aqmlab doctor` checks this.

    Exits with 1 if a firm claim of the scenario fails, with 3 if this machine cannot run it or cannot store
    the requested packets, and with 5 if a run is NOT FAITHFUL: its figures show the machine, not the
    disciplines.
    """
    set_quiet(quiet)
    if str(scenario) == _SELFTEST:
        tell_selftest(as_json=as_json, quiet=quiet, interrupted=tell_stopping)
        return
    from aqmlab import experiment as experiments

    with interruptible(), ProgressLine(enabled=not quiet) as line:
        experiment = experiments.run_live(
            scenario,
            output=output,
            seed=seed,
            runs=runs,
            arms=arm,
            force=force,
            pcap=ports_of(pcap),
            pcap_bytes=pcap_bytes,
            progress=line.update,
            interrupted=tell_stopping,
            report=False,
            resume=resume,
        )
    tell_experiment(experiment, as_json=as_json, no_report=no_report)


def tell_experiment(experiment: Results, *, as_json: bool, no_report: bool) -> None:
    """Print what an experiment has come to, write its report, and end as its claims and verdicts say."""
    from aqmlab.answers import answer
    from aqmlab.cli.tables import tell_answer
    from aqmlab.faithfulness import verdicts

    found = verdicts(experiment.runs)
    for warning in experiment.warnings:
        say(f"warning: {warning}")
    scored = scored_claims(experiment)
    if not as_json:
        print_verdict(found)
    more = (_verdicts_json(found) if found else {}) | claims_json(scored)
    tell_answer(answer(experiment), as_json=as_json, more=more)
    if not as_json:
        print_lateness(found)
        if scored:
            print()
            print_claims(scored)
    say(f"recording  {experiment.path}")
    complain_of_lost_packets(found)
    if not no_report:
        from aqmlab.reports import write_report

        say(f"report     {write_report(experiment)}")
    end_unless_faithful(found)
    end_with(scored)


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
    _tell_both(found, as_json=as_json)
    say(f"recordings {found.path}")
    complain_of_lost_packets(found.verdicts)
    if not no_report:
        from aqmlab.reports import write_report

        say(f"report     {write_report(found)}")
    end_unless_faithful(found.verdicts)


def report_both(path: Path, output: Path | None, *, as_json: bool) -> None:
    """Print how a scenario differs live and simulated, and write the report."""
    from aqmlab.paths import load_both
    from aqmlab.reports import write_report

    found = load_both(path)
    file = write_report(found, output)
    _tell_both(found, as_json=as_json)
    say(f"report     {file}")


def _tell_both(found: Both, *, as_json: bool) -> None:
    if as_json:
        tell_json(found.to_json())
        return
    print_verdict(found.verdicts)
    print_sides(found)
    print_lateness(found.verdicts)


def print_sides(found: Both) -> None:
    """A table an arm or a metric: what was simulated, what was measured live, and how far they are apart."""
    from aqmlab.both import grouped
    from aqmlab.cli.tables import answer_console, print_grid

    console = answer_console()
    console.print(found.live.title, style="bold", markup=False)
    if found.live.question:
        console.print(found.live.question, markup=False)
    for title, rows in grouped(found).items():
        console.print()
        print_grid(console, found.comparison.grid_under(title, rows))
    console.print()
    console.print(found.summary, markup=False, soft_wrap=True)
    console.print(found.note, style="dim", markup=False, soft_wrap=True)


def tell_stopping() -> None:
    """What a person is told who has interrupted a live run."""
    say("stopping: what is under way is still forwarded; Ctrl-C again ends it at once")


def print_verdict(found: Sequence[Faithfulness]) -> None:
    """The verdict, before anything else; nothing of simulated runs."""
    if not found:
        return
    from aqmlab.cli.tables import answer_console
    from aqmlab.faithfulness import combined

    style = "green" if all(verdict.faithful for verdict in found) else "bold red"
    console = answer_console()
    console.print(combined(found), style=style, markup=False, soft_wrap=True)
    console.print()


def print_lateness(found: Sequence[Faithfulness]) -> None:
    """How late packets left, run by run, and what else the verdict rests on; nothing of simulated runs."""
    if not found:
        return
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.figures import shown
    from aqmlab.grid import Column, Grid, Span

    heads = ("p50 [us]", "p99 [us]", "p99.9 [us]", "max [us]", "stalls", "duty [%]", "lost unseen", "")
    table = Grid("faithfulness", *(Column(head, right=True) for head in heads))
    for verdict in found:
        late = (shown(verdict.lateness_s(q), 1, 1e6) for q in ("p50", "p99", "p999", "max"))
        word = Span("faithful") if verdict.faithful else Span("NOT FAITHFUL", "bold red")
        name = f"{verdict.arm}, seed {verdict.seed}"
        counts = (_stalls(verdict), shown(verdict.duty_percent, 1), shown(verdict.lost_unseen))
        table.add(name, *late, *counts, word)
    console = answer_console()
    console.print()
    print_grid(console, table)


def _stalls(verdict: Faithfulness) -> str:
    """``2 (31.0 ms)``: how many, and the longest."""
    from aqmlab.figures import shown

    count = shown(verdict.stall_count)
    return f"{count} ({shown(verdict.longest_stall_s, 1, 1e3)} ms)" if verdict.stall_count else count


def _verdicts_json(found: Sequence[Faithfulness]) -> dict[str, Any]:
    return {
        "faithful": all(verdict.faithful for verdict in found),
        "verdicts": [verdict.to_json() for verdict in found],
    }


def complain_of_lost_packets(found: Sequence[Faithfulness]) -> None:
    """A run whose packets could not be kept has everything else."""
    for verdict in found:
        if verdict.capture_failure:
            complain(f"{verdict.arm}, seed {verdict.seed}: {verdict.capture_failure}; all else is recorded")


def end_unless_faithful(found: Sequence[Faithfulness]) -> None:
    """End with 3 where packets of a live run could not be kept, with 5 where one is not faithful."""
    if any(verdict.capture_failure for verdict in found):
        raise typer.Exit(Exit.MACHINE)
    if not all(verdict.faithful for verdict in found):
        raise typer.Exit(Exit.NOT_FAITHFUL)


__all__ = [
    "both",
    "complain_of_lost_packets",
    "end_unless_faithful",
    "live",
    "print_lateness",
    "print_sides",
    "print_verdict",
    "report_both",
    "tell_experiment",
    "tell_stopping",
]
