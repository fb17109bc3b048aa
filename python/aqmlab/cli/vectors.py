"""The command that writes connection vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import say, set_quiet
from aqmlab.cli.options import Quiet, ScenarioFile, Seed
from aqmlab.cli.progress import duration_s


def vectors(
    scenario: ScenarioFile,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="The file to write: .csv, .parquet or .cvec.", show_default=False
        ),
    ],
    class_name: Annotated[
        list[str] | None,
        typer.Option("--class", help="Only this traffic class; may be repeated."),
    ] = None,
    seed: Seed = None,
    arm: Annotated[
        str | None,
        typer.Option(
            "--arm",
            help="The arm; may be omitted if all arms have the same traffic.",
            autocompletion=completion.arms,
        ),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format", help="csv, parquet or tmix; by default, the format that the file's extension implies."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Write the connections that open up to this time; by default, up to the end of the run.",
        ),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            metavar="PATH",
            help="A run of the scenario with `requests = { each = true }`, from which the times of users'"
            " connections are read.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a scenario's connections, exchange by exchange, with starts, sizes, think times and delays.

    Classes of kind packmime, requests and trace have such connections. The connections are the same as in a
    run with this seed. No run is needed to generate them, with one exception: the times of users' connections
    are read from a recorded run (`--recording`). A class of `kind = "trace"` can read the file, and so can
    ns-2's Tmix.
    """
    from aqmlab.exports.vectors import write_vectors

    set_quiet(quiet)
    file = write_vectors(
        scenario,
        output,
        classes=class_name,
        seed=seed,
        arm=arm,
        format=format_name,
        duration_s=None if duration is None else duration_s(duration),
        recording=recording,
    )
    say(f"wrote {file}")
