"""Single flows: their data, the tracking of packets, and their figures."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.cumulative import Field, field_of
from aqmlab.figures.ladder import caption
from aqmlab.figures.sequence import sequence_points, time_sequence
from aqmlab.figures.view import View
from aqmlab.plots.draw import draw
from aqmlab.recordings.traces import REACTIONS, FlowName, chosen, flow_names, follow, journeys, trace

SCENE = {
    "title": "Single flows",
    "duration": "12s",
    "seed": 3,
    "runs": 1,
    "topology": {
        "kind": "dumbbell",
        "rate": "1Mbit",
        "delay": "10ms",
        "queue": {"kind": "red", "limit": "15p", "min_th": "3p", "max_th": "9p", "max_p": 0.1, "ecn": True},
        "reverse_queue": {"kind": "droptail", "limit": "4p"},
    },
    "traffic": [
        {"name": "ftp", "kind": "bulk", "count": 2, "rtt": "60ms", "tcp": {"ecn": True}},
        {"name": "old", "kind": "bulk", "count": 2, "rtt": "90ms", "loss": 0.01, "start": "100ms"},
        {"name": "udp", "kind": "poisson", "rate": "50kbit"},
    ],
    "record": {"trace": ["ftp", "old"], "packets": {"flows": ["ftp", {"class": "old", "flows": [1]}, "udp"]}},
    "arm": [{"name": "one"}, {"name": "two", "topology.rate": "2Mbit"}],
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return aqmlab.run(SCENE, output=tmp_path_factory.mktemp("runs") / "flows", report=False)


def row(t_ns, event, place, number, header, reason=""):
    toward, seq, ack, payload, flags = header
    return (t_ns, event, place, reason, toward, number, seq, ack, payload, flags, "not-ECT")


ONE = ("receiver", 1, 1, 1000, "A")
TWO = ("receiver", 1001, 1, 1000, "A")
DUP = ("sender", 1, 1, 0, "A")


def test_a_lost_segment_and_its_copy_are_told_apart():
    rows = [
        row(0, "send", "sender", 0, ONE),
        row(0, "send", "sender", 1, TWO),
        row(5, "enqueue", "hop", 0, ONE),
        row(5, "drop", "hop", 0, ONE, "overflow"),
        row(6, "enqueue", "hop", 1, TWO),
        row(6, "dequeue", "hop", 1, TWO),
        row(20, "arrive", "receiver", 1, TWO),
        row(30, "send", "sender", 2, ONE),
        row(35, "enqueue", "hop", 2, ONE),
        row(35, "mark", "hop", 2, ONE, "early"),
        row(50, "arrive", "receiver", 2, ONE),
    ]
    first, second, copy = follow(rows)
    assert (first.lost_ns, first.lost_at, first.reason, first.arrived_ns) == (5, "hop", "overflow", None)
    assert (second.arrived_ns, second.again) == (20, False)
    assert (copy.arrived_ns, copy.again, copy.marked_ns) == (50, True, [35])


def test_equal_acknowledgments_are_followed_by_their_numbers():
    # Four duplicate ACKs, of which a queue drops the third when the fourth arrives, and sends the second
    # before the first. The packet with the same number in the other direction is another one.
    rows = [row(t, "send", "receiver", t, DUP) for t in (0, 1, 2, 3)]
    rows += [row(4, "send", "sender", 2, ONE)]
    rows += [row(10 + n, "enqueue", "back", n, DUP) for n in range(4)]
    rows += [row(13, "drop", "back", 2, DUP, "overflow")]
    rows += [row(15, "dequeue", "back", 1, DUP), row(16, "dequeue", "back", 0, DUP)]
    rows += [row(30, "arrive", "sender", 1, DUP)]
    assert [(p.sent_ns, p.arrived_ns, p.lost_ns) for p in follow(rows)] == [
        (0, None, None),
        (1, 30, None),
        (2, None, 13),
        (3, None, None),
        (4, None, None),
    ]


def test_what_began_before_the_recording_is_left_out():
    assert follow([row(1, "enqueue", "hop", 7, ONE), row(2, "arrive", "receiver", 7, ONE)]) == []


def test_packets_lost_on_the_first_link_are_lost():
    (packet,) = follow([row(4, "send", "sender", 0, ONE), row(4, "lose", "sender", 0, ONE)])
    assert (packet.lost_ns, packet.lost_at) == (4, "sender")


def test_journeys_of_a_run_are_its_packets(scene):
    for run in scene.runs:
        (counts,) = scene.tables.rows(
            "packets",
            "count(*) FILTER (event = 'send'), count(*) FILTER (event = 'arrive'),"
            " count(*) FILTER (event IN ('drop', 'lose')), count(*) FILTER (event = 'mark')",
            "",
            [run],
        )
        followed = [
            p for flow in flow_names(scene.tables, run, "packets") for p in journeys(scene.tables, run, flow)
        ]
        arrived = [p for p in followed if p.arrived_ns is not None]
        lost = [p for p in followed if p.lost_ns is not None]
        assert (len(followed), len(arrived), len(lost)) == counts[:3]
        assert sum(len(p.marked_ns) for p in followed) == counts[3]
        # The minimum transit time, with a round trip of 60 ms.
        assert min(p.arrived_ns - p.sent_ns for p in arrived) >= 10e6
        retransmitted = scene.tables.rows(
            "flows", "sum(retransmitted_segments)::BIGINT", "WHERE class != 'old' OR index = 1", [run]
        )
        data = [p for p in followed if p.toward == "receiver" and p.flags != ""]
        assert sum(p.again for p in data) == retransmitted[0][0] > 3


def test_a_trace_has_the_reactions_that_the_flow_counted(scene):
    run = scene.runs[0]
    for name in flow_names(scene.tables, run, "trace"):
        of_flow = trace(scene.tables, run, name)
        (counted,) = scene.tables.rows(
            "flows", "timeouts, fast_retransmits, ecn_reductions", f"WHERE flow = {name.flow}", [run]
        )
        assert tuple(len(of_flow.at(event)) for event in REACTIONS) == counted
        assert np.all(np.diff(of_flow.t_s) >= 0)
        assert of_flow.values["cwnd_segments"].min() >= 1


def test_flows_are_chosen_by_name_and_by_class():
    flows = [FlowName(0, "ftp", 0), FlowName(1, "ftp", 1), FlowName(2, "web", 0)]
    assert chosen(flows, [], 2) == flows[:2]
    assert chosen(flows, ["web 0", "ftp"], 9) == [flows[2], *flows[:2]]
    with pytest.raises(UsageError, match=r"no flow `web 1`.*`ftp 0`, `ftp 1`, `web 0`"):
        chosen(flows, ["web 1"], 9)


def test_a_sequence_diagram_counts_in_segments():
    rows = [row(10**9, "send", "sender", 0, ONE), row(2 * 10**9, "send", "sender", 1, TWO)]
    rows += [row(3 * 10**9, "send", "sender", 2, ONE)]
    rows += [row(3 * 10**9, "send", "receiver", 0, ("sender", 1, 2001, 0, "A"))]
    rows += [row(4 * 10**9, "arrive", "sender", 0, ("sender", 1, 2001, 0, "A"))]
    points = sequence_points(follow(rows))
    assert [values.tolist() for values in points.sent] == [[1, 2], [0, 1]]
    assert [values.tolist() for values in points.again] == [[3], [0]]
    assert [values.tolist() for values in points.acked] == [[4], [2]]
    assert len(points.lost[0]) == len(points.marked[0]) == 0


def test_captions_of_a_ladder():
    (syn, segment, ack) = follow(
        [
            row(0, "send", "sender", 0, ("receiver", 0, 0, 0, "SEW")),
            row(0, "send", "sender", 1, ("receiver", 1, 1, 1000, "A")),
            row(0, "send", "receiver", 0, ("sender", 1, 1001, 0, "AE")),
        ]
    )
    assert [caption(p, 0) for p in (syn, segment, ack)] == ["SYN ECE CWR", "1:1001", "ECE ack 1001"]


def test_the_width_of_the_field_is_that_between_first_and_last(scene):
    first, second = FlowName(0, "a", 0), FlowName(1, "a", 1)
    field = Field(np.arange(3.0), {first: np.array([0.0, 10.0, 20.0]), second: np.array([0.0, 4.0, 30.0])})
    assert field.width_bytes.tolist() == [0, 6, 10]
    of_run = field_of(scene.measured()[0], View())
    assert [str(name) for name in of_run.acked_bytes] == ["ftp 0", "ftp 1", "old 0", "old 1"]
    ends = [values[-1] for values in of_run.acked_bytes.values()]
    assert of_run.width_bytes[-1] == max(ends) - min(ends) > 0


KINDS = ("cwnd", "srtt", "time-sequence", "cumulative-ack", "ladder")


@pytest.mark.parametrize("kind", KINDS)
def test_figures_of_flows_are_drawn_and_their_numbers_written(scene, kind, tmp_path):
    for suffix in ("pdf", "svg", "png"):
        files = [aqmlab.plot(scene.path, kind, tmp_path / f"{name}.{suffix}") for name in "ab"]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert len(files[0].read_bytes()) > 3000
    text = aqmlab.plot(scene.path, kind, tmp_path / "numbers.csv").read_text()
    rows = list(csv.reader(text.splitlines()))
    assert len(rows) > 20
    assert len({len(row) for row in rows}) == 1


def test_the_threshold_is_unlimited_until_the_first_loss(scene, tmp_path):
    text = aqmlab.plot(scene.path, "cwnd", tmp_path / "numbers.csv", flows=["ftp 0"]).read_text()
    first, *others = csv.DictReader(text.splitlines())
    assert first["event"] == "open"
    assert first["ssthresh_segments"] == ""
    assert any(row["ssthresh_segments"] for row in others)
    assert all(float(row["ssthresh_segments"] or 2) < 1e6 for row in others)


def test_a_time_axis_is_that_of_what_was_recorded(tmp_path):
    packets = {"flows": ["ftp"], "from": "4s", "until": "5s"}
    scene = aqmlab.run(
        SCENE | {"record": {"packets": packets}}, output=tmp_path / "part", report=False, arms=["one"]
    )
    view = View(flows=["ftp 0"])
    figure = time_sequence(scene, view, "bottleneck")
    begin, end = figure.panels[0].x.begin, figure.panels[0].x.end
    assert 4 <= begin < 4.5 < end <= 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_title_is_text(scene, kind, tmp_path):
    named = replace(scene, title=r"$\nosuch$ at 5 $ " + "and on " * 30)
    drawing = draw(named, kind, tmp_path / "figure.svg", view=View(until_s=1.0)).read_text()
    assert r"$\nosuch$ at 5 $" in drawing


def test_a_view_keeps_to_its_flows_times_and_arms(scene, tmp_path):
    options = {"flows": ["old 1"], "arms": ["two"], "from_s": 2.0, "until_s": 3.0}
    file = aqmlab.plot(scene.path, "time-sequence", tmp_path / "part.csv", **options)
    _head, *rows = csv.reader(file.read_text().splitlines())
    assert {(arm, flow) for arm, flow, *_ in rows} == {("two", "old 1")}
    assert all(2 <= float(row[3]) <= 3 for row in rows)


def test_what_cannot_be_drawn_is_told(scene, experiment, tmp_path):
    def drawn(kind, of=scene, **options):
        return aqmlab.plot(of.path, kind, tmp_path / "none.svg", **options)

    with pytest.raises(UsageError, match=r"no `trace`: write, say, `trace = \[\"ftp\"\]` into"):
        drawn("cwnd", experiment)
    with pytest.raises(
        UsageError, match=r"no `packets`: write, say, `packets = \{ flows = \[\"ftp\"\] \}` into"
    ):
        drawn("ladder", experiment)
    with pytest.raises(UsageError, match="no flow `old 0` was recorded"):
        drawn("ladder", flows=["old 0"])
    with pytest.raises(UsageError, match="no arm `three`"):
        drawn("cwnd", arms=["three"])
    with pytest.raises(UsageError, match="choose an interval with at most"):
        drawn("ladder", from_s=1.0)
    with pytest.raises(UsageError, match="nothing to show from 5 s to 4 s"):
        drawn("cwnd", from_s=5.0, until_s=4.0)
    with pytest.raises(UsageError, match="no format for"):
        aqmlab.plot(experiment.path, "series", tmp_path / "series.csv")
    assert not list(Path(tmp_path).iterdir())


def test_the_command_line_draws_parts(scene, aqmlab_cli, tmp_path):
    file = tmp_path / "ladder.svg"
    options = ["--flow", "ftp 1", "--arm", "two", "--from", "500ms", "--until", "900ms"]
    ended = aqmlab_cli("plot", scene.path, "ladder", "-o", file, *options)
    assert ended.returncode == 0, ended.stderr
    assert "ftp 1, two" in file.read_text()


@pytest.mark.slow
def test_losses_are_repaired_as_ns_2_does(tmp_path):
    """The figure in docs/validation.md, produced through scenario, simulator and packet recording."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "tools/loss_patterns.py", str(tmp_path / "figure.svg")]
    ended = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(ended.stdout.splitlines()) == 12
