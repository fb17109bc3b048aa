"""Reading files that programs have written: any bytes give a value or an error with file and place.

A program may write anything into the directory of its recording: links, pipes, files without end. Only
regular files of a limited size are read, and no link is followed.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

MOST_BYTES = 64 << 20
"""The largest file that is read, also after decompression."""
_GZIP = 16 + zlib.MAX_WBITS


class ResultsError(Exception):
    """A file of results that cannot be used; the text names the file and the place."""


@dataclass(frozen=True)
class Place:
    """A value in a file.

    Attributes
    ----------
    file
        The file.
    path
        The value's place: ``end.sum_sent``; ``line 3``; empty for the whole file.
    value
        The value.
    """

    file: Path
    path: str
    value: Any

    def wrong(self, why: str) -> ResultsError:
        """Return the error for this value."""
        return ResultsError(f"`{self.file}`{f', {self.path}' if self.path else ''}: {why}")

    def get(self, key: str) -> Place | None:
        """The value of a key; ``None`` if the key is missing or its value is null."""
        if not isinstance(self.value, Mapping):
            raise self.wrong(f"an object is expected, not {_what(self.value)}")
        found = self.value.get(key)
        return None if found is None else Place(self.file, f"{self.path}.{key}" if self.path else key, found)

    def at(self, *keys: str) -> Place | None:
        """The value of a key of a key of ...; ``None`` if one of them is missing."""
        found: Place | None = self
        for key in keys:
            if found is None:
                return None
            found = found.get(key)
        return found

    def items(self) -> Iterator[Place]:
        """The entries of a list."""
        if not isinstance(self.value, Sequence) or isinstance(self.value, str):
            raise self.wrong(f"a list is expected, not {_what(self.value)}")
        for index, entry in enumerate(self.value):
            yield Place(self.file, f"{self.path}[{index}]", entry)

    def number(self) -> float:
        """The value as a finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong(f"a number is expected, not {_what(self.value)}")
        try:
            value = float(self.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self.wrong("the number is not finite")
        return value


def _what(value: object) -> str:
    """Return the kind of a value, and a short value itself."""
    shown = json.dumps(value, default=str) if isinstance(value, str | int | float | bool) else ""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    kind = kinds.get(type(value), "a number")
    return f"{kind} ({shown})" if 0 < len(shown) <= 40 else kind


def content(file: Path) -> bytes | None:
    """Return the bytes of a regular file, decompressed if it is called ``*.gz``; ``None`` if there is none.

    Raises
    ------
    ResultsError
        If it is not a regular file, cannot be read, or is longer than :data:`MOST_BYTES`.
    """
    try:
        # A pipe without a writer would block, and a link may lead to any file of the machine.
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultsError(f"`{file}`: cannot be read ({error.strerror}); links are not followed") from error
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ResultsError(f"`{file}`: it is not a regular file")
    with os.fdopen(opened, "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if file.suffix == ".gz":
        data = _unzipped(file, data)
    if len(data) > MOST_BYTES:
        raise ResultsError(f"`{file}`: it is longer than {MOST_BYTES >> 20} MiB")
    return data


def _unzipped(file: Path, data: bytes) -> bytes:
    unzip = zlib.decompressobj(_GZIP)
    try:
        found = unzip.decompress(data, MOST_BYTES + 1)
    except zlib.error as error:
        raise ResultsError(f"`{file}`: it is not compressed by gzip ({error})") from error
    if len(found) <= MOST_BYTES and not unzip.eof:
        raise ResultsError(f"`{file}`: the compressed data end early, after {len(found)} bytes")
    return found


def parsed(file: Path, data: bytes | str, path: str = "", *, once: bool = False) -> Place:
    """Return the JSON value in some bytes of a file.

    Parameters
    ----------
    file, data, path
        The file, its bytes, and their place in it.
    once
        Whether a key that appears twice in an object is an error; iperf3 writes some keys twice.

    Raises
    ------
    ResultsError
        If it is not JSON, has a number that JSON does not allow, a repeated key, or too many levels.
    """
    place = Place(file, path, None)

    def refuse(word: str) -> NoReturn:
        raise place.wrong(f"`{word}` is not a number of JSON")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if once and len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise place.wrong(f"the key `{twice[:40]}` appears twice in an object")
        return found

    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        return Place(file, path, json.loads(text, parse_constant=refuse, object_pairs_hook=members))
    except json.JSONDecodeError as error:
        where = "" if path else f"line {error.lineno}, column {error.colno}: "
        raise place.wrong(f"{where}not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise place.wrong(f"byte {error.start} is not UTF-8") from error
    except RecursionError as error:
        raise place.wrong("too many levels of objects and lists") from error
    except ValueError as error:
        # A whole number with thousands of digits.
        raise place.wrong(str(error)) from error
