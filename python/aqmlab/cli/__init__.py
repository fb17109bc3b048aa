"""The command line: each command is one public function, its answer on stdout, its talk on stderr."""

from __future__ import annotations

import gc
import os

__all__ = ["main"]

_COLLECT_AFTER = 100_000
_INTERRUPTED = 130


def main() -> None:
    """Run the command line: what a person did wrong ends in a message and an exit code, no traceback."""
    # OpenBLAS starts its threads as NumPy and SciPy are imported, a fifth of a second of processor time that
    # nothing here makes use of: the largest matrix is two by two.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What is imported stays to the end: looking through it for garbage again and again finds none.
    gc.set_threshold(_COLLECT_AFTER)
    try:
        from aqmlab.cli.app import execute

        raise SystemExit(execute())
    except KeyboardInterrupt:
        # Before any command has begun; those say themselves what they leave.
        raise SystemExit(_INTERRUPTED) from None
