"""Paired differences: their numbers, compared with SciPy and hand calculations, and their sentences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from aqmlab.metrics import find
from aqmlab.stats.differences import difference
from aqmlab.stats.multiple import holm, multiple_comparisons
from aqmlab.stats.sentence import relative_sentence, sentence, spoken

DELAY = find("queueing_delay_p99_s")


def by_seed(values):
    return dict(enumerate(values, start=1))


def pairs(seed, n=10, ratio=0.6, noise=0.1):
    """Two arms that share most of their random variation."""
    generator = np.random.default_rng(seed)
    common = generator.gamma(4.0, 0.025, size=n)
    return by_seed(ratio * common + noise * generator.normal(0, 0.02, n)), by_seed(common)


@pytest.mark.parametrize("seed", range(5))
def test_differences_are_those_of_the_paired_t_test(seed):
    a, b = pairs(seed, ratio=0.95, noise=1.0)
    found = difference(a, b)
    theirs = scipy.stats.ttest_rel(list(a.values()), list(b.values()))
    low, high = theirs.confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high))
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert found.seen == (theirs.pvalue < 0.05)


@pytest.mark.parametrize("seed", range(5))
def test_fiellers_ratios_are_those_that_a_t_test_does_not_reject(seed):
    """The interval's definition: `a - r b` has mean zero as far as a t test can tell."""
    a, b = pairs(seed)
    x, y = np.array(list(a.values())), np.array(list(b.values()))
    found = difference(a, b).relative
    middle = x.mean() / y.mean()

    def beyond(ratio):
        return scipy.stats.ttest_1samp(x - ratio * y, 0.0).pvalue - 0.05

    low = scipy.optimize.brentq(beyond, 0.0, middle) - 1
    high = scipy.optimize.brentq(beyond, middle, 3.0) - 1
    assert (found.estimate, found.low, found.high) == pytest.approx((middle - 1, low, high), rel=1e-6)


def test_a_ratio_to_what_may_be_zero_has_no_interval():
    noise = by_seed([1.0, -1.2, 0.4, -0.3])
    found = difference(by_seed([5.0, 5.1, 4.9, 5.0]), noise).relative
    assert (found.low, found.high) == (None, None)
    assert found.reason == "the reference does not differ significantly from zero"
    assert difference(noise, by_seed([0.0] * 4)).relative.reason == "a change relative to zero is undefined"


def test_what_never_varies_has_an_exact_ratio():
    found = difference(by_seed([3.0] * 4), by_seed([4.0] * 4))
    assert (found.relative.low, found.relative.estimate, found.relative.high) == (-0.25, -0.25, -0.25)
    assert found.p_value == 0
    assert difference(by_seed([3.0] * 4), by_seed([3.0] * 4)).p_value == 1


def test_seeds_of_one_arm_alone_are_named_and_left_out():
    a, b = {1: 1.0, 2: 2.0, 3: None, 4: 9.0}, {1: 2.0, 2: 3.5, 3: 1.0, 5: float("nan")}
    found = difference(a, b)
    assert (found.estimate.n, found.estimate.mean, found.alone) == (2, -1.25, (3, 4))


def told(a, b, metric=DELAY):
    return sentence(difference(by_seed(a), by_seed(b)), "PI", "RED", metric)


def test_a_difference_is_told_with_its_interval():
    # Differences 34, 38, 41, 44, 48 ms: mean 41, s = 5.39, half-width 2.776 * 5.39 / sqrt(5) = 6.69 ms.
    red = [0.100, 0.110, 0.120, 0.130, 0.140]
    pi = [0.066, 0.072, 0.079, 0.086, 0.092]
    assert told(pi, red) == "PI lowers p99 queueing delay by 41 ms (95 % CI 34 to 48, n = 5 pairs)"
    assert told(red, pi) == "PI raises p99 queueing delay by 41 ms (95 % CI 34 to 48, n = 5 pairs)"
    found = difference(by_seed(pi), by_seed(red))
    # The means are 79 and 120 ms; Fieller's interval is derived as in the test above.
    assert relative_sentence(found, "RED") == ("that is 34.17 % less than with RED (95 % CI 33.84 to 34.50)")


def test_no_difference_is_told_with_what_it_may_be():
    told_so = told([0.100, 0.120, 0.090, 0.112], [0.11, 0.10, 0.12, 0.10])
    # Differences -10, 20, -30, 12 ms: mean -2, s = 22.57, half-width 3.182 * 22.57 / 2 = 35.9 ms.
    assert told_so == (
        "no difference seen in p99 queueing delay: 2 ms less with PI than with RED"
        " (95 % CI −34 to 38, n = 4 pairs)"
    )


def test_one_pair_no_pair_and_equal_pairs():
    assert told([0.059], [0.100]) == (
        "p99 queueing delay: 41 ms less with PI than with RED (one pair: no interval)"
    )
    assert told([None], [0.1]) == "no seed has p99 queueing delay both with PI and with RED"
    assert told([0.1, 0.2], [0.1, 0.2]) == "PI and RED have the same p99 queueing delay in each of 2 pairs"
    assert told([0.1, 0.1], [0.2, 0.2]) == (
        "PI lowers p99 queueing delay by 100 ms, the same in each of 2 pairs"
    )


def test_percentages_differ_by_percentage_points():
    assert told([3.0, 3.2, 3.1], [1.0, 1.1, 1.2], find("drop_percent")) == (
        "PI raises drops by 2.00 percentage points (95 % CI 1.75 to 2.25, n = 3 pairs)"
    )
    # Differences 1, -1, 3: mean 1, s = 2, half-width 4.303 * 2 / sqrt(3) = 4.97.
    assert told([2.0, 0.0, 4.0], [1.0, 1.0, 1.0], find("drop_percent")) == (
        "no difference seen in drops: 1 percentage point more with PI than with RED"
        " (95 % CI −4 to 6, n = 3 pairs)"
    )
    assert told([0.0], [0.0], find("timeouts")) == (
        "timeouts: the same with PI as with RED (one pair: no interval)"
    )


def test_labels_are_said_in_the_order_of_speech():
    assert spoken("queueing delay, p99") == "p99 queueing delay"
    assert spoken("Jain's index") == "Jain's index"
    assert spoken("queueing delay, p99 (class a, queue b)") == "p99 queueing delay (class a, queue b)"


def closed_testing(p_values):
    """Holm's method is the closed Bonferroni test: it rejects a hypothesis if every set that contains it is
    rejected."""
    indices = range(len(p_values))
    sets = [s for size in range(1, len(p_values) + 1) for s in combinations(indices, size)]
    local = {s: min(1.0, len(s) * min(p_values[i] for i in s)) for s in sets}
    return tuple(max(local[s] for s in sets if i in s) for i in indices)


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_the_closed_test(seed):
    p_values = (np.random.default_rng(seed).uniform(size=6) ** 3).tolist()
    assert holm(p_values) == pytest.approx(closed_testing(p_values))


def test_several_comparisons_say_how_many_stand():
    assert multiple_comparisons([0.01, 0.04, 0.03, 0.2]).note == (
        "4 comparisons were made, each at 95 %: 3 find a difference, of which 1 stands when all are taken"
        " together (Holm)"
    )
    assert multiple_comparisons([0.001, 0.002]).note == (
        "2 comparisons were made, each at 95 %: 2 find a difference, and all of them stand when all are taken"
        " together (Holm)"
    )
    assert (
        multiple_comparisons([0.5, 0.3]).note
        == "2 comparisons were made, each at 95 %; none found a difference"
    )
    assert multiple_comparisons([0.04, 0.9]).kept == 0
    assert multiple_comparisons([0.04]).note == ""


def test_where_nothing_differs_holm_errs_in_one_family_of_twenty():
    """Of 20 comparisons without a difference, each errs with a probability of 5 %, so the
    probability that at least one errs is 64 %; after correction, it is at most 5 %."""
    generator = np.random.default_rng(11)
    families = [multiple_comparisons(generator.uniform(size=20).tolist()) for _ in range(2000)]
    alone = np.mean([family.found > 0 for family in families])
    together = np.mean([family.kept > 0 for family in families])
    assert alone == pytest.approx(1 - 0.95**20, abs=4 * (0.64 * 0.36 / 2000) ** 0.5)
    assert together == pytest.approx(1 - (1 - 0.05 / 20) ** 20, abs=4 * (0.05 * 0.95 / 2000) ** 0.5)
