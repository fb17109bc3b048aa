"""Comparisons, checked against intervals computed by hand."""

import numpy as np
import pytest

from aqmlab.claims import sentence
from claim_worlds import DIFFERENCE, WORLD, A, B, scored, status, t_interval, table


def test_a_comparison_of_arms_is_the_paired_difference():
    found = scored("jain_index{arm=RED} < jain_index{arm=DropTail}", WORLD)
    mean, low, high = t_interval(DIFFERENCE)
    assert high < 0
    (part,) = found.parts
    assert found.status == "holds"
    assert (part.found.estimate, part.found.low, part.found.high) == pytest.approx((mean, low, high))
    assert (part.found.n, part.effect) == (5, "difference")
    for side, values in ((part.left, A), (part.right, B)):
        ends = (side.estimate.estimate, side.estimate.low, side.estimate.high)
        assert ends == pytest.approx(t_interval(values))
    assert sentence(part) == (
        "jain_index{arm=RED} = 12.0 ± 2.0, jain_index{arm=DropTail} = 13.4 ± 2.3,"
        " difference −1.40 (−2.21 to −0.59), n = 5 pairs"
    )


@pytest.mark.parametrize(
    ("relation", "threshold", "expected"),
    [
        # the interval of B - A is 0.59 to 2.21
        ("<", "2.3", "holds"),
        ("<", "1.4", "undecided"),
        ("<", "0.5", "fails"),
        ("<=", "2.3", "holds"),
        ("<=", "0.5", "fails"),
        (">", "0.5", "holds"),
        (">", "0.7", "undecided"),
        (">", "2.3", "fails"),
        (">=", "0.5", "holds"),
        (">=", "2.3", "fails"),
        ("==", "1.4", "undecided"),
        ("==", "0.5", "fails"),
    ],
)
def test_each_relation_against_a_threshold(relation, threshold, expected):
    assert t_interval([-d for d in DIFFERENCE])[1:] == pytest.approx((0.59, 2.21), abs=0.01)
    assert (
        status(f"jain_index{{arm=DropTail}} - jain_index{{arm=RED}} {relation} {threshold}", WORLD)
        == expected
    )
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}[relation]
    text = f"{threshold} {turned} jain_index{{arm=DropTail}} - jain_index{{arm=RED}}"
    assert status(text, WORLD) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.5, 2.3, "holds"), (1, 3, "undecided"), (2.3, 3, "fails"), (-1, 0.5, "fails")],
)
def test_a_band_holds_the_whole_interval_or_none_of_it(low, high, expected):
    text = f"jain_index{{arm=DropTail}} - jain_index{{arm=RED}} in [{low}, {high}]"
    assert status(text, WORLD) == expected


def test_a_band_with_measured_ends_is_two_comparisons():
    found = scored("jain_index{arm=RED} in [0.5 * jain_index{arm=DropTail}, jain_index{arm=DropTail}]", WORLD)
    assert found.status == "holds"
    assert [part.verdict.status for part in found.parts] == ["holds", "holds"]


def test_a_chain_is_two_comparisons():
    assert status("11 < jain_index{arm=RED} < jain_index{arm=DropTail}", WORLD) == "undecided"
    assert status("9 < jain_index{arm=RED} < jain_index{arm=DropTail}", WORLD) == "holds"
    assert status("9 < jain_index{arm=RED} < 9.5", WORLD) == "fails"


def test_what_never_varies_is_decided_without_an_interval():
    world = table({"jain_index": {"RED": [0.0] * 5, "DropTail": [1.0] * 5}})
    for text, expected in (
        ("jain_index{arm=RED} == 0", "holds"),
        ("jain_index{arm=RED} > 0", "fails"),
        ("jain_index{arm=RED} >= 0", "holds"),
        ("jain_index{arm=DropTail} == 0", "fails"),
        ("jain_index{arm=RED} < jain_index{arm=DropTail}", "holds"),
    ):
        assert status(text, world) == expected


def test_fewer_than_five_seeds_decide_nothing():
    world = table({"jain_index": {"RED": [1.0, 2.0, 1.5, 1.2], "DropTail": [9.0, 9.1, 9.2, 9.3]}})
    found = scored("jain_index{arm=RED} < jain_index{arm=DropTail}", world)
    assert found.status == "undecided"
    assert found.verdict.reason == "4 values, fewer than the 5 required"


def test_a_value_that_is_not_defined_decides_nothing_and_is_named():
    world = table({"jain_index": {"RED": [1.0, None, 1.1, 1.2, 1.0, None], "DropTail": [9.0] * 6}})
    found = scored("jain_index{arm=RED} < jain_index{arm=DropTail}", world)
    assert found.status == "undecided"
    assert found.verdict.reason == "jain_index{arm=RED} is not defined in 2 of 6 seeds"
    assert status("default(jain_index{arm=RED}, 2) < jain_index{arm=DropTail}", world) == "holds"
    assert status("share(defined(jain_index{arm=RED})) > 10 %", world) == "holds"
    assert status("share(defined(jain_index{arm=RED})) == 100 %", world) == "fails"
    # an undefined value matters only if the verdict depends on it
    assert status("share(jain_index{arm=DropTail} > 5 or jain_index{arm=RED} > 5) > 50 %", world) == "holds"
    text = "share(jain_index{arm=DropTail} < 5 or jain_index{arm=RED} > 5) > 50 %"
    assert scored(text, world).verdict.reason.endswith("is not defined in 2 of 6 seeds")


def test_division_by_zero_is_not_defined():
    world = table({"jain_index": {"RED": [1.0] * 6, "DropTail": [0.0] * 6}})
    found = scored("jain_index{arm=RED} / jain_index{arm=DropTail} > 1", world)
    assert "is not defined in 6 of 6 seeds" in found.verdict.reason


def test_runs_that_are_missing_leave_the_pairs_of_the_others():
    values = {"RED": [*A, 99.0], "DropTail": [*B, 0.0]}
    world = table({"jain_index": values}, gone=[("RED", 6)])
    found = scored("jain_index{arm=RED} < jain_index{arm=DropTail}", world)
    assert found.status == "holds"
    assert found.parts[0].found.estimate == pytest.approx(np.mean(DIFFERENCE))
    assert found.parts[0].found.n == 5
    nothing = table({"jain_index": values}, gone=[("RED", seed) for seed in range(1, 7)])
    for text in (
        "jain_index{arm=RED} < 5",
        "std(jain_index{arm=RED}) < 5",
        "median(jain_index{arm=RED}) < 5",
    ):
        assert scored(text, nothing).verdict.reason == "nothing was run"
