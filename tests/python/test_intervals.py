"""Intervals of shares, quantiles and anything else, against printed tables, SciPy and exact sums."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from aqmlab.stats.bootstrap import bca
from aqmlab.stats.intervals import mean
from aqmlab.stats.proportion import clopper_pearson, share, wilson
from aqmlab.stats.quantiles import covering_ranks, interpolated, median, quantile


@pytest.mark.parametrize(
    ("successes", "n", "scores", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0000, 0.1611), (0.0000, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_shares_are_those_that_newcombe_prints(successes, n, scores, exact):
    """Newcombe, Statistics in Medicine 17 (1998), table I: Wilson's score method and the exact one."""
    for interval, printed in ((wilson(successes, n), scores), (clopper_pearson(successes, n), exact)):
        assert (round(interval.low, 4), round(interval.high, 4)) == printed
        assert interval.estimate == successes / n


@pytest.mark.parametrize("n", [1, 2, 5, 10, 33])
def test_shares_agree_with_scipy(n):
    for successes in range(n + 1):
        test = scipy.stats.binomtest(successes, n)
        for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
            theirs = test.proportion_ci(0.95, method)
            found = ours(successes, n)
            assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_exact_interval_never_covers_too_little_and_the_score_interval_does_on_average(n):
    """Coverage is a sum over the binomial: exact, no simulation."""
    truths = np.arange(1, 1000) / 1000
    weight = scipy.stats.binom.pmf(np.arange(n + 1)[:, None], n, truths)
    coverage = {}
    for method in (clopper_pearson, wilson):
        found = [method(successes, n) for successes in range(n + 1)]
        low, high = np.array([i.low for i in found]), np.array([i.high for i in found])
        coverage[method] = (weight * ((low[:, None] <= truths) & (truths <= high[:, None]))).sum(axis=0)
    assert coverage[clopper_pearson].min() >= 0.95
    assert coverage[wilson].min() < 0.90  # what its being short costs
    assert coverage[wilson].mean() == pytest.approx(0.95, abs=0.01)


def test_seeds_that_say_nothing_are_no_part_of_a_share():
    assert share([True, None, False, True]).n == 3
    assert share([True, None, False, True]).estimate == pytest.approx(2 / 3)
    assert share([None]).reason == "no seed has a value"


@pytest.mark.parametrize(
    ("n", "low", "high", "percent"),
    [
        (6, 1, 6, 96.9), (8, 1, 8, 99.2), (10, 2, 9, 97.9), (15, 4, 12, 96.5), (20, 6, 15, 95.9),
        (25, 8, 18, 95.7), (30, 10, 21, 95.7), (50, 18, 33, 96.7),
    ],
)  # fmt: skip
def test_the_medians_ranks_are_those_of_the_printed_table(n, low, high, percent):
    """Nair, Sankhya 4 (1940): ranks that hold the median with at least 95 %, and how much they truly have."""
    first, last, coverage = covering_ranks(n, 0.5, 0.95)
    assert (first, last, round(100 * coverage, 1)) == (low, high, percent)


@pytest.mark.parametrize("n", [7, 12, 40])
@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_ranks_cover_what_they_say_and_no_narrower_ones_would(n, q):
    below = [Fraction(math.comb(n, k)) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]
    tail = Fraction(1, 40)
    lows = [r for r in range(1, n + 1) if sum(below[:r]) <= tail]
    highs = [r for r in range(1, n + 1) if sum(below[r:]) <= tail]
    found = covering_ranks(n, float(q), 0.95)
    if not lows or not highs:
        assert found is None
        return
    low, high, coverage = found
    assert (low, high) == (max(lows), min(highs))
    assert coverage == pytest.approx(float(sum(below[low:high])), rel=1e-12)


@pytest.mark.parametrize("q", [0.25, 0.5, 0.8])
def test_quantiles_agree_with_scipy(q):
    values = np.random.default_rng(5).normal(size=37).tolist()
    found = quantile(values, q)
    theirs = scipy.stats.quantile_test(values, p=q).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.estimate == pytest.approx(np.quantile(values, q))


def test_five_values_have_a_median_and_no_interval():
    few = median([5.0, 1.0, 3.0, None, 2.0, 4.0])
    assert (few.estimate, few.low, few.high, few.n) == (3.0, None, None, 5)
    assert few.reason == "a quantile of 0.5 needs more than 5 values for an interval"
    assert median([]).estimate is None
    with pytest.raises(ValueError, match="not between 0 and 1"):
        quantile([1.0], 1.0)


def test_interpolation_meets_the_ends():
    assert [interpolated([1.0, 2.0, 4.0], q) for q in (0.0, 0.25, 0.5, 0.75, 1.0)] == [
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
    ]


SPATIAL = [
    48,
    36,
    20,
    29,
    42,
    42,
    20,
    42,
    22,
    41,
    45,
    14,
    6,
    0,
    33,
    28,
    34,
    4,
    32,
    24,
    47,
    41,
    24,
    26,
    30,
    41,
]
"""The spatial test data of Efron and Tibshirani (1993), table 14.1, column A."""


def test_bca_is_what_efron_and_tibshirani_print(monkeypatch):
    """Their table 14.2, the variance with divisor n = 26 at 90 %: BCa from 2,000 resamples (115.8, 259.6)."""
    monkeypatch.setattr("aqmlab.stats.bootstrap.LEAST_VALUES", 26)
    found = bca(SPATIAL, np.var, confidence=0.90)
    assert found.estimate == pytest.approx(171.5, abs=0.05)
    assert (found.low, found.high) == pytest.approx((115.8, 259.6), abs=1.5)


def test_bca_of_a_mean_of_many_normal_values_is_nearly_t():
    values = np.random.default_rng(3).normal(10.0, 2.0, size=400).tolist()
    found, by_t = bca(values, np.mean), mean(values)
    assert (found.low, found.high) == pytest.approx((by_t.low, by_t.high), abs=0.01)


def test_bca_is_refused_below_thirty_values_and_says_why():
    few = bca([float(i) for i in range(29)], np.std)
    assert (few.low, few.high, few.n) == (None, None, 29)
    assert few.estimate == pytest.approx(np.std(range(29)))
    assert few.reason == "a bootstrap interval needs 30 values at least, there are 29"
    assert bca([], np.std).reason == "no seed has a value"
    assert bca([float(i) for i in range(30)], np.std).low is not None


def test_bca_of_values_without_spread_has_no_width():
    same = bca([4.0] * 30, np.mean)
    assert (same.low, same.estimate, same.high) == (4.0, 4.0, 4.0)


def test_bca_gives_the_same_in_another_process():
    values = [float(i * i % 37) for i in range(40)]
    code = (
        "import numpy as np; from aqmlab.stats.bootstrap import bca;"
        f"f = bca({values}, np.std); print(repr((f.low, f.high)))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = bca(values, np.std)
    assert other.stdout.strip() == repr((found.low, found.high))


def test_a_table_of_results_needs_nothing_of_scipy():
    """`aqmlab run` waits for what it imports: `scipy.special` takes half a second, `scipy.stats` two."""
    code = (
        "import sys, aqmlab, aqmlab.stats as s;"
        "assert not any(m.startswith(('scipy', 'numpy')) for m in sys.modules);"
        "s.estimate([1, 2, 3]); s.difference({1: 1, 2: 3}, {1: 2, 2: 2});"
        "print([m for m in sys.modules if m.startswith(('scipy', 'numpy'))])"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "[]"
