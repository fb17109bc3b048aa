"""Evidence from the series of one run: MSER-5 and batch means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from aqmlab.stats.batch_means import batch_means
from aqmlab.stats.warmup import mser


def autoregressive(seed, n, phi, begin=0.0):
    """A first-order autoregressive series around zero with the coefficient ``phi``."""
    generator = np.random.default_rng(seed)
    values, x = np.empty(n), begin
    for i, step in enumerate(generator.normal(size=n)):
        x = phi * x + step
        values[i] = x
    return values


def by_definition(values, group):
    """White's rule in exact fractions: the first cut at which sum((y - mean)^2) / n^2 of the n remaining
    values is smallest."""
    groups = [Fraction(sum(values[i : i + group]), group) for i in range(0, len(values) - group + 1, group)]
    best, at = None, None
    for cut in range(len(groups) // 2 + 1):
        rest = groups[cut:]
        mean = sum(rest) / len(rest)
        statistic = sum((y - mean) ** 2 for y in rest) / Fraction(len(rest)) ** 2
        if best is None or statistic < best:
            best, at = statistic, cut
    return at * group, float(sum(groups[at:]) / len(groups[at:]))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("group", [1, 5])
def test_the_cut_is_that_of_the_definition(seed, group):
    generator = np.random.default_rng(seed)
    values = [int(x) for x in generator.integers(0, 30, size=203)]
    for i in range(int(generator.integers(0, 80))):
        values[i] += 100 - i
    found = mser(np.array(values, dtype=float), group)
    assert (found.cut, found.mean) == (
        by_definition(values, group)[0],
        pytest.approx(by_definition(values, group)[1]),
    )


@pytest.mark.parametrize("ramp", [0, 20, 45, 60])
def test_a_beginning_that_differs_is_cut_off_exactly(ramp):
    noise = np.random.default_rng(1).normal(0, 0.1, size=200)
    found = mser(np.concatenate([np.full(ramp, 50.0), np.zeros(200 - ramp)]) + noise)
    assert ramp <= found.cut <= ramp + 15
    assert found.settled
    assert found.mean == pytest.approx(0.0, abs=0.05)


def test_what_never_settles_is_said_not_to():
    assert not mser(np.arange(400.0)).settled
    late = mser(
        np.concatenate([np.full(210, 9.0), np.zeros(190)]) + np.random.default_rng(2).normal(size=400)
    )
    assert not late.settled


def test_a_level_series_is_kept_whole_and_a_short_one_judged_not():
    assert mser(np.full(100, 3.0)).cut == 0
    assert mser(np.zeros(49)) is None
    assert mser(np.zeros(50)).cut == 0


def test_a_constant_far_from_zero_costs_no_digits():
    values = np.random.default_rng(4).integers(0, 9, size=500).astype(float)
    values[:40] += 30
    assert mser(values + 1e12).cut == mser(values).cut


def test_batches_by_hand():
    # Batches of five: means 0, 1, 2, 3; mean 1.5, s^2 = 5/3, half-width 3.182 * sqrt(5/3/4).
    found = batch_means(np.repeat([0.0, 1.0, 2.0, 3.0], 5), batches=4)
    assert (found.batches, found.values, found.estimate.mean) == (4, 5, 1.5)
    assert found.estimate.half_width == pytest.approx(3.18245 * math.sqrt(5 / 12), rel=1e-5)
    assert found.lag1 == pytest.approx(1 - 3 / (2 * 5))  # three steps of one, squares 2.25 + .25 + .25 + 2.25
    assert not found.independent
    assert found.interval.low is None
    assert "depend on each other (correlation 0.70)" in found.interval.reason


def test_the_newest_values_are_kept_where_batches_do_not_divide_evenly():
    assert batch_means(np.concatenate([[1e6] * 3, np.zeros(100)])).estimate.mean == 0


def test_a_series_too_short_for_batches_has_none():
    short = batch_means(np.zeros(99))
    assert short.estimate is None
    assert short.interval.reason == "20 batches need at least 100 values"
    assert batch_means(np.zeros(100)).interval.low == 0


def test_independent_batches_are_doubted_in_one_series_of_twenty():
    generator = np.random.default_rng(6)
    doubted = np.mean([not batch_means(generator.normal(size=100)).independent for _ in range(2000)])
    assert doubted == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2000))


def test_batches_cover_the_mean_of_a_series_that_depends_on_itself():
    """With a correlation time of 20 steps, 4,000 values of AR(1) make twenty batches, each ten such times
    long."""
    found = [batch_means(autoregressive(seed, 4000, 0.95)) for seed in range(300)]
    covered = np.mean([f.interval.low <= 0 <= f.interval.high for f in found if f.independent])
    assert sum(f.independent for f in found) > 200
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / 200))
    # A run that is too short is reported without an interval: its batches last a quarter of a correlation
    # time.
    assert np.mean([batch_means(autoregressive(seed, 100, 0.95)).independent for seed in range(300)]) < 0.05
