"""Queues converted to tc commands and back, compared with the options that tc itself sends to the kernel."""

from __future__ import annotations

import json
import re
from math import log2
from pathlib import Path
from typing import Any

import pytest

from aqmlab import aqm_list, read_tc, tc_lines
from aqmlab.errors import UsageError
from aqmlab.tc.effective import effective
from aqmlab.tc.line import NONE_IN_LINUX
from aqmlab.tc.spec import DEFAULT_RATE_BPS

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "vectors/tc-options/options.json").read_text(encoding="utf-8"))
SENT = [entry for entry in RECORDED if entry["options"]]
REFUSED = [entry["spec"] for entry in RECORDED if not entry["options"]]
ECN, HARDDROP, ADAPTIVE = 1, 2, 4


def resolved(spec: str) -> tuple[str, dict[str, Any]]:
    """The discipline of a tc line, and its effective parameters at the rate in the line, or else the default
    rate."""
    read = read_tc(spec)
    return read.queue["kind"], dict(effective(read.queue, read.rate_bps or DEFAULT_RATE_BPS))


def scenario(queue: dict[str, Any], rate: str = "10Mbit") -> dict[str, Any]:
    """A scenario with a single bottleneck, which has this queue."""
    return {
        "title": "One queue",
        "duration": "1s",
        "topology": {"kind": "dumbbell", "rate": rate, "delay": "10ms", "queue": queue},
        "traffic": [{"name": "ftp", "kind": "bulk", "count": 5, "rtt": "80ms"}],
    }


def line_of(queue: dict[str, Any], rate: str = "10Mbit"):
    """The bottleneck's line."""
    return next(line for line in tc_lines(scenario(queue, rate)) if line.link == "bottleneck")


@pytest.mark.parametrize("entry", SENT, ids=[entry["spec"] for entry in SENT])
def test_words_mean_what_tc_asks_the_kernel_for(entry):
    kind, ours = resolved(entry["spec"])
    options = entry["options"]
    if kind == "droptail":
        unit = "packets" if entry["spec"].startswith("pfifo") else "bytes"
        assert ours[f"limit_{unit}"] == options["limit"]
    elif kind == "codel":
        assert ours["limit_packets"] == options.get("limit", 1000)
        assert ours["target_ns"] == 1000 * options.get("target_us", 5_000)
        assert ours["interval_ns"] == 1000 * options.get("interval_us", 100_000)
        assert ours["ecn"] == bool(options.get("ecn", 0))
    else:
        assert kind == ("ared" if options["flags"] & ADAPTIVE else "red")
        sizes = [ours[f"{name}_bytes"] for name in ("limit", "min_th", "max_th")]
        assert sizes == [options[name] for name in ("limit", "min", "max")]
        assert ours["w_q"] == 2.0 ** -options["w_log"]
        assert int(ours["max_p"] * 2**32) == options["max_p"]
        assert ours["ecn"] == bool(options["flags"] & ECN)
        assert ours["ecn_region"] == ("rfc3168" if options["flags"] & HARDDROP else "linux")


@pytest.mark.parametrize("spec", REFUSED)
def test_what_tc_refuses_is_refused(spec):
    with pytest.raises(UsageError):
        read_tc(spec)


@pytest.mark.parametrize("entry", SENT, ids=[entry["spec"] for entry in SENT])
def test_a_line_that_was_read_is_written_with_the_same_meaning(entry):
    read = read_tc(entry["spec"])
    rate = f"{read.rate_bps or DEFAULT_RATE_BPS}bit"
    line = line_of(dict(read.queue), rate)
    assert line.spec is not None
    assert resolved(line.spec) == resolved(entry["spec"])
    assert not [remark for remark in line.remarks if " in aqmlab, " in remark and " in Linux" in remark]


@pytest.mark.parametrize("w_q", [0.25, 0.01, 0.002, 1e-4])
def test_the_burst_is_one_of_which_tc_makes_the_nearest_power_of_two(w_q):
    line = line_of({"kind": "red", "limit": "200p", "min_th": "15p", "max_th": "45p", "w_q": w_q})
    assert line.spec is not None
    _, kernels = resolved(line.spec)
    assert abs(log2(kernels["w_q"]) - log2(w_q)) <= 0.5
    remark = f"`w_q`: `{w_q:g}` in aqmlab, `{kernels['w_q']:.6g}` in Linux"
    assert remark in line.remarks or kernels["w_q"] == w_q


def test_what_linux_does_otherwise_is_named():
    queue = {"kind": "red", "limit": "100p", "min_th": "15p", "max_th": "45p", "gentle": True, "ecn": True}
    line = line_of(queue)
    # The options that tc itself sends for these words are among the recorded ones.
    assert line.spec == (
        "red limit 150000 min 22500 max 67500 avpkt 1500 burst 91 probability 0.1 bandwidth 10000000bit"
        " ecn harddrop"
    )
    assert line.spec in [entry["spec"] for entry in SENT]
    assert "`gentle`: true in aqmlab, false in Linux" in line.remarks
    assert "`limit`: 100p in aqmlab, 150kB in Linux, whatever the packet sizes" in line.remarks
    assert "`uniformisation`: `paper` in aqmlab, `linux` in Linux" in line.remarks
    # Because of harddrop, marking ends at the same point in aqmlab and in Linux.
    assert not any("ecn_region" in remark for remark in line.remarks)
    without = line_of({**queue, "ecn": False})
    assert without.spec is not None
    assert not without.spec.endswith(("ecn", "harddrop"))


def test_certain_drops_are_none_for_tc():
    line = line_of({"kind": "red", "limit": "100p", "max_p": 1.0})
    assert line.spec is not None
    assert "probability 0.99999" in line.spec
    assert any("reads `probability 1` as 0" in remark for remark in line.remarks)


def test_the_rise_of_a_small_probability_over_far_thresholds_is_rounded():
    # 0.0001 * 2^32 / 250 000 B = 1.718 units of 2^-32 per byte, rounded down to one.
    line = line_of({"kind": "red", "limit": "500kB", "min_th": "50kB", "max_th": "300kB", "max_p": 1e-4})
    assert any("58.2 % of it" in remark for remark in line.remarks)


def test_limits_that_count_otherwise():
    assert line_of({"kind": "droptail", "limit": "50p", "limit_rule": "below"}).spec == "pfifo limit 49"
    reached = line_of({"kind": "droptail", "limit": "50kB", "limit_rule": "reached"})
    assert reached.spec == "bfifo limit 50000"
    assert "bfifo refuses it" in reached.remarks[0]


def test_codel_is_kept_in_units_of_1024_ns():
    # 5 ms is 4882 of these units, and 100 ms is 97656, which `tc -s qdisc show` prints as 4.99ms and
    # 99.9ms.
    line = line_of({"kind": "codel", "limit": "100p", "target": "5ms", "interval": "100ms", "ecn": True})
    assert line.spec == "codel limit 100 target 5ms interval 100ms ecn"
    assert line.remarks == (
        "`arithmetic`: `exact` in aqmlab, `linux` in Linux",
        "`mtu`: 1.5kB in aqmlab, 1.514kB in Linux",
        "Linux keeps CoDel's times in units of 1024 ns:"
        " `target` and `interval` are 4999.168us and 99999.744us",
    )


def test_a_size_beyond_tc_has_no_line():
    line = line_of({"kind": "droptail", "limit": "5000MB"})
    assert line.spec is None
    assert "beyond the 32 bits" in line.remarks[0]


def test_every_discipline_has_a_line_or_a_reason():
    for entry in aqm_list():
        if entry["name"] not in NONE_IN_LINUX:
            line = line_of({"kind": entry["name"], "limit": "100p"})
            assert line.spec, entry["name"]
    names = {entry["name"] for entry in aqm_list()}
    assert set(NONE_IN_LINUX) < names


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fq_codel", "a Linux discipline without a counterpart in aqmlab"),
        ("rde limit 3", "`rde` is not a queue discipline (`red`?)"),
        ("red limit 400000 avpkt 1000 nodrop", "`nodrop` has no equivalent in aqmlab"),
        ("red limit 400000", "`avpkt` must be given"),
        ("red limit 400000 avpkt", "`avpkt` has no value"),
        ("red limit 400000 avpkt 1000 burst 20 min 30000", "burst `20` is too small for min_th"),
        ("codel limit 100p", "`100p` is not a whole number"),
        ("codel limit 09", "octal"),
        ("codel target 10ns", "`10ns` is not a time"),
        ("codel ce_threshold 1ms", "`ce_threshold` has no equivalent in aqmlab"),
        ("pfifo", "takes the device's txqueuelen"),
        ("tc qdisc add dev eth0 root", "there is no discipline"),
        ("", "there is no discipline"),
    ],
)
def test_complaints_name_the_word_and_what_would_be_right(spec, message):

    with pytest.raises(UsageError, match=re.escape(message)):
        read_tc(spec)


def test_a_bare_rate_is_in_bits_per_second():
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 2500").rate_bps == 2500
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 1mbps").rate_bps == 8_000_000
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 1mibit").rate_bps == 2**20


def test_a_whole_command_is_read_too(aqmlab_cli):
    command = (
        "tc qdisc add dev eth0 parent 1:1 handle 10: red limit 400000 min 30000 max 90000 avpkt 1000"
        " burst 55 ecn adaptive bandwidth 10Mbit"
    )
    ended = aqmlab_cli("aqm", "tc", "--read", command)
    assert ended.returncode == 0
    assert (
        'queue = { kind = "ared", preset = "linux", limit = "400kB", min_th = "30kB", max_th = "90kB",'
        ' mean_packet = "1kB", burst = 55, ecn = true }'
    ) in ended.stdout.splitlines()


def test_the_command_prints_lines_for_a_shell(aqmlab_cli):
    ended = aqmlab_cli("aqm", "tc", ROOT / "scenarios/demo_live.toml", "--dev", "veth0")
    assert ended.returncode == 0
    lines = [line for line in ended.stdout.splitlines() if not line.startswith("#")]
    assert lines[0] == "tc qdisc add dev veth0 root pfifo limit 100"
    assert any("Linux has no BLUE" in line for line in ended.stdout.splitlines())
    found = json.loads(aqmlab_cli("aqm", "tc", ROOT / "scenarios/demo_live.toml", "--json").stdout)
    assert [entry["line"] for entry in found if entry["kind"] == "pi"] == [None]
    for words in ((), ("x.toml", "--read", "pfifo limit 3")):
        refused = aqmlab_cli("aqm", "tc", *words)
        assert refused.returncode == 2
        assert "give either a scenario" in refused.stderr
