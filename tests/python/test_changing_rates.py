"""Links whose rate changes: metrics by hand, doubts, exports and figures."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.kinds import KINDS
from aqmlab.figures.over_time import quantities, series
from aqmlab.figures.view import View
from aqmlab.metrics import Scope, Window, find
from aqmlab.soundness import examine

MBIT = 10**6
STEPS = [["0s", "4Mbit"], ["3s", "1Mbit"], ["4s", "0bit"], ["5s", "2Mbit"]]
"""The rate; the measured interval is from 2 s to 6 s."""


def scenario(rate, **more):
    """A stream that always fills the queue of 20 packets of 1000 B."""
    return {
        "duration": "6s",
        "warmup": "2s",
        "runs": 1,
        "topology": {
            "kind": "dumbbell",
            "rate": rate,
            "reverse_rate": "10Mbit",
            "delay": "5ms",
            "access_rate": "none",
            "queue": {"kind": "droptail", "limit": "20p"},
        },
        "traffic": [{"name": "cbr", "kind": "cbr", "rate": "20Mbit", "size": "1kB"}],
        "record": {"queues": "100ms", "flows": "100ms"},
        **more,
    }


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return aqmlab.run(scenario(STEPS), output=tmp_path_factory.mktemp("steps") / "run", report=False)


def of(results, name, window=None, **parameters):
    (measured,) = results.measured()
    return find(name).compute(measured, Scope("bottleneck", "*", window, parameters))


def test_the_capacity_is_the_integral_of_the_rate(steps):
    (run,) = steps.runs
    # 1 s at 4, 1 s at 1 and 1 s at 2 Mbit/s in 4 s; over the run, two seconds more at 4 Mbit/s.
    assert run.rate_bps("bottleneck") == 7 * MBIT / 4
    assert run.plan.link("bottleneck").rate_bps == 15 * MBIT / 6
    assert run.plan.link("bottleneck").changes["kind"] == "steps"
    assert run.changes("bottleneck")
    assert not run.changes("reverse")


def test_a_full_queue_uses_all_of_it(steps):
    assert of(steps, "utilisation_percent") == pytest.approx(100, abs=0.01)
    assert of(steps, "goodput_efficiency_percent") == pytest.approx(100, abs=0.5)
    assert of(steps, "utilisation_percent", Window(2.5, 3.5)) == pytest.approx(100, abs=0.5)
    assert of(steps, "idle_bins_percent") == 0
    # Nothing can be sent in this window.
    assert of(steps, "utilisation_percent", Window(4.1, 4.9)) is None


def test_delay_by_capacity_of_a_full_queue_is_its_delay(steps):
    # By Little's law, 20 packets wait at 1.75 Mbit/s on average, in time as in capacity.
    for name in ("queueing_delay_by_capacity_s", "queueing_delay_mean_s"):
        assert of(steps, name) == pytest.approx(20 * 8e-3 / 1.75, rel=0.02)
    constant = aqmlab.run(scenario("2Mbit"), report=False)
    assert of(constant, "queueing_delay_by_capacity_s") is None


def test_delay_by_capacity_leaves_out_what_a_standstill_adds():
    """62.5 packets arrive per second. Those of a second without a link wait, and leave at 500 per second."""
    rate = {"kind": "stalls", "rate": "4Mbit", "every": "2s", "lasts": "1s", "first": "1s"}
    stream = [{"name": "cbr", "kind": "cbr", "rate": "500kbit", "size": "1kB"}]
    asked = scenario(rate, duration="22s", traffic=stream)
    asked["topology"]["queue"] = {"kind": "droptail", "limit": "200p"}
    made = aqmlab.run(asked, report=False)
    standing, draining = 62.5 / 2, 62.5**2 / (500 - 62.5) / 2
    assert of(made, "queueing_delay_mean_s") == pytest.approx((standing + draining) / 125, rel=0.03)
    # While the link stands still, nothing could have been sent; then twice the mean rate.
    assert of(made, "queueing_delay_by_capacity_s") == pytest.approx(2 * draining / 125, rel=0.03)


def test_a_measured_capacity_far_from_the_planned_one_is_doubted(steps):
    (check,) = [check for check in examine(steps) if check.kind == "capacity"]
    (doubt,) = check.doubts
    assert "had 1.75Mbit in the measured interval of seed 1, 30 % below the mean of 2.5Mbit" in doubt.sentence
    constant = aqmlab.run(scenario("2Mbit"), report=False)
    (check,) = [check for check in examine(constant) if check.kind == "capacity"]
    assert (check.doubts, check.finding) == ((), "no rate changes")


def test_a_figure_of_rates_shows_the_capacity(steps):
    figure = quantities(steps, "bottleneck", ["rates", "queue"], [], View())
    lines = {mark.name: mark for panel in figure.panels for mark in panel.marks if getattr(mark, "name", "")}
    capacity = dict(zip(np.round(lines["capacity"].x, 3), lines["capacity"].y, strict=True))
    assert [capacity[t] for t in (1.0, 3.0, 3.1, 4.0, 4.5, 5.5)] == [4, 4, 1, 1, 0, 2]


def test_series_show_the_rate_and_how_long_what_waits_will_take(steps):
    figure = series(steps, View(from_s=2.0, until_s=6.0), "bottleneck")
    rate, backlog, draining = (
        {mark.name: mark for mark in panel.marks if getattr(mark, "name", "")} for panel in figure.panels
    )
    drawn = draining["time to send what waits"]
    wait = dict(zip(np.round(drawn.x, 3), drawn.y, strict=True))
    # The queue is full: 20 kB. At 3.5 s, the link sends 62.5 kB before it stops.
    assert wait[2.5] == pytest.approx(40, abs=1)
    assert wait[3.5] == pytest.approx(160, abs=1)
    assert wait[4.5] == pytest.approx(500 + 80, abs=1)
    assert list(rate) == ["departures", "rate of the link"]
    assert "backlog" in backlog
    constant = series(aqmlab.run(scenario("2Mbit"), report=False), View(), "bottleneck")
    assert [panel.y.label for panel in constant.panels] == ["backlog [packets]"]


def test_series_of_a_sweep_show_one_case(tmp_path):
    asked = scenario("2Mbit", sweep={"topology.rate": ["2Mbit", "4Mbit"]})
    swept = aqmlab.sweep(asked, store=tmp_path, report=False).wait()
    shown = series(swept, View(where={"rate": "4Mbit"}), None)
    assert shown.title == "<dict>: bottleneck, rate 4Mbit, seed 1"
    (panel,) = shown.panels
    (backlog,) = [mark for mark in panel.marks if getattr(mark, "name", "") == "backlog"]
    assert max(backlog.y) == 20
    assert series(swept, View(), None).title == "<dict>: bottleneck, rate 2Mbit, seed 1"
    with pytest.raises(UsageError, match="did you mean `4Mbit`"):
        series(swept, View(where={"rate": "5Mbit"}), None)


def test_delay_against_capacity(steps):
    kind = KINDS["delay-capacity"]
    names, *rows = kind.rows(steps, View(), "bottleneck")
    assert names == ("arm", "rate_mbit_s", "median_ms", "p90_ms")
    values = [tuple(map(float, row[1:])) for row in rows]
    assert len(values) == 10
    # A quarter of the time each: no rate, 1, 2 and 4 Mbit/s. 20 kB take 80 ms at 2 Mbit/s.
    assert values[0][0] == 0
    assert values[-1][:2] == pytest.approx((4, 40), abs=1)
    # At the end of the second at 4 Mbit/s, what waits takes 160 ms at 1 Mbit/s.
    assert values[-1][2] == pytest.approx(160, abs=1)
    assert values[6] == pytest.approx((2, 80, 80), abs=2)
    assert [panel.y.log for panel in kind.make(steps, View(), "bottleneck").panels] == [True]
    with pytest.raises(UsageError, match="leave out `--from`"):
        kind.make(steps, View(from_s=1.0), "bottleneck")
    with pytest.raises(UsageError, match="the rate of `bottleneck` does not change"):
        kind.make(aqmlab.run(scenario("2Mbit"), report=False), View(), "bottleneck")


def test_a_ping_of_flent_waits_for_the_capacity_to_come(tmp_path):
    flows = {"traffic": [{"name": "ftp", "kind": "bulk", "rtt": "40ms", "count": 2}]}
    asked = scenario(STEPS, **flows)
    asked["topology"]["access_rate"] = "100Mbit"
    made = aqmlab.run(asked, output=tmp_path / "run", report=False)
    (file,) = aqmlab.export(made.path, "flent", tmp_path / "flent")
    content = json.loads(gzip.decompress(file.read_bytes()))
    times = np.array(content["x_values"])
    ping = np.array(content["results"]["Ping (ms) ICMP"], dtype=float)
    at = {round(t, 1): p for t, p in zip(times, ping, strict=True)}
    # From the sample at 4.2 s, nothing leaves until 5 s.
    assert at[4.2] - at[4.7] == pytest.approx(500, abs=30)
    assert at[4.2] > 40 + 800


def test_chances_of_mahimahi_by_hand(tmp_path):
    """Two chances of 1500 B every 10 ms, whatever the packets: 2.4 Mbit/s."""
    (tmp_path / "cell.down").write_text("5\n10\n")
    file = tmp_path / "cell.toml"
    import tomli_w

    rate = {"kind": "mahimahi", "file": "cell.down", "at_end": "repeat"}
    file.write_text(tomli_w.dumps(scenario(rate)))
    made = aqmlab.run(file, output=tmp_path / "run", report=False)
    (run,) = made.runs
    assert run.rate_bps("bottleneck") == 2.4 * MBIT
    assert of(made, "throughput_bps") == pytest.approx(2.4 * MBIT, rel=1e-3)
    assert of(made, "utilisation_percent") == pytest.approx(100, abs=0.1)
    assert of(made, "queueing_delay_mean_s") == pytest.approx(20 * 8000 / 2.4e6, rel=0.05)


def test_what_was_on_its_way_before_a_fall_of_the_rate_may_come_on_top(tmp_path):
    # 50 ms of 4 Mbit/s are 25 kB, which arrive while the queue sends 50 kB at 0.1 Mbit/s.
    falling = scenario([["0s", "4Mbit"], ["2s", "100kbit"]])
    falling["topology"]["delay"] = "50ms"
    results = aqmlab.run(falling, output=tmp_path / "run", report=False)
    (measured,) = results.measured()
    sent = measured.queues["bottleneck", "cbr"]["departures_bytes"]
    assert of(results, "goodput_bps") * 4 / 8 == pytest.approx(sent + 25_000, abs=2000)
    (check,) = [check for check in examine(results) if check.kind == "carried"]
    assert check.doubts == ()
