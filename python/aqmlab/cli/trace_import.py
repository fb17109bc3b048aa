"""The command that makes a rate over time from a file of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.console import tell_json
from aqmlab.cli.options import AsJson


def trace_import(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of another program.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="CSV", help="What to create.", show_default=False)
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="mahimahi, mobile (Ghent's 4G logs, HSDPA logs), ucc (G-NetTrack), fcc (Measuring Broadband"
            " America) or iperf3 (`--json`); found from the contents by default.",
        ),
    ] = None,
    direction: Annotated[
        str, typer.Option("--direction", metavar="NAME", help="down or up, where a file has both.")
    ] = "down",
    bin_s: Annotated[
        float,
        typer.Option(
            "--bin", metavar="SECONDS", help="For mahimahi: the interval over which rates are means."
        ),
    ] = 0.1,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="NUMBER", help="For fcc: the unit; by default the first.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the rate of a link over time from a file of another program.

    The CSV is for `rate = { kind = "file", file = .. }` in a scenario. What was assumed is printed.
    """
    from aqmlab.errors import UsageError
    from aqmlab.rate_traces import trace_import as imported
    from aqmlab.recordings.plan import quantity_text

    if output.exists():
        raise UsageError(f"`{output}` exists already")
    found = imported(file, form, direction=direction, bin_s=bin_s, unit=unit)
    found.write(output)
    rates = [level.rate_bps for level in found.levels]
    if as_json:
        tell_json(
            {
                "file": str(output),
                "levels": len(found.levels),
                "lasts_s": found.lasts_s,
                "mean_bps": found.mean_bps,
                "lowest_bps": min(rates),
                "highest_bps": max(rates),
                "assumed": list(found.assumed),
            }
        )
        return
    least, most, mean = (quantity_text(round(bps), "bps") for bps in (min(rates), max(rates), found.mean_bps))
    typer.echo(
        f"`{output}`: {len(rates)} levels from {least} to {most}, {mean} on average, {found.lasts_s:g} s"
    )
    for sentence in found.assumed:
        typer.echo(f"assumed: {sentence}")
