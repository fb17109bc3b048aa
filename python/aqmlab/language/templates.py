"""Scenarios included in the package: the demonstration, and templates as starting points."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from aqmlab.arguments import typed
from aqmlab.errors import HostError, UsageError, unknown

_FOLDER = Path(__file__).parents[1] / "scenarios"
DEMO = _FOLDER / "demo.toml"
"""The scenario of the demonstration; a clone of the repository also has it as ``scenarios/demo.toml``."""
TEMPLATES: Mapping[str, str] = MappingProxyType(
    {"dumbbell": "run", "parking-lot": "run", "web": "run", "live": "live", "sweep": "sweep"}
)
"""The templates, and the command that runs each."""
_ENDING = ".toml"


@typed
def new(name: Path | str, template: str = "dumbbell") -> Path:
    """Write a commented scenario that runs without changes.

    Parameters
    ----------
    name
        The file to write; ``.toml`` is added where it is missing. The file's name becomes the title.
    template
        One of :data:`TEMPLATES`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If the file exists already, or for an unknown template or a name that no file can have.
    HostError
        If the file cannot be written.
    """
    if template not in TEMPLATES:
        raise unknown("template", template, TEMPLATES)
    text = str(name)
    file = Path(text if text.endswith(_ENDING) else text + _ENDING)
    title = file.name.removesuffix(_ENDING)
    # A line break would end the comment that contains the name.
    if not title.strip(".") or not text.isprintable() or text.endswith(("/", "\\")):
        raise UsageError(f"`{text}` is not a name for a scenario; give one such as `study`")
    content = (_FOLDER / "templates" / f"{template}{_ENDING}").read_text(encoding="utf-8")
    content = content.replace("FILE", shlex.quote(str(file)))
    content = content.replace('title = "NAME"', f"title = {json.dumps(title, ensure_ascii=False)}")
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(content)
    except FileExistsError:
        raise UsageError(f"`{file}` exists already; choose another name, or remove it") from None
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
    return file
