"""SQL over a store: views of all recordings, read-only access, reports of damage."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import aqmlab
from aqmlab.cli.console import guarded
from aqmlab.sweeps.store import Store
from resealed import reseal
from sweeping import RUNS, tables, tiny


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    sweep = aqmlab.sweep(tiny(), report=False, store=tmp_path_factory.mktemp("asked") / "store", jobs=2)
    sweep.wait()
    return sweep


@pytest.fixture
def store(swept):
    return swept.path.parent.parent


def rows(sql, path):
    return list(aqmlab.query(sql, path).rows)


def test_runs_and_cells(swept, store):
    assert rows("SELECT count(*), count(DISTINCT digest) FROM runs", store) == [(RUNS, RUNS)]
    found = aqmlab.query("SELECT sweep, rate, count, arm, seed, digest, finished FROM cells", store)
    assert found.columns == ("sweep", "rate", "count", "arm", "seed", "digest", "finished")
    expected = {(cell.labels, cell.arm, seed, digest) for cell, seed, digest in swept.cases}
    assert {(row[1:3], *row[3:6]) for row in found.rows} == expected
    assert {(row[0], row[6]) for row in found.rows} == {(swept.path.name, True)}


@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_recordings_have_what_was_swept_beside_them(swept, store, whole):
    path = store if whole else swept.path
    sql = (
        "SELECT rate, settings['traffic.ftp.count'], arm, seed, sum(departures_bytes) AS bytes FROM summary"
        " WHERE class = '*' AND queue = 'bottleneck' GROUP BY ALL"
    )
    results = swept.results
    expected = set()
    for cell in results.cells:
        for measured in results.measured(cell):
            labels = (cell.label("rate"), cell.label("count"), cell.arm, measured.run.seed)
            expected.add((*labels, measured.queues["bottleneck", "*"]["departures_bytes"]))
    assert set(rows(sql, path)) == expected


def test_each_table_of_the_recordings_is_there_row_by_row(store):
    import duckdb

    for table in ("run", "summary", "histograms", "queues", "law", "flows", "flow_series"):
        (files,) = duckdb.execute(f"SELECT count(*) FROM '{store}/runs/*/*/{table}.parquet'").fetchall()
        assert rows(f"SELECT count(*) FROM {table}", store) == [files], table
    assert {"runs", "cells", "summary", "law"} < {name for (name,) in rows("SHOW TABLES", store)}
    # Integers of any size remain integers.
    ((integral,),) = rows("SELECT max(sojourn_sum_ns) FROM summary", store)
    assert isinstance(integral, int)


def test_a_run_of_two_sweeps_is_there_once(swept, tmp_path):
    store = Path(shutil.copytree(swept.path.parent.parent, tmp_path / "store"))
    more = tiny(title="More", claim=[])
    more["sweep"] = {"traffic.ftp.count": [2, 4]}
    aqmlab.sweep(more, report=False, store=store, jobs=2).wait()
    # The two cases are among the four of the first sweep, so all runs exist already.
    assert rows("SELECT count(*) FROM runs", store) == [(RUNS,)]
    assert rows("SELECT sweep, count(*) FROM cells GROUP BY ALL ORDER BY ALL", store) == [
        (path.name, count) for path, count in zip(Store(store).sweeps(), (12, RUNS), strict=True)
    ]


def test_an_experiment_can_be_asked_too(experiment):
    found = rows("SELECT DISTINCT arm, seed FROM flows ORDER BY ALL", experiment.path)
    assert found == [("DropTail", 1), ("DropTail", 2), ("RED + ECN", 1), ("RED + ECN", 2)]
    (run,) = rows("SELECT seed FROM runs", experiment.runs[1].path)
    assert run == (experiment.runs[1].seed,)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("COPY (SELECT 1) TO '{store}/runs/x.csv'", "may only read: `COPY`"),
        ("CREATE TABLE x (i INT)", "a query may only read: `"),
        ("INSERT INTO runs SELECT * FROM runs", "a query may only read: `"),
        ("SET threads = 1", "a query may only read: `"),
        ("ATTACH '{store}/x.db'", "a query may only read: `"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x'", "a query may only read: `"),
        ("PRAGMA version", "a query may only read: `"),
        ("SELECT 1; SELECT 2", "one statement, not 2"),
        ("", "one statement, not 0"),
        ("SELEKT 1", "the query is not SQL"),
        ("SELECT frog FROM runs", "frog"),
        ("SELECT * FROM read_csv('/etc/passwd')", "the query fails: Permission Error"),
        ("SELECT * FROM read_text('/etc/passwd')", "the query fails: Permission Error"),
        ("SELECT * FROM read_parquet('/tmp/*')", "the query fails: Permission Error"),
        ("SELECT * FROM 'https://example.org/x.parquet'", "the query fails"),
        ("SELECT * FROM unread", "the query fails"),
    ],
)
def test_nothing_but_reading_what_is_in_the_store(store, sql, message):
    unread = [1]  # a variable of the program is not a table
    assert unread
    before = sorted(store.rglob("*"))
    with pytest.raises(aqmlab.UsageError, match=message):
        aqmlab.query(sql.format(store=store), store)
    assert sorted(store.rglob("*")) == before


def damaged(store, folder):
    """A copy of the store in which three runs are damaged, and the digests of these runs."""
    copy = Path(shutil.copytree(store, folder / "store"))
    first, second, third, *_ = Store(copy).digests()
    table = Store(copy).path_of(first) / "flows.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    (Store(copy).path_of(second) / "manifest.json").write_text("{")
    (Store(copy).path_of(third) / "law.parquet").unlink()
    return copy, (first, second, third)


def test_damage_is_named_skipped_and_counted(store, tmp_path):
    copy, digests = damaged(store, tmp_path)
    answer = aqmlab.query("SELECT count(DISTINCT digest) FROM flows", copy)
    assert answer.rows == ((RUNS - 3,),)
    assert len(answer.skipped) == 3
    for digest, words in zip(digests, ("flows.parquet` is corrupt", "is corrupt", "is missing"), strict=True):
        assert any(digest in reason and words in reason for reason in answer.skipped), words
    # A query that does not use the damaged table still includes the run to which this table belongs.
    assert rows("SELECT count(DISTINCT digest) FROM summary", copy) == [(RUNS - 2,)]


def test_the_command_prints_tables_csv_and_json(aqmlab_cli, store):
    sql = "SELECT arm, count(*) AS n FROM runs GROUP BY ALL ORDER BY arm"
    printed = aqmlab_cli("query", sql, "--store", store)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert [line.split() for line in printed.stdout.splitlines()[2:]] == [["DropTail", "12"], ["RED", "12"]]
    as_csv = list(csv.reader(io.StringIO(aqmlab_cli("query", sql, store, "--csv").stdout)))
    assert as_csv == [["arm", "n"], ["DropTail", "12"], ["RED", "12"]]
    as_json = json.loads(aqmlab_cli("query", sql, store, "--json").stdout)
    assert as_json["rows"] == [{"arm": "DropTail", "n": 12}, {"arm": "RED", "n": 12}]


def test_the_command_ends_with_4_where_something_was_left_out(aqmlab_cli, store, tmp_path):
    copy, digests = damaged(store, tmp_path)
    ended = aqmlab_cli("query", "SELECT count(*) AS n FROM flows", copy, "--csv")
    assert ended.returncode == 4
    assert ended.stdout.splitlines()[0] == "n"
    assert all(digest in ended.stderr for digest in digests)
    assert "3 files cannot be read and are left out" in ended.stderr
    assert aqmlab_cli("query", "SELECT 1", tmp_path / "nothing").returncode == 4
    assert aqmlab_cli("query", "DROP TABLE runs", copy).returncode == 2


@pytest.mark.slow
def test_a_thousand_runs_are_asked_in_under_a_second(tmp_path):
    """The time is measured from the start of the program to its end, on one thread and on many."""
    many = tiny(runs=125, duration="2s")
    sweep = aqmlab.sweep(many, report=False, store=tmp_path / "store")
    sweep.wait()
    sql = (
        "SELECT rate, count, arm, avg(sojourn_sum_ns / sojourn_count) / 1e6 AS delay_ms, count(*) AS n"
        " FROM summary WHERE class = '*' AND queue = 'bottleneck' GROUP BY ALL ORDER BY ALL"
    )
    command = [sys.executable, "-m", "aqmlab", "query", sql, "--csv", "--store", str(tmp_path / "store")]
    walls = []
    for _ in range(5):
        begun = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        walls.append(time.perf_counter() - begun)
    assert [line.rsplit(",", 1)[1] for line in done.stdout.splitlines()] == ["n"] + ["125"] * 8
    sys.stdout.write(f"1000 runs, wall time of `aqmlab query`: {', '.join(f'{w:.2f} s' for w in walls)}\n")
    assert min(walls) < 1


def test_shards_merge_to_the_tables_of_an_undisturbed_sweep(swept, tmp_path, aqmlab_cli):
    for k in (1, 2):
        part = aqmlab.sweep(tiny(), report=False, store=tmp_path / f"part{k}", jobs=1, shard=f"{k}/2")
        part.wait()
        assert 0 < len(Store(tmp_path / f"part{k}").digests()) < RUNS
        assert tables(part.path) != tables(swept.path)
    merged = aqmlab.merge([tmp_path / "part1"], tmp_path / "whole")
    assert (merged.present, len(merged.sweeps)) == (0, 1)
    assert len(merged.sweeps[0].results.missing) == RUNS - merged.added
    ended = aqmlab_cli(
        "merge", tmp_path / "part1", tmp_path / "part2", "--store", tmp_path / "whole", "--json"
    )
    content = json.loads(ended.stdout)
    assert content["added"] + content["present"] == RUNS
    assert content["present"] == merged.added
    assert content["sweeps"][0]["missing"] == 0
    assert tables(tmp_path / "whole" / "sweeps" / swept.path.name) == tables(swept.path)
    # Recordings are linked, not copied, and no run remains to be executed.
    digest = Store(tmp_path / "part1").digests()[0]
    files = [Store(tmp_path / name).path_of(digest) / "flows.parquet" for name in ("part1", "whole")]
    assert files[0].samefile(files[1])
    again = aqmlab.sweep(tiny(), report=False, store=tmp_path / "whole")
    again.wait()
    assert again.progress.runs_done == 0


def test_merging_refuses_what_contradicts_itself(store, tmp_path):
    copy = Path(shutil.copytree(store, tmp_path / "copy"))
    (file, *_) = sorted(copy.glob("runs/*/*/manifest.json"))
    manifest = json.loads(file.read_text())
    manifest["tables"]["flows"]["digest"] = "0" * 64
    file.write_text(json.dumps(manifest))
    reseal(file.parent)
    with pytest.raises(aqmlab.RecordingError, match="contain the same run with different results"):
        aqmlab.merge([copy, store], tmp_path / "whole")
    with pytest.raises(aqmlab.UsageError, match="into itself"):
        aqmlab.merge([store], store)
    with pytest.raises(aqmlab.UsageError, match="nothing to merge"):
        aqmlab.merge([], tmp_path / "whole")
    with pytest.raises(aqmlab.RecordingError, match="no store at"):
        aqmlab.merge([tmp_path / "nothing"], tmp_path / "whole")


def test_failures_of_parts_are_known_to_the_whole(tmp_path):
    scenario = tiny()
    scenario["arm"][1]["record.trace"] = ["ftp"]
    scenario["arm"][1]["record.limit"] = 5
    failed = 0
    for k in (1, 2):
        part = aqmlab.sweep(scenario, report=False, store=tmp_path / f"part{k}", shard=f"{k}/2", jobs=1)
        with pytest.raises(aqmlab.RunError):
            part.wait()
        failed += part.progress.failures["RunError"]
    merged = aqmlab.merge([tmp_path / "part1", tmp_path / "part2"], tmp_path / "whole")
    ((results, _, report),) = merged.sweeps
    assert report == results.path / "report.html"
    assert len(results.missing) == failed == RUNS // 2
    assert all("limit of 5 rows" in missing.reason for missing in results.missing)


def test_the_questions_of_the_guide_have_answers(store):
    guide = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sql\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    statements = [statement for statement in block.split(";") if statement.strip()]
    assert len(statements) == 3
    quantiles, *_, missing = [aqmlab.query(statement, store).rows for statement in statements]
    assert [row[:2] for row in quantiles] == [(r, a) for r in ("2Mbit", "4Mbit") for a in ("DropTail", "RED")]
    assert all(0 < p99_ms < 200 for *_, p99_ms in quantiles)
    assert missing == ()


@pytest.mark.parametrize("which", [0, -1])
def test_recordings_that_lack_a_column_are_read_with_the_others(store, tmp_path, which):
    import duckdb

    copy = Path(shutil.copytree(store, tmp_path / "store"))
    file = Store(copy).path_of(Store(copy).digests()[which]) / "flows.parquet"
    content = f"SELECT * EXCLUDE (timeouts) FROM '{file}'"
    duckdb.execute(f"COPY ({content}) TO '{tmp_path}/older.parquet'")
    (tmp_path / "older.parquet").rename(file)
    reseal(file.parent)
    (whole,), (older,) = (rows("SELECT count(*), count(timeouts) FROM flows", path) for path in (store, copy))
    assert older[0] == whole[0]
    assert older[1] == whole[1] - duckdb.execute(f"SELECT count(*) FROM '{file}'").fetchall()[0][0]


@pytest.mark.parametrize("restarts", [False, True])
def test_ctrl_c_ends_a_query(store, restarts):
    """Ctrl-C works even if a library such as polars sets `SA_RESTART`, so that interrupted calls restart."""
    signal.siginterrupt(signal.SIGINT, not restarts)
    slow = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        assert guarded(lambda **_: aqmlab.query(slow, store)) == 130
    finally:
        signal.siginterrupt(signal.SIGINT, True)
    timer.join()


def test_a_store_is_no_recording_but_has_some(store):
    with pytest.raises(
        aqmlab.RecordingError, match=r"is a store: name one of its sweeps, such as `.*/sweeps/"
    ):
        aqmlab.load(store)
