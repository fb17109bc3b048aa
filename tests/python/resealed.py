"""Recordings that a test has changed on purpose: as if their run had written them so."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from aqmlab.integrity import sealed


def reseal(run: Path, **changes: Any) -> None:
    """Write the manifest of a run anew: with other members, and the digests of the tables as they are."""
    file = run / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8")) | changes
    for name, about in manifest["tables"].items() if isinstance(manifest["tables"], dict) else ():
        table = run / f"{name}.parquet"
        if table.is_file():
            about["file_digest"] = hashlib.sha256(table.read_bytes()).hexdigest()
    file.write_text(sealed(manifest), encoding="utf-8")


def make_old(run: Path) -> None:
    """Make a recording one of format version 1, without digests of files."""
    file = run / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    for about in (manifest, *manifest["tables"].values()):
        about.pop("file_digest")
    file.write_text(json.dumps(manifest | {"format_version": 1}, indent=1), encoding="utf-8")
