"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_whole(text: str, file: Path) -> None:
    """Write a text under another name first, so that no reader ever sees a part of it.

    Raises
    ------
    OSError
        If it cannot be written; nothing is left then.
    """
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
