"""Intervals compared with printed tables and with SciPy's intervals."""

from __future__ import annotations

import math

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from aqmlab.stats import difference, estimate, t_quantile
from aqmlab.stats.student import within

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


@pytest.mark.parametrize(
    ("degrees", "printed"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (120, 1.980)]
)
def test_quantiles_are_those_of_the_printed_table(degrees, printed):
    assert round(t_quantile(0.95, degrees), 3) == printed


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_quantiles_are_scipys(confidence):
    for degrees in [*range(1, 60), 99, 100, 999, 1000, 9999, 1.5, 7.25]:
        theirs = scipy.stats.t.ppf(0.5 + confidence / 2, degrees)
        assert t_quantile(confidence, degrees) == pytest.approx(theirs, rel=1e-11), degrees
        assert within(t_quantile(confidence, degrees), degrees) == pytest.approx(confidence, abs=1e-12)


def test_students_distribution_by_hand():
    # With one degree of freedom: 2 atan(t) / pi; with two: t / sqrt(2 + t^2).
    assert within(1.0, 1) == pytest.approx(0.5)
    assert within(1.0, 2) == pytest.approx(3**-0.5)
    assert within(0.0, 7) == t_quantile(0.0, 7) == 0.0
    with pytest.raises(ValueError, match="at least 1 degree"):
        within(1.0, 0)
    with pytest.raises(ValueError, match="below 1"):
        t_quantile(1.0, 3)


def test_an_interval_by_hand():
    # mean 3, variance 10/4, standard error sqrt(2.5/5) = 0.70711, times t(4) = 2.77645
    result = estimate([1, 2, 3, 4, 5])
    assert result.mean == 3
    assert result.half_width == pytest.approx(1.96325, abs=1e-5)
    assert (result.low, result.high) == pytest.approx((1.03675, 4.96325), abs=1e-5)


def test_one_run_has_a_mean_and_no_interval():
    result = estimate([4.5])
    assert (result.mean, result.half_width, result.n) == (4.5, None, 1)
    assert result.low is None
    assert not result.excludes_zero()


def test_seeds_without_a_value_do_not_count():
    assert estimate([None, 2.0, math.nan, 4.0]).n == 2
    assert estimate([None, math.nan]) is None


@given(VALUES)
def test_intervals_agree_with_scipy(values):
    result = estimate(values)
    sem = scipy.stats.sem(values)
    if sem > 1e-6:
        low, high = scipy.stats.t.interval(0.95, len(values) - 1, loc=sum(values) / len(values), scale=sem)
        assert (result.low, result.high) == pytest.approx((low, high), rel=1e-6, abs=1e-4)


@given(VALUES, st.floats(-100, 100))
def test_a_shift_moves_the_mean_and_not_the_width(values, shift):
    before, after = estimate(values), estimate([value + shift for value in values])
    assert after.mean == pytest.approx(before.mean + shift, abs=1e-6)
    assert after.half_width == pytest.approx(before.half_width, abs=1e-5)


def test_pairs_are_made_of_common_seeds_only():
    a = {1: 10.0, 2: 21.0, 3: 30.0, 9: 1000.0}
    b = {1: 8.0, 2: 19.0, 3: 28.0, 8: -1000.0}
    result = difference(a, b).estimate
    assert (result.mean, result.n) == (2.0, 3)
    assert result.half_width == 0
    assert result.excludes_zero()


def test_pairing_sees_a_difference_that_spread_hides():
    a = {seed: 100.0 * seed + 1.0 + 0.1 * (seed % 2) for seed in range(10)}
    b = {seed: 100.0 * seed for seed in range(10)}
    assert difference(a, b).estimate.excludes_zero()
    assert estimate(a.values()).half_width > 100
