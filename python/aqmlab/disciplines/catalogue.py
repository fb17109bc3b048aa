"""The queue disciplines, as plain data."""

from __future__ import annotations

import json
from typing import Any

from aqmlab.arguments import typed


def aqm_list() -> list[dict[str, Any]]:
    """Return all queue disciplines: ``name``, ``title``, ``summary``, ``maturity``, ``decides``."""
    from aqmlab import _core

    content: list[dict[str, Any]] = json.loads(_core.aqm_list())
    return content


@typed
def aqm_show(name: str) -> dict[str, Any]:
    """Return one discipline as :func:`aqm_list` does, with ``params`` and ``presets`` as well.

    A parameter has ``name``, ``kind``, ``values`` (its range), ``unit`` (the accepted units),
    ``default``, ``source``, ``help`` and ``aliases`` (``of``, ``name``, ``meaning``); a preset has
    ``name``, ``title`` and ``values``.

    Raises
    ------
    UsageError
        If no discipline has this name.
    """
    from aqmlab import _core

    content: dict[str, Any] = json.loads(_core.aqm_show(name))
    return content
