"""What the process of a live run and its supervisor say to each other: JSON, a line each.

The supervisor writes one *job* to standard input and leaves it open. The process answers on standard output
with any number of *progress* lines and at last one of *done* or *error*::

    {"event": "progress", "phase": "run", "done_s": 3.2, "total_s": 20.0, ...}
    {"event": "done", "answer": {...}}
    {"event": "error", "kind": "HostError", "message": "this machine cannot: ..."}

Both are of one version of aqmlab, so neither asks which the other speaks.
"""

from __future__ import annotations

from aqmlab.errors import AqmlabError

LONGEST_LINE = 1 << 20
"""Bytes of a message at most; more is no message of ours."""

INTERRUPTED = "Interrupted"
"""The ``kind`` of a run that was ended as it was asked to."""

DEFECT = "Defect"
"""The ``kind`` of an error that nobody raised on purpose."""


def kind_of(error: BaseException) -> str:
    """The word for an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return type(error).__name__ if isinstance(error, AqmlabError) else DEFECT
