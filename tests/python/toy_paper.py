"""The toy paper, and copies of it with other texts."""

from __future__ import annotations

import shutil
from pathlib import Path

TOY = Path(__file__).parents[1] / "papers" / "toy"


def edit(folder: Path, file: str, old: str, new: str) -> None:
    """Replace a text that a file of the folder has once."""
    text = (folder / file).read_text()
    assert text.count(old) == 1, old
    (folder / file).write_text(text.replace(old, new))


def edited(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """A copy of the paper with another text."""
    folder = Path(shutil.copytree(TOY, tmp_path / "toy"))
    edit(folder, file, old, new)
    return folder
