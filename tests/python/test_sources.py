"""On/off sources: self-similar as predicted by theory, and like ns-2's generators."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.metrics.scaling import variance_time

ROOT = Path(__file__).parents[2]


def fractional_noise(hurst, n, rng):
    """Exact fractional Gaussian noise, by circulant embedding (Davies and Harte 1987)."""
    k = np.arange(n + 1.0)
    covariance = ((k + 1) ** (2 * hurst) - 2 * k ** (2 * hurst) + np.abs(k - 1) ** (2 * hurst)) / 2
    eigenvalues = np.fft.rfft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    white = rng.normal(size=(2, n + 1))
    white[1, [0, -1]] = 0
    scale = np.where((k == 0) | (k == n), 1.0, math.sqrt(0.5))
    spectrum = (white[0] + 1j * white[1]) * scale * np.sqrt(np.maximum(eigenvalues, 0) * 2 * n)
    return np.fft.irfft(spectrum, 2 * n)[:n]


@pytest.mark.parametrize("hurst", [0.5, 0.6, 0.75, 0.85])
def test_the_hurst_parameter_of_noise_that_is_known(hurst):
    rng = np.random.default_rng(1)
    found = [variance_time(100 + fractional_noise(hurst, 1 << 15, rng), 0.1).hurst for _ in range(40)]
    error = 4 * np.std(found, ddof=1) / math.sqrt(len(found))
    # The estimator is biased downwards, never upwards: block means are correlated, so the overall mean moves
    # with them.
    bias = -0.045 if hurst > 0.7 else -0.025
    assert bias - error < np.mean(found) - hurst < error


def test_a_variance_time_plot_by_hand():
    # 800 counts give blocks of 2 to 40. Pairs of 0, 4, 0, 4, ... have a mean of 2 each, so only blocks of odd
    # length vary.
    plot = variance_time(np.tile([0.0, 4.0], 400), 0.5)
    assert plot.scale_s[0] == 1.0
    assert plot.scale_s[-1] == 20.0
    assert plot.variance[0] == 0.0
    # Blocks of 3 have alternating means of 4/3 and 8/3, 133 of each: (2/3)^2 n / (n - 1), divided by the
    # squared mean.
    assert plot.variance[1] == pytest.approx((2 / 3) ** 2 * 266 / 265 / 4)
    assert variance_time(np.ones(800), 0.5) is None
    assert variance_time(np.arange(399.0), 0.5) is None


SHORT = {
    "title": "at $5 and $6",
    "duration": "50s",
    "topology": {"kind": "dumbbell", "rate": "10Mbit", "delay": "0ms", "access_rate": "none"},
    "traffic": [
        {
            "name": "sources",
            "kind": "on_off_udp",
            "count": 20,
            "rate": "8kbit",
            "size": "100B",
            "on": {"pareto": "500ms", "shape": 1.5},
            "off": "500ms",
        }
    ],
    "record": {"queues": "100ms", "flows": "0s"},
}


def test_a_recording_has_its_hurst_parameter_and_its_figure(tmp_path):
    experiment = aqmlab.run(SHORT, output=tmp_path / "short", report=False)
    values = aqmlab.answer(experiment, metrics=["hurst"]).by_seed("main", "hurst")
    assert 0 < values[1] < 1.2
    drawn = aqmlab.plot(experiment.path, "variance-time", tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "scale [s]" in drawn
    assert "at $5 and $6" in drawn
    assert "math" not in drawn  # labels of logarithmic axes are plain text too
    assert f"H = {values[1]:.2f}"[:7] in drawn


def test_too_few_samples_have_no_hurst_parameter(tmp_path):
    coarse = SHORT | {"record": {"queues": "1s", "flows": "0s"}}
    experiment = aqmlab.run(coarse, output=tmp_path / "coarse", report=False)
    assert aqmlab.answer(experiment, metrics=["hurst"]).by_seed("main", "hurst")[1] is None
    with pytest.raises(UsageError, match="400 samples"):
        aqmlab.plot(experiment.path, "variance-time", tmp_path / "figure.svg")


@pytest.mark.slow
def test_heavy_tailed_sources_make_self_similar_input(tmp_path):
    scenario = ROOT / "scenarios" / "self_similar.toml"
    table = aqmlab.answer(
        aqmlab.run(scenario, output=tmp_path / "runs", jobs=2, report=False), metrics=["hurst"]
    )
    pareto, exponential = (table.estimate(arm, "hurst") for arm in ("Pareto", "exponential"))
    assert pareto.n == exponential.n == 10
    # Theory predicts (3 - 1.5) / 2 = 0.75; the whole interval lies within 0.05 of it.
    assert pareto.low > 0.70, pareto
    assert pareto.high < 0.80, pareto
    assert exponential.low < 0.5 < exponential.high, exponential


def ours(kind, times, tmp_path):
    """The number of packets that each of 1000 sources sends between two times."""
    period = {"exponential": "500ms"} if kind == "Exponential" else {"pareto": "500ms", "shape": 1.5}
    source = {"kind": "on_off_udp", "name": "x", "count": 1000, "rate": "80kbit", "size": "200B"}
    scenario = {
        "warmup": f"{times[0]}s",
        "duration": f"{times[1]}s",
        "topology": {"kind": "dumbbell", "rate": "10Gbit", "delay": "0ms", "access_rate": "none"},
        "traffic": [source | {"on": period, "off": period, "begin": "off"}],
        "record": {"queues": "0s", "flows": "0s"},
    }
    experiment = aqmlab.run(scenario, output=tmp_path / f"{kind}-{times[1]}", report=False)
    return np.array([flow.measured_sent_bytes / 200 for flow in experiment.measured()[0].flows])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (the command ns) is not installed")
@pytest.mark.parametrize("kind", ["Exponential", "Pareto"])
def test_counts_are_distributed_as_those_of_ns2(kind, tmp_path):
    moments = (20, 21, 30)
    command = ["ns", str(Path(__file__).parent / "ns2" / "on_off.tcl"), kind, "1000", *map(str, moments)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    by_time = np.array([line.split() for line in printed.splitlines()], dtype=float)
    for i, moment in enumerate(moments[1:], start=1):
        theirs, mine = by_time[i] - by_time[0], ours(kind, (moments[0], moment), tmp_path)
        # The mean is half of 50 packets per second on both sides, to within four standard errors of the
        # difference.
        errors = [counts.std(ddof=1) / math.sqrt(len(counts)) for counts in (theirs, mine)]
        assert abs(theirs.mean() - mine.mean()) < 4 * math.hypot(*errors)
        # The variances are compared in the same way; their standard error follows from the fourth moment.
        spread = [math.sqrt((np.mean((c - c.mean()) ** 4) - c.var() ** 2) / len(c)) for c in (theirs, mine)]
        assert abs(theirs.var(ddof=1) - mine.var(ddof=1)) < 4 * math.hypot(*spread)
