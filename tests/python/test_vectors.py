"""Connection vectors: drawn without a run, written to files, and replayed by ns-2."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

import duckdb
import pytest

import aqmlab
from aqmlab.errors import UsageError

SCENARIO = """
duration = "30s"
[topology]
kind = "dumbbell"
rate = "4Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "30p" }
[[traffic]]
name = "web"
kind = "packmime"
rate = "20/s"
[[traffic]]
name = "api"
kind = "requests"
rate = "5/s"
request = { uniform = ["100B", "900B"] }
response = { pareto = "4kB", shape = 1.3 }
exchanges = { list = [1, 3] }
pause = { exponential = "100ms" }
[[traffic]]
name = "users"
kind = "requests"
users = 4
think = { exponential = "500ms" }
request = "300B"
response = { pareto = "4kB", shape = 1.3 }
exchanges = 2
server_delay = "20ms"
[[traffic]]
name = "ftp"
kind = "bulk"
[record]
requests = { each = true }
"""
OPEN_LOOP = ["web", "api"]


@pytest.fixture(scope="module")
def scenario():
    return tomllib.loads(SCENARIO)


@pytest.fixture(scope="module")
def recorded(scenario, tmp_path_factory):
    return aqmlab.run(scenario, output=tmp_path_factory.mktemp("vectors") / "run", runs=1, report=False)


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def by_connection(rows):
    """For each connection of a class, its start in nanoseconds and the sizes of its exchanges."""
    found = defaultdict(list)
    for row in rows:
        of = (row["class"], int(row["connection"]))
        assert int(row["exchange"]) == len(found[of]), row
        start = None if row["start_s"] == "" else round(float(row["start_s"]) * 1e9)
        found[of].append((start, int(row["request_bytes"]), int(row["response_bytes"])))
    return found


def compare(drawn, recorded, classes, connection):
    """Check that each recorded exchange is as it was drawn, and return the number of connections."""
    columns = "class, user, serial, exchange, start_ns, request_bytes, response_bytes"
    known = set()
    for name, user, serial, exchange, start, request, response in recorded.tables.rows("requests", columns):
        if name not in classes:
            continue
        of = connection(name, user, serial)
        begun, *sizes = drawn[of][exchange]
        assert sizes == [request, response]
        assert begun == (start if exchange == 0 else None)
        known.add(of)
    return known


def test_a_run_does_what_was_drawn_for_its_seed(scenario, recorded, tmp_path):
    file = aqmlab.write_vectors(scenario, tmp_path / "v.csv", classes=OPEN_LOOP)
    drawn = by_connection(rows_of(file))
    known = compare(drawn, recorded, OPEN_LOOP, lambda name, _user, serial: (name, serial))
    assert known == set(drawn), "each connection that opened, and no other"
    assert len(known) > 600
    other = aqmlab.write_vectors(scenario, tmp_path / "other.csv", classes=OPEN_LOOP, seed=2)
    assert other.read_bytes() != file.read_bytes()


def test_users_are_taken_from_a_recording(scenario, recorded, tmp_path):
    with pytest.raises(UsageError, match='users of "users" open connections depend on the network'):
        aqmlab.write_vectors(scenario, tmp_path / "v.csv")
    assert not (tmp_path / "v.csv").exists()
    file = aqmlab.write_vectors(scenario, tmp_path / "v.csv", classes="users", recording=recorded.path)
    drawn = by_connection(rows_of(file))
    opened = recorded.tables.rows(
        "requests", "user, serial", "WHERE class = 'users' AND exchange = 0 ORDER BY start_ns, user"
    )
    numbers = {of: ("users", i) for i, of in enumerate(opened)}
    known = compare(drawn, recorded, ["users"], lambda _name, user, serial: numbers[user, serial])
    assert known == set(drawn)
    assert len(known) > 100
    other = {**scenario, "duration": "20s"}
    with pytest.raises(UsageError, match="belongs to another scenario"):
        aqmlab.write_vectors(other, tmp_path / "w.csv", classes="users", recording=recorded.path)


def test_parquet_has_what_csv_has(scenario, tmp_path):
    text = rows_of(aqmlab.write_vectors(scenario, tmp_path / "v.csv", classes=OPEN_LOOP))
    binary = aqmlab.write_vectors(scenario, tmp_path / "v.parquet", classes=OPEN_LOOP)
    table = duckdb.sql(f"SELECT * FROM '{binary}'")
    assert table.columns == list(text[0])
    for there, here in zip(table.fetchall(), text, strict=True):
        values = [None if value == "" else value for value in here.values()]
        assert there[0] == values[0]
        assert [None if value is None else float(value) for value in values[1:]] == list(there[1:])


def test_only_clouds_have_delays_of_their_own(scenario, tmp_path):
    rows = rows_of(aqmlab.write_vectors(scenario, tmp_path / "v.csv", classes=OPEN_LOOP))
    for row in rows:
        has = row["class"] == "web" and row["exchange"] == "0"
        assert (row["client_delay_s"] != "") == (row["server_path_delay_s"] != "") == has


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"classes": "nix"}, "there is no class `nix`; the classes are `web`, `api`, `users`, `ftp`"),
        ({"classes": "ftp"}, 'the flows of "ftp" carry no exchanges'),
        ({"classes": OPEN_LOOP, "format": "tmix"}, "holds one class"),
        ({"classes": "web", "format": "tmx"}, "there is no format of vectors `tmx`; did you mean `tmix`"),
        ({"classes": "web", "arm": "RED"}, "there is no arm `RED`"),
        ({"classes": "web", "duration_s": 1e-6}, "no connection of `web` opens by 1us"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_written(scenario, tmp_path, asked, message):
    with pytest.raises(UsageError, match=message):
        aqmlab.write_vectors(scenario, tmp_path / "v.csv", **asked)
    with pytest.raises(UsageError, match="names no format"):
        aqmlab.write_vectors(scenario, tmp_path / "v.zip", classes="web")
    assert list(tmp_path.iterdir()) == []


def test_arms_that_differ_in_their_traffic_need_a_choice(scenario, tmp_path):
    arms = [{"name": "a"}, {"name": "b", "traffic.web.rate": "21/s"}]
    with pytest.raises(UsageError, match="the arms `a`, `b` differ in their traffic"):
        aqmlab.write_vectors({**scenario, "arm": arms}, tmp_path / "v.csv", classes="web")
    of_one = aqmlab.write_vectors({**scenario, "arm": arms}, tmp_path / "v.csv", classes="web", arm="a")
    alike = [{"name": "a"}, {"name": "b", "topology.rate": "5Mbit"}]
    of_both = aqmlab.write_vectors({**scenario, "arm": alike}, tmp_path / "w.csv", classes="web")
    assert of_one.read_bytes() == of_both.read_bytes()


_SENT = re.compile(r"([\d.]+) App \( \S+ / \d+ / (\d+) / (\d)\.\d+ \)> sent (\d+) B ADU")
_GOT = re.compile(
    r"([\d.]+) App \( \S+ / \d+ / (\d+) / (\d)\.\d+ \)> recv ADU \(total (\d+) B, expected: (\d+) B"
)


def carried_out(file, seconds):
    """ns-2's events of each connection (time, end, what, bytes), and the number of closed connections."""
    command = ["ns", str(Path(__file__).parent / "ns2" / "tmix.tcl"), str(file), str(seconds)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stderr
    assert "error" not in said.lower()
    found = defaultdict(list)
    for line in said.splitlines():
        if sent := _SENT.match(line):
            time, of, end, size = sent.groups()
            found[int(of)].append((float(time), int(end), "sent", int(size)))
        # The two bytes of the FIN also arrive, but no exchange expects them.
        elif (got := _GOT.match(line)) and int(got[5]) > 0:
            time, of, end, _, size = got.groups()
            found[int(of)].append((float(time), int(end), "got", int(size)))
    return found, said.count("FINISHED")


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")
def test_ns2_carries_out_what_a_file_for_tmix_says(scenario, tmp_path):
    rows = rows_of(aqmlab.write_vectors(scenario, tmp_path / "v.csv", classes="web"))
    file = aqmlab.write_vectors(scenario, tmp_path / "v.cvec", classes="web")
    found, closed = carried_out(file, 400)
    assert closed == len(found) == int(rows[-1]["connection"]) + 1
    for events in found.values():
        events.reverse()
    before = 0.0
    for row in rows:
        events = found[int(row["connection"]) + 1]
        request, response = int(row["request_bytes"]), int(row["response_bytes"])
        asked, arrived, answered, done = (events.pop() for _ in range(4))
        said = [event[1:] for event in (asked, arrived, answered, done)]
        assert said == [
            (0, "sent", request),
            (1, "got", request),
            (1, "sent", response),
            (0, "got", response),
        ]
        # ns-2 prints microseconds, and each time in the file is rounded to a whole microsecond.
        if row["exchange"] == "0":
            assert asked[0] == pytest.approx(float(row["start_s"]), abs=2e-6)
            # Handshake and request incur the connection's own delays three times.
            way = float(row["client_delay_s"]) + float(row["server_path_delay_s"])
            if request <= 1460:
                assert arrived[0] - asked[0] == pytest.approx(3 * way, abs=2e-4)
        else:
            assert asked[0] - before == pytest.approx(float(row["think_s"]), abs=2e-6)
        assert answered[0] - arrived[0] == pytest.approx(float(row["server_delay_s"]), abs=2e-6)
        before = done[0]
    assert not any(found.values())


@pytest.mark.parametrize("file_name", ["web.csv", "web.parquet"])
def test_a_trace_gives_back_what_the_population_did(scenario, tmp_path, file_name):
    """The trace states every automatic value that depends on a mean round-trip time."""
    alone = {**scenario, "traffic": scenario["traffic"][:1]}
    alone["topology"] = {**scenario["topology"], "reverse_queue": {"kind": "droptail", "limit": "30p"}}
    aqmlab.write_vectors(alone, tmp_path / file_name)
    traced = {**alone, "traffic": [{"name": "web", "kind": "trace", "file": str(tmp_path / file_name)}]}
    rows = []
    for what, connection in ((alone, "serial"), (traced, "user")):
        run = aqmlab.run(what, output=tmp_path / f"run-{connection}", runs=1, report=False)
        columns = f"{connection}, exchange, start_ns, end_ns, request_bytes, response_bytes, outcome"
        rows.append(run.tables.rows("requests", columns, f"ORDER BY {connection}, exchange"))
    assert rows[0] == rows[1]
    assert len(rows[0]) > 500


TMIX = """\
# tcvec format version 2
S 3412 2 1 1
w 64800 6432
r 80000
l 0.000000 0.000000
A 0 0 49
A 250000 0 1536
I 0 43483 15
I 435992 0 443
A 0 2635 1775
I 0 1 23
C 5000 1 1 2 2
I 0 0 169
A 0 0 219
S 20000 1 3 3
r 80000
I 0 0 57742
S 30000 1 4 4
I 0 0 253
A 0 123693 510
A 6308497 0 0
"""
"""Connections of the kinds in UNC's files: a server that sends first, either end again after a wait of its
own, client data at the end, client data alone, concurrent ends, and a server that closes late."""


@pytest.fixture
def traced(scenario, tmp_path):
    """The scenario with that file as its only traffic."""
    (tmp_path / "inbound.ns").write_bytes(b"\xef\xbb\xbf" + TMIX.encode())
    entry = {"name": "web", "kind": "trace", "file": str(tmp_path / "inbound.ns"), "on_unsupported": "skip"}
    return {**scenario, "traffic": [entry]}


def test_a_file_of_unc_is_read_and_what_is_left_out_is_said(traced, tmp_path, aqmlab_cli):
    import tomli_w

    file = tmp_path / "traced.toml"
    file.write_text(tomli_w.dumps(traced), encoding="utf-8")
    shown = aqmlab_cli("show", file).stdout
    assert re.search(r"traffic\.web\.left_out\.concurrent +1 ", shown)
    ended = aqmlab_cli("run", file, "--runs", "1", "-o", tmp_path / "out", "-q").stdout
    said = " ".join(ended.split())
    assert "1 of the 4 connections in " in said
    assert "of `web` are left out, because they cannot be expressed: 1 concurrent" in said
    (plan,) = aqmlab.load(tmp_path / "out").plans
    assert (plan.classes[0].left_out, plan.classes[0].count) == ({"concurrent": 1}, 3)
    assert plan.classes[0].what.endswith("inbound.ns without 1")
    refused = {**traced, "traffic": [{**traced["traffic"][0], "on_unsupported": "refuse"}]}
    with pytest.raises(aqmlab.ScenarioError, match=r"line 12: the two ends of a concurrent connection"):
        aqmlab.write_vectors(refused, tmp_path / "v.csv")


def test_what_either_end_sends_of_its_own_accord_is_in_every_format(traced, tmp_path):
    rows = rows_of(aqmlab.write_vectors(traced, tmp_path / "v.csv"))
    keys = ("connection", "think_s", "request_bytes", "server_delay_s", "response_bytes")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("0", "0", "0", "0", "49"),
        ("0", "0", "0", "0.25", "1536"),
        ("0", "0.043483", "15", "0", "0"),
        ("0", "0.435992", "443", "0.002635", "1775"),
        ("0", "0.000001", "23", "0", "0"),
        ("1", "0", "57742", "0", "0"),
        ("2", "0", "253", "0.123693", "510"),
    ]
    again = {**traced, "traffic": [{"name": "web", "kind": "trace", "file": str(tmp_path / "v.csv")}]}
    for name in ("w.csv", "w.parquet", "w.cvec"):
        aqmlab.write_vectors(again, tmp_path / name)
        entry = {**again["traffic"][0], "file": str(tmp_path / name)}
        assert rows_of(aqmlab.write_vectors({**again, "traffic": [entry]}, tmp_path / "x.csv")) == rows


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")
def test_ns2_carries_out_what_either_end_sends_of_its_own_accord(traced, tmp_path):
    """The waits of the file for Tmix are those of the file from which it was made."""
    file = aqmlab.write_vectors(traced, tmp_path / "v.cvec")
    found, closed = carried_out(file, 30)
    assert closed == len(found) == 3
    sent = [(end, size) for _, end, what, size in found[1] if what == "sent"]
    assert sent == [(1, 49), (1, 1536), (0, 15), (0, 443), (1, 1775), (0, 23)]
    at = {size: time for time, _, what, size in found[1] if what == "sent"}
    got = {size: time for time, _, what, size in found[1] if what == "got"}
    assert at[1536] - at[49] == pytest.approx(0.25, abs=2e-6)
    assert at[15] - got[1536] == pytest.approx(0.043483, abs=2e-6)
    assert at[443] - at[15] == pytest.approx(0.435992, abs=2e-6)
    assert at[1775] - got[443] == pytest.approx(0.002635, abs=2e-6)
    assert at[23] - got[1775] == pytest.approx(1e-6, abs=2e-6)
    assert [event[1:] for event in found[2]] == [(0, "sent", 57742), (1, "got", 57742)]


def test_connections_without_a_request_or_a_response_are_written_and_read(scenario, tmp_path):
    """A trace with a row per connection may lack either; its vectors are a trace, too."""
    (tmp_path / "t.csv").write_text(
        "start_s,request_bytes,response_bytes\n0.5,0,900\n1,300,0\n", encoding="utf-8"
    )
    sizes = [("0", "900"), ("300", "0")]
    for source, name in (
        ("t.csv", "u.csv"),
        ("u.csv", "u.parquet"),
        ("u.parquet", "u.cvec"),
        ("u.cvec", "v.csv"),
    ):
        entry = {"name": "web", "kind": "trace", "file": str(tmp_path / source)}
        aqmlab.write_vectors({**scenario, "traffic": [entry]}, tmp_path / name)
    rows = rows_of(tmp_path / "v.csv")
    assert [(row["request_bytes"], row["response_bytes"]) for row in rows] == sizes
