"""Coverage of intervals where theory gives the truth: replications of M/M/1 in the simulator itself.

One scenario has a hundred parallel queues, each with its own Poisson arrivals and exponential sizes, at a
load of one half: a hundred independent replications per run. The mean number of waiting packets is
``rho^2 / (1 - rho) = 0.5``; at any instant, the queue is busy with probability ``rho``. (Rounding to whole
bytes changes the mean by 3e-4, a fiftieth of the smallest standard error here.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats

import aqmlab
from aqmlab.stats.intervals import mean
from aqmlab.stats.proportion import clopper_pearson
from aqmlab.stats.quantiles import covering_ranks, median

QUEUES = 100
LOAD = 0.5
WAITING = LOAD**2 / (1 - LOAD)
SOMEBODY_THERE = LOAD
MEASURED_S = 1.0
"""1250 arrivals; the queue forgets its past in 1 / (mu (1 - sqrt(rho))^2) = 5 ms."""


def side_by_side(runs):
    return {
        "title": "M/M/1, a hundred times",
        "duration": "1.1s",
        "warmup": "100ms",
        "seed": 1,
        "runs": runs,
        "topology": {"kind": "graph", "access_rate": "none"},
        "node": [{"name": f"{end}{i}"} for i in range(QUEUES) for end in ("from", "to")],
        "link": [
            {
                "name": f"queue{i}",
                "from": f"from{i}",
                "to": f"to{i}",
                "rate": "100Mbit",
                "delay": "0ms",
                "queue": {"kind": "droptail", "limit": "1000000p"},
            }
            for i in range(QUEUES)
        ],
        "traffic": [
            {
                "name": f"arrivals{i}",
                "kind": "poisson",
                "rate": "50Mbit",
                "size": {"exponential": "5kB"},
                "from": f"from{i}",
                "to": f"to{i}",
            }
            for i in range(QUEUES)
        ],
        "record": {"queues": "0s", "flows": "0s"},
    }


@dataclass
class Replications:
    """One value per replication: mean number of waiting packets, and whether the queue is busy at the end."""

    waiting: np.ndarray
    somebody_there: np.ndarray

    def groups_of(self, n, count):
        """The first ``count`` groups of ``n`` replications."""
        return (column[: n * count].reshape(count, n) for column in (self.waiting, self.somebody_there))


def replications(count, folder):
    experiment = aqmlab.run(side_by_side(count // QUEUES), output=folder / "mm1", report=False)
    columns = experiment.tables.arrays(
        "summary",
        "backlog_packets_integral_ns::DOUBLE AS integral, final_in_system_packets AS left_behind",
        "WHERE class = '*' AND queue NOT LIKE '%-reverse' ORDER BY run, queue",
    )
    found = Replications(
        np.asarray(columns["integral"]) / (MEASURED_S * 1e9), np.asarray(columns["left_behind"]) > 0
    )
    assert len(found.waiting) == count
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return replications(2000, tmp_path_factory.mktemp("coverage"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return replications(60_000, tmp_path_factory.mktemp("coverage"))


def coverage(intervals, truth):
    return float(np.mean([found.low <= truth <= found.high for found in intervals]))


def by_chance(repetitions, nominal):
    """The range in which the coverage observed in this many repetitions lies with a probability of 99.9 % if
    the true coverage is ``nominal``."""
    low, high = scipy.stats.binom.interval(0.999, repetitions, nominal)
    return low / repetitions, high / repetitions


def exact_share_coverage(n, truth):
    """Coverage of the Clopper-Pearson interval at one true share, as a binomial sum."""
    held = [k for k in range(n + 1) if clopper_pearson(k, n).low <= truth <= clopper_pearson(k, n).high]
    return float(scipy.stats.binom.pmf(held, n, truth).sum())


def test_replications_are_of_the_queue_that_theory_knows(few):
    error = few.waiting.std() / np.sqrt(len(few.waiting))
    assert few.waiting.mean() == pytest.approx(WAITING, abs=4 * error)
    assert error < 0.01 * WAITING
    low, high = by_chance(len(few.waiting), SOMEBODY_THERE)
    assert low <= few.somebody_there.mean() <= high


def test_intervals_cover_as_often_as_they_say(few):
    waiting, somebody = few.groups_of(10, 200)
    low, high = by_chance(200, 0.95)
    assert low <= coverage(map(mean, waiting), WAITING) <= high
    low, high = by_chance(200, exact_share_coverage(10, SOMEBODY_THERE))
    assert low <= coverage((clopper_pearson(int(s.sum()), 10) for s in somebody), SOMEBODY_THERE) <= high


def test_the_medians_interval_covers_as_its_ranks_say():
    """The times are exponential, with the median ln 2; the coverage is the same for any continuous
    distribution."""
    draws = np.random.default_rng(1).exponential(size=(2000, 10))
    low, high = by_chance(2000, covering_ranks(10, 0.5, 0.95)[2])
    assert low <= coverage(map(median, draws), np.log(2)) <= high


@pytest.mark.slow
def test_coverage_over_two_thousand_repetitions(many):
    of_ten, somebody = many.groups_of(10, 2000)
    by_t = coverage(map(mean, of_ten), WAITING)
    of_shares = coverage((clopper_pearson(int(s.sum()), 10) for s in somebody), SOMEBODY_THERE)
    middle = float(np.median(many.waiting))
    of_medians = coverage(map(median, of_ten), middle)
    seen = f"t {by_t:.4f}, Clopper-Pearson {of_shares:.4f}, median {of_medians:.4f}"
    assert 0.935 <= by_t <= 0.965, seen
    low, high = by_chance(2000, exact_share_coverage(10, SOMEBODY_THERE))
    assert low <= of_shares <= high, seen
    low, high = by_chance(2000, covering_ranks(10, 0.5, 0.95)[2])
    assert low <= of_medians <= high, seen
