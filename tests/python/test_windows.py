"""Metrics for a part of the run, and metrics whose thresholds the query sets."""

import math

import pytest

from aqmlab.errors import UsageError
from aqmlab.metrics import Measured, Metric, Parameter, Scope, Window, all_metrics, find
from aqmlab.metrics.scope import QUEUE, WINDOW


def backlog_above(run: Measured, queue: str, window: Window, *, level: float | None) -> float:
    """Share of the window's samples above a level; without a level, above their mean."""
    values = run.samples("queues", "backlog_packets", queue).within(window).values
    return float((values > (values.mean() if level is None else level)).mean())


METRIC = Metric(
    *("above", "above", "", "a share", "a test", ""),
    code=backlog_above,
    takes=QUEUE | WINDOW,
    parameters=(Parameter("level", "packets", "or"),),
)


@pytest.fixture(scope="module")
def run(experiment):
    return experiment.measured()[0]


def test_without_a_window_it_is_the_measured_interval(run):
    assert run.window == (1.0, 6.0)
    assert run.window.length_s == 5.0
    assert METRIC.compute(run, Scope("bottleneck")) == METRIC.compute(
        run, Scope("bottleneck", "*", Window(1.0, 6.0))
    )


def test_a_window_has_the_samples_after_its_begin_up_to_its_end(run):
    samples = run.samples("queues", "backlog_packets", "bottleneck")
    chosen = samples.within(Window(2.0, 3.0))
    assert len(chosen.t_s) == 50  # one each 20 ms
    assert chosen.t_s[0] == pytest.approx(2.02)
    assert chosen.t_s[-1] == pytest.approx(3.0)
    halves = [samples.within(Window(*ends)) for ends in ((2.0, 2.5), (2.5, 3.0))]
    assert [*halves[0].values, *halves[1].values] == list(chosen.values)


def test_windows_side_by_side_share_no_sample_however_times_are_rounded(run):
    samples = run.samples("queues", "backlog_packets", "bottleneck")
    counts = [len(samples.within(Window(k * 0.02, (k + 1) * 0.02)).t_s) for k in range(300)]
    assert counts == [1] * 300


def test_a_parameter_reaches_the_definition(run):
    assert METRIC.compute(run, Scope("bottleneck", "*", None, {"level": -1.0})) == 1.0
    assert METRIC.compute(run, Scope("bottleneck", "*", None, {"level": math.inf})) == 0.0
    assert 0.0 < METRIC.compute(run, Scope("bottleneck")) < 1.0


def test_nothing_is_defined_beyond_the_end(run):
    assert METRIC.compute(run, Scope("bottleneck", "*", Window(5.0, 6.0))) is not None
    assert METRIC.compute(run, Scope("bottleneck", "*", Window(5.0, 6.1))) is None


@pytest.mark.parametrize(
    "window", [Window(3.0, 3.0), Window(4.0, 3.0), Window(-1.0, 3.0), Window(1, math.nan)]
)
def test_what_is_no_window_is_refused(run, window):
    with pytest.raises(UsageError, match="is not a window of a run"):
        METRIC.compute(run, Scope("bottleneck", "*", window))


def test_a_metric_of_exact_counts_takes_no_window(run):
    with pytest.raises(UsageError, match="`hurst` covers the measured interval; it accepts no window"):
        find("hurst").compute(run, Scope("bottleneck", "*", Window(1.0, 2.0)))


def test_an_unknown_parameter_is_answered_with_the_nearest(run):
    with pytest.raises(UsageError, match="no parameter of `above` `levels`; did you mean `level`"):
        METRIC.compute(run, Scope("bottleneck", "*", None, {"levels": 1.0}))
    with pytest.raises(UsageError, match="no parameter of `hurst` `low`; known: none"):
        find("hurst").compute(run, Scope("bottleneck", "*", None, {"low": 1.0}))


def test_every_metric_can_be_had_without_a_parameter(run):
    for metric in all_metrics():
        value = metric.compute(run, Scope("bottleneck"))
        assert value is None or math.isfinite(value)
        assert all(parameter.definition for parameter in metric.parameters)
