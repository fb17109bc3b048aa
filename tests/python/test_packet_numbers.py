"""Each packet has a number of its own, which exports and figures follow from event to event."""

from __future__ import annotations

import json
from collections import defaultdict

import duckdb
import numpy as np
import pytest

import aqmlab
from aqmlab.recordings.traces import Positions, follow


def cbr(rate, size, **more):
    return {"name": "cbr", "kind": "cbr", "rate": rate, "size": size, "start": "0s", **more}


def lot(hops, rate, **more):
    topology = {"kind": "parking_lot", "hops": hops, "rate": rate, "delay": "5ms", "access_rate": "none"}
    return topology | {"queue": {"kind": "droptail", "limit": "100p"}} | more


def scenario(duration, topology, traffic, record, **more):
    return {
        "title": "Numbers",
        "duration": duration,
        "warmup": "0s",
        "seed": 1,
        "runs": 1,
        "topology": topology,
        "traffic": [traffic],
        "record": record,
        **more,
    }


@pytest.fixture
def trace(tmp_path):
    """The fields of each line of a scenario's ns-2 trace, and the run."""

    def call(scenario):
        made = aqmlab.run(scenario, output=tmp_path / "run", report=False)
        (file,) = aqmlab.export(made.path, "ns2", tmp_path / "ns2")
        return [line.split() for line in file.read_text(encoding="ascii").splitlines()], made

    return call


def times(lines, sign, source):
    """The time of an event in ns, by packet: those of a link are told by the node that it begins at."""
    return {
        line[11]: round(float(line[1]) * 1e9) for line in lines if (line[0], line[2]) == (sign, str(source))
    }


def test_a_packet_enters_the_next_link_when_it_has_passed_the_previous_one(trace):
    """A stage without delay that loses a tenth of the packets lies between two links of 10 Mbit/s."""
    lines, _ = trace(
        scenario(
            "10s",
            lot(2, "10Mbit"),
            cbr("1Mbit", "1000B"),
            {"packets": {"links": ["hop1", "hop2"]}},
            delay=[{"class": "cbr", "at": "r1", "loss": 0.1}],
        )
    )
    received, entered = times(lines, "r", 0), times(lines, "+", 1)
    assert len(entered) == sum(line[0] == "+" and line[2] == "1" for line in lines)
    assert {entered[number] - received[number] for number in entered} == {0}
    lost = received.keys() - entered.keys()
    # Of 1250 packets, 125 are lost on average; four standard deviations are 42.
    assert len(received) == 1250
    assert 83 <= len(lost) <= 167
    # The loss leaves gaps in the sequence of the next hop, and in nothing else.
    sequence = [int(line[10]) for line in lines if line[0] == "+" and line[2] == "1"]
    assert sequence == sorted(set(range(len(received))) - {int(number) for number in lost})


def test_waits_are_right_wherever_a_recording_begins(trace):
    """Twice the link's rate keeps 20 packets of 2 ms in the queue, so each that is admitted waits 40 ms."""
    lines, made = trace(
        scenario(
            "4s",
            lot(1, "6Mbit", queue={"kind": "droptail", "limit": "20p"}),
            cbr("12Mbit", "1500B"),
            {"packets": {"links": ["hop1"], "from": "2s"}},
        )
    )
    came, left = times(lines, "+", 0), times(lines, "-", 0)
    waits = {left[number] - came[number] for number in left if number in came}
    assert waits == {40_000_000}
    # Packets that came before the recording leave under numbers of their own.
    assert len(left.keys() - came.keys()) == 20
    dropped = times(lines, "d", 0)
    assert not dropped.keys() & left.keys()
    # The numbers count from the start of the flow: a packet each millisecond.
    first = next(line for line in lines if line[0] == "+")
    assert (round(float(first[1]) * 1e9), int(first[10])) == (2_000_000_000, 2000)
    (run,) = made.runs
    numbers = duckdb.sql(
        f"SELECT list(number ORDER BY t_ns) FROM '{run.path}/packets.parquet' WHERE event = 'enqueue'"
    )
    assert numbers.fetchall()[0][0] == list(range(2000, 4001))


def test_a_victim_from_the_middle_of_the_queue_is_the_packet_that_is_missing(trace):
    lines, _ = trace(
        scenario(
            "10s",
            lot(1, "1Mbit", queue={"kind": "blue", "limit": "20p", "victim": "random"}),
            cbr("1.5Mbit", "500B"),
            {"packets": {"links": ["hop1"]}},
        )
    )
    came, left, dropped = (times(lines, sign, 0) for sign in "+-d")
    order = sorted(came, key=came.get)
    assert [number for number in order if number in left] == sorted(left, key=left.get)
    assert not left.keys() & dropped.keys()
    # A packet waits behind at most 20 others of 4 ms each, and for the rest of a transmission.
    assert all(0 <= left[number] - came[number] <= 21 * 4_000_000 for number in left)
    victims = sum(dropped[number] > came[number] for number in dropped)
    assert victims > len(dropped) / 2 > 50


def test_a_datagram_has_the_same_sequence_number_at_every_link(trace):
    """The second of three links is not recorded and drops packets."""
    hop2 = {"rate": "2Mbit", "queue": {"kind": "droptail", "limit": "5p"}}
    lines, _ = trace(
        scenario(
            "5s",
            lot(3, "10Mbit", hop2=hop2),
            cbr("3Mbit", "1000B"),
            {"packets": {"links": ["hop1", "hop3"]}},
        )
    )
    of_id = defaultdict(set)
    for line in lines:
        of_id[line[11]].add(line[10])
    assert all(len(sequences) == 1 for sequences in of_id.values())
    first, last = times(lines, "+", 0), times(lines, "+", 2)
    assert 0.6 < len(last) / len(first) < 0.75
    spent = {last[number] - first[number] for number in last}
    # Two links of 5 ms each, 0.8 ms and 4 ms per packet, and at most five packets and a rest in front.
    assert min(spent) == 14_800_000
    assert max(spent) <= 14_800_000 + 6 * 4_000_000


def test_a_packet_is_received_when_it_arrives_and_only_within_the_run(trace):
    """Of 1500 packets in two seconds, 750 pass a link with a delay of one second by the end."""
    lines, _ = trace(
        scenario(
            "2s",
            lot(1, "9Mbit", delay="1s"),
            cbr("6Mbit", "1000B", start="100us"),
            {"packets": {"links": ["hop1"]}},
        )
    )
    counts = {sign: sum(line[0] == sign for line in lines) for sign in "+-r"}
    assert counts == {"+": 1500, "-": 1500, "r": 750}
    assert max(float(line[1]) for line in lines) <= 2


def test_a_packet_is_received_before_it_enters_the_next_link(trace):
    """At 45 Mbit/s, 1000 bytes take 177,777.8 ns: the links round as they carry the remainder over."""
    lines, _ = trace(
        scenario(
            "2s",
            lot(2, "45Mbit"),
            cbr("44Mbit", "1000B"),
            {"packets": {"links": ["hop1", "hop2"]}},
        )
    )
    at = [float(line[1]) for line in lines]
    assert at == sorted(at)
    place = {(line[11], line[2], line[0]): i for i, line in enumerate(lines)}
    both = [number for number, source, sign in place if (source, sign) == ("1", "+")]
    assert len(both) > 10_000
    for number in both:
        before, after = place[number, "0", "r"], place[number, "1", "+"]
        assert (lines[before][1], after > before) == (lines[after][1], True)


TCP = {
    "duration": "3s",
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "queue": {"kind": "droptail", "limit": "8p"},
    },
    "traffic": {"name": "ftp", "kind": "bulk", "count": 2, "rtt": "30ms", "start": "0s"},
}


def test_qlog_counts_from_the_flows_start(tmp_path):
    whole, part = (
        aqmlab.run(
            scenario(**TCP, record={"trace": ["ftp"], "packets": {"flows": ["ftp"], **more}}),
            output=tmp_path / name,
            report=False,
        )
        for name, more in (("whole", {}), ("part", {"from": "1s"}))
    )
    packets = whole.runs[0].path / "packets.parquet"
    sent = "event = 'send' AND toward = 'receiver'"
    before = duckdb.sql(
        f"SELECT flow, count(*) FROM '{packets}' WHERE {sent} AND t_ns < 1000000000 GROUP BY flow"
    )
    (file,) = aqmlab.export(part.path, "qlog", tmp_path / "qlog")
    traces = json.loads(file.read_text(encoding="utf-8"))["traces"]
    for flow, count in sorted(before.fetchall()):
        events = traces[flow]["events"]
        numbers = [
            event["data"]["header"]["packet_number"]
            for event in events
            if event["name"] == "quic:packet_sent"
        ]
        assert numbers == list(range(count, count + len(numbers)))
        assert count > 50 < len(numbers)
        # A retransmission is a packet of its own: fewer positions than packets.
        positions = {event["tcp_seq"] for event in events if event["name"] == "quic:packet_sent"}
        assert len(positions) < len(numbers)
        received = [event for event in events if event["name"] == "quic:packet_received"]
        acks = [event["data"]["header"]["packet_number"] for event in received]
        assert acks == sorted(set(acks))
        assert acks[0] > 30


def test_positions_continue_beyond_what_headers_hold():
    positions = Positions()
    full = 2**32
    assert positions.seq("receiver", full - 1000) == full - 1000
    assert positions.seq("receiver", 460) == full + 460
    # A retransmission and an acknowledgment are behind, and the stream of the other direction is another.
    assert positions.seq("receiver", full - 1000) == full - 1000
    assert positions.ack("sender", full - 1000) == full - 1000
    assert positions.ack("sender", 1920) == full + 1920
    assert positions.seq("sender", 1) == 1


def test_after_4_gib_a_segment_is_not_sent_again():
    full = 2**32

    def sent(t_ns, number, seq):
        return (t_ns, "send", "sender", "", "receiver", number, seq % full, 1, 1460, "A", "not-ECT")

    rows = [sent(i, i, full - 2920 + 1460 * i) for i in range(4)]
    packets = follow([*rows, sent(9, 4, full)])
    assert [packet.again for packet in packets] == [False] * 4 + [True]
    assert np.diff([packet.seq for packet in packets]).tolist() == [1460, 1460, 1460, -2920 + 1460]
