"""Checks that files are unchanged.

The manifest contains the SHA-256 of each table's file. A JSON file that numbers depend on
(``manifest.json``, ``experiment.json``, ``sweep.json``) is *sealed*: its last member
``file_digest`` is the SHA-256 of all bytes before it. A file is read for its digest only once per process,
unless its size, time or inode changes afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import DamageError, RecordingError
from aqmlab.system.memory import database

FORMAT_VERSION = 4
"""The ``format_version`` that this version writes; it also reads all earlier ones."""
SEALED_FROM = 2
"""The first ``format_version`` in which JSON files are sealed and table files have digests."""

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


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a recording, after checking its seal, if it has one.

    Raises
    ------
    RecordingError
        If the file cannot be read.
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
    version = content.get("format_version")
    if "file_digest" not in content:
        if isinstance(version, int) and SEALED_FROM <= version <= FORMAT_VERSION:
            raise DamageError([f"`{path}` is incomplete: `file_digest`, its last member, is missing"])
        return content
    head, _, tail = data.rpartition(_MEMBER)
    if tail != f': "{hashlib.sha256(head).hexdigest()}"\n}}\n'.encode():
        raise DamageError(
            [
                f"`{path}` is corrupt: it has changed since it was written (its SHA-256 is not"
                " its `file_digest`)"
            ]
        )
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
    path: Path, digests: Mapping[str, str | None], only: Iterable[str] | None = None
) -> dict[str, str]:
    """Return, by table name, a message for each of a run's tables with a changed, missing or unreadable file.

    Parameters
    ----------
    path
        The directory of the run.
    digests
        Digests of the files of its tables, by name. A table without one was written by an early version and
        is not checked.
    only
        Names of the tables to check; by default all.
    """
    found = {}
    for name in digests if only is None else only:
        wanted = digests.get(name)
        if wanted is None:
            continue
        file = f"{path}/{name}.parquet"
        try:
            if file_digest(file) != wanted:
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


def table_digest(path: Path, names: Mapping[str, str] | None = None) -> str:
    """Return the digest of a table's contents, as defined in ``docs/recording.md``, from the file alone.

    Parameters
    ----------
    path
        The file.
    names
        Column names to digest instead of those in the file.

    Raises
    ------
    duckdb.Error
        If the table cannot be read.
    """
    with database() as connection:
        source = {"file": str(path)}
        described = connection.execute("DESCRIBE FROM read_parquet($file)", source).fetchall()
        schema = connection.execute(
            "SELECT name, repetition_type FROM parquet_schema($file) WHERE num_children IS NULL", source
        ).fetchall()
        rows = connection.execute("FROM read_parquet($file)", source).fetchall()
    optional = {name for name, repetition in schema if repetition == "OPTIONAL"}
    kinds = [_KINDS[column[1], column[0] in optional] for column in described]
    digest = hashlib.sha256(_text("aqmlab-table-1") + struct.pack("<Q", len(described)))
    for column, kind in zip(described, kinds, strict=True):
        digest.update(_text((names or {}).get(column[0], column[0])) + bytes([kind]))
    digest.update(struct.pack("<Q", len(rows)))
    for row in rows:
        digest.update(b"".join(_value(kind, value) for kind, value in zip(kinds, row, strict=True)))
    return digest.hexdigest()


_KINDS = {
    ("BIGINT", False): 1,
    ("DOUBLE", False): 3,
    ("VARCHAR", False): 4,
    ("DECIMAL(38,0)", False): 5,
    ("BIGINT", True): 6,
    ("DOUBLE", True): 7,
    ("DECIMAL(38,0)", True): 8,
}
"""The number that stands for a column's type in a digest, by DuckDB type and whether values may be absent."""
_REQUIRED = {6: 1, 7: 3, 8: 5}


def _value(kind: int, value: Any) -> bytes:  # noqa: ANN401 (any DuckDB type)
    if kind in _REQUIRED:
        return b"\0" if value is None else b"\1" + _value(_REQUIRED[kind], value)
    if kind == 1:
        return struct.pack("<Q", value)
    if kind == 3:
        # All NaNs are equal.
        return struct.pack("<d", value) if value == value else struct.pack("<Q", 0x7FF8000000000000)  # noqa: PLR0124
    return _text(value) if kind == 4 else int(value).to_bytes(16, "little")


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


__all__ = [
    "FORMAT_VERSION",
    "SEALED_FROM",
    "damaged_tables",
    "file_digest",
    "read_json",
    "sealed",
    "table_digest",
]
