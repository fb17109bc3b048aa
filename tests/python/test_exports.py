"""Recordings exported to the formats of other programs contain the data that was recorded."""

from __future__ import annotations

import copy
import csv
import gzip
import json
import re
import shutil
import subprocess
from collections import Counter

import duckdb
import jsonschema
import numpy as np
import pytest

import aqmlab
from aqmlab.metrics import Scope
from conftest import SMALL
from qlog_schema import FILE

FLENT = shutil.which("flent")
DROPTAIL, RED = "droptail-seed-1", "red-ecn-seed-1"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two runs that record everything; RED marks packets."""
    scenario = copy.deepcopy(SMALL)
    scenario["title"] = "A & B | 50 %"
    scenario |= {"runs": 1, "duration": "8s", "warmup": "2s"}
    links = {"flows": ["ftp", "cbr"], "links": ["bottleneck", "reverse"]}
    scenario["record"] |= {"trace": ["ftp"], "packets": links}
    return aqmlab.run(scenario, output=tmp_path_factory.mktemp("exports") / "all")


@pytest.fixture
def exported(recorded, tmp_path):
    """The contents of the files of a format, by name."""

    def call(to, **options):
        files = aqmlab.export(recorded.path, to, tmp_path / to, **options)
        return {file.name: file for file in files}

    return call


def run_of(recorded, arm):
    (run,) = recorded.runs_of(arm)
    return run


def dicts(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_csv_holds_every_row_of_every_table(recorded, exported):
    files = exported("csv")
    names = {name for run in recorded.runs for name in run.manifest.tables}
    assert set(files) == {f"{name}.csv" for name in names}
    for name in names:
        parquet = [str(run.path / f"{name}.parquet") for run in recorded.runs if name in run.manifest.tables]
        kept = duckdb.sql(f"SELECT * FROM read_parquet({parquet})")
        with files[f"{name}.csv"].open(encoding="utf-8", newline="") as lines:
            head, *rows = csv.reader(lines)
        assert head == ["arm", "seed", *kept.columns]
        expected = Counter(tuple("" if v is None else str(v) for v in row) for row in kept.fetchall())
        assert Counter(tuple(row[2:]) for row in rows) == expected


def test_csv_of_one_table_arm_and_seed(recorded, exported):
    files = exported("csv", tables="flows", arms="RED + ECN", seed=1)
    rows = dicts(files["flows.csv"])
    assert {row["arm"] for row in rows} == {"RED + ECN"}
    assert len(rows) == run_of(recorded, "RED + ECN").flow_count


def test_csv_of_a_sweep_has_its_axes(grid_of_two, tmp_path):
    (file,) = aqmlab.export(grid_of_two.path, "csv", tmp_path / "csv", tables="flows")
    rows = dicts(file)
    assert {(row["rate"], row["arm"], row["seed"]) for row in rows} == {
        (rate, arm, "1") for rate in ("1Mbit", "2Mbit") for arm in ("DropTail", "RED + ECN")
    }


@pytest.fixture(scope="module")
def grid_of_two(tmp_path_factory):
    scenario = copy.deepcopy(SMALL) | {"runs": 1, "sweep": {"topology.rate": ["1Mbit", "2Mbit"]}}
    sweep = aqmlab.sweep(scenario, store=tmp_path_factory.mktemp("exports") / "store")
    sweep.wait()
    return aqmlab.load(sweep.results.path)


def test_markdown_has_the_table_that_is_printed(recorded, tmp_path):
    (file,) = aqmlab.export(recorded.path, "markdown", tmp_path / "answer.md")
    text = file.read_text(encoding="utf-8")
    answer = aqmlab.answer(recorded)
    heads, rule, *rows = [line for line in text.splitlines() if line.startswith("|")]
    assert heads == "|  | DropTail | RED + ECN |"
    assert rule == "|---|---:|---:|"
    assert len(rows) == len(answer.grid().rows)
    goodput = answer.metrics[0]
    assert rf"| goodput \[Mbit/s\] | {answer.text('DropTail', goodput)} |" in rows[0]
    assert r"A & B \| 50 %" in text
    assert answer.footnote() in text


def test_latex_has_balanced_rows_and_no_bare_special_sign(recorded, tmp_path):
    (file,) = aqmlab.export(
        recorded.path, "latex", tmp_path / "t.tex", metrics=["goodput_bps", "drop_percent"]
    )
    text = file.read_text(encoding="utf-8")
    rows = re.findall(r"^  (.*) \\\\$", text, re.MULTILINE)
    assert [len(re.split(r"(?<!\\)&", row)) for row in rows] == [3, 3, 3]
    assert r"A \& B $|$ 50 \%" in text
    assert not re.search(r"(?<!\\)[%#_]", text)
    assert text.count(r"\begin{") == text.count(r"\end{") == 2


def test_a_flent_file_is_as_its_documentation_says(recorded, exported):
    file = exported("flent")[f"{DROPTAIL}.flent.gz"]
    content = json.loads(gzip.decompress(file.read_bytes()))
    assert content["version"] == 4
    times, results = np.array(content["x_values"]), content["results"]
    assert all(len(values) == len(times) for values in results.values())
    assert {name for name in results if "::" in name} == {f"TCP download::{i}" for i in (1, 2, 3)}
    assert content["metadata"]["TEST_PARAMETERS"] == {"download_streams": "3"}
    # Like the metric, this counts bytes that reach the receivers for the first time, from t0 on.
    (cell,) = recorded.select("DropTail")
    expected = recorded.values("goodput_bps", cell, Scope(class_name="ftp"))[1]
    run = run_of(recorded, "DropTail")
    measured = np.array(results["TCP download sum"])[times > run.t0_ns / 1e9 + 1e-9]
    assert measured.mean() * 1e6 == pytest.approx(expected, rel=1e-6)
    # A ping takes at least the base RTT of 30 ms, and at most that plus the delay of a full buffer of 30
    # packets.
    ping = np.array(results["Ping (ms) ICMP"])
    assert ping.min() >= 30.0
    assert 60 < ping.max() <= 30.0 + 30 * 1500 * 8e3 / 2e6
    for name, values in content["raw_values"].items():
        assert [entry["val"] for entry in values] == results[name]


def flent_of(scenario, tmp_path, **options):
    made = aqmlab.run(scenario, output=tmp_path / "run", report=False)
    (file,) = aqmlab.export(made.path, "flent", tmp_path / "flent", **options)
    return made, json.loads(gzip.decompress(file.read_bytes()))["results"]


@pytest.mark.parametrize(("queue", "floor_ms"), [("hop1", 20), ("hop2", 400)])
def test_a_ping_has_the_base_rtt_of_the_flows_that_cross_the_queue(tmp_path, queue, floor_ms):
    link = {"rate": "10Mbit", "delay": "1ms", "queue": {"kind": "droptail", "limit": "50p"}}
    flow = {"kind": "bulk", "count": 1}
    scenario = {
        "duration": "5s",
        "warmup": "1s",
        "runs": 1,
        "topology": {"kind": "graph"},
        "node": [{"name": "r0"}, {"name": "r1"}, {"name": "r2"}],
        "link": [
            {"name": "hop1", "from": "r0", "to": "r1", **link},
            {"name": "hop2", "from": "r1", "to": "r2", **link},
        ],
        "traffic": [
            {"name": "a", **flow, "rtt": "20ms", "from": "r0", "to": "r1"},
            {"name": "b", **flow, "rtt": "400ms", "from": "r1", "to": "r2"},
        ],
        "record": {"queues": "10ms", "flows": "10ms"},
    }
    _, results = flent_of(scenario, tmp_path, queue=queue)
    assert min(results["Ping (ms) ICMP"]) == pytest.approx(floor_ms, abs=1e-9)
    assert {name for name in results if "::" in name} == {"TCP download::1"}


def test_a_ping_waits_for_the_bytes_that_the_link_adds(small, tmp_path):
    small |= {"runs": 1}
    small["arm"] = small["arm"][:1]
    small["topology"] |= {"overhead": "1kB"}
    small["record"] |= {"queues": "10ms", "flows": "10ms"}
    made, results = flent_of(small, tmp_path)
    (cell,) = made.cells
    base_ms = made.measured()[0].flows[0].base_rtt_ns / 1e6
    waits_ms = np.array(results["Ping (ms) ICMP"]) - base_ms
    # A full buffer takes longer than its packets alone, by the bytes that are added.
    assert 30 * 1500 * 8e3 / 2e6 < waits_ms.max() <= 30 * 2500 * 8e3 / 2e6
    p95_s = made.values("queueing_delay_p95_s", cell)[1]
    assert np.quantile(waits_ms[-len(waits_ms) // 2 :], 0.95) == pytest.approx(1e3 * p95_s, rel=0.1)


def test_nothing_that_nobody_received_is_shared_fairly(tmp_path):
    scenario = {
        "duration": "5s",
        "warmup": "0s",
        "runs": 1,
        "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "5ms", "queue": {"kind": "droptail"}},
        "traffic": [{"name": "ftp", "kind": "bulk", "count": 2, "rtt": "2s"}],
        "record": {"queues": "100ms", "flows": "100ms"},
    }
    _, results = flent_of(scenario, tmp_path)
    fairness, total = results["TCP download fairness"], results["TCP download sum"]
    # The first data arrive after one and a half round trips.
    assert total[:25] == [0.0] * 25
    assert [index is None for index in fairness] == [rate == 0 for rate in total]
    assert max(total) > 0


@pytest.mark.skipif(FLENT is None, reason="flent is not installed")
def test_flent_itself_reads_it(exported):
    file = exported("flent", arms="DropTail")[f"{DROPTAIL}.flent.gz"]
    ended = subprocess.run([FLENT, "-i", file, "-f", "summary"], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "Summary of tcp_ndown test run" in ended.stdout
    for name in ("Ping (ms) ICMP", "TCP download sum", "TCP download::3"):
        assert name in ended.stdout
    assert "A & B | 50 %: DropTail, seed 1" in ended.stdout


def trace_lines(file):
    """The fields of each line, as a script that reads traces of ns-2 splits them."""
    return [line.split() for line in file.read_text(encoding="ascii").splitlines()]


def test_an_ns2_trace_has_the_events_that_were_recorded(recorded, exported):
    files = exported("ns2")
    for run, stem in zip(recorded.runs, (DROPTAIL, RED), strict=True):
        lines = trace_lines(files[f"{stem}.tr"])
        assert all(len(line) == 12 for line in lines)
        packets = duckdb.sql(
            f"SELECT event, count(*) FROM '{run.path}/packets.parquet'"
            " WHERE event IN ('enqueue', 'dequeue', 'drop', 'receive') GROUP BY event"
        )
        signs = {"enqueue": "+", "dequeue": "-", "drop": "d", "receive": "r"}
        kept = {signs[event]: n for event, n in packets.fetchall()}
        counted = Counter(line[0] for line in lines)
        assert counted == kept
        # What has not been received is still on its link, which has 2 Mbit/s and a delay of 5 ms.
        received = {(line[2], line[11]) for line in lines if line[0] == "r"}
        left = [line for line in lines if line[0] == "-" and (line[2], line[11]) not in received]
        assert len(left) == counted["-"] - counted["r"] > 0
        latest = [float(line[1]) + int(line[5]) * 8 / 2e6 + 0.005 for line in left]
        assert all(there > run.t1_ns / 1e9 - 1e-9 for there in latest)
        times = [float(line[1]) for line in lines]
        assert times == sorted(times)
        assert {line[4] for line in lines} == {"tcp", "ack", "udp"}
        assert all(re.fullmatch("[C-]--[A-][E-]-[N-]", line[6]) for line in lines)


def test_delays_of_an_ns2_trace_are_those_of_the_queue(recorded, exported):
    """The time from the ``+`` to the ``-`` line of each packet, as every script for such traces computes
    it."""
    files = exported("ns2")
    for run, stem in zip(recorded.runs, (DROPTAIL, RED), strict=True):
        came, waited = {}, []
        for event, time, source, _, _, size, *_, number in trace_lines(files[f"{stem}.tr"]):
            if source != "0":
                continue
            if event == "+":
                assert number not in came
                came[number] = float(time)
            elif event == "-" and float(time) > run.t0_ns / 1e9:
                waited.append(float(time) - came[number])
            elif event == "r":
                sent = float(time) - came[number]
                assert sent >= int(size) * 8 / 2e6 + 0.005 - 1e-9
        query = f"SELECT sojourn_sum_ns, sojourn_count FROM '{run.path}/summary.parquet'"
        ((total, count),) = duckdb.sql(query + " WHERE queue = 'bottleneck' AND class = '*'").fetchall()
        assert len(waited) == count
        assert sum(waited) == pytest.approx(float(total) / 1e9, abs=1e-6)


def test_marks_are_in_the_flags_of_an_ns2_trace(recorded, exported):
    lines = trace_lines(exported("ns2", arms="RED + ECN")[f"{RED}.tr"])
    marked = [line for line in lines if line[0] == "-" and line[6][4] == "E"]
    run = run_of(recorded, "RED + ECN")
    query = f"SELECT count(*) FROM '{run.path}/packets.parquet' WHERE event = 'dequeue' AND ecn = 'CE'"
    assert len(marked) == duckdb.sql(query).fetchall()[0][0] > 0
    assert all(line[6][6] == "N" for line in marked)


def test_qlog_is_as_the_drafts_say(exported):
    validator = jsonschema.Draft202012Validator(FILE)
    for file in exported("qlog").values():
        content = json.loads(file.read_text(encoding="utf-8"))
        validator.validate(content)
    assert [trace["title"] for trace in content["traces"]] == ["ftp 0", "ftp 1", "ftp 2"]
    broken = copy.deepcopy(content)
    broken["traces"][0]["events"][0]["data"]["cwnd"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(broken)


def test_qlog_has_what_the_sender_did(recorded, exported):
    content = json.loads(exported("qlog")[f"{RED}.qlog"].read_text())
    run = run_of(recorded, "RED + ECN")
    for flow, trace in enumerate(content["traces"]):
        events = trace["events"]
        assert [e["time"] for e in events] == sorted(e["time"] for e in events)
        of = f"FROM '{run.path}/{{}}.parquet' WHERE flow = {flow}"
        sent = "SELECT count(*) " + of.format("packets") + " AND event = 'send' AND toward = 'receiver'"
        packets = [e for e in events if e["name"] == "quic:packet_sent"]
        assert len(packets) == duckdb.sql(sent).fetchall()[0][0]
        assert [e["data"]["header"]["packet_number"] for e in packets] == list(range(len(packets)))
        # The last value of each metric in the file is the last one recorded.
        last = {k: v for e in events if e["name"].endswith("metrics_updated") for k, v in e["data"].items()}
        query = "SELECT cwnd_segments, srtt_ns, flight_bytes " + of.format("trace") + " ORDER BY t_ns"
        cwnd, srtt_ns, flight = duckdb.sql(query).fetchall()[-1]
        assert last["congestion_window"] == round(cwnd * 1460)
        assert last["smoothed_rtt"] == pytest.approx(srtt_ns / 1e6)
        assert last["bytes_in_flight"] == flight
        reactions = "SELECT count(*) " + of.format("trace") + " AND event NOT IN ('open', 'change')"
        states = [e for e in events if e["name"] == "quic:congestion_state_updated"]
        assert len(states) == duckdb.sql(reactions).fetchall()[0][0]


def test_the_same_run_gives_the_same_bytes(recorded, tmp_path):
    for to in ("csv", "flent", "ns2", "qlog", "markdown", "latex"):
        one, two = (aqmlab.export(recorded.path, to, tmp_path / f"{to}{i}") for i in (1, 2))
        assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


@pytest.mark.parametrize(
    ("record", "to", "message"),
    [
        ({"flows": "0s"}, "flent", '`flows = "100ms"`'),
        ({"queues": "0s"}, "flent", '`queues = "100ms"`'),
        ({"flows": "0s"}, "qlog", '`trace = ["ftp"]`'),
        ({}, "ns2", '`packets = { links = ["bottleneck"] }`'),
        (
            {"packets": {"links": ["bottleneck"], "events": ["drop"]}},
            "ns2",
            'events = ["dequeue", "drop", "enqueue", "receive"]',
        ),
    ],
)
def test_what_was_not_recorded_names_its_key(small, record, to, message, tmp_path, aqmlab_cli):
    small |= {"runs": 1, "duration": "2s"}
    small["record"] |= record
    made = aqmlab.run(small, output=tmp_path / "run", arms=["DropTail"], report=False)
    before = sorted(made.path.rglob("*"))
    ended = aqmlab_cli("export", made.path, "--to", to)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "[record]" in ended.stderr
    assert sorted(made.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--to", "cvs"], 2, "there is no format `cvs`; did you mean `csv`?"),
        ([], 2, "Missing option"),
        (["--to", "csv", "--arm", "BLUE"], 2, "there is no arm `BLUE`"),
        (["--to", "csv", "--seed", "9"], 2, "there is no seed `9`"),
        (["--to", "csv", "--table", "flow"], 2, "there is no table `flow`; did you mean `flows`?"),
        (["--to", "ns2", "--table", "flows"], 2, "`--table` has no effect in an export to ns2"),
        (["--to", "latex", "--seed", "1"], 2, "`--seed` has no effect in an export to latex"),
        (["--to", "csv", "--metric", "goodput_bps"], 2, "`--metric` has no effect in an export to csv"),
        (["--to", "markdown", "--metric", "goodput"], 2, "there is no metric `goodput`"),
        (["--to", "flent", "--queue", "hop1"], 2, "there is no queue `hop1`"),
        (["--to", "csv", "-o", "{there}"], 2, "exists already"),
        (["--to", "csv", "-o", "/proc/x/y"], 3, "cannot make `/proc/x`"),
        (["--to", "latex", "-o", "/proc/x.tex"], 3, "cannot write `/proc/x.tex`"),
    ],
)
def test_a_wrong_export_writes_nothing(recorded, aqmlab_cli, tmp_path, words, code, message):
    there = tmp_path / "there"
    there.mkdir()
    before = sorted(recorded.path.rglob("*"))
    ended = aqmlab_cli("export", recorded.path, *(word.format(there=there) for word in words))
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    assert message in ended.stderr
    assert sorted(recorded.path.rglob("*")) == before
    assert list(there.iterdir()) == []


def test_export_prints_its_files(recorded, aqmlab_cli, tmp_path):
    ended = aqmlab_cli("export", recorded.path, "--to", "qlog", "-o", tmp_path / "q", "--arm", "DropTail")
    assert (ended.returncode, ended.stdout) == (0, f"{tmp_path}/q/{DROPTAIL}.qlog\n")
    assert [path.name for path in tmp_path.iterdir()] == ["q"]
