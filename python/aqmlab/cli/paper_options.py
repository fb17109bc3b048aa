"""What the commands about papers share: their options, progress, and where they write."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.cli import completion
from aqmlab.cli.console import interruptible
from aqmlab.cli.progress import ProgressLine, titled_text

if TYPE_CHECKING:
    from aqmlab.papers.paper import Paper
    from aqmlab.papers.runner import Watcher
    from aqmlab.sweeps.progress import Progress

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="A paper as listed by `aqmlab paper list`, or its folder.",
        autocompletion=completion.papers,
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", help="Only this table and its cells (III includes `III, 72`); may be repeated."),
]
Figures = Annotated[
    list[str] | None,
    typer.Option("--figure", help="Only this figure and the cells it needs; may be repeated."),
]
Findings = Annotated[
    list[str] | None,
    typer.Option("--finding", help="Only this finding and the cells it needs; may be repeated."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small version, as a smoke test.")]
Folder = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="The output directory; STORE/papers/KEY by default."),
]
SEEDS = "Number of seeds per cell; overrides the paper's folder."


def folder_of(paper: Paper, output: Path | None, store: Path | None) -> Path:
    """Return the output directory."""
    from aqmlab.sweeps.store import store_path

    return output or store_path(store) / "papers" / paper.key


@contextmanager
def resumable(store: Path | None) -> Iterator[None]:
    """Keep all finished runs whenever the command is interrupted, even between sweeps or while drawing."""
    from aqmlab.sweeps.store import kept_in, store_path

    with interruptible():
        try:
            yield
        except KeyboardInterrupt as stop:
            if not getattr(stop, "__notes__", []):
                stop.add_note(kept_in(store_path(store)))
            raise


@contextmanager
def progress(*, quiet: bool) -> Iterator[Watcher]:
    """Show the current experiment and its progress."""
    with ProgressLine(enabled=not quiet, text=titled_text) as line:

        def watch(what: str, now: Progress) -> None:
            line.update((what, now))

        yield watch


def made(paper: Paper) -> dict[str, str]:
    """Return the facts about the creation of a file: version, commit and date."""
    from aqmlab import _core
    from aqmlab.papers.scorecard import making

    return making(_core.__version__, _commit(paper.path))


def _commit(folder: Path) -> str:
    """Return the git commit of the folder, or an empty string outside a repository."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
