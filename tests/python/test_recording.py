"""Recordings as files: digests are recomputed independently, and damaged files are named."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import struct

import duckdb
import jsonschema
import pytest

import aqmlab
from aqmlab.paths import load
from aqmlab.results.cells import Cell
from aqmlab.results.results import Missing


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def encode(kind, value):
    """Return the bytes that docs/recording.md prescribes for a value in a digest."""
    if kind in (6, 7, 8):
        return b"\0" if value is None else b"\1" + encode({6: 1, 7: 3, 8: 5}[kind], value)
    if kind == 1:
        return struct.pack("<Q", value)
    if kind == 3:
        return struct.pack("<Q", 0x7FF8000000000000) if math.isnan(value) else struct.pack("<d", value)
    return text(value) if kind == 4 else int(value).to_bytes(16, "little")


def kind_of(column_type, nullable):
    plain = {"BIGINT": 1, "DOUBLE": 3, "VARCHAR": 4, "DECIMAL(38,0)": 5}[column_type]
    return {1: 6, 3: 7, 5: 8}[plain] if nullable else plain


def digest_of(file):
    """The digest computed from the Parquet file alone, without our code."""
    columns = duckdb.sql(f"DESCRIBE FROM read_parquet('{file}')").fetchall()
    repetition = dict(
        duckdb.sql(
            f"SELECT name, repetition_type FROM parquet_schema('{file}') WHERE num_children IS NULL"
        ).fetchall()
    )
    kinds = [kind_of(row[1], repetition[row[0]] == "OPTIONAL") for row in columns]
    rows = duckdb.sql(f"FROM read_parquet('{file}')").fetchall()
    parts = [text("aqmlab-table-1"), struct.pack("<Q", len(columns))]
    parts += [text(row[0]) + bytes([kind]) for row, kind in zip(columns, kinds, strict=True)]
    parts.append(struct.pack("<Q", len(rows)))
    parts += [encode(kind, value) for row in rows for kind, value in zip(kinds, row, strict=True)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_manifests_are_what_their_schema_says(experiment):
    schema = aqmlab.schema("manifest")
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for run in experiment.runs:
        manifest = json.loads((run.path / "manifest.json").read_text())
        validator.validate(manifest)
        with pytest.raises(jsonschema.ValidationError, match="rows"):
            validator.validate(manifest | {"tables": {"flows": {"digest": "", "file_digest": ""}}})


def test_digests_are_those_of_the_files_content(experiment):
    for run in experiment.runs[::3]:
        assert len(run.manifest.tables) == 8
        for name, facts in run.manifest.tables.items():
            assert digest_of(run.path / f"{name}.parquet") == facts.digest, name


def test_the_plan_digest_is_that_of_the_plan(experiment):
    described = {arm["name"]: arm["digest"] for arm in experiment.details["arms"]}
    for run in experiment.runs:
        plan = json.loads((run.path / "manifest.json").read_text())["plan"]
        deciding = {key: value for key, value in plan.items() if key not in ("title", "arm", "origins")}
        canonical = json.dumps(deciding, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert (
            hashlib.sha256(canonical.encode()).hexdigest() == run.manifest.plan_digest == described[run.arm]
        )


def test_a_run_alone_can_be_opened(experiment):
    run = experiment.runs[0]
    alone = load(run.path)
    assert (alone.arms, alone.seeds, len(alone.runs)) == ((run.arm,), (run.seed,), 1)
    assert aqmlab.answer(alone).estimate(run.arm, "goodput_bps").half_width is None


@pytest.fixture
def copied(experiment, tmp_path):
    target = tmp_path / "copy"
    shutil.copytree(experiment.path, target)
    return target


def test_a_corrupt_table_is_named(copied):
    victim = copied / "droptail" / "seed-2" / "summary.parquet"
    content = bytearray(victim.read_bytes())
    content[-20:] = b"\0" * 20
    victim.write_bytes(content)
    with pytest.raises(aqmlab.RecordingError, match=r"seed-2/summary\.parquet. is corrupt"):
        aqmlab.answer(load(copied))


def test_a_missing_table_is_named(copied):
    (copied / "droptail" / "seed-1" / "flows.parquet").unlink()
    with pytest.raises(aqmlab.RecordingError, match=r"seed-1. is incomplete: .flows\.parquet. is missing"):
        load(copied)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is corrupt"),
        ("[]", "holds no JSON object"),
        ("{}", "has format version `None`"),
        ('{"format_version": 4}', "`file_digest`, its last member, is missing"),
    ],
)
def test_a_damaged_manifest_is_explained(copied, content, message):
    (copied / "droptail" / "seed-1" / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(aqmlab.RecordingError, match=message):
        load(copied)


def test_a_run_that_never_finished_is_missing_and_not_an_error(copied):
    shutil.rmtree(copied / "droptail" / "seed-2")
    rest = load(copied)
    assert rest.missing == (Missing(Cell((), "DropTail"), 2, "not run"),)
    assert aqmlab.answer(rest).estimate("DropTail", "goodput_bps").n == 1


def test_what_is_no_recording_is_refused(tmp_path):
    with pytest.raises(aqmlab.RecordingError, match="there is no such directory"):
        load(tmp_path / "nowhere")
    with pytest.raises(aqmlab.RecordingError, match=r"neither `experiment\.json` nor `manifest\.json`"):
        load(tmp_path)
