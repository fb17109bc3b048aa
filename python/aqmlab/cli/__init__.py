"""The command line: each command is one public function, with results on stdout and messages on stderr."""

from __future__ import annotations

import gc
import os

__all__ = ["main"]

_COLLECT_AFTER = 100_000
_INTERRUPTED = 130


def main() -> None:
    """Run the command line; a user's mistake leads to a message and an exit code, not to a traceback."""
    # OpenBLAS starts its threads when NumPy is imported, which costs a fifth of a second
    # of processor time. Nothing here needs these threads, because the largest matrix is two by two.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported objects live until the end, so repeated garbage collection would not free any of them.
    gc.set_threshold(_COLLECT_AFTER)
    try:
        from aqmlab.cli.app import execute

        raise SystemExit(execute())
    except KeyboardInterrupt:
        # No command has begun yet. Once it has begun, a command itself reports which files it leaves.
        raise SystemExit(_INTERRUPTED) from None
