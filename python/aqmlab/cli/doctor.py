"""The command that looks at this machine."""

from __future__ import annotations

import typer

from aqmlab.cli.console import Exit, interruptible, tell_json
from aqmlab.cli.options import AsJson

_STYLES = {"ok": "green", "warning": "yellow", "fail": "bold red"}


def doctor(as_json: AsJson = False) -> None:
    """Report what this machine has and lacks for live runs, with a remedy for each.

    Exits with 3 if live runs cannot work here.
    """
    from aqmlab.live.doctor import doctor as diagnose

    with interruptible():
        found = diagnose()
    if as_json:
        tell_json(found.to_json())
    else:
        from aqmlab.cli.tables import answer_console, print_grid
        from aqmlab.grid import Column, Grid, Span

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
