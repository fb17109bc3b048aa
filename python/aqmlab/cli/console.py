"""Output: data to stdout, messages to stderr; errors become one message and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from aqmlab.cli.streams import can_show, prepare_streams
from aqmlab.errors import AqmlabError
from aqmlab.system.files import json_text
from aqmlab.system.memory import no_memory, out_of_memory

if TYPE_CHECKING:
    from aqmlab.results.results import Results


class Exit(IntEnum):
    """Exit codes of the command line, in addition to those in ``exit_code`` of :class:`AqmlabError`."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    MACHINE = 3
    NOT_FAITHFUL = 5
    SKIPPED = 6
    INTERRUPTED = 130


class _Talk:
    quiet = False


def set_quiet(quiet: bool) -> None:
    """Suppress everything but errors from now on."""
    _Talk.quiet = quiet


def say(text: str) -> None:
    """Print a remark for the user on stderr."""
    if not _Talk.quiet:
        print(text, file=sys.stderr)


def tell_json(content: object, *, indent: int | None = 2) -> None:
    """Print data for a program on stdout; characters that stdout cannot show are escaped."""
    text = json_text(content, indent=indent)
    if not can_show(sys.stdout, text):
        text = json_text(content, indent=indent, ascii_only=True)
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Print an error on stderr, in red on a terminal."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    head = "\x1b[31;1merror\x1b[0m" if colour else "error"
    print(f"{head}: {text}", file=sys.stderr)


def with_notes(text: str, error: BaseException) -> str:
    """Return a message followed by the notes of an error, such as the runs that were kept."""
    return "; ".join([text, *getattr(error, "__notes__", [])])


class _Ended(KeyboardInterrupt):
    """Raised if a signal other than Ctrl-C's asks the program to end; partial results are cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _end(number: int, _frame: FrameType | None) -> None:
    raise _Ended(number)


def refuse_damage(*of: Results) -> None:
    """Exit with 4 if unreadable recordings were left out; to be called after the answer is printed."""
    for results in of:
        damage = results.damage()
        if damage is not None:
            raise damage


@contextmanager
def interruptible() -> Iterator[None]:
    """Exit with 130 on Ctrl-C, after printing the notes of the interrupt, which Typer would swallow.

    Other signals that ask the program to end (SIGTERM, and SIGHUP unless ``nohup`` makes the program ignore
    it) are handled in the same way, with the exit code 128 plus the signal's number.
    """
    import typer

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {s: signal.signal(s, _end) for s in wanted if signal.getsignal(s) is signal.SIG_DFL}
    try:
        yield
    except KeyboardInterrupt as stop:
        print(with_notes("interrupted", stop), file=sys.stderr)
        raise typer.Exit(128 + stop.number if isinstance(stop, _Ended) else Exit.INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hint_at_patterns(message: str) -> None:
    """Say that a shell's pattern may have matched several paths, if an argument is one too many."""
    paths = [word for word in sys.argv[1:] if not word.startswith("-") and Path(word).exists()]
    if "extra argument" in message and len(paths) > 1:
        say(f"{len(paths)} of the arguments are paths; if a pattern such as `*` matched them, name one")


def guarded(app: Callable[..., object]) -> int:  # noqa: PLR0911 (one exit per outcome)
    """Run the application and return its exit code."""
    import typer

    set_quiet(False)
    prepare_streams()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except AqmlabError as error:
        complain(with_notes(str(error), error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except typer.TyperException as error:
        show = getattr(error, "show", None)
        complain(str(error)) if show is None else show(file=sys.stderr)
        _hint_at_patterns(str(error))
        return Exit.USAGE
    except OSError as error:
        complain(f"{error.strerror or error}{f': `{error.filename}`' if error.filename else ''}")
        return Exit.MACHINE
    except Exception as error:
        # The error that DuckDB raises on Ctrl-C during a query.
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
            return Exit.INTERRUPTED
        if not out_of_memory(error):
            raise
        complain(str(no_memory()))
        return Exit.MACHINE
    return code if isinstance(code, int) else Exit.OK
