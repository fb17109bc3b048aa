"""The digest of each table is that of its content, computed here as `docs/recording.md` defines it."""

from __future__ import annotations

import hashlib
import struct

import duckdb


def table_digest(path):
    """The digest of a table's contents, from the file alone."""
    with duckdb.connect(":memory:") as connection:
        source = {"file": str(path)}
        described = connection.execute("DESCRIBE FROM read_parquet($file)", source).fetchall()
        schema = connection.execute(
            "SELECT name, repetition_type FROM parquet_schema($file) WHERE num_children IS NULL", source
        ).fetchall()
        rows = connection.execute("FROM read_parquet($file)", source).fetchall()
    optional = {name for name, repetition in schema if repetition == "OPTIONAL"}
    kinds = [_KINDS[column[1], column[0] in optional] for column in described]
    digest = hashlib.sha256(_text("aqmlab-table-1") + struct.pack("<Q", len(described)))
    for column, kind in zip(described, kinds, strict=True):
        digest.update(_text(column[0]) + bytes([kind]))
    digest.update(struct.pack("<Q", len(rows)))
    for row in rows:
        digest.update(b"".join(_value(kind, value) for kind, value in zip(kinds, row, strict=True)))
    return digest.hexdigest()


_KINDS = {
    ("BIGINT", False): 1,
    ("DOUBLE", False): 3,
    ("VARCHAR", False): 4,
    ("DECIMAL(38,0)", False): 5,
    ("BIGINT", True): 6,
    ("DOUBLE", True): 7,
    ("DECIMAL(38,0)", True): 8,
}
"""The number that stands for a column's type in a digest, by DuckDB type and whether values may be absent."""
_REQUIRED = {6: 1, 7: 3, 8: 5}


def _value(kind, value):
    if kind in _REQUIRED:
        return b"\0" if value is None else b"\1" + _value(_REQUIRED[kind], value)
    if kind == 1:
        return struct.pack("<Q", value)
    if kind == 3:
        # All NaNs are equal.
        return struct.pack("<d", value) if value == value else struct.pack("<Q", 0x7FF8000000000000)  # noqa: PLR0124
    return _text(value) if kind == 4 else int(value).to_bytes(16, "little")


def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def test_the_digest_of_each_table_is_that_of_its_content(experiment):
    for run in experiment.runs:
        for name, facts in run.manifest.tables.items():
            assert table_digest(run.path / f"{name}.parquet") == facts.digest
