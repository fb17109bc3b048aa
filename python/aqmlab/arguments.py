"""Conversion of callers' arguments to plain Python values, from NumPy numbers and single names."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

from aqmlab.errors import UsageError


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


__all__ = ["names", "plain", "whole"]
