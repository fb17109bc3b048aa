"""Series are thinned out, but their totals are kept."""

from __future__ import annotations

import numpy as np
import pytest

import aqmlab
from aqmlab.recordings.time_series import run_series


@pytest.mark.parametrize("bins", [600, 40, 7])
def test_thinning_keeps_the_amount_of_data(experiment, bins):
    run = experiment.runs[0]
    (series,) = run_series(experiment.tables, [run], "bottleneck", bins)
    ((sampled, samples),) = experiment.tables.rows(
        "queues", "sum(departures_bytes)::BIGINT, count(*)", "WHERE queue = 'bottleneck' AND t_ns > 0", [run]
    )
    assert len(series.queue.t_s) <= bins
    widths = np.diff(series.queue.t_s, prepend=0.0)
    # The last bin holds the remaining samples.
    widths[-1] = samples * 0.02 - widths[:-1].sum()
    carried = (np.asarray(series.queue.values["departures_bps"]) * widths).sum() / 8
    assert carried == pytest.approx(sampled, rel=1e-9)


def test_series_hold_laws_and_windows_where_there_are_any(experiment):
    firsts = [experiment.runs_of(arm)[0] for arm in experiment.arms]
    droptail, red = run_series(experiment.tables, firsts, "bottleneck")
    assert "avg" not in droptail.law
    assert {"avg", "p"} <= set(red.law)
    assert set(red.cwnd) == {"ftp 0", "ftp 1", "ftp 2", "mean"}
    times, windows = red.cwnd["mean"]
    assert len(times) == len(windows) > 10
    assert min(windows) >= 1


def test_no_point_lies_outside_of_the_run(experiment):
    """A point is drawn at the mean time of its samples, so that none lies beyond the end of the run."""
    first = experiment.runs[0]
    (of_run,) = run_series(experiment.tables, [first], "bottleneck")
    for times, _ in [*of_run.cwnd.values(), *of_run.law.values()]:
        assert min(times) >= 0
        assert max(times) <= first.t1_ns / 1e9


def test_the_average_of_a_law_that_measures_bytes_is_drawn_in_packets(small, tmp_path):
    queue = {"kind": "red", "limit": "30kB", "measure": "bytes", "mean_packet": "500B"}
    small |= {"arm": [{"name": "RED", "topology.queue": queue}], "runs": 1}
    recorded = aqmlab.run(small, output=tmp_path / "bytes", jobs=1)
    (of_run,) = run_series(recorded.tables, recorded.runs, "bottleneck")
    ((in_bytes,),) = recorded.tables.rows("law", "max(value)", "WHERE name = 'avg'")
    assert max(of_run.law["avg"][1]) == pytest.approx(in_bytes / 500)
    assert in_bytes > 500
