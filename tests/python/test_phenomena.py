"""Lockout, synchronisation, bias against long RTTs: metrics compared with answers computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.metrics import Scope, Window, find
from aqmlab.metrics.phenomena import long_lived
from aqmlab.metrics.synchronization import (
    amounts_between,
    jain_by_window,
    mean_correlation,
    power_law_exponent,
    starved_share,
    synchronisation_ratio,
)
from aqmlab.results.answers import HEADLINE, answer


def test_jains_index_of_each_window():
    # (1 + 1)^2 / (2 * 2) = 1; if one of two has everything, 1/2; for 4 and 2, 36 / 40. A window without any
    # data has no index.
    amounts = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 0.0], [4.0, 2.0]])
    assert jain_by_window(amounts) == pytest.approx([1.0, 0.5, 0.9])
    assert len(jain_by_window(amounts[2:3])) == 0


def test_a_flow_below_a_tenth_of_the_mean_is_starved():
    # Both means are 10, so 1 is a tenth of that, and 0.9 is less.
    amounts = np.array([[19.0, 1.0], [19.1, 0.9], [0.0, 0.0]])
    assert starved_share(amounts) == 1 / 4
    assert starved_share(amounts[2:]) is None


def test_losses_of_one_round_trip_are_one_event():
    # Events: 1.0 to 1.1 (flows 0, 1), 1.15 to 1.25 (flow 0 twice), 5.0 (flow 2); flow 9 is not among the
    # requested flows.
    times = np.array([1.0, 1.05, 1.1, 1.15, 1.2, 1.21, 5.0])
    flows = np.array([0, 0, 1, 0, 0, 9, 2])
    ratio = synchronisation_ratio(times, flows, [0, 1, 2, 3], 0.1)
    assert ratio == pytest.approx((2 / 4 + 1 / 4 + 1 / 4) / 3)
    assert synchronisation_ratio(times, flows, [7, 8], 0.1) is None


def test_windows_that_move_as_one_correlate():
    saw = np.array([1.0, 2.0, 3.0, 4.0])
    assert mean_correlation([saw, saw, saw]) == pytest.approx(1.0)
    # Opposite windows: their sum does not vary, and the result is the minimum, -1 / (n - 1).
    assert mean_correlation([saw, -saw]) == pytest.approx(-1.0)
    # Variances 1 and 4, covariance 0: (5 / 5 - 1) / 1.
    across = [np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, -2.0, 2.0, -2.0])]
    assert mean_correlation(across) == pytest.approx(0.0)
    # cov = 2 for (x, 2x) with variances 1 and 4: 2 * 2 / 5.
    x = np.array([1.0, -1.0])
    assert mean_correlation([x, 2 * x]) == pytest.approx(0.8)
    assert mean_correlation([np.ones(4), np.ones(4)]) is None


def test_the_exponent_of_a_power_law_is_found():
    rtts = [0.02, 0.04, 0.08, 0.16]
    assert power_law_exponent(rtts, [5e6 * rtt**-1.5 for rtt in rtts]) == pytest.approx(1.5)
    assert power_law_exponent(rtts, [3.0] * 4) == pytest.approx(0.0)
    # Two points: the second has twice the RTT and a quarter of the goodput.
    assert power_law_exponent([0.1, 0.2], [8.0, 2.0]) == pytest.approx(2.0)
    # Equal RTTs do not determine the exponent; a goodput of zero has no logarithm.
    assert power_law_exponent([0.1, 0.105], [8.0, 2.0]) is None
    assert power_law_exponent([0.1, 0.2], [8.0, 0.0]) is None


SCENE = {
    "title": "Phenomena",
    "duration": "35s",
    "warmup": "5s",
    "metrics": ["rtt_bias_exponent"],
    "seed": 1,
    "runs": 1,
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "queue": {"kind": "droptail", "limit": "15p"},
    },
    "traffic": [
        {"name": "near", "kind": "bulk", "count": 2, "rtt": "30ms"},
        {"name": "far", "kind": "bulk", "count": 2, "rtt": "120ms", "start": "1s"},
        {"name": "late", "kind": "bulk", "rtt": "60ms", "start": "20s"},
        {"name": "cbr", "kind": "cbr", "rate": "100kbit"},
    ],
    "record": {"flows": "500ms", "packets": {"links": ["bottleneck"], "events": ["drop", "mark"]}},
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return aqmlab.run(SCENE, output=tmp_path_factory.mktemp("runs") / "phenomena")


def test_amounts_of_windows_are_those_of_the_samples(scene):
    (run,) = scene.measured()
    flows = long_lived(run, "*")
    assert [flow.class_name for flow in flows] == ["near", "near", "far", "far"]
    amounts = amounts_between(run, flows, "received_bytes", [5.0, 15.0, 25.0, 35.0])
    rows = scene.tables.rows("flow_series", "flow, t_ns, received_bytes")
    at = {(flow, t_ns // 10**9): received for flow, t_ns, received in rows if t_ns % 10**9 == 0}
    expected = [[at[f, t + 10] - at[f, t] for f in range(4)] for t in (5, 15, 25)]
    assert amounts == pytest.approx(np.array(expected, dtype=float))
    assert amounts.sum(axis=0) == pytest.approx([flow.measured_received_bytes for flow in flows])


def test_each_metric_of_a_run_is_what_its_parts_say(scene):
    (run,) = scene.measured()

    def value(name, class_name="*"):
        return find(name).compute(run, Scope("bottleneck", class_name))

    goodputs = {c: sum(f.measured_received_bytes for f in run.flows_of(c)) for c in ("near", "far")}
    ratio = goodputs["near"] / goodputs["far"]
    # With two flows at 30 ms and two at 120 ms, the result is the slope between the means of the logarithms.
    flows = long_lived(run, "*")
    logs = [np.log(flow.measured_received_bytes) for flow in flows]
    slope = (np.mean(logs[:2]) - np.mean(logs[2:])) / np.log(120 / 30)
    assert ratio > 1
    assert value("rtt_bias_exponent") == pytest.approx(slope)
    assert value("rtt_bias_exponent", "near") is None
    shares = [value("goodput_share_percent", c) for c in ("near", "far", "late", "cbr")]
    assert sum(shares) == pytest.approx(100)
    assert shares[0] / shares[1] == pytest.approx(ratio)
    assert 0 <= value("lockout_percent") <= 100
    assert 0 <= value("starved_percent") < 50
    assert -1 / 3 <= value("window_correlation") <= 1
    assert value("window_correlation", "cbr") is None
    acked = [f.values[-1] - np.interp(5.0, f.t_s, f.values) for f in run.flow_samples("acked_bytes").values()]
    width = 100 * (max(acked[:4]) - min(acked[:4])) / np.mean(acked[:4])
    assert value("ack_width_percent") == pytest.approx(width)


def test_a_part_of_a_run_has_the_flows_and_the_bytes_of_that_part(scene):
    (run,) = scene.measured()

    def value(name, class_name="*", window=None):
        return find(name).compute(run, Scope("bottleneck", class_name, window))

    late, early = Window(20.0, 30.0), Window(5.0, 15.0)
    assert [len(long_lived(run, "*", part)) for part in (early, late)] == [4, 5]
    (flow,) = run.flows_of("late")
    received = run.flow_samples("received_bytes")[flow.flow]
    amount = np.diff(np.interp([20.0, 30.0], received.t_s, received.values))[0]
    assert amount > 0
    assert value("goodput_bps", "late", late) == pytest.approx(8 * amount / 10)
    assert value("goodput_bps", "late", early) == 0
    # Adjacent parts add up to the whole, which is computed from exact counts.
    parts = [value("goodput_bps", "near", Window(t, t + 10.0)) for t in (5.0, 15.0, 25.0)]
    assert np.mean(parts) == pytest.approx(value("goodput_bps", "near"))
    rows = amounts_between(run, run.flows_of("near"), "received_bytes", [5.0, 15.0])
    assert value("jain_index", "near", early) == pytest.approx(jain_by_window(rows)[0])
    # Datagrams are not sampled flow by flow, so their total is not known for a part of the run.
    assert value("goodput_share_percent", "near", early) is None
    acked = run.flow_samples("acked_bytes")
    ends = [
        np.diff(np.interp(late, acked[f.flow].t_s, acked[f.flow].values))[0] for f in run.flows_of("near")
    ]
    width = 100 * (max(ends) - min(ends)) / np.mean(ends)
    assert value("ack_width_percent", "near", late) == pytest.approx(width)
    windows = [samples.within(late).values for samples in run.flow_samples("cwnd_segments").values()]
    assert value("window_correlation", "*", late) == pytest.approx(mean_correlation(windows))
    # Only the two windows of 10 s that lie within the part are counted.
    assert value("lockout_percent", "*", Window(5.0, 25.0)) in (0, 50, 100)


def test_synchronisation_needs_every_loss(scene, experiment):
    (run,) = scene.measured()
    flows = [flow.flow for flow in long_lived(run, "*")]
    times, losers = run.losses("bottleneck")
    totals = run.queues["bottleneck", "*"]
    assert len(times) == totals.sum_over_reasons("dropped") > 20
    base = np.mean([0.03, 0.03, 0.12, 0.12])
    waiting = totals["sojourn_sum_ns"] / totals["sojourn_count"] / 1e9
    expected = synchronisation_ratio(times, losers, flows, base + waiting)
    assert find("synchronisation_percent").compute(run, Scope("bottleneck")) == pytest.approx(100 * expected)
    assert run.losses("reverse") is None
    unrecorded = experiment.measured()[0]
    assert find("synchronisation_percent").compute(unrecorded, Scope("bottleneck")) is None


def test_metrics_that_a_scenario_names_are_in_its_table(scene, tmp_path):
    assert scene.metrics == ("rtt_bias_exponent",)
    results = answer(scene)
    assert [metric.name for metric in results.metrics] == [*HEADLINE, "rtt_bias_exponent"]
    assert results.estimate("main", "rtt_bias_exponent") is not None
    with pytest.raises(
        UsageError, match=r"metrics: there is no metric `rtt_bias`; did you mean `rtt_bias_exp"
    ):
        aqmlab.run({**SCENE, "metrics": ["rtt_bias"]}, output=tmp_path / "none")
    assert not (tmp_path / "none").exists()


SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize(
    ("scenario", "metric", "least"),
    [
        # Under DropTail, a few flows occupy the whole queue in most windows; under RED, they hardly ever do.
        ("lockout", "lockout_percent", 50.0),
        ("lockout", "starved_percent", 10.0),
        ("global_synchronization", "synchronisation_percent", 5.0),
        ("global_synchronization", "window_correlation", 0.3),
        ("rtt_bias", "rtt_bias_exponent", 0.1),
    ],
)
def test_red_takes_the_edge_off_what_droptail_does(phenomena, scenario, metric, least):
    """The effect is much worse under DropTail, and not by chance (RFC 2309, 2; Floyd and Jacobson 1993)."""
    results = phenomena[scenario]
    difference = results.difference("DropTail", "RED", metric)
    assert difference.n == 5
    assert difference.excludes_zero()
    assert difference.low > 0
    assert difference.mean > least


def test_delayed_acknowledgments_keep_flows_out_of_step(phenomena):
    results = phenomena["global_synchronization"]
    difference = results.difference("DropTail", "DropTail, delayed ACKs", "window_correlation")
    assert difference.low > 0.3


@pytest.fixture(scope="module")
def phenomena(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phenomena")
    arms = {"global_synchronization": ["DropTail", "DropTail, delayed ACKs", "RED"]}
    found = {}
    for name in ("lockout", "global_synchronization", "rtt_bias"):
        chosen = arms.get(name, ["DropTail", "RED"])
        of_file = aqmlab.run(
            SCENARIOS / f"{name}.toml", output=folder / name, runs=5, arms=chosen, report=False
        )
        found[name] = answer(of_file, list(of_file.metrics))
    return found
