"""Screening designs: orthogonality as in Plackett and Burman, and detection of known effects."""

import itertools

import numpy as np
import pytest

from aqmlab.stats.screening import effects, hadamard, screening_rows, seed_variance

# The generating row of the 12-run design of Plackett and Burman (1946).
PLACKETT_BURMAN_12 = [1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1]


@pytest.mark.parametrize("least", [1, 4, 5, 11, 12, 13, 18, 20, 24, 28, 33, 40, 45, 60, 61])
def test_rows_are_orthogonal(least):
    matrix = hadamard(least)
    assert len(matrix) >= least
    assert (matrix @ matrix.T == len(matrix) * np.eye(len(matrix))).all()
    assert (matrix[0] == 1).all()
    assert (matrix[:, 0] == 1).all()


def test_orders_are_those_that_are_needed():
    # Orders 28, 36, 52 and 56 need other constructions.
    orders = [4, 8, 12, 16, 20, 24, 32, 32, 40, 40, 44, 48]
    assert [len(hadamard(n)) for n in range(4, 52, 4)] == orders


def test_the_design_of_twelve_is_the_published_one():
    core = hadamard(12)[1:, 1:].copy()
    np.fill_diagonal(core, 1)
    assert core[0].tolist() == PLACKETT_BURMAN_12
    assert all((np.roll(core[0], i) == core[i]).all() for i in range(11))


@pytest.mark.parametrize("folded", [False, True])
def test_the_first_row_is_the_fixed_reading_and_candidates_are_dealt_evenly(folded):
    levels = [2, 3, 2, 4, 2, 6, 2]
    rows = screening_rows(levels, folded=folded, seed=3)
    assert rows[0] == (0,) * len(levels)
    assert rows == screening_rows(levels, folded=folded, seed=3)
    assert rows != screening_rows(levels, folded=folded, seed=4)
    for j, count in enumerate(levels):
        of = [row[j] for row in rows]
        assert of.count(0) == len(rows) / 2
        others = [of.count(level) for level in range(1, count)]
        assert max(others) - min(others) <= 1
    for a, b in itertools.combinations(range(len(levels)), 2):
        both = [(row[a] > 0, row[b] > 0) for row in rows]
        assert {both.count(pair) for pair in itertools.product((False, True), repeat=2)} == {len(rows) / 4}


def measured(rows, response, noise=0.01, seeds=3):
    draw = np.random.default_rng(7)
    return np.array([[response(row) + noise * draw.normal() for _ in range(seeds)] for row in rows])


def test_effects_are_found_and_nothing_is_seen_where_there_is_none():
    levels = [2, 3, 2, 4]
    rows = screening_rows(levels, folded=True, seed=1)
    values = measured(rows, lambda row: 1 + 0.5 * (row[1] == 2) - 0.2 * (row[3] == 1))
    found = effects(rows, values, levels)
    matters = [[effect.matters for effect in of] for of in found]
    assert matters == [[False], [False, True], [False], [True, False, False]]
    assert found[1][1].value == pytest.approx(0.5, abs=found[1][1].half_width)
    assert found[3][0].value == pytest.approx(-0.2, abs=found[3][0].half_width)


def test_folding_over_keeps_what_two_settings_do_together_out_of_the_effect_of_a_third():
    levels = [2] * 7
    together = screening_rows(levels, folded=False, seed=1)
    folded = screening_rows(levels, folded=True, seed=1)

    def largest_of_others(rows):
        values = measured(rows, lambda row: (row[0] - 0.5) * (row[1] - 0.5), noise=0.0)
        return max(abs(of[0].value) for of in effects(rows, values, levels)[2:])

    assert largest_of_others(together) == pytest.approx(0.5)
    assert largest_of_others(folded) == pytest.approx(0.0, abs=1e-12)


def test_what_settings_do_together_widens_the_intervals():
    levels = [2, 2, 2, 2]
    rows = screening_rows(levels, folded=True, seed=1)
    apart = measured(rows, lambda row: row[0])
    joint = measured(rows, lambda row: row[0] + 3 * (row[1] == row[2]))
    assert effects(rows, apart, levels)[3][0].half_width < 0.03
    assert effects(rows, joint, levels)[3][0].half_width > 0.5


def test_too_few_rows_for_each_candidate_have_one_effect_for_a_setting():
    levels = [2, 6, 2, 5, 2]
    rows = screening_rows(levels, folded=False, seed=1)
    assert len(rows) == 8
    found = effects(rows, measured(rows, lambda row: 0.5 * (row[1] > 0)), levels)
    assert len(set(found[1])) == 1
    assert found[1][0].value == pytest.approx(0.5, abs=0.05)


def test_one_seed_leaves_only_the_rest_of_the_model_to_compare_with():
    levels = [2, 2, 2]
    rows = screening_rows(levels, folded=False, seed=1)
    assert effects(rows, measured(rows, sum, seeds=1), levels)[0][0].half_width is None
    rows = screening_rows(levels, folded=True, seed=1)
    assert effects(rows, measured(rows, sum, seeds=1), levels)[0][0].half_width is not None


def test_what_a_seed_does_in_all_readings_is_no_noise():
    seeds = np.array([[0.0, 5.0, -3.0]])
    readings = np.array([[0.0], [1.0], [4.0]])
    variance, degrees = seed_variance(seeds + readings)
    assert variance == pytest.approx(0.0, abs=1e-20)
    assert degrees == 4
    # By hand: the residual is +-1/2 in each of the four places.
    assert seed_variance(np.array([[1.0, 0.0], [0.0, 1.0]])) == (1.0, 1)
