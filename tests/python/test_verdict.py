"""Verdicts: each relation against each position of the interval, and the logic against Kleene's tables."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab.stats import Interval
from aqmlab.stats.intervals import estimate
from aqmlab.stats.verdict import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Verdict,
    all_of,
    at_least,
    judge,
    judge_range,
    negated,
    undecided,
)

PARTS = {"T": Verdict(HOLDS, n=5), "F": Verdict(FAILS, n=5), "U": undecided("too few")}
LETTER = {HOLDS: "T", FAILS: "F", UNDECIDED: "U"}

# The strong tables of Kleene 1952, section 64, with rows and columns T, F, U.
AND = {"TT": "T", "TF": "F", "TU": "U", "FT": "F", "FF": "F", "FU": "F", "UT": "U", "UF": "F", "UU": "U"}
OR = {"TT": "T", "TF": "T", "TU": "T", "FT": "T", "FF": "F", "FU": "U", "UT": "T", "UF": "U", "UU": "U"}


def between(low, high, n=10):
    return Interval((low + high) / 2, low, high, n)


@pytest.mark.parametrize("pair", AND)
def test_and_and_or_are_kleenes(pair):
    parts = [PARTS[letter] for letter in pair]
    assert LETTER[all_of(parts).status] == AND[pair]
    assert LETTER[at_least(1, parts).status] == OR[pair]


def test_not_turns_certainty_around_and_leaves_doubt():
    assert [LETTER[negated(PARTS[letter]).status] for letter in "TFU"] == ["F", "T", "U"]
    assert negated(PARTS["U"]).reason == "too few"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_counting_agrees_with_every_truth_that_the_undecided_may_have(count):
    may_be = {"T": [True], "F": [False], "U": [True, False]}
    for letters in product("TFU", repeat=4):
        truths = {sum(truth) >= count for truth in product(*(may_be[letter] for letter in letters))}
        expected = UNDECIDED if len(truths) == 2 else HOLDS if truths == {True} else FAILS
        assert at_least(count, [PARTS[letter] for letter in letters]).status == expected


def test_nothing_to_judge_is_not_true():
    assert all_of([]).status == at_least(1, []).status == UNDECIDED


@pytest.mark.parametrize(
    ("relation", "below", "touching_from_below", "astride", "touching_from_above", "above"),
    [
        ("<", HOLDS, UNDECIDED, UNDECIDED, FAILS, FAILS),
        ("<=", HOLDS, HOLDS, UNDECIDED, UNDECIDED, FAILS),
        (">", FAILS, FAILS, UNDECIDED, UNDECIDED, HOLDS),
        (">=", FAILS, UNDECIDED, UNDECIDED, HOLDS, HOLDS),
        ("==", FAILS, UNDECIDED, UNDECIDED, UNDECIDED, FAILS),
    ],
)
def test_an_interval_decides_when_it_is_on_one_side(
    relation, below, touching_from_below, astride, touching_from_above, above
):
    found = [between(-2, -1), between(-1, 0), between(-1, 2), between(0, 1), between(1, 2)]
    verdicts = [judge(interval, relation, 0.0).status for interval in found]
    assert verdicts == [below, touching_from_below, astride, touching_from_above, above]


def test_a_value_without_spread_is_compared_as_a_number():
    exact = estimate([0.25] * 6).interval()
    assert [judge(exact, relation, 0.25).status for relation in ("<", "<=", "==", ">=", ">")] == [
        FAILS, HOLDS, HOLDS, HOLDS, FAILS
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (1, 2, HOLDS),
        (0, 3, HOLDS),
        (-1, 2, UNDECIDED),
        (2, 4, UNDECIDED),
        (-3, -1, FAILS),
        (4, 5, FAILS),
        (-1, 4, UNDECIDED),
    ],
)
def test_a_range_holds_the_whole_interval_or_none_of_it(low, high, status):
    assert judge_range(between(low, high), 0.0, 3.0).status == status


def test_four_seeds_decide_nothing_and_five_do():
    assert judge(between(1, 2, n=5), ">", 0.0).status == HOLDS
    few = judge(between(1, 2, n=4), ">", 0.0)
    assert (few.status, few.reason) == (UNDECIDED, "4 values, fewer than the 5 required")
    assert (few.estimate, few.low, few.high, few.threshold, few.n) == (1.5, 1, 2, 0.0, 4)


def test_what_is_not_there_is_undecided_with_its_reason():
    assert judge(Interval(None, None, None, 0), "<", 1.0).reason == "no seed has a value"
    bare = Interval(3.0, None, None, 20, reason="a bootstrap needs 30 values")
    assert judge(bare, "<", 1.0).reason == "a bootstrap needs 30 values"
    assert judge_range(bare, 1.0, 2.0).status == UNDECIDED


def test_a_straddling_interval_says_so():
    assert judge(between(-1, 2), "<", 0.5).reason == "the 95 % interval contains the threshold"


def test_a_combination_shows_the_part_that_decides_it():
    clear, close, wrong = (judge(between(low, low + 2), ">", 0.0) for low in (9, 1, -3))
    both = all_of([clear, close])
    assert (both.status, both.estimate, both.reason) == (HOLDS, 2, "2 of 2 parts hold")
    assert (clear.margin, close.margin) == (10, 2)
    failed = all_of([clear, wrong, PARTS["U"]])
    assert (failed.status, failed.estimate, failed.reason) == (FAILS, -2, "1 of 3 parts fails")
    open_ = all_of([clear, judge(between(-1, 2), ">", 0.0)])
    assert open_.reason == "1 of 2 parts is undecided: the 95 % interval contains the threshold"
    assert all_of([clear]) is clear


def test_the_margin_counts_half_widths_to_the_nearest_threshold():
    # The estimate is 1.0 below the upper end of the range; the upper half-width of the interval is 0.25.
    assert judge_range(Interval(2.0, 1.5, 2.25, 9), 0.0, 3.0).margin == 4
    assert judge(estimate([1.0] * 5).interval(), ">", 0.0).margin == math.inf
    assert undecided("none").margin == 0


@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3), st.integers(-9, 9))
def test_opposite_relations_have_opposite_decisions(points, threshold):
    low, middle, high = sorted(points)
    found = Interval(middle, low, high, 10)
    for relation, opposite in (("<", ">="), (">", "<=")):
        verdict, other = judge(found, relation, threshold), judge(found, opposite, threshold)
        assert negated(verdict) == other
        if low < middle < high:
            assert (verdict.margin >= 1) == (threshold <= low or threshold >= high)
