"""The command that characterizes an AQM or a congestion control."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.cli.console import Exit, interruptible, say, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Jobs, Quiet, Seeds, StorePath
from aqmlab.cli.progress import ProgressLine, titled_text

if TYPE_CHECKING:
    from aqmlab.characterization import Characterization
    from aqmlab.sweeps.progress import Progress


def characterize(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="A discipline of `aqmlab aqm list`, or a TOML file with [[queue]] tables; with --cc, a"
            " congestion control, a profile of TCP, or a file with [[control]] tables.",
            show_default=False,
        ),
    ],
    cc: Annotated[
        bool, typer.Option("--cc", help="Characterize congestion controls, with the scenarios of RFC 9743.")
    ] = False,
    links: Annotated[
        bool, typer.Option("--links", help="Characterize AQMs on access links, with what a home does.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The directory to write; runs/characterization by default."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="The bottleneck's rate; buffer and load follow it; 10Mbit by default, 20Mbit with --cc.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(*Seeds, help="The number of seeds; 10 by default, 3 with --quick.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out parameters and most round-trip times; 3 seeds.")
    ] = False,
    scenario: Annotated[
        list[Path] | None,
        typer.Option(
            "--scenario",
            metavar="FILE",
            help="A scenario to add, or a file with [[section]] tables; may be repeated.",
        ),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="ID", help="Only this section, such as 8.2.3; may be repeated."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Exit with 1 if a value left its band in this file."),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", metavar="FILE", help="Write the bands of all values.")
    ] = None,
    store: StorePath = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Characterize AQMs with the scenarios of RFC 7928, each against DropTail with the same buffer.

    With --cc, characterize congestion controls with the scenarios of RFC 9743, each against CUBIC.

    Writes a page, two CSV files and a JSON file; prints the verdict of each section. Repeat an interrupted
    command to resume it.
    """
    from aqmlab.characterization import characterize as find

    set_quiet(quiet)
    with interruptible(), ProgressLine(enabled=not quiet, text=titled_text) as line:

        def watch(what: str, now: Progress) -> None:
            line.update((what, now))

        found = find(
            subjects,
            cc=cc,
            links=links,
            output=output,
            rate=rate,
            seeds=seeds,
            quick=quick,
            scenarios=scenario or (),
            sections=section,
            baseline=baseline,
            write_baseline=write_baseline,
            store=store,
            jobs=jobs,
            progress=watch,
        )
    if as_json:
        tell_json(found.to_json())
    else:
        _print(found)
    say(f"page       {found.page}")
    if write_baseline is not None:
        say(f"baseline   {write_baseline}")
    if found.departures:
        raise typer.Exit(Exit.CHECK_FAILED)


def _print(found: Characterization) -> None:
    from aqmlab.cli.tables import answer_console, print_grid

    console = answer_console()
    print_grid(console, found.grid())
    if len(found.subjects) == 1:
        for judged in found.sections:
            said = (
                judged.sentences(found.subjects[0].name)
                if judged.results is not None
                else [judged.section.states]
            )
            console.print()
            console.print(f"{judged.section.id} {judged.section.title}", style="bold", markup=False)
            for text in [*said, *(branches.text for branches in judged.branches)]:
                console.print(text, markup=False, soft_wrap=True)
    if found.departures:
        console.print()
        console.print("values that left their bands:", style="bold", markup=False)
        for departure in found.departures:
            console.print(departure.text, markup=False, soft_wrap=True)
