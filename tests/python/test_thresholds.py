"""RED's average between its thresholds, and the queue outside them, compared with answers found by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from aqmlab.errors import UsageError
from aqmlab.metrics import Histogram, Measured, QueueTotals, Samples, Scope, Window, find
from aqmlab.metrics.thresholds import thresholds
from aqmlab.recordings.plan import Plan
from manifests import TIMES

RED = {"min_th_packets": 9, "max_th_packets": 27, "measure": "packets", "mean_packet_bytes": 1500}


@dataclass(frozen=True)
class Scripted(Measured):
    """A run whose law was sampled once per second, with these averages."""

    averages: tuple[float, ...] = field(default=())

    def samples(self, table, name, queue):
        assert (table, name, queue) == ("law", "avg", "bottleneck")
        return Samples(np.arange(1.0, len(self.averages) + 1), np.array(self.averages, dtype=float))


def scripted(averages, settings=RED, backlog=()):
    link = {"name": "bottleneck", "from": "l", "to": "r", "rate_bps": 10**6, "delay_ns": 10**6}
    plan = {
        "links": [{**link, "overhead_bytes": 0, "queue": {"kind": "red", "settings": settings}}],
        "nodes": ["l", "r"],
        "classes": [],
        **TIMES,
    }
    run = SimpleNamespace(plan=Plan.of(plan), t0_ns=0, t1_ns=len(averages) * 10**9)
    bins = Histogram(*(tuple(column) for column in zip(*backlog, strict=True))) if backlog else Histogram()
    totals = {("bottleneck", "*"): QueueTotals("bottleneck", "*", {}, {"backlog_packets": bins}.__getitem__)}
    return Scripted(run, totals, [], averages=tuple(averages))


def value(name, run, window=None, **parameters):
    return find(name).compute(run, Scope("bottleneck", "*", window, parameters))


def test_mean_and_deviation_are_those_of_the_samples():
    run = scripted([8, 10, 12, 14])
    assert value("average_mean_packets", run) == 11
    # The squares of -3, -1, 1 and 3 have a mean of 5.
    assert value("average_sd_packets", run) == pytest.approx(5**0.5)
    assert value("average_mean_packets", run, Window(2, 4)) == 13


def test_the_ends_of_the_band_are_in_it():
    run = scripted([8.9, 9, 18, 27, 27.1])
    assert value("average_in_band_percent", run) == pytest.approx(60)
    assert value("average_in_band_percent", run, Window(1, 5)) == pytest.approx(75)
    assert value("average_in_band_percent", run, low=0, high=9) == pytest.approx(40)
    assert value("average_in_band_percent", run, high=1e9) == pytest.approx(80)
    with pytest.raises(UsageError, match="did you mean `low`"):
        value("average_in_band_percent", run, lower=1)


def test_the_longest_stay_is_unbroken_and_strictly_inside():
    # The average is inside for 3 s, then for 2 s; 27 itself is outside.
    run = scripted([0, 10, 11, 12, 27, 10, 20, 40])
    assert value("average_longest_stay_s", run) == 3
    assert value("average_longest_stay_s", run, Window(4, 8)) == 2
    assert value("average_longest_stay_s", scripted([0, 0, 40])) == 0
    assert value("average_longest_stay_s", scripted([10] * 7)) == 7


def test_convergence_is_the_begin_of_the_first_long_stay():
    # The average is inside for 9 s, outside at 12 s, and inside from the sample at 13 s on, which covers 12 s
    # to 13 s.
    run = scripted([0, 0, *[18] * 9, 40, *[18] * 10, 40])
    assert value("average_converged_s", run) == 12
    assert value("average_converged_s", run, hold=9) == 2
    assert value("average_converged_s", run, hold=11) is None
    assert value("average_converged_s", scripted([18] * 10)) == 0
    assert value("average_converged_s", scripted([40] * 60)) is None


def test_the_backlog_outside_the_range_is_a_share_of_time():
    # Nanoseconds spent at 0, 8, 9, 27, 28 to 29 and 36 packets.
    bins = [(0, 0, 10), (8, 8, 10), (9, 9, 20), (27, 27, 30), (28, 29, 5), (36, 36, 25)]
    run = scripted([18] * 4, backlog=bins)
    assert value("backlog_below_min_th_percent", run) == pytest.approx(20)
    assert value("backlog_above_max_th_percent", run) == pytest.approx(30)


def test_a_law_that_measures_bytes_has_packets_of_mean_size():
    in_bytes = {"min_th_packets": 9, "max_th_bytes": 13_500, "measure": "bytes", "mean_packet_bytes": 500}
    run = scripted([4500, 9000, 13500, 14000], in_bytes, backlog=[(0, 0, 1)])
    of_law = thresholds(run, "bottleneck")
    assert (of_law.min_th, of_law.max_th, of_law.units_a_packet) == (9, 27, 500)
    assert value("average_mean_packets", run) == pytest.approx(20.5)
    assert value("average_in_band_percent", run) == pytest.approx(75)
    # The recording counts waiting packets, so the backlog in packets of mean size is unknown.
    assert value("backlog_above_max_th_percent", run) is None


def test_without_thresholds_or_samples_nothing_is_defined(experiment):
    names = (
        "average_mean_packets",
        "average_in_band_percent",
        "average_longest_stay_s",
        "average_converged_s",
    )
    droptail = next(run for run in experiment.measured() if run.run.arm == "DropTail")
    assert [value(name, droptail) for name in names] == [None] * 4
    assert value("backlog_below_min_th_percent", droptail) is None
    assert [value(name, scripted([])) for name in names] == [None] * 4


def test_a_recorded_average_is_where_the_law_had_it(experiment):
    red = next(run for run in experiment.measured() if run.run.arm != "DropTail")
    of_law, samples = thresholds(red, "bottleneck"), red.samples("law", "avg", "bottleneck")
    measured = samples.values[samples.t_s > 1]
    assert value("average_mean_packets", red) == pytest.approx(measured.mean())
    inside = (measured >= of_law.min_th) & (measured <= of_law.max_th)
    assert value("average_in_band_percent", red) == pytest.approx(100 * inside.mean())


def test_the_drop_rate_is_of_the_wire(experiment):
    run = experiment.measured()[0]
    metric = find("drop_rate_bps")
    classes = [metric.compute(run, Scope("bottleneck", name)) for name in ("ftp", "cbr")]
    assert metric.compute(run, Scope("bottleneck")) == pytest.approx(sum(classes))
    totals = run.queues["bottleneck", "ftp"]
    # The rate, over 5 s, of segments of 1460 B with their headers.
    dropped = totals.sum_over_reasons("dropped")
    assert dropped > 0
    assert classes[0] == pytest.approx(dropped * 1500 * 8 / 5)
