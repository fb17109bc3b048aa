"""Callers' arguments: their types are checked, NumPy numbers and single names become plain Python values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache, partial, wraps
from inspect import Parameter, signature
from itertools import chain
from numbers import Real
from operator import index
from reprlib import repr as short_repr
from typing import Any, ParamSpec, TypeVar

from aqmlab.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")


def plain(value: Any) -> Any:  # noqa: ANN401 (of any type)
    """Return a NumPy number or array as plain Python, and anything else unchanged."""
    return value.tolist() if type(value).__module__ == "numpy" else value


def whole(value: object, what: str) -> int:
    """Return a whole number as ``int``, whatever its type.

    Raises
    ------
    UsageError
        If the value is not a whole number; ``3.0`` is refused as well.
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{what} must be a whole number, not `{value!r}`") from None


def names(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a list of names; a single name becomes a list of one, and ``None`` remains ``None``."""
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    return tuple(str(plain(name)) for name in given)


def _is_whole(value: object) -> bool:
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # the latter two: NumPy's


_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "str": ("text", lambda value: isinstance(value, str)),
    "Path": ("a path", lambda value: isinstance(value, os.PathLike)),
    "Scenario": ("a path or a dict", lambda value: isinstance(value, str | os.PathLike | Mapping)),
    "int": ("a whole number", _is_whole),
    "float": ("a number", lambda value: isinstance(value, Real)),
    "bool": ("true or false", _is_flag),
    "None": ("", lambda value: value is None),
    "Sequence": ("a list", lambda value: isinstance(value, Iterable)),
    "Iterable": ("a list", lambda value: isinstance(value, Iterable)),
    "Container": ("a list", lambda value: isinstance(value, Container)),
    "Mapping": ("a dict", lambda value: isinstance(value, Mapping)),
    "tuple": ("a tuple", lambda value: isinstance(value, tuple | list)),
    "Callable": ("a function", callable),
    "Watcher": ("a function", callable),
    "Progress": ("a function", callable),
    "Any": ("", lambda _value: True),
}
"""What is said of each type in an annotation, and whether a value is of it. Others are names of classes."""


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Make a public function refuse arguments whose types differ from its annotations.

    Only the outermost type is checked: of ``Sequence[str]``, that it can be iterated over.

    Raises
    ------
    UsageError
        Whenever the function is called with an argument of a wrong type.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        parameters, options = _annotations(function)
        for name, value in chain(zip(parameters, args, strict=False), kwargs.items()):
            # Python itself refuses unknown keywords.
            _check(name, value, parameters.get(name) or options.get(name, "Any"))
        return function(*args, **kwargs)

    return called


def _check(name: str, value: object, annotation: str) -> None:
    """Refuse an argument whose type differs from an annotation such as ``Path | str | None``.

    Raises
    ------
    UsageError
        If it does.
    """
    types = _types(annotation)
    if any(fits(value) for _, fits in types):
        return
    words = dict.fromkeys(word for word, _ in types if word)
    if "a path" in words:
        words.pop("text", None)  # a path may be given as text
    raise UsageError(f"`{name}` must be {' or '.join(words)}, not `{short_repr(value)}`")


@cache
def _types(annotation: str) -> tuple[tuple[str, Callable[[object], bool]], ...]:
    # A bar within brackets does not separate types.
    words = [word.partition("[")[0] for word in re.split(r" \| (?![^\[]*\])", annotation)]
    return tuple(_TYPES.get(word) or (f"a `{word}`", partial(_is_of, word)) for word in words)


def _is_of(class_name: str, value: object) -> bool:
    # Classes are compared by name because their modules are in higher layers.
    return any(of.__name__ == class_name for of in type(value).__mro__)


@cache
def _annotations(function: Callable[..., Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the annotations of a function's parameters, and those of its further keywords."""
    known = signature(function).parameters
    named = {name: str(p.annotation) for name, p in known.items() if p.kind != Parameter.VAR_KEYWORD}
    options: dict[str, str] = {}
    for parameter in known.values():
        if parameter.kind == Parameter.VAR_KEYWORD:
            of = vars(sys.modules[function.__module__])[str(parameter.annotation)[len("Unpack[") : -1]]
            options = {name: text.__forward_arg__ for name, text in of.__annotations__.items()}
    return named | ({"self": "Any"} if "self" in named else {}), options


__all__ = ["names", "plain", "typed", "whole"]
