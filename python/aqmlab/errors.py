"""The exceptions of aqmlab.

Every error that aqmlab raises on purpose is an :class:`AqmlabError`, with a message for the user.
``exit_code`` is the exit code of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict


class Problem(TypedDict):
    """One error in a scenario, with its location."""

    line: int
    """Line in the file, from 1; 0 if no location is known."""
    column: int
    """Column in characters, from 1; 0 if no location is known."""
    path: str
    """The key, such as ``topology.queue.min_th``; may be empty."""
    message: str
    """The offending value and the accepted ones."""


class AqmlabError(Exception):
    """Base of all errors of this package."""

    exit_code = 4


class ScenarioError(AqmlabError):
    """A scenario that cannot be run.

    Attributes
    ----------
    errors
        All errors of the scenario, in the order of the file.
    """

    exit_code = 2

    def __init__(self, message: str, errors: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.errors: list[Problem] = list(errors)


class UsageError(AqmlabError):
    """An invalid request: an unknown arm, a negative count, a wrong kind of figure."""

    exit_code = 2


class RunError(AqmlabError):
    """A run that failed."""


class RecordingError(AqmlabError):
    """A recording that is missing, incomplete or corrupt, or that cannot be written."""


class FormatError(RecordingError):
    """A file has another format version than this version of aqmlab reads."""


class DamageError(RecordingError):
    """Files of recordings have been changed.

    Attributes
    ----------
    reasons
        A sentence per file, with its path.
    """

    def __init__(self, reasons: Iterable[str], remedy: str = "") -> None:
        self.reasons = tuple(dict.fromkeys(reasons))
        super().__init__("\n".join([*self.reasons, *([remedy] if remedy else [])]))


class HostError(AqmlabError):
    """The machine cannot do what was requested: no permission, no space, not enough memory."""

    exit_code = 3


class DisciplineError(HostError):
    """The kernel lacks the queue discipline of an arm; other arms can still run."""


class MemoryCapError(HostError):
    """A run that needs more memory than allowed."""


def called(name: str, message: str) -> AqmlabError:
    """Return an error of the class with this name in this module; an unknown name indicates a bug."""
    found = globals().get(name)
    if isinstance(found, type) and issubclass(found, AqmlabError):
        return found(message)
    return RunError(f"a defect of aqmlab: {message}")


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, with the nearest name or all known names.

    Parameters
    ----------
    what
        The kind of thing, such as ``"metric"``.
    name
        The name as given.
    known
        The known names.
    """
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listed = ", ".join(f"`{other}`" for other in names) or "none"
    hint = f"; did you mean `{near[0]}`?" if near else f"; known: {listed}"
    return UsageError(f"there is no {what} `{name}`{hint}")
