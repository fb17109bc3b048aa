"""DualPI2 as a tc command and back, compared with what the kernel's own tests expect."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from aqmlab import read_tc, tc_lines
from aqmlab.errors import UsageError
from aqmlab.tc import NoCounterpartError, dualpi2
from aqmlab.tc.effective import effective

ROOT = Path(__file__).parents[2]
DEFAULT = (
    "dualpi2 limit 10000p target 15ms tupdate 16ms alpha 0.156250 beta 3.195312 step_thresh 1ms"
    " min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect"
    " split_gso"
)


def line_of(**queue):
    topology = {"kind": "dumbbell", "rate": "10Mbit", "delay": "10ms", "queue": {"kind": "dualpi2"} | queue}
    traffic = [{"name": "ftp", "kind": "bulk", "count": 5, "rtt": "80ms"}]
    scenario = {"title": "One queue", "duration": "1s", "topology": topology, "traffic": traffic}
    return next(line for line in tc_lines(scenario) if line.link == "bottleneck")


def test_the_gains_are_those_of_tc_and_the_kernel():
    rows = list(
        csv.DictReader((ROOT / "vectors/rfc/dualpi2/tc.csv").read_text(encoding="utf-8").splitlines())
    )
    assert len(rows) == 2
    for row in rows:
        words = f"dualpi2 max_rtt {row['max_rtt_ms']}ms"
        if row["typical_rtt_ms"]:
            words += f" typical_rtt {row['typical_rtt_ms']}ms"
        times = f"target {row['target_ms']}ms tupdate {row['tupdate_ms']}ms"
        assert f"{times} alpha {row['alpha']} beta {row['beta']}" in read_tc(words).shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        # tools/testing/selftests/tc-testing of Linux 7.3, dualpi2.json
        ("", "step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue"),
        ("", "drop_dequeue classic_protection 10% l4s_ect split_gso"),
        ("any_ect", "any_ect"),
        ("overflow", "overflow"),
        ("drop_enqueue", "drop_enqueue"),
        ("no_split_gso", "no_split_gso"),
        ("step_thresh 3p", "step_thresh 3p"),
        ("min_qlen_step 1", "min_qlen_step 1p"),
        ("coupling_factor 1", "coupling_factor 1"),
        ("classic_protection 0", "classic_protection 0%"),
    ],
)
def test_words_are_shown_as_the_kernels_tests_expect(words, shown):
    read = read_tc(f"tc qdisc add dev eth0 root dualpi2 {words}")
    assert shown in read.shown
    assert effective(read.queue, 10_000_000)["arithmetic"] == "linux"


def test_the_defaults_are_the_preset():
    assert read_tc("dualpi2").shown == DEFAULT
    assert read_tc("dualpi2").queue == {"kind": "dualpi2", "preset": "linux"}
    line = line_of(preset="linux")
    assert line.shown == DEFAULT
    assert line.remarks == ()


def test_shown_gains_are_converted_back():
    read = read_tc(f"qdisc dualpi2 8001: root refcnt 2 {DEFAULT.removeprefix('dualpi2 ')} memlimit 30280000B")
    assert (read.queue["alpha"], read.queue["beta"]) == (41 / 256, 819 / 256)
    assert read.queue["limit"] == "10000p"
    assert dualpi2.NO_MEMORY_LIMIT in read.remarks
    for gain in range(1, 4000):
        assert dualpi2.reported(dualpi2._given_as(dualpi2.reported(gain) / 256)) == dualpi2.reported(gain)


def test_a_queue_to_the_letter_of_the_rfc_differs_from_linux():
    line = line_of()
    assert line.spec.startswith("dualpi2 limit 208 target 15000us tupdate 15000us alpha 0.15")
    remarks = "\n".join(line.remarks)
    for name in ("arithmetic", "coins", "native", "combine", "alpha", "least_left"):
        assert f"`{name}`" in remarks
    assert "`max_rtt`" not in remarks


def test_a_step_in_packets_survives_the_round_trip():
    line = line_of(preset="linux", native="step_packets", step_packets=7, decide="enqueue")
    read = read_tc(line.spec)
    assert read.queue["step_packets"] == 7
    assert read.queue["decide"] == "enqueue"
    assert line.remarks == ()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("typical_rtt 300ms max_rtt 200ms", "exceeds `max_rtt`"),
        ("max_rtt 300s", "too long"),
        ("classic_protection 101%", "not a percentage"),
        ("alpha x", "not a gain"),
        ("sojourn 3", "is not an option"),
    ],
)
def test_what_tc_refuses_is_refused(words, message):
    with pytest.raises(UsageError, match=message) as error:
        read_tc(f"dualpi2 {words}")
    assert not isinstance(error.value, NoCounterpartError)


def test_round_trip_times_replace_other_words():
    read = read_tc("dualpi2 max_rtt 100ms target 5ms")
    assert any("ignores `target`" in remark for remark in read.remarks)
