"""Figures over the seeds: their intervals compared with hand calculations, and cells with two states."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from aqmlab.stats.jackknife import jackknife, spread
from claim_worlds import WORLD, A, B, scored, status, t_interval, table


def test_a_mean_over_the_seeds_is_the_same_as_none():
    plain = scored("jain_index{arm=RED} < jain_index{arm=DropTail}", WORLD).parts[0].found
    means = scored("mean(jain_index{arm=RED}) < mean(jain_index{arm=DropTail})", WORLD).parts[0].found
    assert (means.estimate, means.low, means.high) == pytest.approx((plain.estimate, plain.low, plain.high))


def test_a_ratio_of_means_has_the_interval_of_the_jackknife():
    found = scored("mean(jain_index{arm=RED}) / mean(jain_index{arm=DropTail}) < 1", WORLD).parts[0].found
    whole = sum(A) / sum(B)
    pseudo = [5 * whole - 4 * (sum(A) - a) / (sum(B) - b) for a, b in zip(A, B, strict=True)]
    half = scipy_stats.t.ppf(0.975, 4) * np.std(pseudo, ddof=1) / 5**0.5
    assert (found.estimate, found.low, found.high) == pytest.approx((whole, whole - half, whole + half))


def test_standard_deviations_are_compared_by_their_ratio():
    rng = np.random.default_rng(5)
    values = {"RED": (rng.normal(0, 1, 20)).tolist(), "DropTail": (rng.normal(0, 5, 20)).tolist()}
    found = scored("std(jain_index{arm=RED}) < std(jain_index{arm=DropTail})", table({"jain_index": values}))
    (part,) = found.parts
    assert (found.status, part.effect, part.found.method) == ("holds", "ratio", "jackknife of the logarithm")
    ratio = np.std(values["RED"], ddof=1) / np.std(values["DropTail"], ddof=1)
    assert part.found.estimate == pytest.approx(ratio)
    assert part.found.low < ratio < part.found.high < 1
    assert part.verdict.threshold == 1.0


def test_the_median_has_the_interval_of_order_statistics():
    values = [3.0, 1.0, 9.0, 5.0, 4.0, 7.0, 2.0, 8.0, 6.0, 10.0]
    world = table({"jain_index": {"RED": values}})
    found = scored("median(jain_index) > 1.5", world).parts[0]
    # ten values: the median lies between the second and the ninth with a probability of 97.9 %
    assert (found.found.estimate, found.found.low, found.found.high) == (5.5, 2.0, 9.0)
    assert status("median(jain_index) > 1.5", world) == "holds"
    assert status("median(jain_index) > 5", world) == "undecided"
    # the limits of 2 * median - 1 are computed in the same way from the limits of the median's interval
    doubled = scored("2 * median(jain_index) - 1 > 1.5", world).parts[0].found
    assert (doubled.estimate, doubled.low, doubled.high) == (10.0, 3.0, 17.0)


def test_too_few_seeds_for_a_median():
    found = scored("median(jain_index{arm=RED}) > 5", WORLD)
    assert (found.status, found.verdict.reason) == (
        "undecided",
        "a quantile of 0.5 needs more than 5 values for an interval",
    )


def test_two_medians_have_intervals_at_half_the_error():
    rng = np.random.default_rng(7)
    values = {"RED": rng.normal(0, 1, 20).tolist(), "DropTail": rng.normal(3, 1, 20).tolist()}
    found = scored(
        "median(jain_index{arm=RED}) < median(jain_index{arm=DropTail})", table({"jain_index": values})
    )
    red, tail = (sorted(values[arm]) for arm in ("RED", "DropTail"))
    # twenty values at 97.5 %: the smallest rank r with P(B(20, 1/2) < r) <= 0.0125 is the fifth
    rank = max(r for r in range(1, 20) if scipy_stats.binom.cdf(r - 1, 20, 0.5) <= 0.0125)
    assert rank == 5
    expected = red[rank - 1] - tail[20 - rank], red[20 - rank] - tail[rank - 1]
    assert (found.parts[0].found.low, found.parts[0].found.high) == pytest.approx(expected)
    assert found.status == "holds"


def test_a_share_has_the_exact_interval():
    values = [1.0] * 18 + [0.2] * 2
    world = table({"jain_index": {"RED": values}})
    found = scored("share(jain_index > 0.5) >= 65 %", world)
    interval = scipy_stats.binomtest(18, 20).proportion_ci(0.95, "exact")
    part = found.parts[0].found
    assert (part.estimate, part.low, part.high) == pytest.approx((0.9, interval.low, interval.high))
    assert found.status == "holds"
    assert status("share(jain_index > 0.5) >= 90 %", world) == "undecided"
    assert status("share(jain_index > 0.5) < 65 %", world) == "fails"


def test_a_bistable_cell_is_scored_by_its_share_of_seeds():
    # Each seed is in one of two states; the mean is between them, where the system never is.
    values = [0.5 if seed % 3 else 1.0 for seed in range(30)]
    world = table({"jain_index": {"RED": values, "DropTail": [0.95] * 30}})
    assert status("share(jain_index{arm=RED} < 0.6) > 40 %", world) == "holds"
    assert status("share(jain_index{arm=RED} in [0.55, 0.9]) < 15 %", world) == "holds"
    assert status("jain_index{arm=RED} in [0.55, 0.9]", world) == "holds"
    # With a third of the seeds in the upper state, the true median may be in either state.
    assert status("median(jain_index{arm=RED}) < 0.6", world) == "undecided"
    assert status("quantile(jain_index{arm=RED}, 30 %) < 0.6", world) == "holds"
    text = "share(jain_index{arm=RED} < 0.6) > share(jain_index{arm=DropTail} < 0.6)"
    assert status(text, world) == "holds"


def test_any_holds_if_it_was_seen_and_fails_if_it_would_have_been():
    never = table({"jain_index": {"RED": [0.9] * 20}})
    once = table({"jain_index": {"RED": [0.9] * 4 + [0.5]}})
    assert status("any(jain_index < 0.7)", never) == "fails"
    assert status("any(jain_index < 0.7)", once) == "holds"
    assert status("not any(jain_index < 0.7)", never) == "holds"
    # 0.95^20 = 36 %: twenty seeds would often miss what happens in one seed out of twenty
    assert status("any(jain_index < 0.7, 5 %)", never) == "undecided"
    assert "59 are needed" in scored("any(jain_index < 0.7, 5 %)", never).verdict.reason
    assert math.ceil(math.log(0.05) / math.log(0.95)) == 59
    few = table({"jain_index": {"RED": [0.9] * 18}})
    assert status("any(jain_index < 0.7)", few) == "undecided"


def test_the_jackknife_of_a_mean_is_students_t():
    values = np.array(A)
    replicates = np.array([values.mean(), *(np.delete(values, i).mean() for i in range(5))])
    found = jackknife(replicates, 0.95)
    assert (found.estimate, found.low, found.high) == pytest.approx(t_interval(A))
    assert spread(np.full(5, 3.0), 0.95).high == 0.0
