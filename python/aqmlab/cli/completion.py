"""Shell completion: arms of a file, metrics, kinds of figures, disciplines, papers.

Each function gets the text typed so far. It returns the names to offer, or none if a file cannot be read,
because completion must not raise errors.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

Completer = Callable[[typer.Context, str], list[str]]
_BASH = "complete_bash"
_SPECIAL = re.compile(r"[^\w./:=@%+,-]")
"""Characters that Bash would not accept as part of a word."""


class _Escaped(str):
    """A name that has already been compared with the typed text, with its special characters escaped."""

    __slots__ = ()

    def startswith(self, *_: object) -> bool:
        """Return true: Typer would otherwise compare the name with typed text that has lost its escapes."""
        return True


def _offers(names: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Return a completer that offers the names that begin with the typed text."""

    # Typer expects the two parameters under these names.
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = [name for name in names(ctx) if name.startswith(incomplete)]
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return []
        # Bash inserts completions unchanged; other shells quote them themselves.
        in_bash = os.environ.get("_AQMLAB_COMPLETE") == _BASH
        return [_Escaped(_SPECIAL.sub(r"\\\g<0>", name)) for name in found] if in_bash else found

    return complete


@_offers
def arms(context: typer.Context) -> Iterable[str]:
    """The arms of the scenario or recording that the command line names."""
    given = context.params
    # While an option still lacks its value, Typer does not parse the words that precede the option.
    path = Path(given.get("scenario") or given.get("path") or context.args[0])
    if path.is_dir():
        return _recorded_arms(path)
    return (arm["name"] for arm in tomllib.loads(path.read_text(encoding="utf-8")).get("arm", []))


def _recorded_arms(path: Path) -> Iterable[str]:
    from aqmlab.system.files import EXPERIMENT_FILE, SWEEP_FILE

    for name in (EXPERIMENT_FILE, SWEEP_FILE):
        if (path / name).is_file():
            content: dict[str, Any] = json.loads((path / name).read_text(encoding="utf-8"))
            return [arm if isinstance(arm, str) else arm["name"] for arm in content["arms"]]
    return [json.loads((path / "manifest.json").read_text(encoding="utf-8"))["arm"]]


@_offers
def metrics(_context: typer.Context) -> Iterable[str]:
    """The names of the metrics."""
    from aqmlab.metrics.formulas import FORMULAS

    return FORMULAS


@_offers
def kinds(context: typer.Context) -> Iterable[str]:
    """The kinds of figures of the recording or the sweep that the command line names."""
    from aqmlab.figures.kinds import KINDS, SWEEP_KINDS
    from aqmlab.system.files import SWEEP_FILE

    return SWEEP_KINDS if (Path(context.params["path"]) / SWEEP_FILE).is_file() else KINDS


@_offers
def disciplines(_context: typer.Context) -> Iterable[str]:
    """The names of the queue disciplines."""
    from aqmlab.disciplines.catalogue import aqm_list

    return [entry["name"] for entry in aqm_list()]


@_offers
def papers(_context: typer.Context) -> Iterable[str]:
    """The keys of the papers."""
    from aqmlab.papers.folder import papers_folder

    return sorted(file.parent.name for file in papers_folder().glob("*/paper.toml"))


@_offers
def templates(_context: typer.Context) -> Iterable[str]:
    """The templates of new scenarios."""
    from aqmlab.language.templates import TEMPLATES

    return TEMPLATES


@_offers
def formats(_context: typer.Context) -> Iterable[str]:
    """The formats of exports."""
    from aqmlab.exports import FORMATS

    return FORMATS
