"""Writing the files of an export: either all of them are written, or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from aqmlab.errors import HostError
from aqmlab.system.files import save


def written(place: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write files into the new directory ``place``; a single file with an empty name becomes ``place``.

    Raises
    ------
    HostError
        If they cannot be written; partial files are removed.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"cannot make `{place.parent}`: {error.strerror or error}") from error
    if list(files) == [""]:
        save(place, files[""])
        return (place,)
    half = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        half.mkdir()
        for name, content in files.items():
            (half / name).write_bytes(content)
        half.rename(place)
    except OSError as error:
        shutil.rmtree(half, ignore_errors=True)
        raise HostError(f"cannot write `{place}`: {error.strerror or error}") from error
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    return tuple(place / name for name in files)
