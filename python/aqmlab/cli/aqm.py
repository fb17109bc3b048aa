"""The commands about queue disciplines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import Exit, interruptible, set_quiet, tell_json
from aqmlab.cli.options import AsJson, Quiet
from aqmlab.cli.progress import ProgressLine, check_text, duration_s
from aqmlab.errors import UsageError

aqm = typer.Typer(
    help="List queue disciplines, show their parameters, test their contract, translate them for tc.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@aqm.command("list")
def aqm_list(as_json: AsJson = False) -> None:
    """List the queue disciplines."""
    from aqmlab.cli.discipline_tables import print_disciplines
    from aqmlab.disciplines.catalogue import aqm_list as content

    answer = content()
    if as_json:
        tell_json(answer)
    else:
        print_disciplines(answer)


Discipline = Annotated[
    str,
    typer.Argument(help="The discipline: red.", show_default=False, autocompletion=completion.disciplines),
]


@aqm.command("show")
def aqm_show(
    name: Discipline,
    as_json: AsJson = False,
) -> None:
    """Print a discipline's parameters (unit, range, default, source, aliases) and presets."""
    from aqmlab.cli.discipline_tables import print_discipline
    from aqmlab.disciplines.catalogue import aqm_show as content

    answer = content(name)
    if as_json:
        tell_json(answer)
    else:
        print_discipline(answer)


@aqm.command("check")
def aqm_check(
    name: Annotated[
        str,
        typer.Argument(
            help="The discipline, or `all`.", show_default=False, autocompletion=completion.disciplines
        ),
    ],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Random scripts per preset and option; 200 by default."),
    ] = None,
    for_time: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="Run scripts for this long (e.g. 10min), from a random seed."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The seed of the first script.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Threads; one per processor by default.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Test a discipline against its contract, with random sequences of operations.

    If the contract is broken, prints the shortest script that shows it and exits with 1.
    """
    from aqmlab.cli.discipline_tables import print_checks
    from aqmlab.disciplines.contract import check

    set_quiet(quiet)
    with interruptible(), ProgressLine(enabled=not quiet, text=check_text) as line:
        answer = check(
            name,
            seeds=seeds,
            for_s=None if for_time is None else duration_s(for_time),
            seed=seed,
            jobs=jobs,
            progress=line.update,
        )
    if as_json:
        tell_json(answer)
    else:
        print_checks(answer)
    if not answer["passed"]:
        raise typer.Exit(Exit.CHECK_FAILED)


@aqm.command("tc")
def aqm_tc(
    scenario: Annotated[
        Path | None,
        typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).", show_default=False),
    ] = None,
    read: Annotated[
        str | None,
        typer.Option(
            "--read",
            metavar="TEXT",
            help="Instead of a scenario: disciplines as in tc, such as `red limit 400000 avpkt 1000 ecn`,"
            " commands, or what `tc qdisc show` and `tc class show` print; `-` reads standard input.",
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            "--dev",
            metavar="NAME",
            help="The device of a link in the tc commands, once for each link in the order of the output;"
            " by default eth0, eth1 and so on.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a scenario's queues as tc commands or, with --read, disciplines of tc as a scenario's queues.

    Comments say what tc and Linux round, refuse or do differently, and which queues have a discipline that
    Linux lacks.
    """
    from aqmlab.cli.tc_words import print_lines, print_queues, print_trees
    from aqmlab.tc import read_tc_script, read_tc_trees, tc_lines

    if (scenario is None) == (read is None):
        raise UsageError("give either a scenario, or --read with a discipline as in tc")
    if read is not None:
        text = typer.get_text_stream("stdin", errors="replace").read() if read == "-" else read
        if trees := read_tc_trees(text):
            print_trees(trees, as_json=as_json)
        else:
            print_queues(read_tc_script(text), as_json=as_json)
    elif scenario is not None:
        print_lines(tc_lines(scenario), dev or (), as_json=as_json)
