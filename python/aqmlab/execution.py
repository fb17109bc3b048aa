"""One program behind the queue of a scenario: a live run with a class of traffic for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.arguments import names, typed
from aqmlab.errors import Problem, RunError, ScenarioError, UsageError
from aqmlab.experiment import run
from aqmlab.language.scenario import Scenario, Text, read, resolve
from aqmlab.results.results import Results
from aqmlab.sweeps.task import LIVE

if TYPE_CHECKING:
    from aqmlab.sweeps.sweep import Watcher
    from aqmlab.system.terminal import Streams

CLASS = "program"
"""The name of the program's class of traffic."""
LONGEST = "1h"
"""The longest duration of a run whose program does not end."""


@dataclass(frozen=True)
class Executed:
    """A program that has run.

    Attributes
    ----------
    results
        The run with its recording, its metrics and the verdict on its faithfulness.
    exit_code
        The program's exit code, or 128 plus the number of the signal that ended it.
    program
        What the manifest says of the program: command, times, processor time, memory.
    """

    results: Results
    exit_code: int
    program: dict[str, Any]


@typed
def execute(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    command: Sequence[str],
    *,
    server: Sequence[str] | None = None,
    port: int | None = None,
    rtt: str | None = None,
    results: str | None = None,
    uplink: bool = False,
    arm: str | None = None,
    seed: int | None = None,
    longest: str = LONGEST,
    output: Path | str | None = None,
    force: bool = False,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    streams: Streams | None = None,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    begins: Callable[[str, str], object] | None = None,
    report: bool = True,
) -> Executed:
    """Run a program behind the queue of a scenario, in real time, until it ends.

    The network of the scenario lies between the host of the program and a host for servers; their addresses
    are in the environment of both (``AQMLAB_CLIENT``, ``AQMLAB_SERVER``). The scenario's own traffic, if it
    has any, shares the network. The program starts at the end of the warm-up.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict. It needs no traffic of its own.
    command
        The program and its arguments. No shell reads them.
    server
        A program and its arguments that run in the servers' host. The command starts once this program has
        opened a port.
    port
        The port that the server opens; any port if not given.
    rtt
        The base round-trip time between the two hosts, such as ``"40ms"``; that of the path if not given.
    results
        The form of the results that the program writes to ``AQMLAB_METRICS`` or into files, whose values
        become metrics ``program_NAME``: ``"iperf3"``, ``"qlog"``, ...; by default an object of numbers by
        name.
    uplink
        Whether the program reaches the networks of this machine, through the scenario's network: the kernel
        of the servers' host answers for every address, and passes bytes on.
    arm
        The arm of the scenario; needed if there are several.
    seed
        The seed; by default as in the scenario.
    longest
        The run ends after this time even if the program has not ended, which is then asked to end.
    output, force, pcap, pcap_bytes, progress, interrupted, report
        As for :func:`aqmlab.run`.
    streams
        The standard streams of the program; if not given, its output goes to files in ``programs`` of the
        recording.
    begins
        Called before the run with the addresses of the program's host and of the servers' host.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If the command is empty or no such program exists, or the arm is not given.
    RunError
        If the server did not open its port, or the run failed.
    HostError
        If this machine cannot run it: ``aqmlab doctor`` reports why.
    KeyboardInterrupt
        If interrupted. The recording up to that moment is kept.
    """
    if isinstance(command, str) or not command:
        raise UsageError("the command is a list: the program and its arguments, at least the program")
    text = with_program(
        scenario,
        command,
        server=server,
        port=port,
        rtt=rtt,
        results=results,
        uplink=uplink,
        longest=longest,
    )
    arms = resolve(text)["arms"]
    _only_arm(arms, arm)
    if begins is not None:
        begins(*_addresses(arms[0]["plan"]))
    done = run(
        text,
        host=LIVE,
        output=output,
        seed=seed,
        runs=1,
        arms=names(arm),
        force=force,
        pcap=pcap,
        pcap_bytes=pcap_bytes,
        progress=progress,
        interrupted=interrupted,
        report=report,
        streams=streams,
    )
    return _executed(done)


@typed
def route(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    left: str,
    right: str,
    *,
    rtt: str | None = None,
    arm: str | None = None,
    seed: int | None = None,
    longest: str = LONGEST,
    output: Path | str | None = None,
    force: bool = False,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Watcher | None = None,
    interrupted: Callable[[], object] | None = None,
    report: bool = True,
) -> Results:
    """Put the network of a scenario between two interfaces of this machine, in real time.

    The interfaces are the ports of a bridge at layer 2: whatever lies behind them keeps its addresses. The
    scenario's own traffic, if it has any, shares the network. Needs root.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict. It needs no traffic of its own.
    left, right
        Names of the interfaces; ``left`` has the place of the clients, whose data the first queue of the path
        sees.
    rtt
        The base round-trip time that the network adds; that of the path if not given.
    arm, seed
        As for :func:`execute`.
    longest
        When the run ends.
    output, force, pcap, pcap_bytes, progress, interrupted, report
        As for :func:`aqmlab.run`.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If the arm is not given.
    HostError
        If an interface does not exist or is not suitable, or this machine cannot run it.
    RunError
        If the run failed.
    KeyboardInterrupt
        If interrupted. The recording up to that moment is kept.
    """
    text = with_interfaces(scenario, left, right, rtt=rtt, longest=longest)
    _only_arm(resolve(text)["arms"], arm)
    return run(
        text,
        host=LIVE,
        output=output,
        seed=seed,
        runs=1,
        arms=names(arm),
        force=force,
        pcap=pcap,
        pcap_bytes=pcap_bytes,
        progress=progress,
        interrupted=interrupted,
        report=report,
    )


def _only_arm(arms: Sequence[Mapping[str, Any]], arm: str | None) -> None:
    """Refuse a scenario with several arms of which none is chosen."""
    if arm is None and len(arms) > 1:
        called = ", ".join(f"`{found['name']}`" for found in arms)
        raise UsageError(f"the scenario has {len(arms)} arms; choose one with `--arm`: {called}")


def with_program(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    command: Sequence[str],
    *,
    server: Sequence[str] | None = None,
    port: int | None = None,
    rtt: str | None = None,
    results: str | None = None,
    uplink: bool = False,
    longest: str = LONGEST,
) -> Text:
    """Return a scenario with a class of traffic for a program, at whose end the run ends.

    Its claims are left out, because they are about another run.
    """
    program: dict[str, Any] = {"kind": "program", "client": list(command), "ends_run": True}
    program |= {"server": list(server)} if server else {}
    given = {"port": port, "rtt": rtt, "results": results, "uplink": uplink or None}
    program |= {key: value for key, value in given.items() if value is not None}
    return _with_class(scenario, program, longest)


def with_interfaces(
    scenario: Scenario, left: str, right: str, *, rtt: str | None = None, longest: str = LONGEST
) -> Text:
    """Return a scenario with a class of traffic for whatever lies behind two interfaces; without claims."""
    bridge = {"kind": "program", "left": left, "right": right} | ({} if rtt is None else {"rtt": rtt})
    return _with_class(scenario, bridge, longest)


def _with_class(scenario: Scenario, added_class: Mapping[str, Any], longest: str) -> Text:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    toml, file_name = read(scenario)
    try:
        document = tomlkit.parse(toml)
    except TOMLKitError:
        # The core reports the mistake with its place.
        return Text(toml, file_name)
    called = str(Path(file_name).absolute()) if "<" not in file_name else file_name
    program: dict[str, Any] = {"name": CLASS} | dict(added_class)
    if "warmup" in document and "client" in program:
        program["start"] = str(document["warmup"])
    document.pop("claim", None)
    if isinstance(document.get("stop"), dict):
        document["stop"]["at"] = longest
    else:
        document["duration"] = longest
    rest = tomlkit.dumps(document)
    table = tomlkit.table()
    for key, value in program.items():
        table.add(key, value)
    own = document.get("traffic")
    if isinstance(own, list) and not isinstance(own, tomlkit.items.AoT):
        message = "`traffic` is a list on one line; write each class as a table [[traffic]]"
        problem = Problem(line=0, column=0, path="traffic", message=message)
        raise ScenarioError(f"{file_name}: {message}", [problem])
    added = tomlkit.aot()
    added.append(table)
    more = tomlkit.document()
    more.add("traffic", added)
    return Text(f"{rest}\n{tomlkit.dumps(more)}", called)


def _addresses(plan: Mapping[str, Any]) -> tuple[str, str]:
    """Return the addresses of the two hosts of the last class, as ``docs/live.md`` states them."""
    number = len(plan["classes"]) - 1
    if plan.get("live", {}).get("ip") == 6:
        return f"2001:2:0:{number:x}::1", f"2001:2:1:{number:x}::1"
    return f"198.18.{number}.1", f"198.19.{number}.1"


def _executed(results: Results) -> Executed:
    live = results.runs[0].manifest.live or {}
    for program in live.get("programs", ()):
        if program["class"] == CLASS and program["role"] == "client":
            code, signal = program["exit_code"], program["signal"]
            return Executed(results, code if signal is None else 128 + signal, program)
    raise RunError("the run ended before the program started")


def shell() -> list[str]:
    """Return the command of the user's shell."""
    return [os.environ.get("SHELL") or "/bin/sh"]
