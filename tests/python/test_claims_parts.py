"""Reports on a scored claim: parts, positions, sentences, JSON; and refused claims."""

import json

import pytest

from aqmlab.claims import Claim, Names, counts, decide, score, sentence, to_json
from aqmlab.claims.scan import SourceLocation
from aqmlab.errors import ScenarioError
from claim_worlds import BUFFER, COUNT, A, World, by_buffer, scored, table


def test_the_parts_and_their_places():
    found = scored("for all limit in (4p, 72p): jain_index > 1.5", by_buffer([1.0, 5.0, 2.0, 8.0], 0.01))
    assert [(part.at, part.verdict.status) for part in found.parts] == [
        ((("limit", "4p"),), "fails"),
        ((("limit", "72p"),), "holds"),
    ]
    assert [part.at for part in found.deciding()] == [(("limit", "4p"),)]
    assert found.verdict.reason == "1 of 2 parts fails"
    steps = scored(
        "increasing(jain_index over limit in (4p, 12p))", by_buffer([1.0, 5.0, 2.0, 8.0], 0.01)
    ).parts
    assert [side.text for side in (steps[0].left, steps[0].right)] == [
        "jain_index at limit 12p",
        "jain_index at limit 4p",
    ]


def test_what_decides_comes_first():
    def first(text):
        found = scored(text, by_buffer([1.0, 14.0, 5.0, 60.0], 0.01))
        return found.status, [dict(part.at)["limit"] for part in found.deciding()]

    # The first part is the clearest failure or, if the claim holds, the part closest to failing.
    assert first("for all limit: jain_index > 5.5") == ("fails", ["4p", "36p"])
    assert first("for all limit: jain_index < 5.5") == ("fails", ["72p", "12p"])
    assert first("for all limit: jain_index > 0.5") == ("holds", ["4p", "36p", "12p", "72p"])


DROPS = {"RED": [1.0, 1.2, 1.1, 0.9, 1.0], "DropTail": [5.0, 5.5, 5.2, 5.1, 5.4]}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (
            "drop_percent{arm=RED} < drop_percent{arm=DropTail}",
            "drop_percent{arm=RED} = 1.04 ± 0.14 %, drop_percent{arm=DropTail} = 5.24 ± 0.26 %,"
            " difference −4.20 % points (−4.40 to −4.00), n = 5 pairs",
        ),
        (
            "abs(drop_percent{arm=RED} - drop_percent{arm=DropTail}) > 1 %",
            "abs(drop_percent{arm=RED} - drop_percent{arm=DropTail}) = 4.20 ± 0.20 % points, n = 5 seeds",
        ),
        (
            "0.5 * range(drop_percent over arm) < 9 %",
            "0.5 * range(drop_percent over arm) = 2.100 ± 0.098 % points, n = 5 seeds",
        ),
        # A constant minus a percentage, or half of a percentage, is not a difference of two percentages.
        (
            "100 % - drop_percent{arm=RED} > 90 %",
            "100 % - drop_percent{arm=RED} = 98.96 ± 0.14 %, n = 5 seeds",
        ),
        ("0.5 * drop_percent{arm=RED} < 1 %", "0.5 * drop_percent{arm=RED} = 0.520 ± 0.071 %, n = 5 seeds"),
    ],
)
def test_differences_of_percentages_are_in_points(claim, said):
    (part,) = scored(claim, table({"drop_percent": DROPS})).parts
    assert sentence(part) == said


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        # All numbers of a comparison are in the unit of its largest side, even a difference below a second.
        (1.0, "= 9.10 ± 0.20 s, queueing_delay_mean_s{arm=DropTail} = 8.96 ± 0.20 s, difference 0.140 s ("),
        (0.1, "= 910 ± 20 ms, queueing_delay_mean_s{arm=DropTail} = 896 ± 20 ms, difference 14.0 ms ("),
    ],
)
def test_times_are_in_seconds_or_milliseconds_by_their_size(scale, said):
    delays = {"RED": [9.0, 9.2, 9.1, 8.9, 9.3], "DropTail": [8.9, 9.1, 8.9, 8.75, 9.15]}
    world = table({"queueing_delay_mean_s": {arm: [scale * s for s in of] for arm, of in delays.items()}})
    expect = "queueing_delay_mean_s{arm=RED} > queueing_delay_mean_s{arm=DropTail}"
    (part,) = scored(expect, world).parts
    assert said in sentence(part)


def test_deviations_of_percentages_are_in_points_and_their_ratio_is_not():
    world = table({"drop_percent": DROPS})
    (part,) = scored("std(drop_percent{arm=RED}) < std(drop_percent{arm=DropTail})", world).parts
    assert sentence(part).startswith("std(drop_percent{arm=RED}) = 0.11 % points (")
    assert sentence(part).count("% points") == 2
    assert ", ratio 0.55 (" in sentence(part)


def test_json_has_every_figure_in_the_units_of_metrics():
    world = table({"drop_percent": DROPS})
    claims = [
        Claim("a", "drop_percent{arm=RED} < drop_percent{arm=DropTail}", "RED drops less.", source="us"),
        Claim("b", "drop_percent{arm=RED} > 2 %", strength="soft"),
        Claim("c", "for all arm: drop_percent > 2 %"),
        Claim("d", "share(drop_percent{arm=RED} > 1 %) > 50 %"),
    ]
    results = score(world, claims)
    content = json.loads(json.dumps(to_json(results), allow_nan=False))
    assert [c["status"] for c in content["claims"]] == ["holds", "fails", "fails", "undecided"]
    assert content["counts"] == counts(results)
    assert content["counts"]["firm"] == {"holds": 1, "fails": 1, "undecided": 1}
    assert content["counts"]["soft"] == {"holds": 0, "fails": 1, "undecided": 0}
    assert [each.failed for each in results] == [False, False, True, False]
    (part,) = content["claims"][0]["parts"]
    assert (part["unit"], part["left"]["estimate"], part["right"]["n"]) == ("%", pytest.approx(1.04), 5)
    assert part["found"]["estimate"] == pytest.approx(-4.2)
    (part,) = content["claims"][1]["parts"]
    assert part["right"] == {
        "text": "2 %",
        "estimate": 2.0,
        "low": None,
        "high": None,
        "n": 0,
        "confidence": 0.95,
        "method": "constant",
    }
    assert content["claims"][2]["parts"][1]["at"] == {"arm": "DropTail"}


def test_a_claim_of_the_scenario_about_an_arm_that_was_not_run_is_undecided():
    entry = {"name": "c", "expect": "jain_index{arm=BLUE} > 0", "line": 3, "column": 11}
    world = table({"jain_index": {"RED": A}}, claims=(entry,))
    (found,) = score(world)
    assert found.status == "undecided"
    assert "there is no arm `BLUE`" in found.verdict.reason
    with pytest.raises(ScenarioError, match="there is no arm `BLUE`"):
        score(world, [Claim.of_entry(entry)])


def test_too_many_comparisons_are_refused():
    axes = tuple(type(BUFFER)(f"a{i}", f"a{i}", (), tuple(map(str, range(200)))) for i in range(2))
    with pytest.raises(
        ScenarioError, match="1:13: claim `c`: this makes more than 10000 combinations"
    ) as caught:
        Claim("c", "for all a0, a1: jain_index > 0", origin=SourceLocation("c", "x", 1, 5)).check(
            Names(("RED",), axes)
        )
    assert caught.value.errors[0]["column"] == 13


def test_too_many_comparisons_of_nested_quantifiers_are_refused(monkeypatch):
    monkeypatch.setattr(decide, "MOST_COMPARISONS", 5)
    text = "for all limit: for all count: jain_index > 0"
    with pytest.raises(ScenarioError, match="the claim makes more than 5 comparisons"):
        score(World(lambda *_, **__: 1.0, axes=(BUFFER, COUNT), arms=("RED",), seeds=5), [Claim("c", text)])
