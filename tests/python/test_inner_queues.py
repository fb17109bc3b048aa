"""The inner queues of a port with classes have books and metrics, and none counts as the bottleneck."""

from __future__ import annotations

import pytest

import aqmlab
from aqmlab.results.answers import answer
from aqmlab.results.results import bottleneck

SCENARIO = """
duration = "6s"
warmup = "1s"
[topology]
kind = "dumbbell"
rate = "4Mbit"
delay = "10ms"
[topology.queue]
kind = "classes"
[[topology.queue.class]]
name = "voice"
traffic = ["voice"]
weight = 3
queue = { kind = "policer", rate = "1Mbit", burst = "5kB", queue = "droptail" }
[[topology.queue.class]]
name = "rest"
queue = { kind = "red", limit = "40p" }
[[traffic]]
name = "voice"
kind = "cbr"
rate = "2Mbit"
size = "500B"
rtt = "40ms"
dscp = "EF"
[[traffic]]
name = "ftp"
kind = "bulk"
count = 4
rtt = "60ms"
[[arm]]
name = "classes"
[[arm]]
name = "one queue"
topology.queue = { kind = "red", limit = "40p" }
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inner")
    file = folder / "inner.toml"
    file.write_text(SCENARIO)
    return aqmlab.run(file, output=folder / "out", report=False)


def test_inner_queues_have_books_of_their_own(experiment):
    (run,) = [run for run in experiment.measured() if run.run.arm == "classes"]
    whole = run.queues["bottleneck", "*"]
    inner = [run.queues[f"bottleneck/{name}", "*"] for name in ("voice", "rest")]
    assert whole["arrivals_packets"] == sum(totals["arrivals_packets"] for totals in inner)
    assert whole.sum_over_reasons("dropped") == sum(totals.sum_over_reasons("dropped") for totals in inner)
    assert whole.has_link
    assert not any(totals.has_link for totals in inner)
    # The class sends 500 packets per second (2 Mbit/s). Half of these conform (1 Mbit/s), and so do the
    # packets of the burst.
    voice = inner[0]
    assert voice["departures_bytes"] == pytest.approx(5 * 1e6 / 8, rel=0.02)
    assert voice["dropped_forced_packets"] == pytest.approx(5 * 250, rel=0.02)


def test_metrics_take_the_name_of_an_inner_queue(experiment):
    results = answer(experiment, queue="bottleneck/voice")
    drops = results.estimate("classes", "drop_percent")
    assert drops is not None
    assert drops.mean == pytest.approx(50, abs=1)
    assert results.estimate("one queue", "drop_percent") is None
    assert results.estimate("classes", "utilisation_percent") is None


def test_an_inner_queue_is_no_bottleneck(experiment):
    assert bottleneck(experiment.measured()) == "bottleneck"
