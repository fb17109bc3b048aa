"""Metrics and figures of media, games and pings: identities, arithmetic, and agreement with each other."""

from __future__ import annotations

import pytest

import aqmlab
from aqmlab.figures.kinds import KINDS
from aqmlab.figures.view import View
from aqmlab.metrics import Histogram, Scope
from aqmlab.metrics.responsiveness import trimmed_mean, trimmed_mean_of

SCENARIO = {
    "title": "frames",
    "duration": "20s",
    "warmup": "4s",
    "runs": 2,
    "record": {"queues": "100ms", "flows": "100ms"},
    "topology": {
        "kind": "dumbbell",
        "rate": "4Mbit",
        "delay": "10ms",
        "queue": {"kind": "droptail", "limit": "60p"},
    },
    "traffic": [
        {
            "name": "call",
            "kind": "media",
            "control": {"kind": "constant"},
            "rate": "1Mbit",
            "fps": 25,
            "deadline": "80ms",
            "rtt": "40ms",
            "count": 2,
        },
        {"name": "gcc", "kind": "media", "control": {"kind": "gcc"}, "rate": "300kbit", "rtt": "40ms"},
        {"name": "game", "kind": "game", "rtt": "40ms"},
        {"name": "ping", "kind": "ping", "rtt": "40ms"},
        {"name": "load", "kind": "bulk", "count": 2, "rtt": "40ms"},
        {
            "name": "probe",
            "kind": "requests",
            "rate": "2/s",
            "request": "100B",
            "response": "100B",
            "rtt": "40ms",
        },
    ],
    "arm": [{"name": "deep"}, {"name": "fair", "topology.queue": "fq_codel"}],
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return aqmlab.run(SCENARIO, output=tmp_path_factory.mktemp("frames") / "one")


def values(loaded, arm, metric, class_name, **parameters):
    (cell,) = (cell for cell in loaded.cells if cell.arm == arm)
    scope = Scope(queue="bottleneck", class_name=class_name, parameters=parameters)
    return list(loaded.values(metric, cell, scope).values())


def test_each_frame_has_one_fate(loaded):
    for arm in ("deep", "fair"):
        for class_name in ("call", "gcc", "game", "*"):
            shares = [
                values(loaded, arm, f"frames_{fate}_percent", class_name)
                for fate in ("in_time", "late", "lost")
            ]
            for of_seed in zip(*shares, strict=True):
                assert sum(of_seed) == pytest.approx(100.0)


def test_a_constant_call_has_its_rate(loaded):
    # Two flows of 25 frames per second, each of 1 Mbit/s: 400 frames per flow in 16 s, whose sizes deviate.
    for rate in values(loaded, "deep", "encoded_rate_bps", "call"):
        assert rate == pytest.approx(2e6, rel=0.03)


def test_flow_queues_keep_sparse_flows_in_time(loaded):
    (deep, fair) = (values(loaded, arm, "frames_in_time_percent", "game") for arm in ("deep", "fair"))
    assert min(fair) > 99.0 > max(deep)
    delays = values(loaded, "fair", "frame_delay_p95_s", "game")
    assert all(0.02 < delay < 0.04 for delay in delays), "half a round trip, and little more"


def test_pings_are_requests(loaded):
    for arm in ("deep", "fair"):
        for median in values(loaded, arm, "response_time_median_s", "ping"):
            assert median > 0.04
        assert all(n >= 75 for n in values(loaded, arm, "requests_completed", "ping"))


def test_responsiveness_is_that_of_its_parts(loaded):
    for arm in ("deep", "fair"):
        foreign = values(loaded, arm, "foreign_rpm", "probe")
        loads = values(loaded, arm, "loaded_rpm", "load")
        for both, one, other in zip(values(loaded, arm, "rpm", "probe"), foreign, loads, strict=True):
            assert both == pytest.approx((one + other) / 2)
            assert one < 60 / 0.04
            assert other < 60 / 0.04
        # A ping is one round trip: its trimmed mean is below that of its quantiles above 95 %.
        for rpm, p95 in zip(
            values(loaded, arm, "foreign_rpm", "ping", round_trips=1.0),
            values(loaded, arm, "response_time_p95_s", "ping"),
            strict=True,
        ):
            assert 60 / p95 < rpm < 60 / 0.04
    assert min(values(loaded, "fair", "foreign_rpm", "probe")) > max(
        values(loaded, "deep", "foreign_rpm", "probe")
    )


def test_the_trimmed_mean_leaves_out_the_longest_twentieth():
    assert trimmed_mean([*range(1, 20), 1000.0]) == 10.0
    assert trimmed_mean([3.0]) == 3.0
    assert trimmed_mean([]) is None
    assert trimmed_mean_of(Histogram((10, 100), (10, 100), (19, 1))) == 10.0
    # 95 % of a weight of 10 are 9.5: (9 * 10 + 0.5 * 100) / 9.5.
    assert trimmed_mean_of(Histogram((10, 100), (10, 100), (9, 1))) == pytest.approx(140 / 9.5)
    assert trimmed_mean_of(Histogram()) is None


def test_metrics_of_frames_are_undefined_without_frames(loaded):
    for metric in ("frame_delay_p95_s", "frames_in_time_percent", "encoded_rate_bps", "freezes_per_minute"):
        assert values(loaded, "deep", metric, "load") == [None, None] or not values(
            loaded, "deep", metric, "load"
        )


def test_the_figure_of_delays_ends_at_the_quantiles(loaded):
    figure = KINDS["frame-delay-cdf"].make(loaded, View(class_name="call"), None)
    (panel,) = figure.panels
    assert panel.title == "call"
    rows = list(KINDS["frame-delay-cdf"].rows(loaded, View(class_name="call"), None))
    of_arm = [row for row in rows[1:] if row[1] == "deep"]
    median = sum(values(loaded, "deep", "frame_delay_median_s", "call")) / 2
    shares = {float(row[2]) / 1e3: float(row[3]) for row in of_arm}
    below = max(share for delay, share in shares.items() if delay <= 0.9 * median)
    above = min(share for delay, share in shares.items() if delay >= 1.1 * median)
    assert below < 0.5 < above


def test_the_figure_of_rates_shows_what_controllers_aim_at(loaded):
    rows = list(KINDS["media-rate"].rows(loaded, View(class_name="call"), "bottleneck"))
    assert {row[1] for row in rows[1:]} == {"call 0", "call 1"}
    assert {row[3] for row in rows[1:]} == {"1000000"}
    figure = KINDS["media-rate"].make(loaded, View(), "bottleneck")
    assert [panel.title for panel in figure.rows[0]] == ["deep", "fair"]
