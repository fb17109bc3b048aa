"""The files that a scenario names: lists of connections and of packets, stored next to it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from aqmlab.errors import HostError, UsageError

MOST_BYTES = 64 << 20
"""The maximum total size of a scenario's files that are sent to a cluster."""

_NONE: Mapping[str, bytes] = MappingProxyType({})
_MAY_NAME = re.compile(r"\bfile\b")


@lru_cache(maxsize=4)
def named_files(toml: str, file_name: str, goes: str = "sent to a cluster") -> Mapping[str, bytes]:
    """Return the contents of the files that a scenario names, keyed by their names in the scenario.

    Parameters
    ----------
    toml
        The scenario's text.
    file_name
        The scenario's file; the named files are next to it.
    goes
        What happens to the files, as messages express it: ``sent to a cluster``.

    Raises
    ------
    UsageError
        If the path of a file is absolute or contains ``..``, or the files are too large to be sent.
    HostError
        If a file cannot be read.
    """
    if not _MAY_NAME.search(toml):
        return _NONE
    from aqmlab import _core

    plans = json.loads(_core.plan(toml, file_name))
    found = {}
    for name in sorted(set(_names(plans))):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise UsageError(
                f"`{file_name}` names the file `{name}`, which cannot be {goes}: put it in the"
                " scenario's folder and give its path relative to that folder"
            )
        try:
            found[name] = (Path(file_name).parent / name).read_bytes()
        except OSError as error:
            raise HostError(f"cannot read `{Path(file_name).parent / name}`: {error.strerror}") from error
    size = sum(map(len, found.values()))
    if size > MOST_BYTES:
        raise UsageError(
            f"`{file_name}` names files of {size / 1e6:.3g} MB; at most {MOST_BYTES / 1e6:.3g} MB can be"
            f" {goes}: make them smaller, or use them in place"
        )
    return found


def _names(plan: Any) -> list[str]:  # noqa: ANN401 (JSON of any shape)
    """Return the values of all keys ``file`` that are next to a key ``digest``, at any depth."""
    if isinstance(plan, dict):
        own = [plan["file"]] if isinstance(plan.get("file"), str) and "digest" in plan else []
        return own + [name for value in plan.values() for name in _names(value)]
    if isinstance(plan, list):
        return [name for value in plan for name in _names(value)]
    return []
