"""The computations of a sweep's report: answer, significant differences, distributions, best arms."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from aqmlab.figures.differences import comparisons, differences
from aqmlab.figures.distributions import delay_cdf
from aqmlab.metrics import EVERY_CLASS, find
from aqmlab.reports.answer import in_words
from aqmlab.reports.table import best_cells
from aqmlab.results.answers import Row
from aqmlab.results.answers import answer as answer_of
from synthetic_sweep import DELAY, QUEUE, synthetic


def test_the_answer_counts_the_cases(grid):
    cells = answer_of(grid)
    assert in_words(cells) == (
        "Mean queueing delay is lower with PI than with RED in 8 of 12 cases (count 20 or 80), by 49 to 52 %"
        " (in the other 4, the difference is not significant); goodput is lower with PI than with RED in all"
        " 12 cases, by 0.49 to 0.57 %."
    )


def test_a_metric_that_is_asked_for_by_name_has_a_column_though_no_run_has_a_value(grid):
    named, usual = answer_of(grid, ["goodput_bps", "backlog_error_percent"]), answer_of(grid)
    heads = [column.head for column in named.grid().columns]
    assert heads == ["rate", "count", "arm", "goodput [Mbit/s]", "backlog off q_ref [%]"]
    assert [row[-1].text for row in named.grid().rows] == ["–"] * len(grid.cells)
    assert "mark_percent" in {metric.name for metric in usual.metrics}
    assert len(usual.grid().columns) == 3 + len(usual.shown)


def test_the_answer_of_many_arms_says_how_often_each_is_ahead():
    cells = answer_of(synthetic(arms=["DropTail", "RED", "PI"], seeds=5))
    said = in_words(cells)
    assert re.match(
        r"PI has the shortest mean queueing delay in \d+ of 12 cases \(significantly in 8\)", said
    )
    assert "DropTail has the highest goodput in all 12 cases (significantly in 12)." in said


def test_the_answer_of_one_arm_is_a_range():
    cells = answer_of(synthetic(arms=["RED"], seeds=5))
    said = in_words(cells)
    delay, goodput, _ = re.findall(r"[A-Z].*?\)\.", said)
    assert "ms (rate 50Mbit, count 5) to" in delay
    assert "(rate 5Mbit, count 80)" in delay
    assert goodput.startswith("Goodput goes from")


def test_arms_without_runs_in_the_same_case_are_not_compared(grid):
    def of(keep):
        finished = {(cell, seed): run for (cell, seed), run in grid.finished.items() if keep(cell)}
        return in_words(answer_of(replace(grid, finished=finished)))

    said = of(lambda cell: cell.arm == "RED")
    assert re.match(r"Mean queueing delay goes from .+ \(rate .+\) to .+ \(rate .+\)\. Goodput goes", said)
    assert "PI" not in said
    said = of(lambda cell: (cell.arm == "RED") == (cell.label("rate") == "5Mbit"))
    assert said == "No two choices have finished runs in the same case, so there is nothing to compare."


def test_differences_are_paired_and_stand_by_holm_over_the_cases(grid):
    cells = answer_of(grid)
    found = differences(cells, find(DELAY))
    assert found.pairs == (("PI", "RED"),)
    p_values = []
    for contrast in found.contrasts[0]:
        a, b = (grid.values(DELAY, cell) for cell in (contrast.cell, contrast.other))
        seeds = sorted(a.keys() & b.keys())
        test = scipy_stats.ttest_rel([a[s] for s in seeds], [b[s] for s in seeds])
        assert contrast.found.p_value == pytest.approx(test.pvalue)
        p_values.append(test.pvalue)
    # Holm by hand: the smallest p against alpha / 12, the next against alpha / 11, until one is larger.
    order = np.argsort(p_values)
    passed = [p_values[i] <= 0.05 / (12 - rank) for rank, i in enumerate(order)]
    first_kept_back = passed.index(False)
    standing = {int(i) for i in order[:first_kept_back]}
    assert {i for i, contrast in enumerate(found.contrasts[0]) if contrast.stands} == standing
    assert 0 < len(standing) < 12
    assert comparisons([found]).count == 12


def test_in_one_case_all_pairs_of_arms_are_counted_together():
    arms = ["DropTail", "RED", "PI", "BLUE", "REM"]
    one_case = synthetic(arms=arms, axes={}, seeds=6)
    found = differences(answer_of(one_case), find(DELAY))
    assert len(found.pairs) == len(found.contrasts) == 10
    p_values = []
    for (arm, other), (contrast,) in zip(found.pairs, found.contrasts, strict=True):
        assert (contrast.cell.arm, contrast.other.arm) == (arm, other)
        a, b = (list(one_case.values(DELAY, cell).values()) for cell in (contrast.cell, contrast.other))
        p_values.append(scipy_stats.ttest_rel(a, b).pvalue)
    order = np.argsort(p_values)
    passed = [p_values[i] <= 0.05 / (10 - rank) for rank, i in enumerate(order)]
    standing = {int(i) for i in order[: [*passed, False].index(False)]}
    assert {i for i, (contrast,) in enumerate(found.contrasts) if contrast.stands} == standing
    # PI and DropTail differ greatly from all other arms, which are alike.
    assert 0 < len(standing) < 10


def test_a_difference_that_is_seen_alone_may_not_stand_among_twelve():
    cells = answer_of(synthetic(arms=["RED", "PI"], seeds=10), ["goodput_bps"])
    spread = np.array([-1.0, 1.0] * 5)
    values = {}
    for i, (_, (red, pi)) in enumerate(cells.cases):
        # In one case, the mean difference is 0.85 standard deviations; in the others, it is almost zero.
        shift = 0.85 if i == 3 else 0.01
        values[Row(red, "*")] = {"goodput_bps": dict.fromkeys(range(10), 1.0)}
        values[Row(pi, "*")] = {"goodput_bps": dict(enumerate(1.0 + shift + spread))}
    made = replace(cells, values=values)
    p_value = scipy_stats.ttest_1samp(0.85 + spread, 0).pvalue
    assert 0.05 / 12 < p_value < 0.05
    contrast = differences(made, cells.metrics[0]).contrasts[0][3]
    assert contrast.found.p_value == pytest.approx(p_value)
    assert contrast.found.seen
    assert not contrast.stands


def test_a_difference_that_is_seen_alone_may_not_stand_among_ten_pairs_of_arms():
    cells = answer_of(
        synthetic(arms=["DropTail", "RED", "PI", "BLUE", "REM"], axes={}, seeds=10), ["goodput_bps"]
    )
    apart = 0.85 + np.array([-1.0, 1.0] * 5)
    # The last arm differs from the other four, whose values are identical.
    same = {"goodput_bps": dict.fromkeys(range(10), 1.0)}
    values = dict.fromkeys(cells.values, same)
    values[cells.rows[-1]] = {"goodput_bps": dict(enumerate(1.0 + apart))}
    found = differences(replace(cells, values=values), cells.metrics[0])
    seen = [contrast for (contrast,) in found.contrasts if contrast.found.seen]
    assert [contrast.cell.arm for contrast in seen] == ["REM"] * 4
    p_value = scipy_stats.ttest_1samp(apart, 0).pvalue
    assert 0.05 / 7 < p_value < 0.05
    assert [contrast.stands for contrast in seen] == [False] * 4


def test_the_distribution_is_the_mean_of_the_seeds_with_its_interval(grid):
    cell = grid.cells[5]
    found = delay_cdf(grid, cell)
    assert found.n == 10
    for place in (1, 20, 40, len(found.delay_ms) - 1):
        shares = []
        for run in grid.measured(cell):
            bins = run.queues[QUEUE, EVERY_CLASS].sojourn
            below = sum(
                w
                for high, w in zip(bins.high, bins.weight, strict=True)
                if high <= found.delay_ms[place] * 1e6
            )
            shares.append(below / bins.total)
        assert found.share[place] == pytest.approx(np.mean(shares))
        half = scipy_stats.t.ppf(0.975, 9) * np.std(shares, ddof=1) / np.sqrt(10)
        assert found.low[place] == pytest.approx(max(0, np.mean(shares) - half))
        assert found.high[place] == pytest.approx(min(1, np.mean(shares) + half))
    assert found.share[0] == 0
    assert found.share[-1] == 1


def test_the_best_cells_are_the_first_and_those_that_cannot_be_told_from_it():
    cells = answer_of(synthetic(arms=["DropTail", "RED", "BLUE"], axes={}, seeds=10), [DELAY, "goodput_bps"])
    tail, red, blue = (row.cell for row in cells.rows)
    values = {arm: list(cells.by_seed(arm, DELAY).values()) for arm in cells.arms}
    # RED and BLUE are drawn from the same distribution, DropTail from one with twice the delay.
    assert scipy_stats.ttest_rel(values["RED"], values["BLUE"]).pvalue > 0.05
    assert scipy_stats.ttest_rel(values["RED"], values["DropTail"]).pvalue < 0.001
    assert best_cells(cells, differences(cells, find(DELAY))) == {red, blue}
    alike = replace(cells, values={row: of for row, of in cells.values.items() if row.cell != tail})
    assert best_cells(alike, differences(alike, find(DELAY))) == frozenset()
    neither = replace(find(DELAY), better="")
    assert best_cells(cells, differences(cells, neither)) == frozenset()
