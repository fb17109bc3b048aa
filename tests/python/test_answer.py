"""The answer to a scenario's question: what it begins with, claims, and calls dominated or starved."""

from __future__ import annotations

import copy
import html
import re
import shutil
import tomllib
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import aqmlab
from aqmlab.figures.trade_off import DELAY, GOODPUT, TradeOff
from aqmlab.language.templates import TEMPLATES
from aqmlab.metrics import find
from aqmlab.reports import answer
from aqmlab.reports.answer import in_words, sentences
from aqmlab.stats.sentence import spoken
from synthetic_sweep import synthetic

ROOT = Path(__file__).parents[2]
ALL_ARMS = ["DropTail", "RED", "PI", "BLUE", "REM"]


def holm(p_values):
    """By hand: the smallest p against alpha / m, the next against alpha / (m - 1), until one is larger."""
    stands = dict.fromkeys(p_values, False)
    for rank, pair in enumerate(sorted(p_values, key=lambda pair: p_values[pair])):
        if p_values[pair] > 0.05 / (len(p_values) - rank):
            break
        stands[pair] = True
    return stands


@pytest.mark.parametrize("arms", [ALL_ARMS, ["BLUE", "REM", "ARED", "CHOKe"]])
def test_the_dominated_arms_are_those_of_the_definition(arms):
    results = synthetic(arms=arms, axes={}, seeds=10)
    values = {
        metric: {cell: np.array(list(results.values(metric, cell).values())) for cell in results.cells}
        for metric in (DELAY, GOODPUT)
    }
    good = {metric: 1 if metric == GOODPUT else -1 for metric in values}
    stands = {
        metric: holm({pair: stats.ttest_rel(*map(of.get, pair)).pvalue for pair in combinations(of, 2)})
        for metric, of in values.items()
    }

    def better(metric, cell, other):
        return good[metric] * (values[metric][cell].mean() - values[metric][other].mean())

    def dominates(cell, other):
        pairs = [(cell, other), (other, cell)]
        sure = any(stands[m].get(pair) and better(m, cell, other) > 0 for m in values for pair in pairs)
        return sure and all(better(m, cell, other) >= 0 for m in values)

    expected = {cell for cell in results.cells if any(dominates(other, cell) for other in results.cells)}
    (front,) = TradeOff(aqmlab.answer(results)).front
    assert {one.cell for one in front.beaten} == expected
    assert set(front.best) == set(results.cells) - expected
    assert all(dominates(one.by, one.cell) for one in front.beaten)
    worse = [
        pair
        for pair in combinations(results.cells, 2)
        if better(DELAY, *pair) * better(GOODPUT, *pair) > 0 and not expected & set(pair)
    ]
    if arms == ALL_ARMS:
        assert 0 < len(expected) < len(results.cells)
    else:  # all have the same distributions: some are worse in both means, but not significantly
        assert not expected
        assert worse
    # The least delay and the most goodput of all means are never dominated.
    assert max(results.cells, key=lambda cell: values[GOODPUT][cell].mean()) == front.best[0]
    assert min(results.cells, key=lambda cell: values[DELAY][cell].mean()) in front.best


def test_the_first_sentence_states_the_delay_saved_and_its_price():
    results = synthetic(arms=["DropTail", "PI"], axes={}, seeds=10)
    delay, goodput = (
        [np.array(list(results.values(metric, cell).values())) for cell in results.cells]
        for metric in (DELAY, GOODPUT)
    )
    assert stats.ttest_rel(*delay).pvalue < 0.001
    assert stats.ttest_rel(*goodput).pvalue < 0.001
    first = sentences(aqmlab.answer(results))[0]
    found = re.fullmatch(
        r"PI cuts mean queueing delay from ([\d.]+) ± [\d.]+ ms with DropTail to ([\d.]+) ± [\d.]+ ms for"
        r" ([\d.]+) % \(([\d.]+) to ([\d.]+)\) less goodput\.",
        first,
    )
    before, after, less, low, high = map(float, found.groups())
    assert (before, after) == pytest.approx([1e3 * of.mean() for of in delay], rel=0.02)
    assert less == pytest.approx(100 * (1 - goodput[1].mean() / goodput[0].mean()), abs=0.01)
    assert low < less < high


def test_nothing_is_claimed_of_arms_that_are_alike():
    """BLUE and REM draw from the same distributions."""
    results = synthetic(arms=["BLUE", "REM"], axes={}, seeds=5)
    for metric in (DELAY, GOODPUT):
        of = [list(results.values(metric, cell).values()) for cell in results.cells]
        assert stats.ttest_rel(*of).pvalue > 0.05
    said = in_words(aqmlab.answer(results))
    assert re.match("(BLUE and REM|REM and BLUE) do not differ significantly in mean queueing delay", said)
    assert "dominates" not in said
    assert "cuts" not in said


def test_choices_that_are_alike_are_one_step_whichever_comes_first():
    """RED and DualPI2 wait less than CoDel, and do not differ from each other."""
    for best in (["CoDel", "DualPI2", "RED"], ["CoDel", "RED", "DualPI2"]):
        shorter = dict.fromkeys(permutations(best, 2), 0) | {("DualPI2", "CoDel"): 1, ("RED", "CoDel"): 1}
        front = SimpleNamespace(best=best, ahead=(shorter, dict.fromkeys(shorter, 0)))
        found = SimpleNamespace(idles=lambda _: False, groups=[["CoDel", "RED", "DualPI2"]])
        assert answer._steps(found, front) == (["RED"], "CoDel")


def test_the_scenarios_metrics_come_first():
    results = synthetic(arms=["DropTail", "PI"], axes={}, seeds=10)
    drops, jain = find("drop_percent"), find("jain_index")
    named = replace(results, metrics=("jain_index", "drop_percent"))
    said = sentences(aqmlab.answer(named))
    assert spoken(jain.label) in said[0]
    assert said[1].lower().startswith(spoken(drops.label))
    # Without named metrics, neither is compared.
    assert all(spoken(jain.label) not in sentence for sentence in sentences(aqmlab.answer(results)))
    over_cases = replace(synthetic(seeds=5), metrics=("jain_index",))
    assert sentences(aqmlab.answer(over_cases))[0].startswith("Jain's index")


def test_a_better_value_may_be_a_higher_one():
    named = replace(synthetic(arms=["DropTail", "PI"], axes={}, seeds=10), metrics=(GOODPUT,))
    first = sentences(aqmlab.answer(named))[0]
    means = {cell.arm: np.mean(list(named.values(GOODPUT, cell).values())) for cell in named.cells}
    assert means["DropTail"] > means["PI"]
    assert first.startswith("Goodput is highest with DropTail: ")


def test_where_a_difference_is_significant_is_named_by_its_labels():
    said = in_words(aqmlab.answer(synthetic(seeds=10)))
    assert "in 8 of 12 cases (count 20 or 80), by" in said


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """RED with thresholds of one and two packets, on a link that DropTail fills."""
    from conftest import SMALL

    small = copy.deepcopy(SMALL)
    small |= {"runs": 5, "duration": "20s", "warmup": "5s"}
    small["topology"] |= {"rate": "10Mbit", "queue": {"kind": "droptail", "limit": "60p"}}
    tight = {"kind": "red", "limit": "60p", "min_th": "1p", "max_th": "2p", "max_p": 1.0, "w_q": 1.0}
    small["arm"] = [{"name": "DropTail"}, {"name": "tight RED", "topology.queue": tight}]
    return aqmlab.run(small, output=tmp_path_factory.mktemp("idle") / "run", jobs=2)


def test_an_arm_that_leaves_the_link_idle_is_not_the_answer(idle):
    used = [list(idle.values("utilisation_percent", cell).values()) for cell in idle.cells]
    assert np.mean(used[0]) > 90
    assert np.mean(used[1]) < 0.9 * np.mean(used[0])
    assert stats.ttest_rel(*used).pvalue < 0.01
    first, second, *_ = sentences(aqmlab.answer(idle))
    assert first.startswith("Only DropTail fills the link")
    assert second.startswith("tight RED starves the link `bottleneck`: it uses ")
    assert float(re.search(r"uses ([\d.]+)", second)[1]) == pytest.approx(np.mean(used[1]), rel=0.05)


def test_the_terminal_and_the_report_print_the_same_sentences(idle, aqmlab_cli):
    said = sentences(aqmlab.answer(idle))
    assert " ".join(said) in aqmlab_cli("report", idle.path).stdout
    page = html.unescape((idle.path / "report.html").read_text(encoding="utf-8"))
    answer = re.search(r'<div class="answer">(.*?)</div>', page, flags=re.S)[1].replace("\u00a0", " ")
    text = re.sub(r"<code>(.*?)</code>", r"`\1`", answer)
    assert re.sub(r"</?p[^>]*>", " ", text).split() == " ".join(said).split()


def test_a_sweep_of_a_queues_settings_is_a_choice_between_them(small, tmp_path):
    small |= {"runs": 5, "duration": "12s", "warmup": "2s", "arm": [{"name": "RED"}]}
    small["topology"]["queue"] = {"kind": "red", "limit": "30p", "min_th": "3p", "max_th": "12p"}
    small["sweep"] = {"topology.queue.min_th": ["2p", "4p"], "topology.queue.max_th": ["10p", "25p"]}
    made = aqmlab.sweep(small, store=tmp_path / "store", jobs=2, report=False).wait()
    found = TradeOff(aqmlab.answer(made))
    assert len(found.groups) == 1
    assert found.choices[0] == "min_th 2p × max_th 10p"
    assert len(found.front[0].cells) == 4
    rates = replace(
        made,
        axes=tuple(replace(axis, keys=("topology.rate",)) for axis in made.axes),
    )
    assert len(TradeOff(aqmlab.answer(rates)).groups) == 4


SCENARIOS = {
    **{name: ROOT / f"python/aqmlab/scenarios/templates/{name}.toml" for name in TEMPLATES},
    **{path.stem: path for path in sorted((ROOT / "scenarios").glob("*.toml"))},
}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_question_of_every_scenario_is_answered(name, tmp_path):
    """The first sentence is about the metrics that the scenario names, or about delay and its price."""
    text = SCENARIOS[name].read_text(encoding="utf-8").replace("NAME", name)
    for key, value in (("duration", '"24s"'), ("warmup", '"4s"'), ("runs", "2")):
        text = re.sub(rf"^{key} = [^#\n]*", f"{key} = {value} ", text, flags=re.M)
    if name == "falling_rate":  # its windows are those of its rate
        for time, earlier in (("30s", "8s"), ("60s", "16s"), ("65s", "20s")):
            text = text.replace(time, earlier)
    file = tmp_path / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    for data in SCENARIOS[name].parent.glob("*.csv"):
        shutil.copy(data, tmp_path)
    scenario = tomllib.loads(text)
    if "sweep" in scenario:
        made = aqmlab.sweep(file, store=tmp_path / "store", jobs=2, report=False).wait()
    else:
        made = aqmlab.run(file, output=tmp_path / "run", jobs=2, report=False)
    said = sentences(aqmlab.answer(made))
    asked = scenario.get("metrics") or [DELAY]
    if name == "self_similar":  # Hurst's parameter needs a longer run
        asked = [DELAY]
    words = "of the goodput at" if asked[0] == "goodput_share_percent" else spoken(find(asked[0]).label)
    assert words.lower() in said[0].lower()
    assert not re.search(r"\bnan\b|None|  ", " ".join(said))
