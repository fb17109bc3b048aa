"""Atomic writing of files: they are complete or unchanged, however the process or the machine ends."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from aqmlab.errors import HostError

SWEEP_FILE = "sweep.json"
EXPERIMENT_FILE = "experiment.json"
CLAIMS_FILE = "claims.json"
"""The verdicts, in the directory of an experiment or of a sweep."""


def slug(title: str) -> str:
    """Return a title as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].rstrip("-") or "experiment"


def json_text(content: object, *, indent: int | None = None, compact: bool = False) -> str:
    """Return JSON that every reader accepts: NaN and infinite numbers become ``null``."""
    separators = (",", ":") if compact else None

    def text(of: object) -> str:
        return json.dumps(of, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)

    try:
        return text(content)
    except ValueError:
        return text(_finite(content))


def _finite(content: object) -> object:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(item) for key, item in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(item) for item in content]
    return content


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it.

    The temporary name belongs to this call alone, so two processes may write the same file: the
    last one wins. Links are followed. A device or a pipe (``/dev/stdout``) is written to and never
    replaced.

    Raises
    ------
    OSError If the file cannot be written; the previous file is then unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    file = file.resolve()
    if file.exists() and not (file.is_file() or file.is_dir()):
        with file.open("wb") as device:
            device.write(data)
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save(file: Path, content: str | bytes) -> None:
    """Write a file that the user requested, by :func:`write_whole`.

    Raises
    ------
    HostError
        If the file cannot be written; the message names it.
    """
    try:
        write_whole(file, content)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
