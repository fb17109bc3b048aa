"""Error, settling time and spread: metrics of control laws, tested on series whose answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aqmlab
from aqmlab.metrics import Samples
from aqmlab.metrics.settling import coefficient_of_variation, moving_mean, reach_time, settling_time

STEP_S = 0.1


def series(*pieces):
    """A series of constant pieces (seconds, value), sampled ten times per second, starting at 0.1 s."""
    values = np.concatenate([np.full(round(seconds / STEP_S), float(value)) for seconds, value in pieces])
    return Samples(np.arange(1, len(values) + 1) * STEP_S, values)


def test_the_moving_mean_is_that_of_the_last_ten_seconds():
    means = moving_mean(series((10, 0), (10, 100)))
    assert means.t_s[0] == pytest.approx(10)
    assert means.t_s[-1] == pytest.approx(20)
    assert means.values == pytest.approx(10 * (means.t_s - 10))


def test_a_step_settles_when_the_mean_has_come_into_the_band():
    # The series steps from 0 to 100 at 50 s, so the mean over 10 s reaches 80 after eight more seconds.
    step = series((50, 0), (150, 100))
    assert reach_time(step, 100) == pytest.approx(58)
    assert settling_time(step, 100) == pytest.approx(58)
    assert settling_time(step, 100, band=0.1) == pytest.approx(59)
    # From above, the mean enters the band at 120.
    assert settling_time(series((50, 200), (150, 100)), 100) == pytest.approx(58)


def test_what_has_always_been_there_settles_with_the_first_window():
    assert settling_time(series((100, 100)), 100) == pytest.approx(10)


def test_what_comes_and_goes_is_reached_but_not_settled():
    square = series(*[(40, value) for value in (0, 100) * 5])
    assert reach_time(square, 100) == pytest.approx(48)
    assert settling_time(square, 100) is None


def test_an_offset_beyond_the_band_never_settles():
    assert settling_time(series((600, 121)), 100) is None
    assert settling_time(series((600, 119)), 100) == pytest.approx(10)
    assert reach_time(series((600, 79)), 100) is None


def test_a_visit_at_the_end_is_not_settling():
    # The mean is in the band from 58 s on, and must stay there for a minute.
    assert settling_time(series((50, 0), (67.9, 100)), 100) is None
    assert settling_time(series((50, 0), (68, 100)), 100) == pytest.approx(58)


def test_noise_within_the_band_does_not_unsettle():
    noise = np.random.default_rng(1).normal(0, 40, 6000)
    step = series((50, 0), (550, 100))
    settled = settling_time(Samples(step.t_s, step.values + noise), 100)
    assert settled == pytest.approx(58, abs=1)


@pytest.mark.parametrize("pieces", [[], [(5, 100)]])
def test_less_than_a_window_says_nothing(pieces):
    samples = series(*pieces) if pieces else Samples(np.zeros(0), np.zeros(0))
    assert reach_time(samples, 100) is None
    assert settling_time(samples, 100) is None


def test_the_spread_is_over_bins_of_a_second_of_the_second_part():
    # The values 1 and 3 alternate every second: mean 2, standard deviation 1. Earlier values do not count.
    turns = series((10, 50), *[(1, value) for value in (1, 3) * 5])
    assert coefficient_of_variation(turns, 10) == pytest.approx(0.5)
    # Changes within a second are averaged out.
    quick = series((10, 50), *[(0.5, value) for value in (1, 3) * 10])
    assert coefficient_of_variation(quick, 10) == pytest.approx(0)
    assert coefficient_of_variation(series((20, 0)), 10) is None
    assert coefficient_of_variation(series((10, 1)), 10) is None


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    scenario = {
        "title": "one law each",
        "duration": "40s",
        "warmup": "10s",
        "runs": 2,
        "topology": {"kind": "dumbbell", "rate": "2Mbit", "delay": "10ms", "access_rate": "100Mbit"},
        "traffic": [{"name": "ftp", "kind": "bulk", "count": 4, "rtt": "60ms"}],
        "arm": [
            {"name": "PI", "topology.queue": {"kind": "pi", "q_ref": "20p", "gains": "auto"}},
            {"name": "bytes", "topology.queue": {"kind": "pi", "q_ref": "20kB", "measure": "bytes"}},
            {"name": "BLUE", "topology.queue": {"kind": "blue", "limit": "20p"}},
            {"name": "DropTail", "topology.queue": {"kind": "droptail", "limit": "20p"}},
        ],
    }
    return aqmlab.run(scenario, output=tmp_path_factory.mktemp("laws") / "laws", report=False)


NAMES = [
    "backlog_error_percent",
    "backlog_reach_s",
    "backlog_settling_s",
    "probability_spread_percent",
    "backlog_mean_packets",
]


def test_they_are_read_from_recordings(experiment):
    table = aqmlab.answer(experiment, metrics=NAMES)
    of_pi = {name: table.by_seed("PI", name) for name in NAMES}
    for seed in (1, 2):
        error = 100 * (of_pi["backlog_mean_packets"][seed] - 20) / 20
        assert of_pi["backlog_error_percent"][seed] == pytest.approx(error)
        assert 10 <= of_pi["backlog_reach_s"][seed] <= 40
        assert of_pi["backlog_settling_s"][seed] is None, "40 s are less than the minute that it must hold"
        assert table.by_seed("BLUE", "probability_spread_percent")[seed] > 0


def test_without_a_target_in_packets_or_a_probability_there_is_nothing_to_say(experiment):
    table = aqmlab.answer(experiment, metrics=NAMES)
    for arm, names in [("DropTail", NAMES[:4]), ("BLUE", NAMES[:3]), ("bytes", NAMES[:3])]:
        assert all(value is None for name in names for value in table.by_seed(arm, name).values()), arm


def test_a_figure_that_some_seeds_lack_says_so(experiment):
    table = aqmlab.answer(experiment, metrics=NAMES)
    table.by_seed("PI", "backlog_settling_s")[1] = 12.0
    assert table.defined_in("PI", "backlog_settling_s") == "1 of 2"
    assert table.defined_in("PI", "backlog_reach_s") == ""
    assert table.defined_in("BLUE", "backlog_settling_s") == ""


def test_the_ready_made_scenario_has_the_arms_that_the_documentation_speaks_of():
    shown = aqmlab.show(Path(__file__).parents[2] / "scenarios" / "laws.toml")
    names = [arm["name"] for arm in shown["arms"]]
    assert names == ["PI auto", "PI published", "REM published", "BLUE", "BLUE, a quarter of the buffer"]
