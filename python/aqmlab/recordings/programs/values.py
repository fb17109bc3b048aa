"""The values that the clients of each class of programs have written in one run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from aqmlab.recordings.plan import PROGRAM
from aqmlab.recordings.programs.files import ResultsError, content
from aqmlab.recordings.programs.logs import LEFT
from aqmlab.recordings.programs.tools import NAME, PRINTED, Values
from aqmlab.recordings.recording import Run

__all__ = ["NAME", "Written", "written"]

FOLDER = "programs"
"""The directory of a recording with what programs have written."""
_MOST_FILES = 1000


@dataclass(frozen=True)
class Written:
    """What the clients of one class have written.

    Attributes
    ----------
    class_name
        The class.
    parts
        The values of each client or file, by name.
    faults
        Why files could not be used: each text has the file and the place.
    """

    class_name: str
    parts: tuple[Values, ...]
    faults: tuple[str, ...]


def written(run: Run) -> tuple[Written, ...]:
    """What the clients of each class of programs have written; none for a simulated run."""
    live = run.manifest.live
    if live is None:
        return ()
    clients: dict[str, int] = {}
    for program in live.get("programs") or ():
        if program["role"] == "client":
            name = str(program["class"])
            clients[name] = max(clients.get(name, 0), int(program["index"]) + 1)
    forms = {
        entry.name: str(entry.workload.get("results", "json"))
        for entry in run.plan.classes
        if entry.kind == PROGRAM
    }
    folder = run.path / FOLDER
    try:
        about = folder.stat()
    except OSError:
        return ()
    classes = tuple((name, forms.get(name, "json"), count) for name, count in clients.items())
    return _read(folder, classes, (about.st_ino, about.st_mtime_ns))


@lru_cache(maxsize=4096)
def _read(
    folder: Path, classes: tuple[tuple[str, str, int], ...], _of: tuple[int, int]
) -> tuple[Written, ...]:
    """Read the files once; a repeated run has another directory of the same name."""
    return tuple(_of_class(folder, *of) for of in classes)


def _of_class(folder: Path, name: str, form: str, clients: int) -> Written:
    parts: list[Values] = []
    faults: list[str] = []
    if form in LEFT:
        read = LEFT[form][1]
        files: list[tuple[Path, ...]] = [(file,) for file in _left(folder, LEFT[form][0])]
    else:
        read = PRINTED[form]
        files = [_of_client(folder, name, form, index) for index in range(clients)]
    for choice in files:
        try:
            found = ((file, data) for file in choice if (data := content(file)))
            file, data = next(found, (folder, b""))
            # A client that wrote nothing has no values: its exit code shows why.
            if data:
                parts.append(read(file, data))
        except ResultsError as error:
            faults.append(str(error))
    return Written(name, tuple(parts), tuple(faults))


def _of_client(folder: Path, name: str, form: str, index: int) -> tuple[Path, ...]:
    """Return the files in which a client's results may be: the first that is there and not empty counts."""
    metrics, output = (folder / f"{name}-client-{index}.{end}" for end in ("json", "out"))
    return (metrics,) if form == "json" else (metrics, output)


def _left(folder: Path, ends: tuple[str, ...]) -> list[Path]:
    """Return the files with these endings in a directory and below it, in the order of their names."""
    found = [Path(at) / file for at, _, files in os.walk(folder) for file in files if file.endswith(ends)]
    return sorted(found)[:_MOST_FILES]
