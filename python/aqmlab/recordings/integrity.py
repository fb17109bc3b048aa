"""Checks that files are unchanged.

The manifest contains the SHA-256 of each table's file. A JSON file that numbers depend on
(``manifest.json``, ``experiment.json``, ``sweep.json``, ``both.json``) is *sealed*: its last member
``file_digest`` is the SHA-256 of all bytes before it. A file is read for its digest only once per process,
unless its size, time or inode changes afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import DamageError, FormatError, RecordingError

FORMAT_VERSION = 4
"""The ``format_version`` of recordings that this version writes, and the only one that it reads."""

_MEMBER = b'"file_digest"'
_READ_BYTES = 1 << 20
_digests: dict[str, tuple[tuple[int, ...], str]] = {}
"""The digests of files, by path."""


def sealed(content: Mapping[str, Any]) -> str:
    """Return the text of a JSON object, which has at least one member, with its seal."""
    members = {key: value for key, value in content.items() if key != "file_digest"}
    text = json.dumps(members, indent=1, ensure_ascii=False, allow_nan=False)
    head = text.removesuffix("\n}") + ",\n "
    return f'{head}"file_digest": "{hashlib.sha256(head.encode()).hexdigest()}"\n}}\n'


def other_format(file: Path, version: object, reads: int) -> FormatError:
    """The error for a file of another format version."""
    return FormatError(
        f"`{file}` has format version `{version}`; this version of aqmlab reads only format version {reads}"
    )


def read_json(path: Path, reads: int = FORMAT_VERSION) -> dict[str, Any]:
    """Return the JSON object in a sealed file, after checking its seal and its format version.

    Parameters
    ----------
    path
        The file.
    reads
        The only ``format_version`` that is accepted.

    Raises
    ------
    RecordingError
        If the file cannot be read.
    FormatError
        If it has another format version.
    DamageError
        If the file does not contain such an object, or has been changed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot read `{path}`: {_cause(error)}") from error
    try:
        content = json.loads(data.decode())
    except ValueError as error:
        raise DamageError([f"`{path}` is corrupt: {error}"]) from error
    if not isinstance(content, dict):
        raise DamageError([f"`{path}` is corrupt: it holds no JSON object"])
    head, _, tail = data.rpartition(_MEMBER)
    has_seal = "file_digest" in content
    if has_seal and tail != f': "{hashlib.sha256(head).hexdigest()}"\n}}\n'.encode():
        raise DamageError(
            [
                f"`{path}` is corrupt: it has changed since it was written (its SHA-256 is not"
                " its `file_digest`)"
            ]
        )
    if content.get("format_version") != reads:
        raise other_format(path, content.get("format_version"), reads)
    if not has_seal:
        raise DamageError([f"`{path}` is incomplete: `file_digest`, its last member, is missing"])
    return content


def file_digest(path: Path | str) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (many files: creating a `Path` per file costs more than the hash)
        status = os.fstat(file.fileno())
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        known = _digests.get(str(path))
        if known is not None and known[0] == stamp:
            return known[1]
        found = hashlib.sha256()
        while content := file.read(_READ_BYTES):
            found.update(content)
    _digests[str(path)] = stamp, found.hexdigest()
    return found.hexdigest()


def damaged_tables(
    path: Path, digests: Mapping[str, str], only: Iterable[str] | None = None
) -> dict[str, str]:
    """Return, by table name, a message for each of a run's tables with a changed, missing or unreadable file.

    Parameters
    ----------
    path
        The directory of the run.
    digests
        Digests of the files of its tables, by name.
    only
        Names of the tables to check; by default all.
    """
    found = {}
    for name in digests if only is None else only:
        if name not in digests:
            continue
        file = f"{path}/{name}.parquet"
        try:
            if file_digest(file) != digests[name]:
                found[name] = (
                    f"`{file}` is corrupt: it has changed since it was written (its SHA-256 is"
                    " not the manifest's)"
                )
        except OSError as error:
            if isinstance(error, FileNotFoundError) and Path(path).is_dir():
                found[name] = f"`{path}` is incomplete: `{name}.parquet` is missing"
            else:
                found[name] = f"cannot read `{file}`: {_cause(error)}"
    return found


def unreadable(file: Path | str) -> str:
    """Return why the bytes of a file cannot be read; empty if they can."""
    try:
        with Path(file).open("rb") as content:
            while content.read(1 << 20):
                pass
    except OSError as error:
        return f"cannot read `{file}`: {_cause(error)}"
    return ""


def _cause(error: OSError) -> str:
    """Return the cause in the system's words, and whether the working directory is gone."""
    said = error.strerror or str(error)
    try:
        Path.cwd()
    except OSError:
        return f"{said}; the working directory no longer exists"
    return said
