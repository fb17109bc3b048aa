"""Recordings of format version 2, alone or with newer recordings, are read under today's column names.

``recordings/format-2`` was written by the last version with the early names. Its scenario has RED in front
of a slow link, injected drops, and losses on the path, so that each kind of drop occurs.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

import aqmlab
from aqmlab.metrics import find
from aqmlab.paths import load
from aqmlab.recordings.columns import RENAMED, RENAMED_IN
from aqmlab.recordings.integrity import FORMAT_VERSION
from aqmlab.recordings.time_series import run_series
from aqmlab.sweeps.store import Store
from resealed import give_early_names, reseal, rewrite
from sweeping import tiny

EARLY = Path(__file__).parent / "recordings" / "format-2"
EVERY_NAME = [(table, *names) for table, renamed in RENAMED.items() for names in renamed.items()]


ADDED_SINCE = {
    "flows": ["received_by_client_bytes", "measured_received_by_client_bytes"],
    "summary": ["sent_bytes"],
}


@pytest.fixture
def early(tmp_path):
    return Path(shutil.copytree(EARLY, tmp_path / "early"))


def raw(file, columns):
    """The content of a file, under the file's own column names."""
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{file}')").fetchall()


def without(column, table, run):
    rewrite(run, table, f"* EXCLUDE ({column})")
    reseal(run)


def test_the_fixture_has_early_names_and_every_kind_of_drop():
    assert json.loads((EARLY / "manifest.json").read_text())["format_version"] == RENAMED_IN - 1
    for table, before, now in EVERY_NAME:
        names = [column[0] for column in duckdb.sql(f"FROM '{EARLY}/{table}.parquet' LIMIT 0").description]
        assert before in names, table
        assert now not in names, table
    for table, before, _ in EVERY_NAME:
        ((total,),) = raw(EARLY / f"{table}.parquet", f"sum({before})")
        assert total > 0, (table, before)


@pytest.mark.parametrize(("table", "before", "now"), EVERY_NAME)
def test_an_early_recording_is_read_under_the_present_names(table, before, now):
    expected = raw(EARLY / f"{table}.parquet", before)
    assert load(EARLY).tables.rows(table, now) == expected
    assert list(aqmlab.query(f"SELECT {now} FROM {table}", EARLY).rows) == expected


def test_the_columns_of_an_early_recording_keep_their_places():
    for table, names in RENAMED.items():
        own = [column[0] for column in duckdb.sql(f"FROM '{EARLY}/{table}.parquet' LIMIT 0").description]
        read = load(EARLY).tables.arrays(table, "*")
        # The renamed columns are followed by the columns of later versions, all null.
        later = ADDED_SINCE.get(table, [])
        assert list(read) == [*(names.get(name, name) for name in own), "run", *later]
        for name in later:
            ((known,),) = load(EARLY).tables.rows(table, f"count({name})")
            assert known == 0


def test_a_present_recording_has_the_present_names(experiment):
    run = experiment.runs[0]
    assert run.manifest.format_version == FORMAT_VERSION >= RENAMED_IN
    for table, before, now in EVERY_NAME:
        names = [column[0] for column in duckdb.sql(f"FROM '{run.path}/{table}.parquet' LIMIT 0").description]
        assert now in names, table
        assert before not in names, table


def test_metrics_and_series_of_an_early_recording():
    experiment = load(EARLY)
    (measured,) = experiment.measured()
    ((lost,),) = raw(EARLY / "flows.parquet", "sum(measured_lost_packets)")
    assert find("lost_outside_queues").compute(measured, "bottleneck", "*") == lost
    (series,) = run_series(experiment.tables, experiment.runs, "bottleneck")
    ((by_law, others),) = raw(
        EARLY / "queues.parquet",
        "sum(dropped_early_packets) FILTER (queue = 'bottleneck'),"
        " sum(dropped_overflow_packets) FILTER (queue = 'bottleneck')",
    )
    width_s = series.queue.t_s[1] - series.queue.t_s[0]
    found = [sum(series.queue.values[f"dropped_{name}_per_s"]) * width_s for name in ("by_law", "not_by_law")]
    assert found == pytest.approx([by_law, others])


def as_read(path):
    """The content of an experiment's renamed tables, read through the package."""
    experiment = load(path)
    return {table: experiment.tables.rows(table, "*", "ORDER BY ALL") for table in RENAMED}, str(
        aqmlab.answer(experiment)
    )


def test_early_and_present_recordings_of_one_experiment(experiment, tmp_path):
    path = Path(shutil.copytree(experiment.path, tmp_path / "mixed"))
    for run in load(path).runs_of("DropTail"):
        give_early_names(run.path)
        reseal(run.path, format_version=RENAMED_IN - 1, results_version=5)
    assert as_read(path) == as_read(experiment.path)
    for table, _, now in EVERY_NAME:
        asked = f"SELECT arm, seed, {now} FROM {table} ORDER BY ALL"
        assert aqmlab.query(asked, path).rows == aqmlab.query(asked, experiment.path).rows


@pytest.mark.parametrize(("table", "before", "now"), EVERY_NAME)
def test_neither_name_is_an_error(early, table, before, now):
    without(before, table, early)
    message = (
        rf"`{early}/{table}\.parquet` is corrupt: it has no column `{before}` \(recordings of format versions"
        rf" below {RENAMED_IN} name it `{before}`, later ones name it `{now}`\)"
    )
    with pytest.raises(aqmlab.RecordingError, match=message):
        load(early).tables.rows(table, now)
    answer = aqmlab.query(f"SELECT count(*) FROM {table}", EARLY)
    assert answer.skipped == ()
    with pytest.raises(aqmlab.UsageError, match=table):
        aqmlab.query(f"SELECT {now} FROM {table}", early)


def test_a_present_recording_with_early_names_is_an_error(experiment, tmp_path):
    path = Path(shutil.copytree(experiment.path, tmp_path / "wrong"))
    run = load(path).runs[0].path
    give_early_names(run)
    reseal(run)
    with pytest.raises(
        aqmlab.RecordingError, match=r"summary\.parquet` is corrupt: it has no column `initial_in"
    ):
        aqmlab.answer(load(path))


@pytest.mark.parametrize("mixed", [True, False])
def test_a_query_skips_files_that_have_neither_name(experiment, tmp_path, mixed):
    path = Path(shutil.copytree(experiment.path, tmp_path / "lacking"))
    first, second, *_ = (run.path for run in load(path).runs)
    without("dropped_by_law_packets", "queues", first)
    if mixed:
        give_early_names(second)
        reseal(second, format_version=RENAMED_IN - 1)
    answer = aqmlab.query("SELECT DISTINCT arm, seed FROM queues WHERE dropped_by_law_packets >= 0", path)
    assert len(answer.rows) == len(experiment.runs) - 1
    (reason,) = answer.skipped
    assert reason.startswith(
        f"`{first}/queues.parquet` is corrupt: it has no column `dropped_by_law_packets`"
    )


def test_stores_with_one_run_under_both_names_are_merged(tmp_path):
    once = tiny(runs=1, claim=[])
    del once["sweep"]
    aqmlab.sweep(once, report=False, store=tmp_path / "present", jobs=1).wait()
    shutil.copytree(tmp_path / "present", tmp_path / "early")
    early = Store(tmp_path / "early")
    for run in map(early.path_of, early.digests()):
        give_early_names(run)
        reseal(run, format_version=RENAMED_IN - 1)
    merged = aqmlab.merge([tmp_path / "early"], tmp_path / "present", report=False)
    assert (merged.added, merged.present, merged.damaged) == (0, 2, ())
    # A change in a number is still detected.
    run = early.path_of(early.digests()[0])
    shutil.copy(early.path_of(early.digests()[1]) / "summary.parquet", run)
    reseal(run)
    with pytest.raises(aqmlab.RecordingError, match="contain the same run with different results"):
        aqmlab.merge([tmp_path / "early"], tmp_path / "present", report=False)
