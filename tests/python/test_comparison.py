"""Comparisons of two sides: their names, the pairing of seeds, and correction for several comparisons."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.errors import RecordingError, UsageError
from aqmlab.paths import side
from aqmlab.results.comparison import compare_sides
from aqmlab.results.pairing import side_of
from aqmlab.stats.differences import unpaired_difference
from synthetic_sweep import DELAY, RATES, synthetic


@pytest.fixture(scope="module")
def sweep():
    return synthetic()


@pytest.fixture(scope="module")
def apart(small_module, tmp_path_factory):
    """The small experiment twice more: once with other seeds, and once with one more flow."""
    folder = tmp_path_factory.mktemp("apart")
    later = aqmlab.run(small_module, output=folder / "later", seed=11, runs=3, jobs=2, report=False)
    small_module["traffic"][0]["count"] = 4
    crowded = aqmlab.run(small_module, output=folder / "crowded", runs=3, jobs=2, report=False)
    return later.path, crowded.path


@pytest.fixture(scope="module")
def small_module():
    import copy

    from conftest import SMALL

    return copy.deepcopy(SMALL)


# What is compared.


def test_two_arms_are_compared_seed_by_seed(experiment):
    found = aqmlab.compare(f"{experiment.path}:DropTail", ":RED + ECN", metrics=["goodput_bps"])
    assert (found.first, found.second, found.unpaired) == ("DropTail", "RED + ECN", ())
    (one,) = found.compared
    a, b = (aqmlab.answer(experiment).by_seed(arm, "goodput_bps") for arm in ("DropTail", "RED + ECN"))
    test = scipy_stats.ttest_rel([b[1], b[2]], [a[1], a[2]])
    interval = test.confidence_interval(0.95)
    assert one.found.estimate.mean == pytest.approx((b[1] - a[1] + b[2] - a[2]) / 2)
    assert (one.found.estimate.low, one.found.estimate.high) == pytest.approx((interval.low, interval.high))
    assert one.found.p_value == one.adjusted_p == pytest.approx(test.pvalue)
    assert "n = 2 pairs" in one.sentence


def test_arms_of_a_sweep_are_compared_case_by_case_and_counted(sweep):
    found = compare_sides(side_of(sweep, "RED"), side_of(sweep, "arm=PI"), metrics=[DELAY])
    assert (found.first, found.second) == ("RED", "PI")
    assert [one.case for one in found.compared][:2] == ["rate 5Mbit, count 5", "rate 5Mbit, count 20"]
    assert found.multiple.count == len(found.compared) == 12
    for one in found.compared:
        count = 12 - sum(other.found.p_value < one.found.p_value for other in found.compared)
        # Holm: each p is multiplied by the number of p values that are not smaller; no result is below the
        # previous one.
        assert one.adjusted_p >= min(1.0, count * one.found.p_value) * (1 - 1e-12)
    flows = {one.case.split()[-1]: one.stands for one in found.compared}
    assert flows == {"5": False, "20": True, "80": True}
    assert found.compared[1].sentence.startswith("PI lowers p95 queueing delay by ")
    assert "; that is " in found.compared[1].sentence


def test_cells_of_a_sweep_are_named_by_what_they_differ_in(sweep):
    found = compare_sides(side_of(sweep, "PI,rate=5Mbit,count=20"), side_of(sweep, "PI,rate=5Mbit,count=80"))
    assert (found.first, found.second) == ("count 20", "count 80")
    found = compare_sides(side_of(sweep, "RED,rate=5Mbit"), side_of(sweep, "PI,topology.rate=10Mbit"))
    assert (found.first, found.second) == ("RED, rate 5Mbit", "PI, rate 10Mbit")
    assert [one.case for one in found.compared[:3]] == ["count 5", "count 20", "count 80"]


def test_recordings_are_compared_arm_by_arm_under_their_paths(experiment, apart):
    found = aqmlab.compare(experiment.path, apart[0], metrics=["goodput_bps"])
    assert (found.first, found.second) == ("small", "later")
    assert [one.case for one in found.compared] == ["DropTail", "RED + ECN"]


def test_cases_of_one_side_only_are_named():
    one = synthetic(axes={"topology.rate": RATES}, seeds=2)
    other = synthetic(axes={"topology.rate": RATES[:3]}, seeds=2)
    found = compare_sides(side_of(one, "RED"), side_of(other, "RED"), metrics=[DELAY])
    assert found.unmatched == ("RED, rate 50Mbit",)
    assert [one.case for one in found.compared] == [f"rate {rate}" for rate in RATES[:3]]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("RED", "PI,rate=5Mbit", "leaves `rate`, `count` open, and `PI,rate=5Mbit` leaves `count` open"),
        ("RED", "arm=RED", "are the same"),
        ("RED,rate=5Mbit,count=5", "RED,rate=5Mbit,count=5", "are the same"),
    ],
)
def test_sides_that_do_not_fit_are_refused(sweep, first, second, said):
    with pytest.raises(UsageError, match=said):
        compare_sides(side_of(sweep, first), side_of(sweep, second))


@pytest.mark.parametrize(
    ("which", "said"),
    [("RDE", "did you mean `RED`"), ("rat=5Mbit", "rate"), ("rate=5Mbits", "did you mean `5Mbit`")],
)
def test_names_that_are_not_there_get_the_nearest(sweep, which, said):
    with pytest.raises(UsageError, match=said):
        side_of(sweep, which)


def test_arms_and_directories_may_have_colons_and_commas(experiment, tmp_path):
    # The longest existing path is used, although a shorter path exists.
    awkward = tmp_path / "a:b"
    (tmp_path / "a").mkdir()
    awkward.symlink_to(experiment.path)
    assert side(f"{awkward}:RED + ECN").fixed == {"arm": "RED + ECN"}
    assert side(str(awkward)).fixed == {}
    named = synthetic(arms=["RED, gentle", "PI"], axes={"x": ["a,b", "c"]}, seeds=2)
    assert side_of(named, "RED, gentle").fixed == {"arm": "RED, gentle"}
    assert side_of(named, 'arm="RED, gentle",x="a,b"').fixed == {"arm": "RED, gentle", "x": "a,b"}


def test_what_is_not_there_is_said(experiment, tmp_path):
    with pytest.raises(RecordingError, match="no recording at"):
        aqmlab.compare(tmp_path / "nothing", experiment.path)
    with pytest.raises(UsageError, match="has no path"):
        aqmlab.compare(":RED", str(experiment.path))


# These cases test whether seeds form pairs.


def test_other_seeds_and_other_traffic_are_not_paired(experiment, apart):
    later, crowded = apart
    found = aqmlab.compare(f"{experiment.path}:DropTail", f"{later}:DropTail", metrics=["goodput_bps"])
    assert found.unpaired == ("they have no seeds in common",)
    assert "3 and 2 runs, not paired" in found.compared[0].sentence
    found = aqmlab.compare(f"{experiment.path}:DropTail", f"{crowded}:DropTail", metrics=["goodput_bps"])
    assert found.unpaired == ("their traffic differs: count of `ftp` is 3 in one and 4 in the other",)
    # An arm may change ECN and still have the same draws as the other arm.
    assert aqmlab.compare(f"{crowded}:DropTail", ":RED + ECN", metrics=["goodput_bps"]).unpaired == ()


def test_seeds_that_only_one_side_has_are_left_out_of_the_pairs():
    lost = synthetic(axes={"topology.rate": RATES}, seeds=6, lost={(0, 2): "gone", (0, 5): "gone"})
    found = compare_sides(side_of(lost, "RED,rate=5Mbit"), side_of(lost, "PI,rate=5Mbit"), metrics=[DELAY])
    (one,) = found.compared
    assert (one.found.estimate.n, one.found.alone) == (4, (2, 5))


def test_welch_agrees_with_scipy():
    rng = np.random.default_rng(4)
    for sizes in ((2, 2), (10, 4), (3, 40)):
        a, b = (rng.normal(i, 1 + 3 * i, size) for i, size in enumerate(sizes))
        found = unpaired_difference(dict(enumerate(a)), dict(enumerate(b, start=100)))
        test = scipy_stats.ttest_ind(a, b, equal_var=False)
        interval = test.confidence_interval(0.95)
        assert (found.estimate.low, found.estimate.high) == pytest.approx((interval.low, interval.high))
        assert found.p_value == pytest.approx(test.pvalue)
        assert found.unpaired == sizes
        assert found.relative.estimate == pytest.approx(a.mean() / b.mean() - 1)


def test_unpaired_values_that_have_no_spread_or_no_number():
    same = unpaired_difference({1: 0.1, 2: 0.1, 3: 0.1}, {4: 0.1, 5: 0.1})
    assert (same.estimate.mean, same.estimate.half_width, same.p_value) == (pytest.approx(0), 0.0, 1.0)
    single = unpaired_difference({1: 3.0}, {4: 1.0, 5: 2.0})
    assert (single.estimate.mean, single.estimate.half_width, single.p_value) == (1.5, None, None)
    nothing = unpaired_difference({1: None}, {4: 1.0})
    assert (nothing.estimate, nothing.p_value, nothing.unpaired) == (None, None, (0, 1))


# These cases test the command line.


def test_the_command_prints_a_table_and_sentences(experiment, aqmlab_cli):
    ended = aqmlab_cli("compare", f"{experiment.path}:DropTail", ":RED + ECN")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("RED + ECN against DropTail\n")
    assert "RED + ECN lowers mean queueing delay by " in ended.stdout
    assert "runs are paired by seed" in ended.stdout
    assert "comparisons were made, each at 95 %" in ended.stdout
    assert "left out" not in ended.stdout


def test_the_command_as_json(experiment, aqmlab_cli):
    ended = aqmlab_cli(
        "compare", f"{experiment.path}:DropTail", ":RED + ECN", "--metric", "goodput_bps", "--json"
    )
    content = json.loads(ended.stdout)
    assert (content["first"], content["second"], content["comparisons"]) == ("DropTail", "RED + ECN", 1)
    (one,) = content["compared"]
    assert one["difference"] == pytest.approx(one["second"] - one["first"])
    assert one["paired"] is True


def test_the_command_says_what_is_wrong(experiment, aqmlab_cli):
    ended = aqmlab_cli("compare", f"{experiment.path}:DropTial", ":RED + ECN")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "did you mean `DropTail`" in ended.stderr
