"""Metrics of oscillation, checked by hand: loss and idle seconds, probabilities, gaps between marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import aqmlab
from aqmlab.metrics import Measured, QueueTotals, Samples, Scope, Window, find
from aqmlab.metrics.geometric_test import geometric_p_value

MBIT = 10**6


@dataclass(frozen=True)
class Scripted(Measured):
    """A run sampled twice per second, with these columns."""

    columns: dict[str, list[float]] = field(default_factory=dict)

    def samples(self, table, name, queue):
        assert (table, queue) == ("law" if name == "p" else "queues", "bottleneck")
        values = np.array(self.columns[name], dtype=float)
        return Samples(0.5 * np.arange(1.0, len(values) + 1), values)


def scripted(until_s=4, overhead_bytes=0, **columns):
    """A link of 1 Mbit/s: 62.5 packets of 1000 B each half second."""
    link = SimpleNamespace(name="bottleneck", overhead_bytes=overhead_bytes)
    plan = SimpleNamespace(links=[link], elsewhere=lambda _: frozenset())
    rates = {"rate_bps": lambda _: MBIT, "changes": lambda _: False}
    run = SimpleNamespace(plan=plan, t0_ns=0, t1_ns=until_s * 10**9, **rates)
    return Scripted(run, {("bottleneck", "*"): QueueTotals("bottleneck", "*", {})}, [], columns=columns)


def value(name, run, window=None, **parameters):
    return find(name).compute(run, Scope("bottleneck", "*", window, parameters))


def test_a_second_has_loss_if_one_packet_is_dropped_in_it():
    run = scripted(
        dropped_by_law_packets=[0, 0, 1, 0, 0, 0, 0, 0],
        dropped_not_by_law_packets=[0, 0, 0, 0, 0, 0, 0, 7],
    )
    assert value("loss_bins_percent", run) == 50  # the second and the fourth bin of four
    assert value("loss_bins_percent", run, bin=2) == 100
    assert value("loss_bins_percent", run, bin=0.5) == pytest.approx(25)
    assert value("loss_bins_percent", run, Window(2, 3)) == 0
    assert value("loss_bins_percent", run, Window(0.5, 1.5)) == 100, "bins begin with the window"
    assert value("loss_bins_percent", run, bin=0.25) is None, "finer than the samples"


def test_a_link_was_idle_in_a_second_in_which_it_sent_two_packets_less_than_it_can():
    sent = [62_500, 62_500, 62_500, 60_501, 62_500, 60_500, 0, 0]
    run = scripted(departures_bytes=sent, arrivals_packets=[1] * 8, arrivals_bytes=[1000] * 8)
    assert value("idle_bins_percent", run) == 50  # idle: a second that lacks 2000 bytes, but not 1999
    assert value("idle_bins_percent", run, Window(0, 3)) == pytest.approx(100 / 3)
    silent = scripted(departures_bytes=sent, arrivals_packets=[0] * 8, arrivals_bytes=[0] * 8)
    assert value("idle_bins_percent", silent) is None
    padded = scripted(
        overhead_bytes=20, departures_bytes=sent, arrivals_packets=[1] * 8, arrivals_bytes=[1000] * 8
    )
    assert value("idle_bins_percent", padded) is None


def test_a_part_of_the_run_has_its_own_utilisation_drops_and_backlog():
    run = scripted(
        departures_bytes=[62_500, 62_500, 31_250, 62_500, 0, 0, 0, 0],
        arrivals_packets=[10, 10, 30, 10, 0, 0, 0, 0],
        dropped_by_law_packets=[0, 0, 3, 0, 0, 0, 0, 0],
        dropped_not_by_law_packets=[0, 0, 0, 1, 0, 0, 0, 0],
        backlog_packets=[4, 8, 4, 8, 0, 0, 0, 0],
    )
    part = Window(1, 2)
    assert value("utilisation_percent", run, part) == pytest.approx(75)
    assert value("drop_percent", run, part) == pytest.approx(10)
    assert value("drop_percent", run, Window(2, 3)) is None, "nothing arrived"
    assert find("drop_percent").compute(run, Scope("bottleneck", "ftp", part)) is None, (
        "samples know no classes"
    )
    assert value("backlog_mean_packets", run, part) == 6
    assert value("backlog_sd_packets", run, part) == 2
    assert value("backlog_spread_percent", run, part) == pytest.approx(100 / 3)


def test_the_spread_of_the_backlog_in_the_measured_interval_is_exact(experiment):
    run = experiment.measured()[0]
    assert value("backlog_spread_percent", run) == pytest.approx(
        100 * value("backlog_sd_packets", run) / value("backlog_mean_packets", run)
    )


def test_parts_of_the_measured_interval_add_up_to_it(experiment):
    run = experiment.measured()[0]
    halves = [Window(1, 3), Window(3, 6)]
    weighted = sum(value("utilisation_percent", run, half) * half.length_s for half in halves)
    # A packet in transmission at the end of an interval counts in the interval in which its transmission
    # ends.
    assert weighted / 5 == pytest.approx(value("utilisation_percent", run), abs=0.1)


def test_the_probability_over_short_times_is_apart_from_its_course():
    run = scripted(p=[0.1, 0.3, 0.5, 0.7, 0.2, 0.2, 0.2, 0.2])
    # Deviations of 0.1 in the first two seconds, none in the others.
    assert value("probability_short_sd", run) == pytest.approx(0.05)
    assert value("probability_short_sd", run, Window(0, 2)) == pytest.approx(0.1)
    assert value("probability_short_sd", run, bin=0.5) is None, "one sample has no deviation"
    assert value("probability_mean", run) == pytest.approx(0.3)
    assert value("probability_mean", run, Window(1, 2)) == pytest.approx(0.6)


def test_a_coin_has_geometric_gaps_and_a_counter_has_not():
    """One in twenty p values of a fair coin is below 5 %: 20 of 400, with a standard deviation of 4.4."""
    draws = np.random.default_rng(1)
    values = [geometric_p_value(draws.random(5000) < 0.2) for _ in range(400)]
    below = sum(value < 0.05 for value in values)
    assert 7 <= below <= 33
    every_fifth = np.arange(5000) % 5 == 0
    assert geometric_p_value(every_fifth) < 1e-6
    # RED's even spacing: uniform gaps from 1 to 9 have the same mean as draws with probability 1/5.
    uniform = np.zeros(6000, dtype=bool)
    uniform[np.cumsum(draws.integers(1, 10, 1000))] = True
    assert geometric_p_value(uniform) < 1e-6


def test_the_statistic_is_pearsons():
    """Of 100 gaps, 60 have length 1, 24 have length 2 and 16 have length 3, so the estimate is 100/156."""
    gaps = [1] * 60 + [2] * 24 + [3] * 16
    marked = np.zeros(sum(gaps) + 1, dtype=bool)
    marked[np.concatenate([[0], np.cumsum(gaps)])] = True
    p = 100 / 156
    expected = np.array([100 * p, 100 * p * (1 - p)])
    # Beyond the classes (0, 1] and (1, 2], only 12.9 gaps are expected. These are too few for a class of
    # their own, so the tail begins after 1.
    assert 100 * (1 - p) ** 2 < 20
    assert geometric_p_value(marked) is None, "two classes and an estimate leave no degree of freedom"
    more = np.zeros(4 * sum(gaps) + 1, dtype=bool)
    more[np.concatenate([[0], np.cumsum(gaps * 4)])] = True
    classes = 4 * np.append(expected, 100 * (1 - p) ** 2)
    assert classes[2] > 20 > 4 * 100 * (1 - p) ** 3
    statistic = (((240 - classes[0]) ** 2) / classes[0]) + ((96 - classes[1]) ** 2) / classes[1]
    statistic += (64 - classes[2]) ** 2 / classes[2]
    # With one degree of freedom, the p value is twice the upper tail of the normal distribution.
    from scipy.stats import norm

    assert geometric_p_value(more) == pytest.approx(2 * norm.sf(statistic**0.5))


def test_arrivals_and_their_marks_are_read_in_their_order(small, tmp_path):
    """The numbers of arrivals and marks in the measured interval equal those of the exact counters."""
    small["traffic"][0]["tcp"] = {"ecn": True}
    small["topology"]["queue"] = {"kind": "blue", "limit": "20p", "ecn": True}
    small["topology"]["queue"] |= {"d1": 0.02, "d2": 0.002, "freeze_time": "10ms"}
    small["record"]["packets"] = {"links": ["bottleneck"], "events": ["enqueue", "drop", "mark"]}
    del small["arm"]
    run = aqmlab.run(small, output=tmp_path / "marks", jobs=1).measured()[0]
    totals = run.queues["bottleneck", "*"]
    marked = run.marks_of_arrivals("bottleneck", run.window)
    lost = totals.sum_over_reasons("dropped")
    assert len(marked) == totals["arrivals_packets"] - lost
    assert marked.sum() == totals.sum_over_reasons("marked") > 5
    assert lost > 5
    assert value("mark_gaps_p_value", run) == geometric_p_value(marked)
    parts = [run.marks_of_arrivals("bottleneck", Window(*ends)) for ends in ((1, 2.5), (2.5, 6))]
    assert list(np.concatenate(parts)) == list(marked)


def test_without_recorded_packets_nothing_is_known_of_gaps(experiment):
    run = experiment.measured()[0]
    assert run.marks_of_arrivals("bottleneck", run.window) is None
    assert value("mark_gaps_p_value", run) is None


def test_too_few_marks_say_nothing():
    marked = np.arange(990) % 10 == 0
    assert marked.sum() == 99
    assert geometric_p_value(marked) is None
