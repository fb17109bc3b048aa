"""Each metric is compared with numbers computed by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.metrics import (
    Flows,
    FlowTotals,
    Histogram,
    Measured,
    QueueTotals,
    Scope,
    Takes,
    all_metrics,
    find,
    jain_index,
)
from aqmlab.metrics.measured import REASONS
from aqmlab.recordings.recording import Run
from aqmlab.stats.ellipse import covariance_ellipse, from_covariance
from manifests import manifest

SECOND = 10**9


def histogram(*bins):
    return Histogram(*zip(*bins, strict=True))


def totals(class_name="*", **given_counts):
    zero = {
        f"{fate}_{reason}_{unit}": 0
        for fate in ("dropped", "marked")
        for reason in REASONS
        for unit in ("packets", "bytes")
    }
    return QueueTotals(
        "bottleneck",
        class_name,
        zero | given_counts,
        {"sojourn_ns": given_counts.pop("sojourn", histogram((0, 0, 0)))}.__getitem__,
    )


def flow(number, class_name, delivered, timeouts=0, others=(0, 0, 0, 0, 0, 0, 0)):
    # A tenth of the data had already arrived, behind a hole, when the interval began.
    received = delivered * 9 // 10
    return FlowTotals(
        number, class_name, 80_000_000, 0, None, received, delivered, delivered, timeouts, *others
    )


@pytest.fixture
def run():
    """Two seconds measured on a link of 1 Mbit/s: 100 arrivals of 1000 B, 60 of them ECN-capable."""
    found = manifest(
        t0_ns=1 * SECOND,
        t1_ns=3 * SECOND,
        links=[{"name": "bottleneck", "rate_bps": 1_000_000, "delay_ns": 0}],
        plan={"nodes": [], "links": [], "classes": []},
    )
    everybody = totals(
        arrivals_packets=100,
        ect_arrivals_packets=60,
        departures_packets=90,
        departures_bytes=90_000,
        sent_bytes=89_700,
        dropped_early_packets=5,
        dropped_forced_packets=1,
        dropped_overflow_packets=3,
        dropped_injected_packets=1,
        marked_early_packets=9,
        marked_forced_packets=3,
        backlog_packets_integral_ns=10 * SECOND,
        backlog_packets_sq_integral_ns=68 * SECOND,
        busy_ns=1_440_000_000,
        sojourn_sum_ns=9 * SECOND,
        sojourn_count=90,
    )
    tcp = totals(
        "tcp",
        arrivals_packets=40,
        ect_arrivals_packets=0,
        departures_bytes=30_000,
        sent_bytes=29_800,
        dropped_early_packets=4,
    )
    sojourn = histogram(
        (10_000_000, 10_000_000, 50), (20_000_000, 20_000_000, 40), (90_000_000, 90_000_000, 10)
    )
    everybody = QueueTotals("bottleneck", "*", everybody.counts, {"sojourn_ns": sojourn}.__getitem__)
    # fields: retransmitted, fast retransmits, ECN reductions, CE received, spurious, windows with several
    # losses, lost
    others = [(9, 4, 5, 7, 3, 2, 6), (1, 1, 6, 8, 0, 1, 0)]
    flows = [
        flow(0, "tcp", 100_000, 2, others[0]),
        flow(1, "tcp", 50_000, 1, others[1]),
        flow(2, "udp", 25_000),
    ]
    queues = {("bottleneck", "*"): everybody, ("bottleneck", "tcp"): tcp}
    return Measured(Run(Path(), found), queues, Flows(flows), frozenset({"tcp"}))


@pytest.mark.parametrize(
    ("name", "class_name", "expected"),
    [
        ("throughput_bps", "*", 8 * 89_700 / 2),
        ("throughput_bps", "tcp", 8 * 29_800 / 2),
        ("utilisation_percent", "*", 72.0),
        ("drop_percent", "*", 10.0),
        ("drop_percent", "tcp", 10.0),
        ("drop_early_percent", "*", 5.0),
        ("drop_forced_percent", "*", 1.0),
        ("drop_overflow_percent", "*", 3.0),
        ("drop_injected_percent", "*", 1.0),
        ("mark_percent", "*", 20.0),
        ("mark_percent", "tcp", None),  # nothing ECN-capable came
        ("backlog_mean_packets", "*", 5.0),
        ("backlog_sd_packets", "*", 3.0),  # sqrt(34 - 25)
        ("queueing_delay_mean_s", "*", 0.1),
        ("queueing_delay_p50_s", "*", 0.01),
        ("queueing_delay_p95_s", "*", 0.09),
        ("queueing_delay_p99_s", "*", 0.09),
        ("goodput_bps", "*", 8 * 157_500 / 2),
        ("goodput_bps", "udp", 8 * 22_500 / 2),
        ("in_order_goodput_bps", "*", 8 * 175_000 / 2),
        ("in_order_goodput_bps", "udp", 8 * 25_000 / 2),
        ("goodput_efficiency_percent", "*", 63.0),
        ("jain_index", "*", 150**2 / (2 * (100**2 + 50**2))),  # only over flows that react to congestion
        ("jain_index", "udp", 1.0),
        ("timeouts", "*", 3.0),
        ("fast_retransmits", "*", 5.0),
        ("ecn_reductions", "tcp", 11.0),
        ("ce_received", "*", 15.0),
        ("spurious_retransmissions", "*", 3.0),
        ("multiple_loss_windows", "tcp", 3.0),
        ("multiple_loss_windows", "udp", 0.0),
        ("lost_outside_queues", "*", 6.0),
        ("lost_outside_queues", "udp", 0.0),
        ("timeouts_per_flow", "*", 1.5),
        ("timeouts_per_flow", "udp", None),
    ],
)
def test_by_hand(run, name, class_name, expected):
    value = find(name).compute(run, Scope("bottleneck", class_name))
    assert value == (None if expected is None else pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(
    "name",
    [
        "timeouts",
        "timeouts_per_flow",
        "fast_retransmits",
        "ecn_reductions",
        "ce_received",
        "spurious_retransmissions",
        "multiple_loss_windows",
        "lost_outside_queues",
    ],
)
def test_what_one_flow_does_not_tell_is_not_measured_of_its_class(run, name):
    metric = find(name)
    silent = FlowTotals(3, "tcp", 80_000_000, 0, None, 1000, 1000, 1000, None, *[None] * 7)
    with_silent = replace(run, flows=Flows([*run.flows, silent]))
    assert metric.compute(run, Scope("bottleneck", "tcp")) is not None
    assert metric.compute(with_silent, Scope("bottleneck", "tcp")) is None
    assert metric.compute(with_silent, Scope("bottleneck")) is None
    assert metric.compute(with_silent, Scope("bottleneck", "udp")) == metric.compute(
        run, Scope("bottleneck", "udp")
    )
    assert find("goodput_bps").compute(with_silent, Scope("bottleneck", "tcp")) == 8 * 136_000 / 2


def test_what_waits_behind_a_hole_at_the_end_of_the_warm_up_is_no_goodput(tmp_path):
    scenario = {
        "title": "Holes at the end of the warm-up",
        "duration": "12s",
        "warmup": "8s",
        "runs": 4,
        "topology": {
            "kind": "dumbbell",
            "rate": "50Mbit",
            "delay": "10ms",
            "queue": {"kind": "droptail", "limit": "1bdp"},
        },
        "traffic": [
            {"name": "x", "kind": "bulk", "count": 20, "rtt": "100ms", "start": {"uniform": ["0s", "7s"]}}
        ],
    }
    found = aqmlab.run(scenario, output=tmp_path / "holes")
    goodput, in_order = (find(name) for name in ("goodput_bps", "in_order_goodput_bps"))
    # Of each packet's 1500 bytes, 1460 are payload. Packets that have left the queue before the interval
    # begins, but arrive during it, add the data of at most 50 ms.
    most = 50e6 * (1460 / 1500 + 0.05 / 4)
    runs = found.measured()
    assert max(goodput.compute(run, Scope("bottleneck")) for run in runs) <= most
    assert max(in_order.compute(run, Scope("bottleneck")) for run in runs) > 50e6


def test_every_metric_says_what_it_is():
    for metric in all_metrics():
        assert metric.definition
        assert metric.source
        suffixes = {"s": "_s", "bit/s": "_bps", "%": "_percent", "packets": "_packets", "": ""}
        suffix = {**suffixes, "1/min": ("_per_minute", "rpm")}[metric.unit]
        assert metric.name.endswith(suffix)


def test_every_definition_says_what_it_looks_at():
    """The code of a metric receives what it declares, and nothing else."""
    of = {Takes.QUEUE: "queue", Takes.CLASS: "class_name", Takes.WINDOW: "window"}
    for each in all_metrics():
        arguments = [name.removeprefix("_") for name in signature(each.code).parameters]
        declared = [name for part, name in of.items() if part in each.takes]
        assert arguments == ["run", *declared, *(p.name for p in each.parameters)], each.name
        assert (Takes.QUEUE in each.takes) != (Takes.FLOWS in each.takes), each.name


def test_a_single_run_has_no_default_queue(run):
    with pytest.raises(ValueError, match="the scope names no queue"):
        find("goodput_bps").compute(run, Scope())


def test_nothing_is_claimed_of_a_queue_that_is_not_there(run):
    for metric in all_metrics():
        if metric.name.split("_")[0] in ("throughput", "utilisation", "drop", "mark", "backlog", "queueing"):
            assert metric.compute(run, Scope("elsewhere")) is None


def test_an_unknown_metric_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean `goodput_bps`"):
        find("goodput")


@pytest.mark.parametrize(
    ("values", "expected", "tolerance"),
    [((1, 1, 1, 1), 1, 0), ((1, 0, 0, 0), 0.25, 0), ((12883040, 12831940), 0.999996, 5e-7)],
)
def test_jain_known_answers(values, expected, tolerance):
    assert abs(jain_index(values) - expected) <= tolerance


def test_nothing_has_no_fairness():
    assert jain_index((0, 0)) is None


def test_where_nothing_happens_only_amounts_per_time_are_defined(tmp_path):
    """No packet has reached the queue when the run ends: its sender's access link takes 25 s."""
    scenario = {
        "duration": "22s",
        "warmup": "1s",
        "runs": 1,
        "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "5ms", "queue": {"kind": "red"}},
        "traffic": [
            {"name": "ftp", "kind": "bulk", "count": 2, "rtt": {"list": ["100s", "150s"]}},
            {
                "name": "web",
                "kind": "requests",
                "rate": "1/s",
                "rtt": "100s",
                "request": "1kB",
                "response": "1kB",
            },
        ],
        "record": {"queues": "100ms", "flows": "100ms", "packets": {"links": ["bottleneck"]}},
    }
    (measured,) = aqmlab.run(scenario, output=tmp_path / "run", report=False).measured()
    values = {metric.name: metric.compute(measured, Scope("bottleneck")) for metric in all_metrics()}
    shares = {name: value for name, value in values.items() if name.endswith(("_percent", "_index"))}
    # These divide by time, by the capacity or by the number of samples. The requests have all begun, and
    # within 2 s none can complete.
    of_time = {"utilisation_percent", "goodput_efficiency_percent", "loss_bins_percent"}
    of_time |= {
        "slow_percent",
        "average_in_band_percent",
        "backlog_below_min_th_percent",
        "backlog_above_max_th_percent",
    }
    of_time |= {"response_time_within_percent", "response_time_cdf_area_percent"}
    assert {name for name, value in shares.items() if value is not None} == of_time
    assert values["response_time_within_percent"] == 0.0
    assert [values[f"response_time_{of}_s"] for of in ("median", "p99", "mean", "reached")] == [None] * 4


@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=30), st.floats(0.001, 1000))
def test_jain_is_between_its_bounds_and_knows_no_unit(values, scale):
    index = jain_index(values)
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index([scale * value for value in values]) == pytest.approx(index, rel=1e-6)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_quantiles_of_exact_bins_are_those_of_the_values(values, p):
    bins = sorted(set(values))
    exact = histogram(*((value, value, values.count(value)) for value in bins))
    assert exact.quantile(p) == np.quantile(values, p, method="inverted_cdf")


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=100), st.floats(0.01, 1.0))
def test_quantiles_of_one_percent_bins_are_within_one_percent(values, p):
    weights = {}
    for value in values:
        step = max(value // 128, 1)
        low = value // step * step
        weights[low, low + step - 1] = weights.get((low, low + step - 1), 0) + 1
    coarse = histogram(*((low, high, weight) for (low, high), weight in sorted(weights.items())))
    assert coarse.quantile(p) == pytest.approx(np.quantile(values, p, method="inverted_cdf"), rel=0.01)


def test_an_empty_histogram_has_no_quantile():
    assert histogram((0, 0, 0)).quantile(0.5) is None


def test_a_mean_queueing_delay_takes_each_bin_at_its_middle():
    assert (
        QueueTotals("bottleneck", "tcp", {}, sojourn_sums=(4, 3 * 20 + 42)).sojourn_mean_ns
        == (3 * 10 + 21) / 4
    )
    assert QueueTotals("bottleneck", "tcp", {}).sojourn_mean_ns is None


def test_merging_adds_the_weights_of_equal_bins():
    merged = Histogram.merged([histogram((1, 1, 2), (5, 6, 1)), histogram((1, 1, 3), (7, 7, 4))])
    assert (merged.low, merged.high, merged.weight) == ((1, 5, 7), (1, 6, 7), (5, 1, 4))


@pytest.mark.parametrize(
    ("covariance", "half_axes", "angle"),
    [([[4, 0], [0, 1]], (2, 1), 0), ([[2, 1], [1, 2]], (3**0.5, 1), 45), ([[1, 0], [0, 4]], (2, 1), 90)],
)
def test_covariance_ellipse_known_answers(covariance, half_axes, angle):
    ellipse = from_covariance((0, 0), covariance)
    assert ellipse.half_axes == pytest.approx(half_axes)
    assert ellipse.angle_degrees == pytest.approx(angle)


def test_the_one_sigma_ellipse_holds_39_percent_of_a_normal_distribution():
    draws = np.random.default_rng(1).multivariate_normal([3, 5], [[2, 1], [1, 2]], size=20_000)
    ellipse = covariance_ellipse(*draws.T)
    turn = np.deg2rad(ellipse.angle_degrees)
    axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    scaled = (draws - ellipse.centre) @ axes.T / ellipse.half_axes
    assert np.mean((scaled**2).sum(axis=1) <= 1) == pytest.approx(0.393, abs=0.01)


def test_settings_in_braces_are_the_arguments_of_values(experiment):
    cell = experiment.cells[1]
    for text, arguments in {
        "drop_percent{class=ftp}": {"class_name": "ftp"},
        "drop_percent{ class = ftp , kind=data }": {"class_name": "ftp", "kind": "data"},
        'backlog_mean_packets{queue="reverse"}': {"queue": "reverse"},
        "loss_bins_percent{bin=250ms, window=2s-4s}": {"window": (2.0, 4.0), "parameters": {"bin": 0.25}},
        "goodput_bps{from=3s}": {"window": (3.0, math.inf)},
    }.items():
        name = text.partition("{")[0]
        plain = experiment.values(name, cell, Scope(**arguments))
        assert experiment.values(text, cell) == plain
        assert plain != experiment.values(name, cell)
        found = aqmlab.answer(experiment, [text])
        assert found.by_seed("RED + ECN", find(text).name) == plain
        assert find(find(text).name) == find(text)
    assert find("loss_bins_percent{bin=250ms, window=2s-4s}").label == (
        "seconds with loss (bin 250 ms, window 2 s-4s)"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drop_percent{", "is malformed; write `drop_percent{KEY=VALUE, ...}`"),
        ("drop_percent{kind}", "is malformed"),
        ("drop_percent{kind=data}x", "is malformed"),
        ("drop_percent{kind=data, kind=syn}", "is malformed"),
        ("drop_percent{knd=data}", "no setting of `drop_percent` `knd`; did you mean `kind`"),
        ("drop_percent{arm=RED}", "selects a cell, which only claims do"),
        ("loss_bins_percent{bin=3p}", "`3p` is a number of packets; `bin` must be a time"),
        ("goodput_bps{window=3p}", "`3p` is not a time of a run"),
        ("drp_percent{kind=data}", "no metric `drp_percent`; did you mean `drop_percent`"),
    ],
)
def test_wrong_settings_in_braces_are_refused_before_a_run(small, text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        find(text)
    with pytest.raises(UsageError, match=re.escape(message)):
        aqmlab.run(small | {"metrics": [text]})


def test_metrics_of_a_scenario_may_have_settings(small, tmp_path):
    asked = ["drop_percent{class=ftp}", "response_time_within_percent{within=2s}"]
    done = aqmlab.run(small | {"metrics": asked, "runs": 1}, output=tmp_path / "out")
    assert done.metrics == tuple(asked)
    assert aqmlab.answer(done).by_seed("DropTail", asked[0]) == done.values(
        "drop_percent", done.cells[0], Scope(class_name="ftp")
    )
    assert "drops (class ftp)" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
