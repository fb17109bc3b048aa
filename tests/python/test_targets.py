"""The errors of cells and findings, compared with hand calculations; for findings, also seed by seed."""

import math

import numpy as np
import pytest

from aqmlab.claims import Claim, Names
from aqmlab.errors import ScenarioError
from aqmlab.papers.expressions import ExpressionValues
from aqmlab.papers.targets import cell_error, truth_of_each_seed
from claim_worlds import BUFFER, World, table


@pytest.mark.parametrize(
    ("ours", "published", "distance", "least", "error"),
    [
        (20.0, 10.0, "log", 0.0, math.log(2)),
        (5.0, 10.0, "log", 0.0, math.log(2)),
        (1000.0, 10.0, "log", 0.0, math.log(10)),
        (0.0, 10.0, "log", 0.0, math.log(10)),
        (0.0, 10.0, "log", 2.5, math.log(4)),
        (1.0, 0.0, "log", 2.0, 0.0),
        (4.0, 0.0, "log", 2.0, math.log(2)),
        (math.nan, 10.0, "log", 0.0, math.log(10)),
        (12.0, 10.0, "relative", 0.0, 0.2),
        (8.0, 10.0, "relative", 0.0, 0.2),
        (50.0, 10.0, "relative", 0.0, 1.0),
        (-12.0, -10.0, "relative", 0.0, 0.2),
        (0.5, 0.0, "relative", 2.0, 0.0),
        (3.0, 0.0, "relative", 2.0, 0.5),
        (math.nan, 10.0, "relative", 0.0, 1.0),
    ],
)
def test_the_error_of_a_cell(ours, published, distance, least, error):
    assert cell_error(ours, published, distance, least) == pytest.approx(error)


RED, TAIL = [1.0, 5.0, 3.0, 4.0], [2.0, 2.0, 3.0, None]
WORLD = table({"jain_index": {"RED": RED, "DropTail": TAIL}})


@pytest.mark.parametrize(
    ("expect", "truths"),
    [
        ("jain_index{arm=RED} > jain_index{arm=DropTail}", [0, 1, 0, None]),
        ("mean(jain_index{arm=RED}) > 2", [0, 1, 1, 1]),
        ("median(jain_index{arm=RED}) > 3.5 and jain_index{arm=RED} < 4.5", [0, 0, 0, 1]),
        ("share(jain_index{arm=RED} > 2) >= 5 %", [0, 1, 1, 1]),
        ("share(jain_index{arm=RED} > 2) < 5 %", [1, 0, 0, 0]),
        ("any(jain_index{arm=RED} > 4.5)", [0, 1, 0, 0]),
        ("std(jain_index{arm=RED}) < 10", [None] * 4),
        ("jain_index{arm=RED} > 2 or jain_index{arm=DropTail} > 1", [1, 1, 1, 1]),
        ("for all arm: jain_index > 2.5", [0, 0, 1, None]),
        ("argmax(jain_index over arm) in (RED)", [0, 1, 0, None]),
    ],
)
def test_a_finding_in_each_seed_alone(expect, truths):
    found = truth_of_each_seed(Claim("c", expect), WORLD, Names(WORLD.arms))
    assert [None if np.isnan(value) else value for value in found] == truths


@pytest.mark.parametrize(
    ("expect", "truths"),
    [
        ("no_trend(jain_index over limit, 1)", [1, 0, 0]),
        ("increasing(jain_index over limit)", [0, 1, 0]),
        ("decreasing(jain_index over limit)", [0, 0, 1]),
    ],
)
def test_tests_over_an_axis(expect, truths):
    slopes = {1: 0.0, 2: 1.0, 3: -1.0}
    world = World(
        lambda _metric, cell, seed, **_: slopes[seed] * BUFFER.labels.index(cell.settings[0][1]),
        axes=(BUFFER,),
        arms=("RED",),
        seeds=3,
    )
    found = truth_of_each_seed(Claim("c", expect), world, Names(world.arms, world.axes))
    assert found.tolist() == truths


def test_a_condition_on_each_seed():
    values = ExpressionValues(WORLD, Names(WORLD.arms))
    assert list(values.truths("jain_index > 2.5", {"arm": "DropTail"}, "c").values()) == [
        False,
        False,
        True,
        None,
    ]
    assert list(values.truths("defined(jain_index)", {"arm": "DropTail"}, "c").values()) == [True] * 3 + [
        False
    ]


@pytest.mark.parametrize(
    "condition",
    ["no_trend(jain_index over arm, 1)", "any(jain_index{arm=RED} > 4.5)", "mean(jain_index{arm=RED}) > 2"],
)
def test_a_condition_on_each_seed_contains_no_figure_over_the_seeds(condition):
    values = ExpressionValues(WORLD, Names(WORLD.arms))
    with pytest.raises(ScenarioError, match="over the seeds, but here each seed is evaluated separately"):
        values.truths(condition, {}, "c")
