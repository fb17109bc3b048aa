"""What programs write about themselves: readers of common tools, and files that are something else."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from aqmlab.errors import UsageError
from aqmlab.metrics import find
from aqmlab.recordings.programs import ResultsError
from aqmlab.recordings.programs.files import content
from aqmlab.recordings.programs.logs import flent, qlog
from aqmlab.recordings.programs.tools import PRINTED, curl, iperf3, named, netperf


def test_named_values_are_an_object_of_numbers(tmp_path):
    file = tmp_path / "x.json"
    assert named(file, b'{"startup_s": 0.5, "stalls": 2, "unknown": null}') == {
        "startup_s": 0.5,
        "stalls": 2.0,
    }
    assert named(file, b"{}") == {}


@pytest.mark.parametrize(
    ("data", "place", "why"),
    [
        (b'{"a": 1,\n "b": }', "line 2, column 7", "not JSON"),
        (b"[1, 2]", "", "write one object"),
        (b'{"a": {"b": 1}}', "a", "a number is expected, not an object"),
        (b'{"a": "7"}', "a", 'not a text ("7")'),
        (b'{"a": true}', "a", "not a truth value (true)"),
        (b'{"a": NaN}', "", "`NaN` is not a number of JSON"),
        (b'{"a": 1e999}', "a", "not finite"),
        (b'{"a": 1' + b"0" * 400 + b"}", "a", "not finite"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "", "digit"),
        (b'{"a": 1, "a": 2}', "", "appears twice"),
        (b'{"../x": 1}', "", "small letters"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "", "too many levels"),
        (b"\xff\xfe{}", "", "not UTF-8"),
        (json.dumps({f"n{i}": 1 for i in range(1001)}).encode(), "", "1001 names"),
    ],
)
def test_anything_else_is_refused_with_file_and_place(data, place, why, tmp_path):
    file = tmp_path / "web-client-0.json"
    with pytest.raises(ResultsError) as refused:
        named(file, data)
    text = str(refused.value)
    assert f"`{file}`" in text
    assert place in text
    assert why in text
    assert len(text) < 600


@pytest.mark.parametrize("form", sorted(set(PRINTED) - {"json"}))
def test_every_reader_refuses_what_is_not_its_form(form, tmp_path):
    for data in (b"\0" * 100, b"x", b"[]", b'{"end": 3}', b'{"end": []}\n', b"{}}", b"THROUGHPUT=x\n"):
        with pytest.raises(ResultsError, match="web"):
            PRINTED[form](tmp_path / "web", data)


def test_only_regular_files_of_limited_size_are_read(tmp_path):
    """A pipe would block, a link may lead anywhere, and a small file may decompress to a large one."""
    assert content(tmp_path / "none") is None
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\0" * (65 << 20), 9))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    (tmp_path / "other.gz").write_bytes(b"not gzip")
    for name in ("pipe", "link", "folder", "bomb.gz", "cut.gz", "other.gz"):
        with pytest.raises(ResultsError, match=name):
            content(tmp_path / name)
    (tmp_path / "good.gz").write_bytes(gzip.compress(b"x" * 1000))
    assert content(tmp_path / "good.gz") == b"x" * 1000


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="there is no iperf3")
@pytest.mark.parametrize("way", [[], ["-u", "-b", "20M"]], ids=["tcp", "udp"])
def test_what_iperf3_itself_prints_is_read(way, tmp_path):
    """The oracle is iperf3 over the loopback device, whose plain output has the same figures."""
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", "52017"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            ended = subprocess.run(
                ["iperf3", "-c", "127.0.0.1", "-p", "52017", "-t", "1", "--json", *way],
                capture_output=True,
                check=False,
            )
            if b'"error"' not in ended.stdout:
                break
            threading.Event().wait(0.05)
    finally:
        with suppress(ProcessLookupError):
            server.terminate()
        server.wait(10)
    values = iperf3(tmp_path / "x.out", ended.stdout)
    assert values["sent_bps"] == pytest.approx(8 * values["sent_bytes"], rel=0.2), "it sends for a second"
    assert values["sent_bps"] > 1e6
    if way:
        assert values["jitter_s"] < 0.1
        assert 0 <= values["lost_percent"] <= 100
    else:
        assert values["received_bytes"] == pytest.approx(values["sent_bytes"], rel=0.2)
        assert values["retransmits"] >= 0
        assert 0 < values["rtt_mean_s"] < 0.5


def test_a_failed_iperf3_reports_its_own_error(tmp_path):
    data = b'{"start": {}, "error": "unable to connect to server: Connection refused"}'
    with pytest.raises(ResultsError, match="iperf3 reports: unable to connect"):
        iperf3(tmp_path / "x", data)


class _Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", "5000")
        self.end_headers()
        self.wfile.write(b"x" * 5000)

    def log_message(self, *_arguments):
        pass


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_what_curl_itself_prints_is_read(tmp_path):
    with HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        ended = subprocess.run(
            [*("curl", "-s", "-w", "%{json}\n"), *("-o", "a", f"{url}/x", "-o", "b", f"{url}/missing")],
            capture_output=True,
            check=True,
            cwd=tmp_path,
        )
        server.shutdown()
    values = curl(tmp_path / "x.out", ended.stdout)
    assert (values["transfers"], values["failed_transfers"], values["downloaded_bytes"]) == (2, 1, 5000)
    assert 0 < values["connect_s"] <= values["first_byte_s"] <= values["total_s"] < 5
    assert values["download_bps"] > 0


def test_netperf_prints_a_line_per_selector(tmp_path):
    """Names and units as in netperf's list of output selectors (doc/omni_output_list.txt)."""
    data = b"MIGRATED TCP_RR TEST\nTHROUGHPUT=9.45\nTHROUGHPUT_UNITS=10^6bits/s\nP99_LATENCY=2500\nJUNK=x\n"
    assert netperf(tmp_path / "x", data) == {"throughput_bps": 9.45e6, "latency_p99_s": pytest.approx(2.5e-3)}
    rr = netperf(tmp_path / "x", b"THROUGHPUT=120.5\nTHROUGHPUT_UNITS=Trans/s\n")
    assert rr == {"transactions_per_s": 120.5}
    with pytest.raises(ResultsError, match="line 2, THROUGHPUT_UNITS"):
        netperf(tmp_path / "x", b"THROUGHPUT=1\nTHROUGHPUT_UNITS=parsecs\n")


def test_flent_series_become_means_in_base_units(tmp_path):
    """The members are those that flent's documentation of its data format (version 4) names."""
    data = {
        "version": 4,
        "x_values": [0.0, 0.2, 0.4],
        "results": {
            "Ping (ms) ICMP": [10.0, None, 20.0],
            "TCP upload avg": [4.0, 6.0, None],
            "empty": [None],
        },
        "metadata": {"SERIES_META": {"TCP upload avg": {"UNITS": "Mbits/s"}}},
        "raw_values": {},
    }
    assert flent(tmp_path / "x", json.dumps(data).encode()) == {
        "ping_icmp_mean_s": pytest.approx(0.015),
        "tcp_upload_avg_mean_bps": pytest.approx(5e6),
    }
    for wrong in ({**data, "version": 3}, {**data, "results": {"a": 7}}, {**data, "results": {"a": ["x"]}}):
        with pytest.raises(ResultsError):
            flent(tmp_path / "x", json.dumps(wrong).encode())


EVENTS = [
    {"time": 0.0, "name": "transport:packet_sent", "data": {}},
    {"time": 1.0, "name": "transport:packet_sent", "data": {}},
    {"time": 30.0, "name": "transport:packet_received", "data": {}},
    {"time": 31.0, "name": "recovery:packet_lost", "data": {}},
    {
        "time": 31.0,
        "name": "recovery:metrics_updated",
        "data": {"smoothed_rtt": 40.0, "congestion_window": 12000},
    },
    {"time": 60.0, "name": "quic:recovery_metrics_updated", "data": {"smoothed_rtt": 20.0, "min_rtt": 18.0}},
]
QUIC = {
    "packets_sent": 2.0,
    "packets_received": 1.0,
    "packets_lost": 1.0,
    "lost_percent": 50.0,
    "rtt_mean_s": pytest.approx(0.03),
    "rtt_min_s": pytest.approx(0.018),
    "cwnd_mean_bytes": 12000.0,
}


def test_qlog_is_read_as_json_and_as_a_sequence(tmp_path):
    whole = json.dumps({"qlog_version": "0.3", "traces": [{"events": EVENTS}]}).encode()
    assert qlog(tmp_path / "x", whole) == QUIC
    head = {"qlog_format": "JSON-SEQ", "qlog_version": "0.3", "trace": {}}
    sequence = b"".join(b"\x1e" + json.dumps(record).encode() + b"\n" for record in (head, *EVENTS))
    assert qlog(tmp_path / "x", sequence) == QUIC
    # The last record of a program that was killed is incomplete.
    assert qlog(tmp_path / "x", sequence + b'\x1e{"name": "transport:pac') == QUIC
    with pytest.raises(ResultsError, match="record 2"):
        qlog(tmp_path / "x", b'\x1e{}\n\x1e{"name"\n')
    with pytest.raises(ResultsError, match="no events"):
        qlog(tmp_path / "x", b'{"traces": []}')


def test_the_qlog_of_aioquic_is_read(tmp_path):
    pytest.importorskip("aioquic")
    from aioquic.quic.logger import QuicLogger

    logger = QuicLogger()
    trace = logger.start_trace(is_client=True, odcid=b"12345678")
    for category, event in (("transport", "packet_sent"), ("transport", "packet_received")):
        trace.log_event(category=category, event=event, data={"raw": {"length": 1200}})
    data = {"smoothed_rtt": trace.encode_time(0.025)}
    trace.log_event(category="recovery", event="metrics_updated", data=data)
    values = qlog(tmp_path / "x", json.dumps(logger.to_dict()).encode())
    assert (values["packets_sent"], values["packets_received"]) == (1.0, 1.0)
    assert values["rtt_mean_s"] == pytest.approx(0.025)


def test_metrics_of_programs_have_the_unit_of_their_name():
    units = {
        "program_startup_s": ("s", "program: startup"),
        "program_sent_bps": ("bit/s", "program: sent"),
        "program_transactions_per_s": ("1/s", "program: transactions"),
        "program_lost_percent": ("%", "program: lost"),
        "program_stalls": ("", "program: stalls"),
    }
    for name, found in units.items():
        assert (find(name).unit, find(name).label) == found
        assert find(name).formula.over == "programs"
    assert find("program_total_s{class=web}").base == "program_total_s"
    for wrong in ("program_", "program_A", "program_a-b"):
        with pytest.raises(UsageError, match="small letters"):
            find(wrong)
