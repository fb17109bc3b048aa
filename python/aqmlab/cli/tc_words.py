"""The output of `aqmlab aqm tc`: lines for a shell or a scenario, with remarks as comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from aqmlab.cli.console import tell_json
from aqmlab.errors import UsageError
from aqmlab.tc import TcLine, TcQueue, TcSkipped, TcTree


def print_lines(lines: Sequence[TcLine], devices: Sequence[str], *, as_json: bool) -> None:
    """Print one tc command per queue that Linux supports, below a comment that names the queue.

    Each link, and each direction of one, leaves through a device of its own.

    Raises
    ------
    UsageError
        If there are not as many devices as links.
    """
    links = list(dict.fromkeys(line.link for line in lines))
    if devices and len(devices) != len(links):
        named = ", ".join(f"`{link}`" for link in links)
        raise UsageError(
            f"`--dev` names {len(devices)} of {len(links)} devices; write it once for each of the links"
            f" {named}"
        )
    dev = dict(zip(links, devices or (f"eth{number}" for number in range(len(links))), strict=True))
    command = {
        line: f"tc qdisc add dev {dev[line.link]} root {line.spec}" if line.spec else None for line in lines
    }
    if as_json:
        tell_json([{**asdict(line), "line": command[line]} for line in lines])
        return
    for line in lines:
        typer.echo(f"# link {line.link}, {line.rate}, {line.kind}: {', '.join(line.arms)}")
        if (words := command[line]) is not None:
            typer.echo(words)
        for what, inner in line.inner:
            verb = "" if " " in what else " add"
            typer.echo(f"tc {what}{verb} dev {dev[line.link]} {inner}")
        _remarks(line.remarks)


def print_queues(found: Sequence[TcQueue | TcSkipped], *, as_json: bool) -> None:
    """Print each queue as a line of a scenario, below a comment with its words; or why there is none."""
    if as_json:
        tell_json(
            [{**asdict(one), **({"toml": one.toml} if isinstance(one, TcQueue) else {})} for one in found]
        )
        return
    for one in found:
        typer.echo(f"# {one.spec}")
        if isinstance(one, TcSkipped):
            _remarks([f"skipped: {one.reason}"])
        else:
            typer.echo(one.toml)
            _remarks(one.remarks)


def print_trees(trees: Sequence[TcTree], *, as_json: bool) -> None:
    """Print the queue of each device, below a comment with its name."""
    if as_json:
        tell_json([{**asdict(tree), "toml": tree.toml} for tree in trees])
        return
    for tree in trees:
        typer.echo(f"# {tree.dev or 'the device'}")
        typer.echo(tree.toml, nl=False)
        _remarks(tree.remarks)


def _remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        typer.echo(f"#   {remark}")
