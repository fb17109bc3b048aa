"""Messages between the process of a live run and its supervisor: JSON, one message per line.

The supervisor writes one *job* to standard input, which stays open. The process answers on
standard output with any number of *progress* lines, followed by one *done* or *error* line::

    {"event": "progress", "phase": "run", "done_s": 3.2, "total_s": 20.0, ...}
    {"event": "done", "answer": {...}}
    {"event": "error", "kind": "HostError", "message": "this machine cannot run ..."}

Both processes belong to the same version of aqmlab, so there is no version negotiation.
"""

from __future__ import annotations

from aqmlab.errors import AqmlabError

INTERRUPTED = "Interrupted"
"""The ``kind`` of a run that ended on request."""

DEFECT = "Defect"
"""The ``kind`` of an unexpected error."""


def kind_of(error: BaseException) -> str:
    """Return the ``kind`` of an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return type(error).__name__ if isinstance(error, AqmlabError) else DEFECT
