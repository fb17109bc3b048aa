"""Functions over axes, quantifiers, and the arguments of metrics."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from aqmlab.claims import Claim, score
from aqmlab.claims.values import needed
from aqmlab.metrics import Scope, Takes, Window
from claim_worlds import BUFFER, COUNT, World, by_buffer, scored, status


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max(jain_index over limit)", 8.0),
        ("min(jain_index over limit)", 1.0),
        ("mean(jain_index over limit)", 4.0),
        ("sum(jain_index over limit)", 16.0),
        ("range(jain_index over limit)", 7.0),
        ("largest_step(jain_index over limit)", 6.0),
        ("largest_step(jain_index over limit in (4p to 36p))", 4.0),
        ("max(jain_index over limit in (4p, 36p))", 2.0),
        ("max(jain_index over limit except (72p))", 5.0),
        ("count(jain_index > 1.5 over limit)", 3.0),
        ("count(jain_index > jain_index{limit=first} over limit except (first))", 3.0),
        ("rank_correlation(jain_index over limit)", 0.8),
        ("change(jain_index over limit)", float(np.polyfit([4, 12, 36, 72], [1, 5, 2, 8], 1)[0] * 68)),
        ("slope(jain_index over limit) * 68p", float(np.polyfit([4, 12, 36, 72], [1, 5, 2, 8], 1)[0] * 68)),
        ("max(jain_index{limit=4p}, jain_index{limit=12p}, 3)", 5.0),
        ("abs(jain_index{limit=4p} - jain_index{limit=12p})", 4.0),
        ("sqrt(jain_index{limit=4p})", 1.0),
        ("log(jain_index{limit=4p})", 0.0),
        ("-jain_index{limit=last} + 2 * jain_index{limit=first} / 4", -7.5),
    ],
)
def test_functions_by_hand(text, value):
    found = scored(f"{text} > 0", by_buffer([1.0, 5.0, 2.0, 8.0])).parts[0].found
    assert found.estimate == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("increasing(jain_index over limit)", "fails"),
        ("increasing(jain_index over limit, 4)", "holds"),
        ("increasing(jain_index over limit in (4p, 12p, 72p))", "holds"),
        ("decreasing(jain_index over limit)", "fails"),
        ("decreasing(jain_index over limit in (12p, 36p))", "holds"),
        ("increasing(mean(jain_index) over limit in (4p, 12p, 72p))", "holds"),
        ("no_trend(jain_index over limit, 2)", "fails"),
        ("no_trend(jain_index over limit, 10)", "holds"),
        ("argmax(jain_index over limit) == 72p", "holds"),
        ("argmax(jain_index over limit) == 12p", "fails"),
        ("argmax(jain_index over limit) in (12p, 72p)", "holds"),
        ("argmin(jain_index over limit) == first", "holds"),
        ("argmin(jain_index over limit) in (36p, 72p)", "fails"),
        ("for all limit: jain_index > 0", "holds"),
        ("for all limit: jain_index > 1.5", "fails"),
        ("for most limit: jain_index > 1.5", "holds"),
        ("for most limit: jain_index > 3", "fails"),  # two of four are not a majority
        ("for some limit: jain_index > 7", "holds"),
        ("for some limit: jain_index > 9", "fails"),
        ("for all limit except (4p): jain_index > jain_index{limit=first}", "holds"),
        ("for some limit except (first, last):"
         " jain_index < jain_index{limit=previous} and jain_index < jain_index{limit=next}", "holds"),
        ("share(increasing(jain_index over limit in (4p, 12p))) > 50 %", "holds"),
        ("share(argmax(jain_index over limit) == 72p) > 50 %", "holds"),
        ("share(for most limit: jain_index > 1.5) > 50 %", "holds"),
        ("share(not for all limit: jain_index > 1.5) > 50 %", "holds"),
        ("jain_index{limit=4p} > 2 or jain_index{limit=12p} > 2", "holds"),
        ("jain_index{limit=4p} > 2 and jain_index{limit=12p} > 2", "fails"),
        ("not jain_index{limit=4p} > 2", "holds"),
    ],
)  # fmt: skip
def test_courses_and_quantifiers(text, expected):
    assert status(text, by_buffer([1.0, 5.0, 2.0, 8.0], noise=0.05)) == expected


def test_ties_are_undecided_or_no_victory():
    flat = by_buffer([1.0, 1.0, 1.0, 1.0], noise=0.5)
    assert status("argmax(jain_index over limit) == 4p", flat) == "undecided"
    assert status("increasing(jain_index over limit)", flat) == "undecided"
    tie = by_buffer([1.0, 1.0, 1.0, 1.0])
    assert status("argmax(jain_index over limit) == 4p", tie) == "fails"
    assert status("share(argmax(jain_index over limit) == 4p) > 50 %", tie) == "fails"
    assert "not defined" in scored("rank_correlation(jain_index over limit) > 0", tie).verdict.reason


def two_values(seeds=6):
    """Two metrics over eight cells, drawn anew for each seed, with ties."""
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, 9, (2, len(BUFFER.labels), len(COUNT.labels), seeds)).astype(float)
    numbers = {"jain_index": 0, "mark_percent": 1}

    def value(metric, cell, seed, **_):
        at = BUFFER.labels.index(cell.label("limit")), COUNT.labels.index(cell.label("count"))
        return drawn[numbers[metric], *at, seed - 1]

    return World(value, axes=(BUFFER, COUNT), arms=("RED",), seeds=seeds), drawn.reshape(2, -1, seeds)


@pytest.mark.parametrize(
    ("function", "truth"),
    [("rank_correlation", scipy_stats.spearmanr), ("correlation", scipy_stats.pearsonr)],
)
def test_two_values_are_correlated_over_all_cells_seed_by_seed(function, truth):
    world, drawn = two_values()
    found = scored(f"{function}(jain_index over limit and count, mark_percent) < 2", world).parts[0].found
    of_seeds = [truth(*drawn[:, :, i]).statistic for i in range(drawn.shape[2])]
    assert found.estimate == pytest.approx(np.mean(of_seeds), abs=1e-12)
    half = scipy_stats.t.ppf(0.975, len(of_seeds) - 1) * scipy_stats.sem(of_seeds)
    assert found.high - found.low == pytest.approx(2 * half)
    # The function covers some of the labels of one axis, and the other axis is fixed.
    part = scored(
        f"{function}(jain_index over limit except (12p), mark_percent) < 2", world, where={"count": "2"}
    )
    cells = [0, 4, 6]
    assert part.parts[0].found.estimate == pytest.approx(
        np.mean([truth(*drawn[:, cells, i]).statistic for i in range(drawn.shape[2])]), abs=1e-12
    )


def test_a_value_that_is_the_same_everywhere_has_no_correlation():
    world, _ = two_values()
    flat = (
        "correlation(jain_index over limit and count, 0 * mark_percent + jain_index{limit=4p, count=2}) > 0"
    )
    assert "not defined" in scored(flat, world).verdict.reason


def test_what_one_seed_is_asked_of_all_labels():
    # The worst buffer differs from seed to seed, which the mean hides.
    world = World(
        lambda _, cell, seed, **__: 0.2 if BUFFER.labels.index(cell.label("limit")) == seed % 4 else 1.0,
        axes=(BUFFER,),
        arms=("RED",),
        seeds=20,
    )
    assert status("share(for all limit: jain_index > 0.5) < 20 %", world) == "holds"
    assert status("for all limit: jain_index > 0.5", world) == "holds"
    assert status("min(jain_index over limit) == 0.2", world) == "holds"
    assert status("count(jain_index > 0.5 over limit) == 3", world) == "holds"


def test_what_is_asked_of_a_metric_reaches_the_results():
    world = World(lambda *_, **__: 1.0, axes=(BUFFER, COUNT))
    claim = Claim(
        "c", "utilisation_percent{queue=r0, class=ftp} > 0", where={"arm": "RED", "limit": "4p", "count": "6"}
    )
    score(world, [claim])
    (metric, cell, asked), *_ = world.asked
    assert (metric, cell.arm, cell.label("limit"), cell.label("count")) == (
        "utilisation_percent",
        "RED",
        "4p",
        "6",
    )
    assert asked == Scope("r0", "ftp")


def test_windows_reach_the_results(monkeypatch):
    from aqmlab.metrics import Parameter
    from aqmlab.metrics import registry as registry_module

    monkeypatch.setattr(registry_module, "_METRICS", dict(registry_module._METRICS))
    registry_module.metric(
        "windowed_s", label="", unit="s", definition="d", source="s", takes=Takes.QUEUE | Takes.WINDOW,
        parameters=(Parameter("low", "packets", "d"), Parameter("bin", "s", "d")),
    )(lambda *_, **__: 1.0)  # fmt: skip

    def asked(text):
        world = World(lambda *_, **__: 1.0, arms=("RED",))
        score(world, [Claim("c", text)])
        return [(scope.window, scope.parameters) for _, _, scope in world.asked]

    assert set(map(str, asked("windowed_s > 0"))) == {"(None, {})"}
    assert asked("windowed_s{from=10s, until=20s} > 0")[0][0] == Window(10, 20)
    assert asked("windowed_s{from=10s} > 0")[0][0] == Window(10, math.inf)
    assert asked("windowed_s{until=20s} > 0")[0][0] == Window(-math.inf, 20)
    assert asked("windowed_s{window=10s-20s, low=9, bin=500ms} > 0")[0] == (
        Window(10, 20),
        {"low": 9.0, "bin": 0.5},
    )
    windows = [
        window
        for window, _ in asked("for all window in (every 20s from 0s until 60s, 60s-65s): windowed_s > 0")
    ]
    assert windows == [Window(0, 20), Window(20, 40), Window(40, 60), Window(60, 65)]
    # Braces take precedence over the enclosing bindings.
    text = "for all window in (0s-20s): windowed_s{window=20s-40s} >= windowed_s"
    assert {window for window, _ in asked(text)} == {Window(20, 40), Window(0, 20)}


def test_needed():
    assert [needed(q, 4) for q in ("all", "most", "some")] == [4, 3, 1]
    assert [needed(q, 5) for q in ("all", "most", "some")] == [5, 3, 1]
