"""Intervals of shares, quantiles and other figures, compared with printed tables, SciPy and exact sums."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from aqmlab.stats.proportion import clopper_pearson, share
from aqmlab.stats.quantiles import covering_ranks, interpolated, median, quantile


@pytest.mark.parametrize(
    ("successes", "n", "exact"),
    [
        (81, 263, (0.2527, 0.3676)),
        (15, 148, (0.0578, 0.1617)),
        (0, 20, (0.0000, 0.1684)),
        (1, 29, (0.0009, 0.1776)),
    ],
)
def test_shares_are_those_that_newcombe_prints(successes, n, exact):
    """Newcombe, Statistics in Medicine 17 (1998), table I: the exact method."""
    interval = clopper_pearson(successes, n)
    assert (round(interval.low, 4), round(interval.high, 4)) == exact
    assert interval.estimate == successes / n


@pytest.mark.parametrize("n", [1, 2, 5, 10, 33])
def test_shares_agree_with_scipy(n):
    for successes in range(n + 1):
        theirs = scipy.stats.binomtest(successes, n).proportion_ci(0.95, "exact")
        found = clopper_pearson(successes, n)
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("n", [5, 10, 30])
def test_the_exact_interval_never_covers_too_little(n):
    """Coverage is computed exactly, as a sum over the binomial distribution, without simulation."""
    truths = np.arange(1, 1000) / 1000
    weight = scipy.stats.binom.pmf(np.arange(n + 1)[:, None], n, truths)
    found = [clopper_pearson(successes, n) for successes in range(n + 1)]
    low, high = np.array([i.low for i in found]), np.array([i.high for i in found])
    assert (weight * ((low[:, None] <= truths) & (truths <= high[:, None]))).sum(axis=0).min() >= 0.95


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
    """Nair, Sankhya 4 (1940): ranks that enclose the median with a probability of at least 95 %, and their
    actual coverage."""
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


def test_a_table_of_results_needs_no_numpy():
    """`aqmlab run` waits for its imports, and NumPy takes a tenth of a second."""
    code = (
        "import sys, aqmlab, aqmlab.stats as s;"
        "assert not any(m.startswith('numpy') for m in sys.modules);"
        "s.estimate([1, 2, 3]); s.difference({1: 1, 2: 3}, {1: 2, 2: 2});"
        "print([m for m in sys.modules if m.startswith('numpy')])"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "[]"
