"""Captured packets, read by tshark: they agree with the recording's books and have no errors."""

from __future__ import annotations

import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.paths import load
from living import FAITHFUL, HOST_LIMIT, NOT_FAITHFUL, run_aqmlab

tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

CHECKS = [f"-o{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
PLAIN_FIELDS = [
    "frame.time_epoch",
    "frame.interface_name",
    "frame.len",
    "frame.packet_flags_direction",
    "ip.dsfield.ecn",
    "frame.comment",
]
FIELDS = ["-Tfields", *(word for field in PLAIN_FIELDS for word in ("-e", field))]
WRONG = (
    "_ws.malformed or _ws.short or ip.checksum.status == Bad"
    # One's complement arithmetic has two zeros. Kernels sometimes apply the rule for a zero checksum, which
    # only UDP requires, to TCP as well.
    " or (tcp.checksum.status == Bad and not tcp.checksum.ffff)"
    " or udp.checksum.status == Bad or _ws.expert.severity == error"
)
RIGHT = (
    "ip.checksum.status == Good"
    " and (tcp.checksum.status == Good or tcp.checksum.ffff or udp.checksum.status == Good)"
)
REASONS = ("early", "forced", "overflow", "injected")


class Packet(NamedTuple):
    """The fields of a packet according to tshark."""

    at_ns: int
    port: str
    length: int
    leaves: bool
    ecn: int
    comment: str

    @classmethod
    def of(cls, line: str) -> Packet:
        at, port, length, direction, ecn, comment = line.split("\t")
        seconds, nanoseconds = at.split(".")
        assert len(nanoseconds) == 9
        at_ns = int(seconds) * 10**9 + int(nanoseconds)
        return cls(at_ns, port, int(length), int(direction, 0) == 2, int(ecn), comment)

    @property
    def waited_ns(self) -> int:
        return int(self.comment.removeprefix("queueing delay ").split(" ns")[0])

    def says(self, words: str) -> bool:
        return words in self.comment.split(", ")


def dissect(file, *arguments):
    command = ["tshark", "-r", str(file), *CHECKS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def scenario() -> dict[str, Any]:
    """Data crosses a short RED queue, ACKs cross a small one, and all flows end before the run does."""
    queue = {
        "kind": "red",
        "limit": "15p",
        "min_th": "3p",
        "max_th": "9p",
        "max_p": 0.1,
        "w_q": 0.02,
        "gentle": False,
        "ecn": True,
    }
    return {
        "title": "Captured",
        "duration": "30s",
        "warmup": "0s",
        "topology": {
            "kind": "dumbbell",
            "rate": "4Mbit",
            "delay": "10ms",
            "queue": queue,
            "reverse_rate": "100kbit",
            "reverse_queue": {"kind": "droptail", "limit": "4p"},
        },
        "traffic": [
            {
                "name": "ecn",
                "kind": "bulk",
                "count": 3,
                "bytes": "1MiB",
                "rtt": "50ms",
                "tcp": {"profile": "rfc", "ecn": True},
            },
            {
                "name": "sack",
                "kind": "bulk",
                "count": 3,
                "bytes": "1MiB",
                "rtt": "60ms",
                "tcp": {"profile": "rfc", "recovery": "sack"},
            },
            {"name": "udp", "kind": "poisson", "rate": "100kbit", "stop": "15s"},
        ],
        "record": {"packets": {"links": ["bottleneck", "reverse"], "events": ["dequeue", "drop"]}},
    }


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    path = tmp_path_factory.mktemp("captured") / "run"
    return aqmlab.run(scenario(), output=path, pcap=["all"], pcap_bytes=1600, report=False)


@pytest.fixture(scope="module")
def packets(captured):
    (run,) = captured.runs
    return [Packet.of(line) for line in dissect(run.path / "packets.pcapng", *FIELDS)]


@tshark
def test_the_packets_are_the_books(captured, packets):
    (run,) = captured.runs
    columns = [f"{what}_{reason}_packets" for what in ("dropped", "marked") for reason in REASONS]
    named = ["queue", "departures_packets", "departures_bytes", "sojourn_sum_ns", *columns]
    rows = captured.tables.select(
        "summary", f"SELECT {', '.join(named)} FROM summary WHERE class = '*'", [run]
    )
    assert len(rows) == 2
    for row in rows:
        book = dict(zip(named, row, strict=True))
        here = [packet for packet in packets if packet.port == book["queue"]]
        left = [packet for packet in here if packet.leaves]
        assert len(left) == book["departures_packets"]
        assert sum(packet.length for packet in left) == book["departures_bytes"]
        assert sum(packet.waited_ns for packet in left) == book["sojourn_sum_ns"]
        for column in columns:
            words = " ".join(column.split("_")[:2])
            assert sum(packet.says(words) for packet in here) == book[column], (book["queue"], column)
        dropped = sum(book[f"dropped_{reason}_packets"] for reason in REASONS)
        assert len(here) - len(left) == dropped
    said = Counter(word for packet in packets for word in packet.comment.split(", ")[1:])
    seen = ("marked early", "dropped early", "dropped forced", "dropped overflow")
    assert all(said[words] > 10 for words in seen), said


@tshark
def test_times_and_marks_are_exact(captured, packets):
    (run,) = captured.runs
    told = captured.tables.rows("packets", "t_ns, place, wire_bytes, event = 'dequeue'", runs=[run])
    assert [packet[:4] for packet in packets] == told
    assert any(packet.at_ns % 1000 for packet in packets)
    marked = [packet for packet in packets if "marked" in packet.comment]
    assert marked
    assert all(packet.ecn == 3 for packet in marked)
    # Only one queue marks, so every CE packet was marked there.
    assert len(marked) == sum(packet.ecn == 3 for packet in packets)
    # At 4 Mbit/s, a byte takes 2000 ns, and no transmission begins before the previous one has ended.
    left = [packet for packet in packets if packet.leaves and packet.port == "bottleneck"]
    for one, next_one in pairwise(left):
        assert next_one.at_ns - one.at_ns >= one.length * 2000


@tshark
def test_nothing_is_malformed_and_all_checksums_are_right(captured):
    (run,) = captured.runs
    file = run.path / "packets.pcapng"
    assert dissect(file, "-Y", WRONG) == []
    assert len(dissect(file, "-Y", RIGHT)) == len(dissect(file))
    # The dissector recognises SACK options, and the payload lengths are those of the profile.
    assert len(dissect(file, "-Y", "tcp.options.sack_le")) > 50
    lengths = set(dissect(file, "-Y", "ip.src == 198.18.1.1", "-Tfields", "-e", "tcp.len"))
    assert {"0", "1460"} <= lengths


@tshark
def test_a_short_capture_keeps_the_lengths(packets, tmp_path):
    short = aqmlab.run(scenario(), output=tmp_path / "run", pcap=["reverse"], pcap_bytes=40, report=False)
    (run,) = short.runs
    lines = dissect(run.path / "packets.pcapng", "-Tfields", "-e", "frame.cap_len", "-e", "frame.len")
    assert all(line.split("\t")[0] == "40" for line in lines)
    expected = [packet.length for packet in packets if packet.port == "reverse"]
    assert [int(line.split("\t")[1]) for line in lines] == expected


@tshark
@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_a_kernels_packets_are_captured_as_they_leave(user, live_folder):
    words = ("--pcap", "all", "--pcap-bytes", "1600", "-o", "out", "--no-report", "-q")
    ended = run_aqmlab(user, "live", "live.toml", *words, cwd=live_folder)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    captured = load(live_folder / "out")
    (run,) = captured.runs
    file = run.path / "packets.pcapng"
    assert dissect(file, "-Y", WRONG) == []
    assert len(dissect(file, "-Y", RIGHT)) == len(dissect(file))
    packets = [Packet.of(line) for line in dissect(file, *FIELDS)]
    told = run.manifest.live["capture"]
    columns = [f"dropped_{reason}_packets" for reason in REASONS]
    named = ["queue", "sojourn_count", "sojourn_sum_ns", *columns]
    for row in captured.tables.rows("summary", ", ".join(named), "WHERE class = '*'"):
        book = dict(zip(named, row, strict=True))
        here = [packet for packet in packets if packet.port == book["queue"]]
        assert told[book["queue"]] == {"packets": len(here), "missed": 0}
        # The capture begins with the run and ends with the drain.
        measured = [packet for packet in here if run.t0_ns < packet.at_ns <= run.t1_ns]
        left = [packet for packet in measured if packet.leaves]
        assert len(left) == book["sojourn_count"]
        assert sum(packet.waited_ns for packet in left) == book["sojourn_sum_ns"]
        for column in columns:
            words = " ".join(column.split("_")[:2])
            assert sum(packet.says(words) for packet in measured) == book[column], (book["queue"], column)
    marked = [packet for packet in packets if "marked" in packet.comment]
    assert marked
    assert all(packet.ecn == 3 for packet in marked)


def ones_complement_sum(octets):
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def segment(checksum):
    """An acknowledgment whose correct checksum is zero, but which carries ``checksum``."""
    ends = bytes([198, 18, 0, 1, 198, 19, 0, 1])

    def tcp(window, checksum):
        return struct.pack(">HHIIBBHHH", 1024, 5001, 1, 1, 0x50, 0x10, window, checksum, 0)

    # The TCP window that makes the one's complement sum all ones.
    window = 0xFFFF - ones_complement_sum(ends + struct.pack(">HH", 6, 20) + tcp(0, 0))
    header = struct.pack(">BBHHHBBH", 0x45, 0, 40, 1, 0x4000, 64, 6, 0) + ends
    header = header[:10] + struct.pack(">H", 0xFFFF - ones_complement_sum(header)) + header[12:]
    return header + tcp(window, checksum)


@tshark
def test_either_zero_is_a_right_checksum_and_nothing_else_is(tmp_path):
    file = tmp_path / "three.pcap"
    packets = [segment(checksum) for checksum in (0, 0xFFFF, 1)]
    blocks = (struct.pack("<IIII", 1, 0, len(packet), len(packet)) + packet for packet in packets)
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101) + b"".join(blocks))
    numbers = ("-Tfields", "-e", "frame.number")
    assert dissect(file, "-Y", RIGHT, *numbers) == ["1", "2"]
    assert dissect(file, "-Y", WRONG, *numbers) == ["3"]


FILES_UP_TO = 'ulimit -f {} && exec "$@"'
"""The limit is in blocks of 512 bytes: a write beyond it fails, as on a full disk."""


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_packets_that_find_no_room_take_nothing_else_of_a_live_run_with_them(user, live_folder):
    # About 700 KiB are written, 256 KiB at a time, so the limit is reached in the middle of the run.
    within = ["sh", "-c", FILES_UP_TO.format(600), "sh"]
    words = ("--pcap", "all", "-o", "out", "--no-report", "-q")
    ended = run_aqmlab(user, "live", "live.toml", *words, cwd=live_folder, within=within)
    assert ended.returncode == HOST_LIMIT, ended.stderr
    assert ended.stderr.startswith("error: main, seed 1: `packets.pcapng` could not be written beyond "), (
        ended.stderr
    )
    assert ended.stderr.count("\n") == 1
    (run,) = load(live_folder / "out").runs
    assert not list(run.path.glob("*.pcapng"))
    assert not list((live_folder / "out").glob("*/.*")), "nothing half written is left"
    live = run.manifest.live
    assert live["capture_failure"]["reason"] in ended.stderr
    assert 0 < live["capture_failure"]["at_ns"] < run.t1_ns
    departures = 0
    for queue, left in load(live_folder / "out").tables.rows(
        "summary", "queue, departures_packets", "WHERE class = '*'"
    ):
        assert live["capture"][queue]["packets"] == 0
        assert live["capture"][queue]["missed"] >= left
        departures += left
    assert departures > 100, "the run went on"
    (remark,) = [remark for remark in live["remarks"] if "packets.pcapng" in remark]
    assert "with the packets of `bottleneck`, `reverse`" in remark


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_a_live_run_whose_tables_find_no_room_leaves_nothing(user, live_folder):
    # There is room for `experiment.json` but not for a manifest.
    within = ["sh", "-c", FILES_UP_TO.format(140), "sh"]
    ended = run_aqmlab(
        user, "live", "live.toml", "--pcap", "all", "-o", "out", cwd=live_folder, within=within
    )
    assert ended.returncode == HOST_LIMIT, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: cannot write `")
    assert "Traceback" not in ended.stderr
    assert not (live_folder / "out").exists()


def test_there_is_no_capture_unless_asked_for(experiment):
    assert not list(experiment.path.glob("**/*.pcapng"))


def test_a_port_that_is_not_there_is_refused_and_leaves_nothing(small, tmp_path):
    with pytest.raises(
        UsageError, match=r"there is no port `middle` in arm `DropTail`; the ports are `bottleneck`"
    ):
        aqmlab.run(small, output=tmp_path / "run", pcap=["middle"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("count", [0, 19, 65_536, -1])
def test_a_number_of_bytes_that_makes_no_sense_is_refused(small, tmp_path, count):
    with pytest.raises(UsageError, match="bytes of each packet cannot be captured; give 20 to 65535"):
        aqmlab.run(small, output=tmp_path / "run", pcap=["all"], pcap_bytes=count)
    assert not (tmp_path / "run").exists()


def test_the_command_line_captures_the_ports_it_is_told(small_file, tmp_path, aqmlab_cli):
    words = ["--pcap", "bottleneck, reverse", "--runs", "1", "--no-report", "-o", tmp_path / "out"]
    assert aqmlab_cli("run", small_file, *words).returncode == 0
    files = sorted((tmp_path / "out").glob("*/seed-1/packets.pcapng"))
    assert len(files) == 2
    for file in files:
        head = file.read_bytes()[:1000]
        assert head.startswith(bytes.fromhex("0a0d0d0a"))
        assert b"bottleneck" in head
        assert b"reverse" in head


def test_no_port_is_no_port(small_file, tmp_path, aqmlab_cli):
    ended = aqmlab_cli("run", small_file, "--pcap", "", "-o", tmp_path / "out")
    assert ended.returncode == 2
    assert "there is no port ``" in ended.stderr
    assert not (tmp_path / "out").exists()


def begin_long_run(small_file, out):
    """Start a captured run that takes hours; return its process as soon as the capture has begun."""
    text = small_file.read_text(encoding="utf-8").replace('duration = "6s"', 'duration = "20h"')
    small_file.write_text(text, encoding="utf-8")
    options = ["--pcap", "all", "--runs", "1", "-j", "1", "-o", str(out)]
    command = [sys.executable, "-m", "aqmlab", "run", str(small_file), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not any(file.stat().st_size for file in out.rglob("packets.pcapng")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    return process


def test_an_interrupted_run_leaves_no_part_of_a_capture(small_file, tmp_path):
    out = tmp_path / "out"
    process = begin_long_run(small_file, out)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not out.exists(), sorted(out.rglob("*"))


def test_a_capture_that_fills_the_disk_ends_with_exit_3_and_leaves_nothing(small_file, tmp_path):
    # No file may be larger than a megabyte; with 256 KiB per write, the limit is reached in the middle
    # of the run.
    text = small_file.read_text(encoding="utf-8").replace('duration = "6s"', 'duration = "10min"')
    small_file.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    limited = (
        "import resource, signal, sys; from aqmlab.cli import main;"
        " signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        " resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); main()"
    )
    words = ["run", str(small_file), "--pcap", "all", "--runs", "1", "-j", "1", "-o", str(out)]
    ended = subprocess.run(
        [sys.executable, "-c", limited, *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3, ended.stderr
    assert "cannot write" in ended.stderr
    assert "packets.pcapng" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not out.exists(), sorted(out.rglob("*"))
