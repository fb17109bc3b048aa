"""The command that prints how to cite aqmlab or a paper."""

from __future__ import annotations

from typing import Annotated

import typer

from aqmlab.cli import completion


def cite(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER",
            help="A paper as listed by `aqmlab paper list`, or its folder; aqmlab itself by default.",
            show_default=False,
            autocompletion=completion.papers,
        ),
    ] = None,
) -> None:
    """Print the BibTeX entry of aqmlab, or of a paper that it reproduces."""
    from aqmlab.papers.citation import cite as entry

    typer.echo(entry(paper), nl=False)
