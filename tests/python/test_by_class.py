"""Figures by class of traffic: the table, its values, and goodput against RTT."""

from __future__ import annotations

import copy
import csv
import json

import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.looks import UNIT_MARKS
from aqmlab.metrics import Scope, find, flow_goodput
from browser import data_of
from sweeping import tiny
from test_across_queues import LOT

MIXED = {
    "title": "Mixed",
    "duration": "6s",
    "warmup": "1s",
    "runs": 3,
    "topology": {
        "kind": "dumbbell",
        "rate": "4Mbit",
        "delay": "5ms",
        "queue": {"kind": "droptail", "limit": "20p"},
    },
    "traffic": [
        {"name": "ftp", "kind": "bulk", "count": 2, "rtt": "30ms", "start": {"uniform": ["0s", "200ms"]}},
        {
            "name": "sack",
            "kind": "bulk",
            "count": 3,
            "rtt": "120ms",
            "start": {"uniform": ["0s", "200ms"]},
            "tcp": {"recovery": "sack"},
        },
        {"name": "udp", "kind": "poisson", "rate": "200kbit", "size": "500B"},
    ],
    "arm": [{"name": "DropTail"}, {"name": "RED", "topology.queue": {"kind": "red", "limit": "20p"}}],
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return aqmlab.run(MIXED, output=tmp_path_factory.mktemp("mixed") / "mixed", jobs=2)


def test_each_class_has_its_own_figures(mixed):
    table = aqmlab.answer(mixed, by="class")
    assert table.classes == ("ftp", "sack", "udp")
    assert [(cell.arm, name) for cell, name in table.rows] == [
        (arm, name) for arm in ("DropTail", "RED") for name in table.classes
    ]
    by_seed = {run.run.seed: run for run in mixed.measured() if run.run.arm == "RED"}
    for name, count in (("ftp", 2), ("sack", 3), ("udp", 1)):
        assert table.estimate("RED", "flows", name).mean == count
        sums = [sum(flow_goodput(run, f) for f in run.flows_of(name)) for run in by_seed.values()]
        goodput = table.estimate("RED", "goodput_bps", name)
        assert goodput.mean == pytest.approx(sum(sums) / 3)
        assert goodput.n == 3
        assert goodput.half_width is not None
        assert table.estimate("RED", "goodput_per_flow_bps", name).mean == pytest.approx(goodput.mean / count)
    shares = [table.estimate("RED", "goodput_share_percent", name).mean for name in table.classes]
    assert sum(shares) == pytest.approx(100)
    assert table.estimate("RED", "retransmissions", "udp") is None
    assert table.estimate("RED", "round_trip_mean_s", "udp") is None
    assert table.estimate("RED", "retransmissions", "ftp").mean > 0
    # Nothing is ECN-capable.
    assert "mark_percent" not in [metric.name for metric in table.shown]


def test_several_classes_together_are_the_sum_of_each(mixed):
    results = mixed
    for cell in results.cells:
        for metric in ("flows", "goodput_bps", "throughput_bps", "timeouts"):
            parts = [results.values(metric, cell, Scope(class_name=name)) for name in ("ftp", "sack")]
            both = results.values(metric, cell, Scope(class_name="sack, ftp"))
            assert both == {seed: pytest.approx(sum(part[seed] for part in parts)) for seed in parts[0]}
        every = results.values("drop_percent", cell, Scope(queue="*"))
        assert results.values("drop_percent", cell, Scope(class_name="ftp,sack,udp", queue="*")) == every
        every = results.values("queueing_delay_p95_s", cell)
        assert results.values("queueing_delay_p95_s", cell, Scope(class_name="ftp,sack,udp")) == every


def test_of_several_classes_each_must_exist(mixed):
    with pytest.raises(UsageError, match="no class `ftq`"):
        mixed.values("goodput_bps", mixed.cells[0], Scope(class_name="udp,ftq"))


def test_the_mean_rtt_is_the_way_and_the_waiting(mixed):
    run = mixed.measured()[0]
    waits = {
        name: sum(
            find("queueing_delay_mean_s").compute(run, Scope(queue, name))
            for queue in ("bottleneck", "reverse")
        )
        for name in ("ftp", "sack")
    }
    rtt = find("round_trip_mean_s")
    assert rtt.compute(run, Scope("bottleneck", "ftp")) == pytest.approx(0.030 + waits["ftp"])
    assert rtt.compute(run, Scope("bottleneck", "sack")) == pytest.approx(0.120 + waits["sack"])
    both = (2 * (0.030 + waits["ftp"]) + 3 * (0.120 + waits["sack"])) / 5
    assert rtt.compute(run, Scope("bottleneck")) == pytest.approx(both)


def test_a_class_is_judged_on_its_whole_way_unless_a_queue_is_named(tmp_path):
    lot = aqmlab.run(LOT | {"runs": 2}, output=tmp_path / "lot", report=False)
    table = aqmlab.answer(lot, by="class")
    assert table.classes == ("long", "near", "far", "back")
    at_hop2 = aqmlab.answer(lot, queue="hop2", by="class")
    assert at_hop2.crossed_by == ("long", "far")
    drops = [
        each.estimate("DropTail", "drop_percent", "long").mean
        for each in (table, at_hop2, aqmlab.answer(lot, queue="hop1", by="class"))
    ]
    assert drops[0] >= max(drops[1:]) > 0
    with pytest.raises(UsageError, match="no queue `hop3`"):
        aqmlab.answer(lot, queue="hop3", by="class")
    with pytest.raises(UsageError, match="class in this answer `near`"):
        at_hop2.estimate("DropTail", "flows", "near")


def test_the_command_prints_a_row_for_each_class(mixed, aqmlab_cli):
    told = aqmlab_cli("report", mixed.path, "--by", "class")
    assert told.returncode == 0
    for name in ("ftp", "sack", "udp"):
        assert sum(f" {name} " in line for line in told.stdout.splitlines()) == 2
    assert "each class over its whole path; mean ± 95 % t interval over 3 seeds (1 to 3)" in told.stdout
    assert (mixed.path / "report.html").is_file()
    one = aqmlab_cli("report", mixed.path, "--by", "class", "--metric", "jain_index", "--json")
    found = json.loads(one.stdout)
    assert [(row["arm"], row["class"]) for row in found["cells"]][:2] == [
        ("DropTail", "ftp"),
        ("DropTail", "sack"),
    ]
    assert found["cells"][0]["values"]["jain_index"]["n"] == 3
    wrong = aqmlab_cli("report", mixed.path, "--by", "flow")
    assert wrong.returncode == 2
    assert "class" in wrong.stderr
    both = aqmlab_cli("report", mixed.path, "--by", "class", "--class", "sack")
    assert both.returncode == 2


def test_a_sweep_has_them_by_cell(tmp_path, aqmlab_cli):
    scenario = tiny(runs=2, duration="3s")
    scenario["traffic"] = copy.deepcopy(MIXED["traffic"])
    sweep = aqmlab.sweep(scenario, store=tmp_path / "store")
    results = sweep.wait()
    table = aqmlab.answer(results, by="class")
    assert len(table.rows) == 3 * len(results.cells)
    told = aqmlab_cli("report", results.path, "--by", "class")
    assert told.returncode == 0
    assert "ftp" in told.stdout
    rows = list(csv.DictReader((results.path / "classes.csv").read_text().splitlines()))
    assert len(rows) == len(table.rows)
    cell, name = table.rows[-1]
    assert rows[-1]["class"] == name
    assert rows[-1]["arm"] == cell.arm
    assert float(rows[-1]["goodput_bps"]) == table.estimate(cell, "goodput_bps", name).mean
    page = (results.path / "report.html").read_text()
    assert "By class of traffic" in page


def test_the_report_of_one_class_of_a_sweep_has_a_page_of_its_own(tmp_path, aqmlab_cli):
    small = {**copy.deepcopy(MIXED), "sweep": {"topology.rate": ["4Mbit", "6Mbit"]}, "runs": 1}
    swept = aqmlab.sweep(small, store=tmp_path / "store")
    swept.wait()
    whole = (swept.path / "report.html").read_bytes()
    ended = aqmlab_cli("report", swept.path, "--class", "sack", "--queue", "bottleneck")
    assert ended.returncode == 0, ended.stderr
    page = swept.path / "report-sack-bottleneck.html"
    assert f"report     {page}" in ended.stderr
    assert "Class sack alone." in page.read_text()
    assert (swept.path / "report.html").read_bytes() == whole
    ended = aqmlab_cli("report", swept.path, "--class", "sack", "-o", tmp_path / "sack.html")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "sack.html").read_text() == page.read_text()


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_goodput_against_rtt_is_drawn(mixed, tmp_path, suffix):
    file = aqmlab.plot(mixed.path, "goodput-rtt", tmp_path / f"figure.{suffix}")
    assert file.stat().st_size > 2000
    if suffix == "svg":
        drawn = file.read_text()
        for text in ("DropTail", "RED", "a flow of ftp", "a flow of sack", "RTT without queueing [ms]"):
            assert f">{text}<" in drawn
        # Datagram flows do not react to congestion, so their share does not depend on an RTT.
        assert "a flow of udp" not in drawn


def test_goodput_against_rtt_has_a_point_for_each_flow(mixed, tmp_path):
    file = aqmlab.plot(mixed.path, "goodput-rtt", tmp_path / "figure.csv", arms=["RED"])
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [(row["class"], float(row["rtt_ms"])) for row in rows] == [("ftp", 30)] * 2 + [("sack", 120)] * 3
    runs = [run for run in mixed.measured() if run.run.arm == "RED"]
    first = sum(flow_goodput(run, run.flows[0]) for run in runs) / 3
    assert float(rows[0]["goodput_mbit_s"]) == pytest.approx(first / 1e6)


def test_no_point_of_goodput_against_rtt_lies_outside_the_plot(mixed):
    figure = aqmlab.figure(mixed.path, "goodput-rtt", queue="*")
    assert figure.get_suptitle() == "Mixed: all flows"
    highest = max(line.get_ydata().max() for axes in figure.axes for line in axes.lines)
    assert all(axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > highest for axes in figure.axes)


def test_goodput_against_rtt_needs_flows_that_react(tmp_path):
    scenario = MIXED | {"traffic": [MIXED["traffic"][2]], "runs": 1, "duration": "2s"}
    udp = aqmlab.run(scenario, output=tmp_path / "udp", report=False)
    with pytest.raises(UsageError, match="no flow that reacts to congestion"):
        aqmlab.plot(udp.path, "goodput-rtt", tmp_path / "figure.pdf")


def test_the_report_shows_classes_and_rtts(mixed):
    page = (mixed.path / "report.html").read_text()
    assert '<h2 id="classes">By class of traffic</h2>' in page
    assert page.count('<th scope="row" class="name">sack</th>') == 2
    assert 'data-figure="goodput-rtt"' in page
    legend = data_of(page)["charts"]["goodput-rtt"][0]["legend"]
    assert [(entry["text"], entry["mark"]) for entry in legend] == [
        ("ftp", UNIT_MARKS["circle"]),
        ("sack", UNIT_MARKS["square"]),
    ]


def test_the_report_of_one_class_has_no_table_of_classes(tmp_path):
    one = aqmlab.run(MIXED | {"traffic": MIXED["traffic"][:1], "runs": 1}, output=tmp_path / "one")
    page = (one.path / "report.html").read_text()
    assert 'data-figure="goodput-rtt"' not in page
    assert "By class of traffic" not in page
    assert "all flows of the network" not in page


def test_the_report_says_whose_figures_it_has(tmp_path):
    lot = aqmlab.run(LOT | {"runs": 2}, output=tmp_path / "lot")
    page = (lot.path / "report.html").read_text()
    assert "Metrics of flows cover the flows that cross <code>" in page
    assert page.count("<td>all flows of the network</td>") == 2


def test_the_table_of_classes_is_short_in_a_session_and_a_frame(mixed):
    table = aqmlab.answer(mixed, "goodput_bps", by="class")
    assert repr(table).startswith(
        "<Answer of 'Mixed': 1 metric of ftp, sack, udp; each class over its whole path"
    )
    assert len(repr(table)) < 200
    assert "<td" in table._repr_html_()
    assert str(table).splitlines()[0] == "Mixed"
    columns = table._frame_columns()
    assert list(columns) == ["arm", "class", "seed", "goodput_bps"]
    assert all(len(values) == 2 * 3 * 3 for _, values in columns.values())


def test_a_metric_of_one_queue_is_that_of_the_queue_of_the_class(experiment):
    name = "queueing_delay_p95_s"
    found = aqmlab.answer(experiment, [name], by="class")
    for cell in experiment.cells:
        for class_name in ("ftp", "cbr"):
            here = experiment.values(name, cell, Scope(queue="bottleneck", class_name=class_name))
            assert found.by_seed(cell, name, class_name) == here
            assert None not in here.values()
    assert "queueing delay, p95 at the queue by which the class is judged" in found.where_text()
