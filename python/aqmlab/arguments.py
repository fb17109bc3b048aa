"""What callers hand in, as plain Python values: numbers of NumPy, and one name where a list may stand."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

from aqmlab.errors import UsageError


def plain(value: Any) -> Any:  # noqa: ANN401 (of any type)
    """A number, or an array, of NumPy as one of Python; anything else as it is."""
    return value.tolist() if type(value).__module__ == "numpy" else value


def whole(value: object, what: str) -> int:
    """A whole number of any type that is one.

    Raises
    ------
    UsageError
        If it is none, not even ``3.0``.
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{what} is to be a whole number, not `{value!r}`") from None


def names(given: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """A list of names; a single name is a list of one, and nothing stays nothing."""
    if given is None:
        return None
    if isinstance(given, str):
        return (given,)
    return tuple(str(plain(name)) for name in given)


__all__ = ["names", "plain", "whole"]
