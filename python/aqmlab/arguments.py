"""Callers' arguments: their types are checked, NumPy numbers and single names become plain Python values."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache, partial, wraps
from inspect import Parameter, signature
from itertools import chain, cycle
from numbers import Real
from operator import index
from reprlib import repr as short_repr
from typing import Any, NamedTuple, ParamSpec, TypeVar

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
    "Bring": ("text", lambda value: isinstance(value, str)),
    "Callable": ("a function", callable),
    "Watcher": ("a function", callable),
    "Progress": ("a function", callable),
    "Any": ("", lambda _value: True),
}
"""What is said of a type in an annotation, and whether a value is of it; other types are names of classes."""


class _Type(NamedTuple):
    """One of the types in an annotation: what is said of it, and the annotations of what is in it."""

    said: str
    fits: Callable[[object], bool]
    inner: tuple[str, ...] = ()


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Make a public function refuse arguments whose types differ from its annotations.

    Of lists, tuples and dicts, the members are checked as well, but not the members of these.

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
            check_type(name, value, parameters.get(name) or options.get(name, "Any"))
        return function(*args, **kwargs)

    return called


def check_type(name: str, value: object, annotation: str) -> None:
    """Refuse an argument whose type differs from an annotation such as ``Path | str | None``.

    Raises
    ------
    UsageError
        If it does.
    """
    types = _types(annotation)
    found = next((each for each in types if each.fits(value)), None)
    if found is None:
        raise UsageError(f"`{name}` must be {_said(types)}, not `{short_repr(value)}`")
    for inner, member in _members(found, value):
        if not any(each.fits(member) for each in _types(inner)):
            raise UsageError(f"`{name}` must hold {_said(_types(inner))}, not `{short_repr(member)}`")


def _members(found: _Type, value: object) -> Iterable[tuple[str, object]]:
    """Yield the members of a value, each with its annotation; none of what can be read only once."""
    if isinstance(value, Mapping) and found.inner:
        for pair in value.items():
            yield from zip(found.inner, pair, strict=True)
    elif isinstance(value, list | tuple) and found.inner:
        yield from zip(cycle(found.inner), value, strict=False)


def _said(types: Iterable[_Type]) -> str:
    words = dict.fromkeys(each.said for each in types if each.said)
    if "a path" in words:
        words.pop("text", None)  # a path may be given as text
    return " or ".join(words)


@cache
def _types(annotation: str) -> tuple[_Type, ...]:
    # A bar within brackets does not separate types.
    return tuple(map(_type, re.split(r" \| (?![^\[]*\])", annotation)))


def _type(text: str) -> _Type:
    word, _, rest = text.partition("[")
    inner = rest.removesuffix("]").split(", ")
    if word == "tuple":
        size = len(inner)
        return _Type(f"a tuple of {size}", partial(_is_tuple, size), tuple(inner))
    said, fits = _TYPES.get(word) or (f"a `{word}`", partial(_is_of, word))
    return _Type(said, fits, tuple(inner) if rest and word != "Callable" else ())


def _is_tuple(size: int, value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == size


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
