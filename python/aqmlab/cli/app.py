"""The commands; those that are not asked for are not imported."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from aqmlab.cli.console import guarded
from aqmlab.cli.quick_parse import read_quickly
from aqmlab.system.memory import check_address_space

_COMMANDS = {
    "demo": "beginnings",
    "new": "beginnings",
    "compare": "compare",
    "claims": "claims",
    "run": "run",
    "show": "show",
    "report": "report",
    "live": "live",
    "exec": "execute",
    "shell": "execute",
    "router": "execute",
    "doctor": "doctor",
    "sweep": "sweep",
    "calibrate": "calibrate",
    "characterize": "characterize",
    "merge": "sweep",
    "query": "sweep",
    "export": "export",
    "trace-import": "trace_import",
    "bundle": "bundle",
    "verify": "verify",
    "vectors": "vectors",
    "metrics": "metrics",
    "cite": "cite",
    "schema": "show",
    "playground": "playground",
    "aqm": "aqm",
    "plot": "plot",
    "paper": "paper",
}
"""The module of each command, or group of commands, in the order in which they are listed."""
_LIGHT = {"aqm", "cite", "doctor", "metrics", "new", "paper", "schema", "show", "verify"}
"""The commands that read no tables of recordings and draw nothing, so a small address space suffices."""
_HELP = ["-h", "--help"]
_PYTHON = {"exec"}
"""Commands whose names are functions of Python."""


def _version(wanted: bool) -> None:
    if wanted:
        from aqmlab import _core

        typer.echo(f"aqmlab {_core.__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A laboratory for active queue management: run scenarios and read the results.

    A scenario describes a network, its traffic and one or more arms; an arm is one queue configuration under
    comparison. A claim is an expected result that a run checks.

    Exit codes: 0 success, 1 a check or claim failed, 2 a usage or scenario error, 3 this machine lacks
    something (permission, disk, memory), 4 runs failed or a recording is corrupt, 5 a live run is not
    faithful, 6 an arm was skipped because the kernel lacks its queue, 130 interrupted.
    """
    if context.invoked_subcommand not in _LIGHT and not set(_HELP) & set(sys.argv):
        check_address_space()


def application(words: list[str] | None = None) -> typer.Typer:
    """Return the application, with as much of it as these words of the command line need; by default all."""
    app = typer.Typer(
        name="aqmlab",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": _HELP},
    )
    app.callback()(root)
    first = words[0] if words else ""
    for name, module in _COMMANDS.items():
        if first not in _COMMANDS or first == name:
            # A word of Python is followed by an underscore.
            called = name.replace("-", "_") + "_" * (name in _PYTHON)
            found = getattr(import_module(f"aqmlab.cli.{module}"), called)
            if first in _HELP:
                app.command(name, help=_described(found))(_listed)
            elif isinstance(found, typer.Typer):
                app.add_typer(found, name=name)
            else:
                app.command(name)(found)
    return app


def _described(found: typer.Typer | Callable[..., Any]) -> str:
    return str(found.info.help) if isinstance(found, typer.Typer) else inspect.getdoc(found) or ""


def _listed() -> None:
    """A command in the list of commands, which needs no options; reading them takes long."""


def execute() -> int:
    """Execute the command line and return the exit code."""
    return guarded(read_quickly(get_command(application(sys.argv[1:]))))
