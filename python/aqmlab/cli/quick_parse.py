"""Conversion of the words of the command line to numbers, paths and strings."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_READ = object()
_MOST_DIGITS = 18
_PATH_CHECKS = ("exists", "resolve_path", "allow_dash", "writable", "path_type")
"""Options of a path parameter that demand more than a readable file."""


def read_quickly(command: Any) -> Any:  # noqa: ANN401 (Typer's type of commands is private)
    """Make a command and its subcommands convert simple parameters here, and leave the others to Typer."""
    # Parameters are changed only when Typer asks for them, because the help option does not exist until then.
    command.get_params = partial(_parameters, command.get_params)
    for below in getattr(command, "commands", {}).values():
        read_quickly(below)
    return command


def _parameters(by_typer: Callable[[Any], list[Any]], context: Any) -> list[Any]:  # noqa: ANN401
    parameters = by_typer(context)
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_process, parameter, parameter.process_value)
    return parameters


def _process(parameter: Any, by_typer: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:  # noqa: ANN401
    kind = getattr(parameter, "type_descriptor", None)
    if kind is None or kind.parameter_info.parser is not None:
        return by_typer(context, value)
    content = _missing(parameter) if value is None else _typed(kind, value)
    if content is _NOT_READ:
        return by_typer(context, value)
    return content if parameter.callback is None else parameter.callback(context, parameter, content)


def _missing(parameter: Any) -> Any:  # noqa: ANN401
    if parameter.required:
        return _NOT_READ
    return () if parameter.multiple or parameter.nargs == -1 else None


def _typed(kind: Any, value: Any) -> Any:  # noqa: ANN401
    info, wanted = kind.parameter_info, kind.annotation
    if wanted == list[str] and isinstance(value, tuple | list) and all(type(word) is str for word in value):
        return list(value)
    whole = wanted is int and info.min is info.max is None
    if type(value) is not str:
        # A default value is not text from the command line, so there is nothing to convert.
        return value if whole and type(value) is int else _NOT_READ
    if wanted is str:
        return value
    if whole and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    if wanted is Path and _is_readable(info, value):
        return Path(value)
    return _NOT_READ


def _is_readable(info: Any, word: str) -> bool:  # noqa: ANN401
    """Whether Typer would accept a path. Typer does not check paths that do not exist yet."""
    if any(getattr(info, check) for check in _PATH_CHECKS) or not (info.file_okay and info.dir_okay):
        return False
    return not os.path.exists(word) or os.access(word, os.R_OK)  # noqa: PTH110 (there is no Path yet)
