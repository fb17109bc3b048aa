"""The command that writes recordings and answers for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import interruptible
from aqmlab.cli.options import Arms, Metrics, Queue


def export(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="The directory of an experiment, a run or a sweep.", show_default=False
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FORMAT",
            help="csv: one file per recorded table; flent, ns2, qlog: one file per run; markdown, latex:"
            " the table of the answer, with intervals.",
            show_default=False,
            autocompletion=completion.formats,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="What to create: a file for markdown and latex, else a directory; PATH/exports/FORMAT by"
            " default.",
        ),
    ] = None,
    arm: Arms = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Only this seed.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="For csv: only this table; may be repeated.")
    ] = None,
    metric: Metrics = None,
    queue: Queue = None,
) -> None:
    """Write recordings or their answer in the format of another program.

    If a run did not record what the format needs, the error names the key of [record], and nothing is
    written.
    """
    from aqmlab.exports import export as write

    with interruptible():
        files = write(
            path,
            to,
            output,
            arms=arm or (),
            seed=seed,
            tables=table or (),
            metrics=metric,
            queue=queue,
        )
    for file in files:
        typer.echo(str(file))
