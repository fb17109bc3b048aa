"""The command that writes the playground to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def playground(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A scenario file (TOML) with which the page begins; its knobs by default.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")] = Path(
        "playground.html"
    ),
) -> None:
    """Write the playground to a file: the simulator in a web page, which any browser opens.

    The page shows two queues side by side, packet by packet, while they run. It contains the simulator,
    and needs no network and no server.
    """
    from aqmlab.playground_page import playground as page

    print(page(scenario).save(output))
