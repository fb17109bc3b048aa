"""Distributions of durations that are known in part, compared with SciPy, published values and arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from aqmlab.stats.survival import Ages, incidence

AGES = st.lists(st.integers(1, 30).map(float), max_size=40)


def shares_at(found, times):
    """The step function at each of these times."""
    return np.concatenate([[0.0], found.share])[np.searchsorted(found.at, times, side="right")]


@given(AGES.filter(bool))
def test_without_censoring_it_is_the_empirical_distribution_function(values):
    found = incidence(Ages.of(values))
    oracle = scipy_stats.ecdf(values).cdf
    assert found.at == pytest.approx(oracle.quantiles)
    assert found.share == pytest.approx(oracle.probabilities, abs=1e-12)
    assert found.known_to == math.inf


@given(AGES, AGES)
def test_with_censoring_it_is_the_product_limit_of_scipy(done, cut):
    found = incidence(Ages.of(done), Ages.of(cut))
    if not done and not cut:
        assert found is None
        return
    oracle = scipy_stats.ecdf(scipy_stats.CensoredData(uncensored=done, right=cut)).cdf
    assert found.at == pytest.approx(oracle.quantiles)
    assert found.share == pytest.approx(oracle.probabilities, abs=1e-12)
    assert found.known_to == (math.inf if max(done, default=0) > max(cut, default=0) else max(cut))


def test_the_remissions_of_children_with_leukaemia_have_their_published_survival():
    # Freireich and others, Blood 21 (1963), in weeks; the estimate is in Cox and Oakes, Analysis of Survival
    # Data, 1984.
    done = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    cut = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = incidence(Ages.of(done), Ages.of(cut))
    survival = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    for week, share in survival.items():
        assert 1 - shares_at(found, [week])[0] == pytest.approx(share, abs=5e-4)
    assert found.known_to == 35


def test_who_enters_late_is_at_risk_only_afterwards():
    # At 3, three are at risk and one ends; at 4, two (one is cut off at 5, one enters only now); at 6, one.
    found = incidence(Ages.of([3, 4, 6]), Ages.of([5]), entered=Ages.of([2, 4]))
    assert shares_at(found, [2.9, 3, 4, 6]) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert found.known_to == math.inf


@given(st.lists(st.integers(1, 25), min_size=1, max_size=12), st.integers(0, 40), st.integers(1, 60))
def test_any_window_of_a_steady_state_gives_the_true_distribution(durations, since, length):
    """At every instant, one of each duration begins; a window sees what ends in it, or goes on at its end."""
    t0, t1 = 30 + since, 30 + since + length
    done, cut, entered = [], [], []
    for start in range(t1 + 1):
        for duration in durations:
            if (end := start + duration) <= t0:
                continue
            (done if end <= t1 else cut).append(min(duration, t1 - start))
            if start < t0:
                entered.append(t0 - start)
    found = incidence(Ages.of(done), Ages.of(cut), entered=Ages.of(entered))
    # Where all that remain have been in progress throughout, their durations are not seen to end.
    known = [age for age in range(1, 26) if age <= found.known_to]
    truth = [sum(duration <= age for duration in durations) / len(durations) for age in known]
    assert shares_at(found, known) == pytest.approx(truth, abs=1e-9)


@given(AGES, AGES, AGES)
def test_who_fails_never_completes(done, lost, cut):
    if not done and not lost and not cut:
        return
    found = incidence(Ages.of(done), Ages.of(cut), Ages.of(lost))
    failures = incidence(Ages.of(lost), Ages.of(cut), Ages.of(done))
    either = scipy_stats.ecdf(scipy_stats.CensoredData(uncensored=done + lost, right=cut)).sf
    assert found.left == pytest.approx(either.probabilities, abs=1e-12)
    assert found.share + failures.share + found.left == pytest.approx(np.ones(len(found.at)), abs=1e-12)
    if not cut:
        all_of = len(done) + len(lost)
        shares = [sum(age <= at for age in done) / all_of for at in found.at]
        assert found.share == pytest.approx(shares, abs=1e-12)


def test_weights_are_repetitions():
    once = incidence(Ages(np.array([2.0, 5.0]), np.array([3, 1])), Ages(np.array([4.0]), np.array([2])))
    each = incidence(Ages.of([2, 2, 2, 5]), Ages.of([4, 4]))
    assert np.array_equal(once.share, each.share)
    assert np.array_equal(once.at, each.at)


@pytest.mark.parametrize(
    ("done", "cut", "entered", "known_to"),
    [
        ([], [], [], None),
        # All began before: nothing is known of the smaller ages.
        ([9], [], [5], None),
        # None is at risk between 3 and 5.
        ([2, 9], [3], [5], 3),
        # The only one that was seen from its beginning ended at 2, but another is known to be older.
        ([2, 9], [], [5], None),
        ([1, 1, 2, 9], [], [5], 1),
        ([1, 2], [2], [], 2),
    ],
)
def test_it_ends_where_none_is_at_risk(done, cut, entered, known_to):
    found = incidence(Ages.of(done), Ages.of(cut), entered=Ages.of(entered))
    assert (found and found.known_to) == known_to
