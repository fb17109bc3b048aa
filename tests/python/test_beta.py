"""Special functions of our own, compared with SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from aqmlab.claims.arithmetic import correlation
from aqmlab.metrics.geometric_test import chi_square_beyond
from aqmlab.stats.beta import quantile, share_below
from aqmlab.stats.student import quantile as t_quantile
from aqmlab.stats.student import within


@pytest.mark.parametrize("a", [0.5, 1.0, 2.5, 7.0, 40.0, 333.0, 5000.0])
@pytest.mark.parametrize("b", [0.5, 1.0, 3.0, 28.0, 777.7])
def test_the_beta_distribution_is_scipys(a, b):
    mean = a / (a + b)
    deviation = math.sqrt(mean * (1 - mean) / (a + b + 1))
    for x in {min(max(mean + k * deviation, 1e-9), 1 - 1e-9) for k in np.arange(-8, 8.5, 0.5)}:
        theirs = special.betainc(a, b, x)
        assert share_below(x, a, b) == pytest.approx(theirs, rel=1e-10, abs=1e-300), (x, a, b)
    assert (share_below(0.0, a, b), share_below(1.0, a, b)) == (0.0, 1.0)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 400])
@pytest.mark.parametrize("p", [1e-6, 0.0125, 0.025, 0.5, 0.975])
def test_quantiles_of_the_beta_distribution_are_scipys(n, p):
    for k in {1, (n + 1) // 2, n}:
        assert quantile(p, k, n - k + 1) == pytest.approx(special.betaincinv(k, n - k + 1, p), rel=1e-11)


@pytest.mark.parametrize("degrees", [1.01, 1.5, 2.5, 3.999, 11.3, 97.5, 1234.5])
def test_students_t_with_fractional_degrees_is_scipys(degrees):
    for t in (0.0, 1e-3, 0.4, 1.0, 2.0, 5.0, 40.0):
        theirs = 1.0 - 2.0 * special.stdtr(degrees, -t)
        assert within(t, degrees) == pytest.approx(theirs, abs=1e-12), (t, degrees)
    for confidence in (0.5, 0.95, 0.999):
        theirs = special.stdtrit(degrees, 0.5 + confidence / 2)
        assert t_quantile(confidence, degrees) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 24, 101])
def test_chi_square_is_scipys(degrees):
    for statistic in (0.0, 0.3, 1.0, degrees, 2.5 * degrees, 10.0 * degrees):
        theirs = stats.chi2.sf(statistic, degrees)
        assert chi_square_beyond(statistic, degrees) == pytest.approx(theirs, rel=1e-11)


def test_tied_values_get_the_mean_of_their_ranks():
    draws = np.random.default_rng(3)
    x, y = draws.integers(0, 5, (12, 7)).astype(float), draws.integers(0, 4, (12, 7)).astype(float)
    theirs = [stats.spearmanr(x[:, seed], y[:, seed]).statistic for seed in range(7)]
    assert correlation(x, y, ranks=True) == pytest.approx(theirs, abs=1e-12)
