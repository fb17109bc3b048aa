"""Recordings that a test has changed on purpose, as if their run had written them in this form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb

from aqmlab.recordings.integrity import sealed


def reseal(run: Path, **changes: Any) -> None:
    """Rewrite the manifest of a run with changed members and the current digests of its files."""
    file = run / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8")) | changes
    for name, about in manifest["tables"].items() if isinstance(manifest["tables"], dict) else ():
        table = run / f"{name}.parquet"
        if table.is_file():
            about["file_digest"] = hashlib.sha256(table.read_bytes()).hexdigest()
    file.write_text(sealed(manifest), encoding="utf-8")


def rewrite(run: Path, table: str, columns: str) -> None:
    """Rewrite a table of a recording, with these columns computed from the old ones (in SQL)."""
    file = run / f"{table}.parquet"
    with duckdb.connect(":memory:") as connection:
        content = f"SELECT {columns} FROM read_parquet('{file}')"
        connection.execute(f"COPY ({content}) TO '{file}.new' (FORMAT parquet)")
    Path(f"{file}.new").replace(file)
