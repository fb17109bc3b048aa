"""Properties that the papers predict for the demonstration, each with its interval."""

from __future__ import annotations

from pathlib import Path

import pytest

import aqmlab
from aqmlab.stats import estimate

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "demo.toml"
PLAIN = ["RED", "gentle RED", "Adaptive RED"]
ARMS = ["DropTail", *PLAIN, *(f"{arm} + ECN" for arm in PLAIN)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> aqmlab.Results:
    return aqmlab.run(SCENARIO, output=tmp_path_factory.mktemp("demo") / "demo", jobs=2)


@pytest.fixture(scope="module")
def answer(demo: aqmlab.Results) -> aqmlab.Answer:
    return aqmlab.answer(demo)


def difference(answer: aqmlab.Answer, arm: str, other: str, metric: str) -> aqmlab.Estimate:
    """The paired difference ``arm - other`` over the ten seeds, with its 95 % interval."""
    found = answer.difference(arm, other, metric)
    assert found is not None
    assert found.n == 10
    return found


def test_every_arm_ran_with_ten_seeds(demo: aqmlab.Results) -> None:
    assert list(demo.arms) == ARMS
    assert all(len(demo.runs_of(arm)) == 10 for arm in ARMS)


@pytest.mark.parametrize("arm", ARMS[1:])
def test_droptail_has_the_longest_queue(answer: aqmlab.Answer, arm: str) -> None:
    shorter = difference(answer, "DropTail", arm, "backlog_mean_packets")
    assert shorter.low is not None
    assert shorter.low > 0


@pytest.mark.parametrize("arm", ARMS[1:])
def test_no_red_beats_the_goodput_of_droptail(answer: aqmlab.Answer, arm: str) -> None:
    gain = difference(answer, arm, "DropTail", "goodput_bps")
    assert gain.low is not None
    assert gain.low <= 0, "the whole interval lies above DropTail's goodput"


@pytest.mark.parametrize("arm", PLAIN)
def test_ecn_drops_less_than_the_same_queue_without(answer: aqmlab.Answer, arm: str) -> None:
    more = difference(answer, f"{arm} + ECN", arm, "drop_percent")
    assert more.high is not None
    assert more.high < 0
    marked = answer.estimate(f"{arm} + ECN", "mark_percent")
    assert marked is not None
    assert marked.mean > 0


@pytest.mark.parametrize("arm", ["Adaptive RED", "Adaptive RED + ECN"])
def test_adaptive_red_keeps_its_average_in_the_target_band(demo: aqmlab.Results, arm: str) -> None:
    # The band is [min_th + 0.4 D, min_th + 0.6 D] with D = max_th - min_th (Floyd, Gummadi, Shenker 2001);
    # the means are over the second half of the run.
    low, high = 20 + 0.4 * 40, 20 + 0.6 * 40
    second_half = (
        "WHERE queue = 'bottleneck' AND name = 'avg' AND t_ns >= 60_000_000_000 GROUP BY run ORDER BY run"
    )
    means = demo.tables.rows("law", "run, avg(value)", second_half, demo.runs_of(arm))
    found = estimate([mean for _, mean in means])
    assert found is not None
    assert found.n == 10
    assert found.low is not None
    assert found.high is not None
    assert low <= found.low <= found.high <= high


@pytest.mark.slow
def test_the_words_below_the_table_of_the_readme_are_true(answer: aqmlab.Answer) -> None:
    def mean(arm: str, metric: str) -> float:
        found = answer.estimate(arm, metric)
        assert found is not None
        return found.mean

    delays = {arm: 1e3 * mean(arm, "queueing_delay_mean_s") for arm in ARMS}
    goodputs = {arm: mean(arm, "goodput_bps") for arm in ARMS}
    paid = {arm: 100 * (1 - goodputs[arm] / goodputs["DropTail"]) for arm in ARMS}
    drops = {arm: mean(arm, "drop_percent") for arm in ARMS}
    pages = ["README.md", "docs/tutorials/first-figure.md"]
    text = " ".join(" ".join((ROOT / page).read_text(encoding="utf-8").split()) for page in pages)
    assert (
        "Adaptive RED cuts DropTail's mean queueing delay"
        f" from {delays['DropTail']:.0f} ms to {delays['Adaptive RED']:.0f} ms"
        f" and costs {paid['Adaptive RED']:.1f} % of the goodput."
        f" RED with fixed thresholds has an even shorter queue but costs {paid['RED']:.1f} %."
    ) in text
    assert delays["RED"] < delays["Adaptive RED"]
    assert (
        "each of the three variants of RED drops a tenth to an eighth as many packets as without it" in text
    )
    assert all(1 / 10 < drops[f"{arm} + ECN"] / drops[arm] < 1 / 8 for arm in PLAIN)
