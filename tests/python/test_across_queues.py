"""A queue's metrics cover only flows whose data cross it; network-wide metrics are labelled as such."""

from __future__ import annotations

import csv
import json

import pytest

import aqmlab
from aqmlab.claims import read_claims, score
from aqmlab.errors import UsageError
from aqmlab.metrics import Scope, find, flow_goodput
from aqmlab.paths import load
from aqmlab.results.answers import answer

LOT = {
    "title": "Two hops",
    "duration": "6s",
    "warmup": "2s",
    "seed": 1,
    "runs": 5,
    "topology": {
        "kind": "parking_lot",
        "hops": 2,
        "rate": "4Mbit",
        "delay": "5ms",
        "queue": {"kind": "droptail", "limit": "20p"},
        "hop2": {"rate": "2Mbit"},
    },
    "traffic": [
        {"name": "long", "kind": "bulk", "count": 1, "rtt": "60ms"},
        {"name": "near", "kind": "bulk", "from": "r0", "to": "r1", "count": 2, "rtt": "40ms"},
        {"name": "far", "kind": "bulk", "from": "r1", "to": "r2", "count": 1, "rtt": "40ms"},
        {"name": "back", "kind": "bulk", "from": "r1", "to": "r0", "count": 1, "rtt": "40ms"},
    ],
    "record": {"queues": "100ms", "flows": "500ms"},
    "arm": [{"name": "DropTail"}, {"name": "RED", "topology.queue": {"kind": "red", "limit": "20p"}}],
}
ACROSS = {
    "hop1": {"long", "near"},
    "hop2": {"long", "far"},
    "hop1-reverse": {"back"},
    "hop2-reverse": set(),
}


@pytest.fixture(scope="module")
def lot(tmp_path_factory):
    return aqmlab.run(LOT, output=tmp_path_factory.mktemp("lot") / "lot", jobs=2)


def goodput(run, classes):
    return sum(flow_goodput(run, flow) for flow in run.flows if flow.class_name in classes)


@pytest.mark.parametrize("queue", ACROSS)
def test_the_goodput_at_a_queue_is_that_of_the_flows_that_cross_it(lot, queue):
    found = answer(lot, ["goodput_bps"], queue=queue)
    for run in lot.measured():
        value = found.by_seed(run.run.arm, "goodput_bps")[run.run.seed]
        if ACROSS[queue]:
            assert value == pytest.approx(goodput(run, ACROSS[queue]), rel=1e-12)
        else:
            assert value is None


def test_every_figure_of_flows_is_of_those_that_cross_the_queue(lot):
    run = lot.measured()[0]
    at_hop2 = [flow for flow in run.flows if flow.class_name in ACROSS["hop2"]]
    timeouts = find("timeouts").compute(run, Scope("hop2"))
    assert timeouts == sum(flow.measured_timeouts for flow in at_hop2)
    assert find("timeouts_per_flow").compute(run, Scope("hop2")) == timeouts / 2
    shares = [flow_goodput(run, flow) for flow in at_hop2]
    assert find("jain_index").compute(run, Scope("hop2")) == pytest.approx(
        sum(shares) ** 2 / (2 * sum(x * x for x in shares))
    )
    assert find("goodput_efficiency_percent").compute(run, Scope("hop2")) == pytest.approx(
        100 * sum(shares) / 2e6
    )
    share = find("goodput_share_percent")
    at_queue = [share.compute(run, Scope("hop2", name)) for name in ("long", "far")]
    assert sum(at_queue) == pytest.approx(100)
    assert share.compute(run, Scope("hop2", "near")) is None
    # A single flow shows no bias.
    assert find("rtt_bias_exponent").compute(run, Scope("hop1")) is not None
    assert find("rtt_bias_exponent").compute(run, Scope("hop1-reverse")) is None


def test_what_is_asked_of_all_queues_is_of_all_flows_and_nothing_else(lot):
    run = lot.measured()[0]
    everybody = {flow.class_name for flow in run.flows}
    whole = answer(lot, queue="*")
    assert whole.by_seed("DropTail", "goodput_bps")[1] == pytest.approx(goodput(run, everybody))
    assert whole.estimate("DropTail", "utilisation_percent") is None
    assert whole.estimate("DropTail", "queueing_delay_p95_s") is None
    assert find("goodput_efficiency_percent").compute(run, Scope("*")) is None


def test_drops_on_the_whole_way_are_of_all_that_set_out(lot):
    run = lot.measured()[0]
    first, second = run.queues["hop1", "long"], run.queues["hop2", "long"]
    dropped = first.sum_over_reasons("dropped") + second.sum_over_reasons("dropped")
    assert dropped > 0
    whole = find("drop_percent")
    assert whole.compute(run, Scope("*", "long")) == 100 * dropped / first["arrivals_packets"]
    # If there is only one queue, the whole path is that queue.
    assert whole.compute(run, Scope("*", "near")) == whole.compute(run, Scope("hop1", "near"))
    parts = [run.queues[queue, name] for queue, of in ACROSS.items() for name in of]
    entered = sum(run.queues[q, n]["arrivals_packets"] for q, n in _FIRST)
    assert whole.compute(run, Scope("*")) == pytest.approx(
        100 * sum(part.sum_over_reasons("dropped") for part in parts) / entered
    )
    rate = find("drop_rate_bps")
    assert rate.compute(run, Scope("*", "long")) == pytest.approx(
        rate.compute(run, Scope("hop1", "long")) + rate.compute(run, Scope("hop2", "long"))
    )


_FIRST = (("hop1", "long"), ("hop1", "near"), ("hop2", "far"), ("hop1-reverse", "back"))


def test_a_class_is_judged_by_a_queue_that_it_crosses(lot):
    results = lot
    cell = results.cells[0]
    assert results.queue_of(cell) in ("hop1", "hop2")
    judged = {name: results.queue_of(cell, name) for name in ("long", "near", "far", "back")}
    assert judged == {"long": results.queue_of(cell), "near": "hop1", "far": "hop2", "back": "hop1-reverse"}
    for name, queue in judged.items():
        found = answer(lot, class_name=name)
        assert found.queue == queue
        for metric in ("goodput_bps", "drop_percent", "queueing_delay_p95_s"):
            same = results.values(metric, cell, Scope(class_name=name))
            assert found.by_seed("DropTail", metric) == same
            assert same == results.values(metric, cell, Scope(class_name=name, queue=queue))
            assert None not in same.values()


def test_claims_can_ask_for_a_queue_a_class_and_the_whole_network(lot, tmp_path):
    # The traffic that does not cross hop2, to within one bit/s.
    rest = (
        "goodput_bps{queue='*'} - goodput_bps{queue=hop2} - goodput_bps{class=near} - goodput_bps{class=back}"
    )
    file = tmp_path / "claims.toml"
    file.write_text(
        f"""[[claim]]
name = "rest"
expect = "for all arm: abs({rest}) < 1bit/s"
[[claim]]
name = "more"
expect = "for all arm: goodput_bps{{queue='*'}} > goodput_bps{{queue=hop2}} + 1Mbit/s"
"""
    )
    found = score(load(lot.path), read_claims(file))
    assert [scored.status for scored in found] == ["holds", "holds"]


def test_the_table_says_whose_figures_it_has(lot, aqmlab_cli):
    told = aqmlab_cli("report", lot.path, "--queue", "hop2").stdout
    assert "queue hop2, crossed by long and far (not by near and back)" in told
    everywhere = aqmlab_cli("report", lot.path, "--queue", "*").stdout
    assert "all queues: every flow of the network" in everywhere
    assert "utilisation" not in everywhere
    asked = json.loads(aqmlab_cli("report", lot.path, "--queue", "hop2", "--json").stdout)
    assert asked["queues"] == ["hop2"]
    assert asked["crossed_by"] == ["long", "far"]
    assert json.loads(aqmlab_cli("report", lot.path, "--queue", "*", "--json").stdout)["crossed_by"] == [
        *("long", "near", "far", "back")
    ]


def test_where_all_flows_cross_the_queue_nothing_is_said_of_it(experiment, aqmlab_cli):
    told = aqmlab_cli("report", experiment.path).stdout
    assert "crossed by" not in told


def test_the_two_sides_of_a_comparison_are_of_the_queue(lot):
    found = aqmlab.compare(f"{lot.path}:DropTail", ":RED", metrics=["goodput_bps"], queue="hop2")
    (one,) = found.compared
    assert one.first.mean == answer(lot, queue="hop2").estimate("DropTail", "goodput_bps").mean
    whole = aqmlab.compare(f"{lot.path}:DropTail", ":RED", metrics=["goodput_bps"], queue="*")
    assert whole.compared[0].first.mean > one.first.mean


@pytest.mark.parametrize("queue", ["hop1", "hop2"])
def test_a_figure_of_flows_at_a_queue_has_those_that_cross_it(lot, queue, tmp_path):
    for kind, options in (("cumulative-ack", {}), ("bar", {"over": "flows"})):
        file = aqmlab.plot(lot.path, kind, tmp_path / f"{kind}.csv", queue=queue, **options)
        with file.open(encoding="utf-8", newline="") as lines:
            flows = {row["flow"] for row in csv.DictReader(lines)}
        assert {flow.split()[0] for flow in flows} - {"width"} == ACROSS[queue]


def test_a_figure_of_flows_needs_one_that_crosses_the_queue_or_that_is_named(lot, tmp_path):
    with pytest.raises(UsageError, match="no TCP flow across this queue"):
        aqmlab.figure(lot.path, "cumulative-ack", queue="hop2-reverse")
    file = aqmlab.plot(lot.path, "cumulative-ack", tmp_path / "far.csv", queue="hop1", flows=["far 0"])
    assert "far" in file.read_text(encoding="utf-8")
