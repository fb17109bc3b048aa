"""The commands that examine this machine: `aqmlab doctor` and `aqmlab live selftest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from aqmlab.cli.console import Exit, interruptible, tell_json
from aqmlab.cli.options import AsJson
from aqmlab.cli.progress import ProgressLine

if TYPE_CHECKING:
    from aqmlab.live.selftest import SelfTest

_STYLES = {"ok": "green", "warning": "yellow", "fail": "bold red"}


def doctor(as_json: AsJson = False) -> None:
    """Report what this machine has for live runs and what it lacks, with remedies.

    Exits with 3 if live runs cannot work here.
    """
    from aqmlab.live.doctor import doctor as diagnose

    with interruptible():
        found = diagnose()
    if as_json:
        tell_json(found.to_json())
    else:
        from aqmlab.cli.tables import answer_console, print_grid
        from aqmlab.text.tables import Column, Grid, Span

        prose = (Column("finding", prose=True), Column("remedy", prose=True))
        table = Grid("", "", *prose, keys=2)
        for finding in found.findings:
            sign = Span(finding.severity, _STYLES[finding.severity])
            table.add(sign, finding.name, finding.finding, finding.remedy)
        console = answer_console()
        print_grid(console, table)
        console.print()
        verdict = "live runs work here" if found.can_run else "live runs cannot work here"
        console.print(verdict, style="bold", markup=False)
    if not found.can_run:
        raise typer.Exit(Exit.MACHINE)


def tell_selftest(*, as_json: bool, quiet: bool, interrupted: Callable[[], object]) -> None:
    """Test this machine and print the result."""
    from aqmlab.live.selftest import selftest

    with interruptible(), ProgressLine(enabled=not quiet, text=selftest_text) as line:
        found = selftest(line.update, interrupted)
    if as_json:
        tell_json(found.to_json())
    else:
        _print_selftest(found)
    if not found.passed:
        raise typer.Exit(Exit.NOT_FAITHFUL)


def selftest_text(now: Mapping[str, Any], elapsed_s: float) -> str:
    """``self-test, 3 of about 5 s (run)``."""
    return f"self-test, {elapsed_s:.0f} of about 5 s ({now['phase']})"


def _print_selftest(found: SelfTest) -> None:
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.text.tables import Column, Grid

    heads = ("p50 [us]", "p99 [us]", "p99.9 [us]", "max [us]", "duty [%]", "faithful up to [Mbit/s]")
    table = Grid("scheduling", *(Column(head, right=True) for head in heads))
    for trial in found.trials:
        refused = trial.name == "real-time" and trial.run["policy"] != "fifo"
        late = (f"{1e6 * trial.lateness_s(q):.1f}" for q in ("p50", "p99", "p999", "max"))
        up_to = f"{found.faithful_up_to_bps(trial) / 1e6:.3g}"
        name = f"{trial.name}, refused" if refused else trial.name
        table.add(name, *late, f"{trial.run['duty_percent']:.1f}", up_to)
    capacity, ping = found.content["capacity"], found.content["ping"]
    stolen = found.content["stolen_percent"]
    console = answer_console()
    print_grid(console, table)
    console.print()
    there_us, most_us = (ping[f"{quantile}_ns"] / 1e3 for quantile in ("p50", "p99"))
    rate = f"{found.content['rate_bps'] / 1e6:.0f} Mbit/s"
    lines = [
        f"two flows through RED at {rate}; p50 to max: lateness of packets; `faithful up to`: the highest"
        " rate at which the p99 of lateness is at most half of a full packet's transmission time and the"
        " router takes at most 70 % of a processor",
        "virtual time: work takes no time, so any number of packets is carried on time"
        if found.virtual_time
        else f"carries {capacity['limit_packets_per_s']:.0f} packets per second, including acknowledgments",
        f"ping between hosts without a router: p50 {there_us:.0f} us, p99 {most_us:.0f} us",
        f"processor time stolen by the hypervisor: {'not known' if stolen is None else f'{stolen:.1f} %'}",
    ]
    for line in lines:
        console.print(line, style="dim", markup=False)
    fit = "fit for live runs" if found.passed else "NOT FAITHFUL even at 10 Mbit/s: see `aqmlab doctor`"
    console.print(fit, style="green" if found.passed else "bold red", markup=False)
