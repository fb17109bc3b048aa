"""Shapers that are adjusted: the recording, the figure with its numbers, and the doubt about goodput."""

from __future__ import annotations

from pathlib import Path

import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.figures.autorate import autorate, autorate_rows
from aqmlab.figures.model import Line
from aqmlab.figures.view import View
from aqmlab.results.results import Results
from aqmlab.soundness.carried import no_more_than_carried

SCENARIO = """
duration = "40s"
warmup = "5s"
[topology]
kind = "parking_lot"
hops = 2
rate = "1Gbit"
delay = "1ms"
reverse_rate = "100Mbit"
queue = { kind = "droptail", limit = "1000p" }
[topology.hop2]
rate = [["0s", "12Mbit"], ["15s", "3Mbit"]]
delay = "20ms"
[[traffic]]
name = "upload"
kind = "bulk"
count = 4
rtt = "60ms"
tcp = { profile = "linux", congestion = "cubic" }
[[traffic]]
name = "ping"
kind = "cbr"
count = 6
rate = "2240bit"
size = "84B"
start = { uniform = ["0s", "300ms"] }
rtt = "60ms"
[[arm]]
name = "adjusted"
"topology.hop1.queue" = { kind = "cake", bandwidth = "12Mbit" }
"topology.hop1.autorate" = { reflector = "ping", min = "1Mbit", max = "20Mbit" }
[[arm]]
name = "constant"
"topology.hop1.queue" = { kind = "cake", bandwidth = "12Mbit" }
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("autorate")
    (folder / "s.toml").write_text(SCENARIO)
    return aqmlab.run(folder / "s.toml", output=folder / "out")


def _lines(results: Results, view: View) -> dict[str, Line]:
    figure = autorate(results, view, "hop2")
    marks = [mark for panel in figure.panels for mark in panel.marks]
    return {mark.name: mark for mark in marks if isinstance(mark, Line) and mark.name}


def test_the_shaper_follows_the_link_and_delay_stays_short(results: Results) -> None:
    lines = _lines(results, View())
    capacity, shaper = lines["hop2: capacity"], lines["shaper"]
    assert {round(rate, 6) for rate in capacity.y} == {12.0, 3.0}
    late = [rate for at, rate in zip(shaper.x, shaper.y, strict=True) if at > 20]
    assert max(late) < 4.0
    assert min(late) > 1.0
    delays, baselines = lines["delay of reflectors"], lines["baseline"]
    assert len(delays.y) == len(baselines.y) == len(shaper.y) > 700
    # Half of the round-trip time, and the transmission of 84 bytes at 12 Mbit/s.
    assert 30.05 < min(delays.y) < 30.1
    adjusted, constant = (
        results.values("queueing_delay_mean_s", cell, aqmlab.Scope(queue="hop2"))[1] for cell in results.cells
    )
    assert adjusted is not None
    assert constant is not None
    assert adjusted < constant / 4


def test_its_numbers_are_those_of_the_table(results: Results) -> None:
    rows = list(autorate_rows(results, View(), "hop2"))
    assert rows[0][:3] == ("arm", "t_ns", "reflector")
    assert {row[0] for row in rows[1:]} == {"adjusted"}
    assert {row[6] for row in rows[1:]} >= {"increase", "decrease", "hold"}
    assert all(1_000_000 <= row[-1] <= 20_000_000 for row in rows[1:])


def test_without_a_controller_there_is_no_figure(results: Results) -> None:
    with pytest.raises(UsageError, match="write `autorate` for a link"):
        autorate(results, View(arms=("constant",)), "hop2")


def test_what_a_link_sent_just_before_the_interval_is_no_doubt(results: Results, tmp_path: Path) -> None:
    """The rate falls at the end of the warm-up, so that more is in flight than the mean rate allows."""
    assert no_more_than_carried(results).doubts == ()
    text = SCENARIO.replace('["15s", "3Mbit"]', '["5s", "300kbit"]').split("[[arm]]")[0]
    (tmp_path / "s.toml").write_text(text)
    fallen = aqmlab.run(tmp_path / "s.toml", output=tmp_path / "out")
    assert no_more_than_carried(fallen).doubts == ()
