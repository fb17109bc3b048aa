"""Files that are there whole or as they were before, however the process or the machine ends."""

from __future__ import annotations

import os
from pathlib import Path

from aqmlab.errors import HostError

CLAIMS_FILE = "claims.json"
"""The verdicts, in the directory of an experiment or of a sweep."""


def write_whole(file: Path, content: str) -> None:
    """Write a file under another name, then give it its own.

    The other name belongs to this call alone, so that two processes may write one file: the last one wins.

    Raises
    ------
    OSError
        If it cannot be written; what was there is still there.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save(file: Path, content: str) -> None:
    """:func:`write_whole`, for a file that somebody asked for.

    Raises
    ------
    HostError
        If it cannot be written: the file is named.
    """
    try:
        write_whole(file, content)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
