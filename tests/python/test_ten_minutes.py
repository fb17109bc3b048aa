"""The control laws over ten minutes (`scenarios/laws.toml`): predictions of theory and papers."""

from __future__ import annotations

from pathlib import Path

import pytest

import aqmlab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "laws.toml"
BLUES = ["BLUE", "BLUE, a quarter of the buffer"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def laws(tmp_path_factory):
    return aqmlab.run(SCENARIO, output=tmp_path_factory.mktemp("laws") / "laws", jobs=2, report=False)


@pytest.fixture(scope="module")
def answer(laws):
    metrics = ["backlog_error_percent", "backlog_settling_s", "probability_spread_percent"]
    return aqmlab.answer(laws, metrics=metrics)


@pytest.mark.parametrize("arm", ["PI auto", "PI published"])
def test_pi_holds_the_mean_queue_at_q_ref(answer, arm):
    # The integrator leaves no error unless the probability is clamped. A tolerance of 10 % would do, but the
    # errors are in fact below 1 %.
    errors = answer.by_seed(arm, "backlog_error_percent")
    assert len(errors) == 10
    assert all(abs(error) < 1 for error in errors.values()), errors


@pytest.mark.parametrize("arm", ["PI auto", "PI published"])
def test_pi_settles_within_the_warm_up_in_every_run(answer, arm):
    settled = answer.estimate(arm, "backlog_settling_s")
    assert settled.n == 10
    assert settled.high < 60


def test_rem_stands_above_its_target_by_what_the_link_does_not_send(laws, answer):
    # In a steady state, the price is constant: alpha (b - b*) + x - c = 0 on average, per period. A queue
    # that is sometimes empty leaves capacity unused, x < c, so b is above b*.
    alpha, target, period_s, capacity_pps = 0.1, 20, 0.002, 15e6 / (8 * 500)
    for run in laws.measured():
        if run.run.arm != "REM published":
            continue
        totals = run.queues["bottleneck", "*"]
        arrivals_pps = totals["arrivals_packets"] / run.interval_s
        expected = target + (capacity_pps - arrivals_pps) * period_s / alpha
        mean = totals["backlog_packets_integral_ns"] / run.interval_ns
        assert mean == pytest.approx(expected, rel=0.02)
        assert mean > 1.15 * target
    assert answer.estimate("REM published", "backlog_settling_s") is None, "20 % are four packets"


def test_blue_finds_its_probability(answer):
    calm = answer.by_seed("BLUE", "probability_spread_percent")
    assert len(calm) == 10
    assert all(spread <= 20 for spread in calm.values()), calm


def test_blue_is_less_calm_with_less_room(answer):
    more = answer.difference(BLUES[1], BLUES[0], "probability_spread_percent")
    # The limit of 20 % is not asserted here because, with this buffer, the mean is just below it, 19.0 +-
    # 1.1.
    assert more.low > 0
