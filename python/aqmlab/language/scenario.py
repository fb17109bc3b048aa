"""Scenarios for the core: a file, a string or a dict becomes TOML text and a name for messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from aqmlab.arguments import plain
from aqmlab.errors import Problem, ScenarioError


class Text(str):
    """A scenario as TOML text, not the path to one.

    Attributes
    ----------
    file_name
        The file that it was made from, for messages; the files that it names are next to it.
    """

    __slots__ = ("file_name",)

    file_name: str

    def __new__(cls, toml: str, file_name: str) -> Text:
        """Return this text."""
        text = super().__new__(cls, toml)
        text.file_name = file_name
        return text


Scenario: TypeAlias = str | Path | Mapping[str, Any]
"""A path to a TOML file, or the content of one as a dict or as :class:`Text`."""

DICT_NAME = "<dict>"


def read(scenario: Scenario) -> tuple[str, str]:
    """TOML text and file name of a scenario.

    Raises
    ------
    ScenarioError
        If the file cannot be read, or the dict holds something that TOML cannot express.
    """
    if isinstance(scenario, Mapping):
        return _dict_to_toml(scenario), DICT_NAME
    if isinstance(scenario, Text):
        return str(scenario), scenario.file_name
    path = Path(scenario)
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, f"it is not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise _unreadable(path, "its name holds a zero byte") from error


def resolve(scenario: Scenario) -> dict[str, Any]:
    """The resolved form of a scenario: arms with plans, parameters and digests, seeds, warnings."""
    from aqmlab import _core

    text, name = read(scenario)
    answer: dict[str, Any] = json.loads(_core.plan(text, name))
    return answer


def _unreadable(path: Path, reason: str) -> ScenarioError:
    message = f"cannot read the scenario: {reason}"
    problem = Problem(line=0, column=0, path="", message=message)
    return ScenarioError(f"{path}: {message}", [problem])


def _dict_to_toml(scenario: Mapping[str, Any]) -> str:
    """The dict as TOML: tables and lists of tables have headers; each value below them is on one line.

    In arms and sweeps, a table on one line is a value that replaces another, whereas a table under a header
    is a list of individual changes. A dict means the former.
    """
    import tomlkit

    document = tomlkit.document()
    try:
        for key, value in scenario.items():
            document.add(str(key), _item(value))
        return tomlkit.dumps(document)
    except (TypeError, ValueError) as error:
        message = f"the scenario holds a value that TOML cannot express: {error}"
        raise ScenarioError(message, [Problem(line=0, column=0, path="", message=message)]) from error


def _item(value: object) -> Any:  # noqa: ANN401 (any tomlkit type)
    import tomlkit

    value = plain(value)
    if isinstance(value, Mapping):
        table = tomlkit.table()
        for key, inner in value.items():
            table.add(tomlkit.key(str(key)), _inline(inner))
        return table
    if isinstance(value, list | tuple) and value and all(isinstance(entry, Mapping) for entry in value):
        tables = tomlkit.aot()
        for entry in value:
            tables.append(_item(entry))
        return tables
    return _inline(value)


def _inline(value: object) -> Any:  # noqa: ANN401
    import tomlkit

    value = plain(value)
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, inner in value.items():
            table.add(tomlkit.key(str(key)), _inline(inner))
        return table
    if isinstance(value, list | tuple):
        array = tomlkit.array()
        for entry in value:
            array.append(_inline(entry))
        return array
    return tomlkit.item(value)
