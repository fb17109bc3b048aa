"""The search for a reading on known response surfaces: it finds the true settings and no others."""

import random

import pytest

from aqmlab.papers.budget import Budget
from aqmlab.papers.search import Measured, Search, departures, expected_seeds, replaced

LEVELS = (2, 3, 2, 4, 2, 3)
TRUE = (0, 2, 1, 0, 0, 1)
FIXED = (0,) * len(LEVELS)


def noise(row, seed, size, salt):
    return size * random.Random(f"{row}/{seed}/{salt}").gauss(0, 1)


def surface(row):
    """The distance of a reading from the true one; the fourth and the fifth setting have no effect."""
    wrong = (row[0] != TRUE[0], row[1] != TRUE[1], row[2] != TRUE[2], row[5] != TRUE[5])
    weights = (0.3, 0.4, 0.2, 0.15)
    return 0.1 + sum(w for w, bad in zip(weights, wrong, strict=True) if bad)


class World:
    """Measures a surface, and counts its queries."""

    def __init__(self, surface=surface, size=0.02, seconds=1.0, salt=0):
        self.surface, self.size, self.seconds, self.salt = surface, size, seconds, salt
        self.asked = []

    def __call__(self, row, begin, end):
        self.asked.append((row, begin, end))
        value = self.surface(row)
        if value is None:
            return Measured(None, self.seconds)
        errors = tuple(value + noise(row, seed, self.size, self.salt) for seed in range(begin, end))
        return Measured(errors, self.seconds * (end - begin))


def searched(world, levels=LEVELS, total_s=1e9, **options):
    options = {"seeds": 3, "final_seeds": 12, "seed": 1, **options}
    return Search(levels, world, Budget(total_s), **options).run()


@pytest.mark.parametrize("seed", range(1, 9))
def test_the_true_reading_is_found(seed):
    found = searched(World(salt=seed), seed=seed)
    assert found.inferred == TRUE
    assert not found.ended


@pytest.mark.parametrize("seed", range(1, 5))
def test_it_is_found_where_settings_work_together_only(seed):
    def both(row):
        # Neither of the two settings has any effect alone.
        return 0.1 if (row[2] and row[4]) else 0.5 + 0.1 * (row[3] == 1)

    assert searched(World(both, salt=seed), seed=seed).inferred == (0, 0, 1, 0, 1, 0)


def test_no_candidate_is_taken_where_the_difference_is_noise():
    found = searched(World(lambda _: 0.3, size=0.05))
    assert found.inferred == FIXED
    assert not any(effect.matters for of in found.effects for effect in of)


def test_what_settings_do_is_told_apart_from_those_that_do_nothing():
    found = searched(World())
    matters = [any(effect.matters for effect in of) for of in found.effects]
    assert matters == [True, True, True, False, False, True]
    for j, of_setting in enumerate(found.beside):
        inferred = sum(of_setting[found.inferred[j]].errors) / 3
        worse = [
            sum(beside.errors) / 3 - inferred > beside.half_width
            for level, beside in enumerate(of_setting)
            if level != found.inferred[j]
        ]
        assert worse == [j not in (3, 4)] * (LEVELS[j] - 1)


def test_the_profile_has_seeds_that_the_search_has_not_used():
    world = World()
    found = searched(world)
    assert found.profile_seeds == (12, 15)
    last = [(row, begin, end) for row, begin, end in world.asked if begin >= 12]
    assert all((begin, end) == (12, 15) for _, begin, end in last)
    assert all(departures_from(found.inferred, row) <= 1 for row, _, _ in last)
    # These are the inferred reading, and one reading for each other candidate of each setting.
    assert len(last) == 1 + sum(count - 1 for count in LEVELS)
    assert not any(end > 12 for _, begin, end in world.asked if begin < 12)


def departures_from(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


def test_nothing_is_looked_at_twice():
    world = World()
    searched(world)
    seeds = [(row, seed) for row, begin, end in world.asked for seed in range(begin, end)]
    assert len(seeds) == len(set(seeds))


def test_better_readings_have_more_seeds():
    found = searched(World())
    counts = {row: len(errors) for row, errors in found.tried.items()}
    assert counts[found.inferred] == counts[FIXED] == 12
    assert sum(count > 3 for count in counts.values()) <= 9
    assert min(counts.values()) == 3


def test_a_reading_that_cannot_be_run_is_left_out():
    world = World(lambda row: None if row[0] and row[4] else surface(row))
    found = searched(world)
    assert found.inferred == TRUE
    assert all((errors is None) == bool(row[0] and row[4]) for row, errors in found.tried.items())
    assert any(errors is None for errors in found.tried.values())
    assert found.effects


def test_the_budget_is_kept_and_says_where_it_ended():
    whole = World()
    searched(whole)
    runs = sum(end - begin for _, begin, end in whole.asked)
    ended = set()
    for total in (10, 60, 150, runs - 1, 2 * runs + 200):
        world = World()
        found = searched(world, total_s=total)
        assert sum(end - begin for _, begin, end in world.asked) <= total
        ended.add(found.ended)
    assert ended >= {"search", ""}


def test_a_small_budget_has_a_small_design_or_none():
    def design(total_s):
        return searched(World(), total_s=total_s).design

    assert design(1e9) == (16, True)
    assert design(100) == (8, False)
    assert design(40) == (0, False)


def test_the_same_seed_gives_the_same():
    assert searched(World()) == searched(World())
    assert searched(World()).effects != searched(World(), seed=2).effects


def test_readings_are_counted_from_the_fixed_one():
    assert replaced(FIXED, 1, 2) == (0, 2, 0, 0, 0, 0)
    assert departures(replaced(TRUE, 0, 1)) == 4


@pytest.mark.parametrize(("seeds", "final_seeds"), [(3, 12), (2, 10), (4, 4)])
def test_the_forecast_is_near_what_is_done(seeds, final_seeds):
    world = World()
    searched(world, seeds=seeds, final_seeds=final_seeds)
    done = sum(end - begin for _, begin, end in world.asked)
    assert expected_seeds(LEVELS, seeds, final_seeds, 1) == pytest.approx(done, rel=0.3)


def test_a_search_that_ends_early_takes_nothing_that_is_not_clearly_better():
    # All readings of the design differ from the fixed one in half of the settings, and no time is left for
    # returning to the fixed reading.
    for salt in range(5):
        found = searched(World(lambda _: 0.3, size=0.05, salt=salt), total_s=70)
        assert found.ended
        assert found.inferred == FIXED
