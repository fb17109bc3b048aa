"""Writing the calibrated value into the scenario's own text: one number changes, and comments stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aqmlab.errors import AqmlabError, UsageError
from aqmlab.system.files import save
from aqmlab.text.numbers import listed

Values = Mapping[str, str | int]
"""New values by path in the scenario: ``{"traffic.web.rate": "43.2/s"}``."""


def check_destination(text: str, source: Path | None, destination: Path) -> None:
    """Check, before anything is run, that a copy of a scenario can be written to its destination.

    Raises
    ------
    UsageError
        If the file exists, its folder does not, or the scenario would be invalid there.
    """
    from aqmlab import _core

    if source is not None and destination.exists() and destination.samefile(source):
        return
    if destination.exists():
        raise UsageError(f"`{destination}` exists; name another file, or remove it")
    if not destination.parent.is_dir():
        raise UsageError(f"the directory `{destination.parent}` of `{destination.name}` does not exist")
    try:
        _core.Sweep(text, str(destination))
    except AqmlabError as error:
        raise UsageError(f"the scenario would be invalid as `{destination}`: {error}") from error


def write_values(text: str, values: Values, arm: str | None, destination: Path) -> None:
    """Write a scenario with other values to a file, with everything else unchanged.

    A value replaces the value that the arm sets, if any, or else the value of the class.

    Raises
    ------
    ScenarioError
        If the scenario could not be run with the new values.
    HostError
        If the file cannot be written.
    """
    import tomlkit

    from aqmlab import _core

    document = tomlkit.parse(text)
    arms: Sequence[Any] = document.get("arm", ())
    for path, value in values.items():
        _, name, key = path.split(".")
        own = next((_place(each, path) for each in arms if each.get("name") == arm), None)
        table, last = own or (_class(document, name), key)
        table[last] = value
    changed = tomlkit.dumps(document)
    _core.Sweep(changed, str(destination))
    save(destination, changed)


def arms_with_their_own(text: str, paths: Sequence[str], arm: str | None) -> str:
    """Return a remark about arms whose own settings override one of the values; empty if there are none."""
    content = tomllib.loads(text)
    own = [
        f"`{each['name']}`"
        for each in content.get("arm", ())
        if each.get("name") != arm and any(_place(each, path) for path in paths)
    ]
    what = listed([f"`{path}`" for path in paths])
    return f"These arms set {what} themselves and keep it: {listed(own)}." if own else ""


def _place(table: Any, path: str) -> tuple[Any, str] | None:  # noqa: ANN401 (any tomlkit type)
    """Return the table, and the key in it, to which a dotted path in any notation refers.

    If the only match has a star, which stands for several names, the key returned is the path
    itself, so that a new entry can be made for this path alone.
    """
    starred = None
    for key, value in table.items():
        plain = ".".join(part.strip() for part in key.split("."))
        if plain == path:
            return table, key
        if path.startswith(f"{plain}.") and isinstance(value, Mapping):
            found = _place(value, path.removeprefix(f"{plain}."))
            if found is not None:
                return found
        if "*" in plain and fnmatchcase(path, plain):
            starred = (table, path)
    return starred


def _class(document: Any, name: str) -> Any:  # noqa: ANN401 (any tomlkit type)
    for i, entry in enumerate(document["traffic"]):
        if entry.get("name", f"traffic{i + 1}") == name:
            return entry
    raise UsageError(f"there is no [[traffic]] called `{name}` to write to")
