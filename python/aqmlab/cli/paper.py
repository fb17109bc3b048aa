"""The commands about published papers."""

from __future__ import annotations

import sys

import typer

from aqmlab.cli.paper_readings import paper_causes, paper_infer, paper_multiverse
from aqmlab.cli.paper_scores import paper_list, paper_live, paper_reproduce, paper_text
from aqmlab.system.memory import check_address_space

paper = typer.Typer(
    help="List the papers that can be reproduced, score them, and explain what does not hold.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@paper.callback()
def _check(context: typer.Context) -> None:
    if context.invoked_subcommand != "list" and not {"-h", "--help"} & set(sys.argv):
        check_address_space()


paper.command("list")(paper_list)
paper.command("reproduce")(paper_reproduce)
paper.command("live")(paper_live)
paper.command("causes")(paper_causes)
paper.command("multiverse")(paper_multiverse)
paper.command("infer")(paper_infer)
paper.command("text")(paper_text)
