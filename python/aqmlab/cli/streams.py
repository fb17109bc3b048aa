"""Standard streams: closed ones, readers that stop early, and encodings that lack characters."""

from __future__ import annotations

import codecs
import io
import os
import stat
import sys
from pathlib import Path
from typing import Any, TextIO

_SIGNS = {
    "±": "+-",
    "−": "-",
    "–": "-",
    "—": "-",
    "─": "-",
    "·": "|",
    "×": "x",
    "→": "->",
    "…": "...",
    "²": "^2",
}
"""The spelling of our own characters in encodings that lack them."""
_ESCAPED_BYTE = range(0xDC80, 0xDD00)
"""The characters by which Python represents bytes of a path that are not text."""


def prepare_streams() -> None:
    """Make stdout and stderr accept every character, whether they are closed, a pipe or not UTF-8."""
    _open_closed()
    _outlive_readers()
    codecs.register_error("aqmlab", _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="aqmlab")


def can_show(stream: TextIO, text: str) -> bool:
    """Return whether the encoding of a stream has all characters of a text."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def spelled(stream: TextIO, text: str) -> str:
    """Return a text as a stream shows it, for layouts that depend on its width."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "aqmlab").decode(encoding, "surrogateescape")


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Spell our own characters in ASCII, leave bytes of paths as they are, and escape other characters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    if ord(sign) in _ESCAPED_BYTE:
        return bytes([ord(sign) - 0xDC00]), error.start + 1
    escape = sign.encode("ascii", "backslashreplace").decode("ascii")
    return _SIGNS.get(sign, escape), error.start + 1


def _open_closed() -> None:
    """Replace standard streams that were closed from outside (``>&-``): in Python, these are ``None``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (open to the end)


class _UnlessGone(io.FileIO):
    """A stream whose reader may stop early, as `head` does: the work then continues without output."""

    def write(self, content: Any, /) -> int:  # noqa: ANN401 (any buffer)
        try:
            return super().write(content)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(content)


def _outlive_readers() -> None:
    """Ensure that a reader that stops early affects neither the report nor the exit code."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__") or not _is_pipe(number):
            continue
        buffer = io.BufferedWriter(_UnlessGone(number, "w", closefd=False))
        with_same = {"encoding": stream.encoding, "errors": stream.errors, "line_buffering": number == 2}
        setattr(sys, name, io.TextIOWrapper(buffer, **with_same))


def _is_pipe(number: int) -> bool:
    try:
        kind = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
