"""Recordings that a test has changed on purpose, as if their run had written them in this form."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb

from aqmlab.recordings.columns import RENAMED
from aqmlab.recordings.integrity import sealed, table_digest


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


def give_early_names(run: Path) -> None:
    """Give the columns of a recording the names of format version 2, and update the digests of the tables.

    Only the names in the footers of the files change; there, each name follows a byte with its length.
    """
    file = run / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    for table, names in RENAMED.items():
        path = run / f"{table}.parquet"
        data = path.read_bytes()
        end = len(data) - 8
        begin = end - int.from_bytes(data[end : end + 4], "little")
        footer = data[begin:end]
        for before, now in names.items():
            assert bytes([len(now)]) + now.encode() in footer
            footer = footer.replace(bytes([len(now)]) + now.encode(), bytes([len(before)]) + before.encode())
        path.write_bytes(data[:begin] + footer + len(footer).to_bytes(4, "little") + data[-4:])
        manifest["tables"][table]["digest"] = table_digest(path)
    file.write_text(sealed(manifest), encoding="utf-8")


EARLY = {"format_version": 1, "results_version": 5}


def make_old(run: Path, **changes: Any) -> None:
    """Turn a recording into one of format version 1: early names of columns, no digests of files."""
    give_early_names(run)
    file = run / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest.pop("parts")
    for about in (manifest, *manifest["tables"].values()):
        about.pop("file_digest")
    file.write_text(json.dumps(manifest | EARLY | changes, indent=1), encoding="utf-8")


def make_early_about(experiment: Path) -> None:
    """Turn `experiment.json` into one from the time when the whole program had a single version."""
    file = experiment / "experiment.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    for arm in about["arms"]:
        del arm["parts"]
    file.write_text(sealed(about | {"format_version": 3, "results_version": 5}), encoding="utf-8")
