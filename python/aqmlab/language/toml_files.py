"""TOML files written by people: their errors are reported with file, line and column."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from aqmlab.errors import ScenarioError

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(file: Path) -> tuple[dict[str, Any], str]:
    """The tables of a file, and its text.

    Raises
    ------
    ScenarioError
        If the file is not TOML.
    OSError
        If the file cannot be read.
    """
    data = file.read_bytes()
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ScenarioError(f"{file}:{line}: this is not UTF-8 text: {error.reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}{_placed(str(error), text)}") from error


def _placed(message: str, text: str) -> str:
    """Return ``:12:3: Invalid value`` for the library's ``Invalid value (at line 12, column 3)``."""
    found = _AT.search(message)
    if found is None:
        return f": {message}"
    line, column = found.groups()
    place = f"{line}:{column}" if line else str(max(len(text.splitlines()), 1))
    return f":{place}: {message[: found.start()]}"
