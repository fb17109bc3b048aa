"""The commands that run one program behind the queue of a scenario."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import interruptible, say, set_quiet
from aqmlab.cli.live import tell_stopping
from aqmlab.cli.options import (
    AsJson,
    Force,
    NoReport,
    Output,
    Pcap,
    PcapBytes,
    Quiet,
    ScenarioFile,
    Seed,
    ports_of,
)
from aqmlab.errors import UsageError

Arm = Annotated[
    str | None,
    typer.Option("--arm", help="The arm; needed if there are several.", autocompletion=completion.arms),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="COMMAND",
        help="A program for the servers' host, started first: words as in a shell, but no shell runs.",
    ),
]
Port = Annotated[int | None, typer.Option("--port", help="The server's port; any by default.")]
Rtt = Annotated[
    str | None,
    typer.Option("--rtt", metavar="TIME", help="Base round-trip time; that of the path by default."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--results",
        metavar="FORM",
        help="The form of what the program writes to $AQMLAB_METRICS: json (the default), iperf3, curl,"
        " netperf; or into files: flent, qlog.",
    ),
]
Uplink = Annotated[
    bool,
    typer.Option(
        "--uplink", help="Let the program reach this machine's networks, through the scenario's network."
    ),
]
Longest = Annotated[str, typer.Option("--for", metavar="TIME", help="End the run after this time.")]


def exec_(
    scenario: ScenarioFile,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...", help="The program and its arguments, after `--`.", show_default=False
        ),
    ],
    server: Server = None,
    port: Port = None,
    rtt: Rtt = None,
    results: Form = None,
    uplink: Uplink = False,
    arm: Arm = None,
    seed: Seed = None,
    longest: Longest = "1h",
    output: Output = None,
    force: Force = False,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Run a program behind the queue of a scenario, between this kernel's network stacks.

    The program's host reaches the servers' host only through the scenario's network. The environment names
    the addresses: AQMLAB_CLIENT, AQMLAB_SERVER. The run ends with the program; its recording, report and
    verdict are those of a live run. Messages go to stderr, stdout belongs to the program. Root is not needed
    where user namespaces are allowed.

    Exits with the program's exit code, or with 128 plus the number of the signal that ended it; before the
    program starts, with 2 for a wrong command or scenario, with 3 if this machine cannot run it, and with 4
    if the server does not start.
    """
    set_quiet(quiet)
    asked: dict[str, Any] = {
        "server": _words(server),
        "port": port,
        "rtt": rtt,
        "results": results,
        "uplink": uplink,
        "arm": arm,
        "seed": seed,
        "longest": longest,
    }
    asked |= {"output": output, "force": force, "pcap": ports_of(pcap), "pcap_bytes": pcap_bytes}
    _execute(scenario, command, asked, no_report=no_report)


def shell(
    scenario: ScenarioFile,
    server: Server = None,
    port: Port = None,
    rtt: Rtt = None,
    results: Form = None,
    uplink: Uplink = False,
    arm: Arm = None,
    seed: Seed = None,
    longest: Longest = "1h",
    output: Output = None,
    force: Force = False,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Open a shell behind the queue of a scenario: everything that it starts uses the scenario's network.

    As `aqmlab exec` with your shell. `nsenter --net=$AQMLAB_SERVER_NETNS COMMAND` runs a program in the
    servers' host. What is still running when the shell ends, ends with it.
    """
    from aqmlab.execution import shell as users_shell

    set_quiet(quiet)
    asked: dict[str, Any] = {
        "server": _words(server),
        "port": port,
        "rtt": rtt,
        "results": results,
        "uplink": uplink,
        "arm": arm,
        "seed": seed,
        "longest": longest,
    }
    asked |= {"output": output, "force": force, "pcap": ports_of(pcap), "pcap_bytes": pcap_bytes}
    _execute(scenario, users_shell(), asked, no_report=no_report)


def router(
    scenario: ScenarioFile,
    left: Annotated[str, typer.Option("--left", metavar="INTERFACE", help="The interface of the clients.")],
    right: Annotated[str, typer.Option("--right", metavar="INTERFACE", help="The interface of the servers.")],
    rtt: Rtt = None,
    arm: Arm = None,
    seed: Seed = None,
    longest: Longest = "1h",
    output: Output = None,
    force: Force = False,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    as_json: AsJson = False,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Put the network of a scenario between two interfaces of this machine, as a bridge at layer 2.

    What lies behind the interfaces keeps its addresses: packets of IP cross the queues, ARP passes at once,
    and nothing else is forwarded. Needs root. The run ends after `--for`, or with Ctrl-C; its recording is
    kept in both cases.

    Exits with 3 if an interface is not suitable, with 5 if the run is NOT FAITHFUL, and with 130 after
    Ctrl-C.
    """
    from aqmlab.cli.outcome import tell_experiment
    from aqmlab.cli.progress import ProgressLine
    from aqmlab.execution import route

    set_quiet(quiet)
    with interruptible(), ProgressLine(enabled=not quiet) as line:
        results = route(
            scenario,
            left,
            right,
            rtt=rtt,
            arm=arm,
            seed=seed,
            longest=longest,
            output=output,
            force=force,
            pcap=ports_of(pcap),
            pcap_bytes=pcap_bytes,
            progress=line.update,
            interrupted=tell_stopping,
            report=False,
        )
    tell_experiment(results, as_json=as_json, no_report=no_report)


def _words(text: str | None) -> list[str] | None:
    if text is None:
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"`--server {text}`: {error}; close the quotation") from None
    if not words:
        raise UsageError("`--server` is empty; write a program and its arguments")
    return words


def _execute(scenario: Path, command: Sequence[str], asked: dict[str, Any], *, no_report: bool) -> None:
    from aqmlab.execution import execute
    from aqmlab.system.terminal import lent

    with interruptible():
        with lent() as streams:
            done = execute(
                scenario,
                command,
                **asked,
                streams=streams,
                interrupted=tell_stopping,
                begins=_tell_addresses,
                report=False,
            )
        _tell(done, no_report=no_report)
    raise typer.Exit(done.exit_code)


def _tell_addresses(client: str, server: str) -> None:
    say(f"client     {client}")
    say(f"server     {server}")


def _tell(done: Any, *, no_report: bool) -> None:  # noqa: ANN401 (imported when needed)
    """Print the verdict and the answer to stderr, because stdout belongs to the program."""
    from contextlib import redirect_stdout

    from aqmlab.cli.outcome import tell_results
    from aqmlab.results.answers import answer

    for warning in done.results.warnings:
        say(f"warning: {warning}")
    with redirect_stdout(sys.stderr):
        tell_results(answer(done.results), as_json=False)
    say(f"exit code  {done.exit_code}")
    say(f"recording  {done.results.path}")
    if not no_report:
        from aqmlab.reports import write_report

        say(f"report     {write_report(done.results)}")
