"""Drops, marks and notifications by kind of packet, losses over whole paths, goodput by router."""

from __future__ import annotations

import subprocess
import sys

import pytest

import aqmlab
from aqmlab.claims.check import check
from aqmlab.claims.names import Names
from aqmlab.claims.parse import parse
from aqmlab.claims.scan import MisplacedError
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.metrics import KINDS, Scope, find
from aqmlab.results.cells import Axis
from aqmlab.results.losses import METRICS, kinds_with_losses, losses_by_kind

# The RFCs require these packets: SYN twice, ACK, two segments and the ACK of the server's FIN in the forward
# direction; SYN-ACK, two ACKs and FIN twice in the reverse direction.
CONNECTION = {
    "title": "One connection",
    "duration": "60s",
    "warmup": "0s",
    "runs": 6,
    "topology": {
        "kind": "dumbbell",
        "rate": "10Mbit",
        "delay": "10ms",
        "queue": {"kind": "droptail", "limit": "100p"},
        "faults": {"drop": [1]},
        "reverse_faults": {"drop": [4]},
    },
    "traffic": [
        {
            "name": "one",
            "kind": "bulk",
            "count": 1,
            "bytes": "2920B",
            "rtt": "100ms",
            "tcp": {"mss": "1460B", "initial_window": 2},
        },
    ],
    "claim": [
        {"name": "the SYN", "expect": "drop_percent{class=one, kind=syn} in [49 %, 51 %]"},
        {"name": "others", "expect": "for all kind in (data, ack): drop_percent < 1 %"},
        {"name": "way back", "expect": "drop_percent{queue=reverse, class=one, kind=fin} > 49 %"},
    ],
}

LOT = {
    "title": "Web and files",
    "duration": "20s",
    "warmup": "4s",
    "runs": 1,
    "topology": {"kind": "graph"},
    "node": [{"name": name} for name in ("a", "b", "c")],
    "link": [
        {
            "name": f"{one}-{two}",
            "from": one,
            "to": two,
            "rate": "2Mbit",
            "delay": "5ms",
            "duplex": False,
            "queue": {"kind": "red", "limit": "20p", "min_th": "3p", "max_th": "9p", "ecn": True},
        }
        for one, two in ("ab", "ba", "bc", "cb")
    ],
    "traffic": [
        {
            "name": "web",
            "kind": "requests",
            "from": "a",
            "to": "c",
            "users": 20,
            "think": "50ms",
            "request": "2kB",
            "response": {"exponential": "8kB"},
        },
        {"name": "ftp", "kind": "bulk", "from": "a", "to": "b", "count": 3, "tcp": {"ecn": True}},
        {"name": "udp", "kind": "poisson", "from": "b", "to": "c", "rate": "300kbit"},
    ],
    "record": {"packets": {"links": ["a-b", "b-a", "b-c", "c-b"]}},
}


ROWS = 20 + 3 + 1
"""Number of rows of `flows`; the users' connections are numbered from here on."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    return aqmlab.run(CONNECTION, output=tmp_path_factory.mktemp("connection") / "run", report=False)


@pytest.fixture(scope="module")
def lot(tmp_path_factory):
    return aqmlab.run(LOT, output=tmp_path_factory.mktemp("lot") / "run", report=False)


def value(results, metric, **of):
    (found,) = set(results.values(metric, results.cells[0], Scope(**of)).values())
    return found


def test_a_known_connection_loses_what_was_taken_from_it(connection):
    def of(kind, queue="bottleneck", metric="drop_percent"):
        return value(connection, metric, queue=queue, class_name="one", kind=kind)

    assert [of(kind) for kind in KINDS] == [50.0, 0.0, 0.0, None, None]
    assert [of(kind, "reverse") for kind in KINDS] == [0.0, None, 0.0, 50.0, None]
    assert of("syn", metric="drop_injected_percent") == 50.0
    assert of("syn", metric="notification_percent") == 50.0
    assert of("syn", metric="congestion_notifications") == 0.0, "no law has spoken"
    assert of("syn", metric="mark_percent") is None, "no SYN is ECN-capable"
    assert of("syn", metric="drop_rate_bps") == 40 * 8 / 60
    assert value(connection, "drop_percent", queue="bottleneck", kind="syn") == 50.0


def test_what_a_class_loses_on_all_its_paths(connection):
    # 6 packets in the forward and 5 in the reverse direction, with one lost in each.
    there, back = (value(connection, f"loss_{way}_percent", class_name="one") for way in ("there", "back"))
    assert (there, back) == (pytest.approx(100 / 6), pytest.approx(100 / 5))
    assert value(connection, "loss_percent", class_name="one") == pytest.approx(200 / 11)
    assert value(connection, "loss_percent", class_name="one", kind="fin") == 50.0
    assert value(connection, "loss_percent", class_name="one", kind="ack") == 0.0


def test_claims_speak_of_kinds(connection):
    verdicts = {scored.claim.name: scored.status for scored in aqmlab.score_claims(connection.path)}
    assert verdicts == dict.fromkeys(("the SYN", "others", "way back"), "holds")


def counts():
    row = "sum(arrivals_packets), sum(ect_arrivals_packets)"
    for fate in ("dropped", "marked"):
        row += ", sum(" + " + ".join(
            f"{fate}_{r}_packets" for r in ("early", "forced", "overflow", "injected")
        )
        row += ")"
    return row


def test_percentages_are_those_of_the_rows(lot):
    for queue, class_name, kind, came, capable, dropped, marked in lot.tables.rows(
        "kinds",
        "queue, class, kind, " + counts(),
        "GROUP BY queue, class, kind",
    ):
        of = {"queue": queue, "class_name": class_name, "kind": kind}
        assert value(lot, "drop_percent", **of) == pytest.approx(100 * dropped / came)
        assert value(lot, "notification_percent", **of) == pytest.approx(100 * (dropped + marked) / came)
        assert value(lot, "mark_percent", **of) == (
            pytest.approx(100 * marked / capable) if capable else None
        )


def test_kinds_of_all_classes_and_queues_add_up(lot):
    for name in ("congestion_notifications",):
        for queue in ("a-b", "b-c", "*"):
            for class_name in ("*", "web", "ftp", "web,ftp"):
                of = {"queue": queue, "class_name": class_name}
                parts = [value(lot, name, **of, kind=kind) for kind in KINDS]
                assert sum(parts) == value(lot, name, **of)
    assert value(lot, "congestion_notifications", queue="a-b") > 100


def test_losses_over_whole_paths_are_those_of_the_packets_one_by_one(lot):
    """The web's paths are a-b, b-c and c-b, b-a, so all packets that are sent arrive first at a-b or c-b."""
    rows = {
        event: (everywhere, first, there, first_there)
        for event, everywhere, first, there, first_there in lot.tables.rows(
            "packets",
            "event, count(*), count(*) FILTER (place IN ('a-b', 'c-b')),"
            " count(*) FILTER (place IN ('a-b', 'b-c')), count(*) FILTER (place = 'a-b')",
            f"WHERE t_ns > {lot.runs[0].t0_ns} AND flow >= {ROWS} GROUP BY event",
        )
    }
    lost, _, lost_there, _ = rows["drop"]
    _, sent, _, sent_there = rows["enqueue"]
    assert lost > 100
    for name, expected in (
        ("loss_percent", lost / sent),
        ("loss_there_percent", lost_there / sent_there),
        ("loss_back_percent", (lost - lost_there) / (sent - sent_there)),
    ):
        assert value(lot, name, class_name="web") == pytest.approx(100 * expected)
    # Servers respond, so both directions have data.
    assert value(lot, "drop_percent", queue="*", class_name="web") == pytest.approx(100 * lost / sent)


def test_goodput_is_what_reaches_the_hosts_at_a_router(lot):
    def at(router, class_name="*"):
        return value(lot, "goodput_bps", queue="*", class_name=class_name, router=router)

    assert at("b", "ftp") == value(lot, "goodput_bps", queue="*", class_name="ftp")
    assert at("a", "ftp") is None, "its hosts there only send"
    both = value(lot, "goodput_bps", queue="*", class_name="web")
    assert at("a", "web") + at("c", "web") == pytest.approx(both)
    # A request has 2 kB and its response about 8 kB, and nearly all bytes belong to completed requests.
    ((up, down),) = lot.tables.rows(
        "request_summary", "sum(request_bytes), sum(response_bytes)", "WHERE class = 'web'"
    )
    seconds = lot.measured()[0].interval_s
    assert at("c", "web") == pytest.approx(8 * up / seconds, rel=0.02)
    assert at("a", "web") == pytest.approx(8 * down / seconds, rel=0.02)
    assert at("c") == pytest.approx(at("c", "web") + at("c", "udp"))
    everywhere = sum(at(router) for router in "abc")
    assert everywhere == pytest.approx(value(lot, "goodput_bps", queue="*"))


@pytest.mark.parametrize(
    ("metric", "of", "complaint"),
    [
        ("drop_percent", {"kind": "sin"}, "no kind of packet `sin`; did you mean `syn`"),
        ("utilisation_percent", {"kind": "syn"}, "cannot be computed for a kind of packet"),
        ("drop_percent", {"router": "a"}, "cannot be computed for a router"),
        ("goodput_bps", {"router": "d"}, "no router `d`"),
        ("drop_percent", {"kind": "syn", "window": (5.0, 9.0)}, "leave out the window"),
        ("goodput_bps", {"router": "a", "window": (5.0, 9.0)}, "leave out the window"),
    ],
)
def test_what_cannot_be_asked_is_refused(lot, metric, of, complaint):
    with pytest.raises(UsageError, match=complaint):
        value(lot, metric, **of)


NAMES = Names(
    ("RED",),
    (Axis("topology.queue.kind", "kind", ("topology.queue.kind",), ("red", "pi")),),
    ("q",),
    ("web",),
    ("a", "b"),
)


@pytest.mark.parametrize(
    ("claim", "complaint"),
    [
        ("drop_percent{kind=red, kind=syn} > 1 %", None),
        ("drop_percent{kind=red} > 1 %", None),
        ("goodput_bps{kind=pi, router=a} > 1 Mbit", None),
        ("for all router in (a, b): goodput_bps{kind=pi} > 1 Mbit", None),
        ("drop_percent{kind=syn} > 1 %", "because `kind` \\(red, pi\\) is not fixed"),
        ("drop_percent{kind=sny} > 1 %", "sny"),
        ("goodput_bps{kind=pi, router=z} > 1 Mbit", "no router `z`"),
        ("drop_percent{kind=pi, router=a} > 1 %", "cannot be computed for a router"),
        ("goodput_bps{kind=pi, router=a, from=3s} > 1 Mbit", "accepts no window"),
    ],
)
def test_a_kind_of_packet_is_no_label_of_an_axis_that_is_called_kind(claim, complaint):
    if complaint is None:
        check(parse(claim), NAMES)
    else:
        with pytest.raises(MisplacedError, match=complaint):
            check(parse(claim), NAMES)


def test_a_metric_of_packets_can_be_asked_of_one_kind():
    assert find("drop_percent").asked_of == ("queue", "class", "kind", "window")


def test_a_row_for_each_kind_of_which_packets_came_where_some_were_lost(lot):
    rows = {(row.queue, row.class_name, row.kind): row for row in losses_by_kind(lot)}
    assert {"syn", "data", "ack"} <= set(kinds_with_losses(tuple(rows.values())))
    of = {"queue": "a-b", "class_name": "web", "kind": "data"}
    row = rows[tuple(of.values())]
    for found, name in zip(row.values, METRICS, strict=True):
        expected = value(lot, name, **of)
        assert (found and found.mean) == expected
    ((came,),) = lot.tables.rows(
        "kinds", "arrivals_packets", "WHERE queue = 'a-b' AND class = 'web' AND kind = 'data'"
    )
    assert row.packets.mean == came
    lossless = value(lot, "drop_percent", queue="b-c", class_name="udp") == 0
    assert (("b-c", "udp", "other") not in rows) == lossless
    assert all(row.packets.mean > 0 for row in rows.values())


def test_the_report_and_the_command_line_have_the_rows(lot, tmp_path):
    page = aqmlab.report(lot.path, output=tmp_path / "report.html").read_text()
    assert "Losses and marks by kind of packet" in page
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", "report", lot.path, "--by", "kind", "-o", tmp_path / "again.html"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[1:4] == ["a-b", "web", "syn"]]
    assert len(rows) == 1, done.stdout


def test_kinds_that_lost_nothing_stand_beside_those_that_did(connection):
    # Only a SYN and a FIN were lost.
    assert kinds_with_losses(tuple(losses_by_kind(connection))) == ["syn", "fin"]
    rows = [(row.queue, row.kind, row.packets.mean) for row in losses_by_kind(connection)]
    assert rows == [
        ("bottleneck", "syn", 2),
        ("bottleneck", "data", 2),
        ("bottleneck", "ack", 2),
        ("reverse", "syn", 1),
        ("reverse", "ack", 2),
        ("reverse", "fin", 2),
    ]


def test_more_classes_than_packets_can_name_are_refused():
    classes = [{"name": f"c{i}", "kind": "cbr", "rate": "1kbit"} for i in range(8193)]
    scenario = {"title": "Many", "duration": "1s", "topology": CONNECTION["topology"], "traffic": classes}
    with pytest.raises(ScenarioError, match=r"there are 8193 classes of traffic; at most 8192 are allowed"):
        aqmlab.show(scenario)
