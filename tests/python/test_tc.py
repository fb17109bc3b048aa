"""Queues converted to tc commands and back, compared with recorded answers of tc and of a kernel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import log2
from pathlib import Path
from typing import Any

import pytest

from aqmlab import aqm_list, read_tc, read_tc_script, tc_lines
from aqmlab.errors import UsageError
from aqmlab.tc import NoCounterpartError, TcQueue, TcSkipped
from aqmlab.tc.disciplines import NONE_IN_LINUX
from aqmlab.tc.effective import effective
from aqmlab.tc.grammar import DEFAULT_RATE_BPS
from aqmlab.tc.red import NEVER_ADAPTS
from tc_cases import kept, read_as, shown_on_ethernet

ROOT = Path(__file__).parents[2]
ANSWERS = json.loads((ROOT / "vectors/tc-answers/answers.json").read_text(encoding="utf-8"))
# aqmlab reads these together with the other lines of their devices.
UNREAD = [answer for answer in ANSWERS if re.search(r"root (tbf|gred)\b", answer["command"])]
# The recorded `fq_codel` has the quantum of the loopback interface, so FQ-CoDel has cases of its own below.
RECORDED = [answer for answer in ANSWERS if "fq_codel" not in answer["command"] and answer not in UNREAD]


def resolved(spec: str) -> tuple[str, dict[str, Any]]:
    """The discipline of a tc line, and its effective parameters at the rate in the line, or else the default
    rate."""
    read = read_tc(spec)
    return read.queue["kind"], dict(effective(read.queue, read.rate_bps or DEFAULT_RATE_BPS))


def scenario(queue: dict[str, Any], rate: str = "10Mbit", size: str | None = None) -> dict[str, Any]:
    """A scenario with a single bottleneck, which has this queue; with a size, its packets have that size."""
    ftp = {"name": "ftp", "kind": "bulk", "count": 5, "rtt": "80ms"}
    datagrams = {"name": "datagrams", "kind": "cbr", "rate": "1kbit", "size": size}
    return {
        "title": "One queue",
        "duration": "1s",
        "topology": {"kind": "dumbbell", "rate": rate, "delay": "10ms", "queue": queue},
        "traffic": [datagrams if size else ftp],
    }


def line_of(queue: dict[str, Any], rate: str = "10Mbit", size: str | None = None):
    """The bottleneck's line."""
    return next(line for line in tc_lines(scenario(queue, rate, size)) if line.link == "bottleneck")


@pytest.mark.parametrize("answer", RECORDED, ids=[answer["command"] for answer in RECORDED])
def test_a_command_is_read_as_tc_and_the_kernel_read_it(answer):
    if answer["refused"]:
        with pytest.raises(UsageError) as error:
            read_tc(answer["command"])
        assert not isinstance(error.value, NoCounterpartError)
        return
    if answer["command"] in WITHOUT_COUNTERPART:
        with pytest.raises(NoCounterpartError):
            read_tc(answer["command"])
        return
    read = read_tc(answer["command"])
    assert read.shown == shown_on_ethernet(answer)
    assert read_as(read) == kept(answer["options"])


# The first lines of those that `tc -s` prints below cake.
STATISTICS = """ Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
 memory used: 0b of 4Mb
 min/max network layer size:        65535 /       0

                   Bulk  Best Effort        Voice
  thresh        625Kbit       10Mbit     2500Kbit
"""
# Sets a target, which tc neither sets otherwise nor shows.
HIDDEN = "tc qdisc add dev lo root cake rtt 0"
# Nanoseconds beyond 32 bits, of which Linux keeps a number that is not one of whole microseconds.
WRAPPED = [f"tc qdisc add dev lo root fq_pie target {target}" for target in ("5s", "10000s")]
# Its `memlimit` is the automatic one, which is not written.
AS_AUTOMATIC = (
    "tc qdisc add dev lo root cake bandwidth 10mbit besteffort flowblind wash ingress ack-filter rtt 20ms"
    " overhead 18 mpu 64 atm memlimit 4mb no-split-gso fwmark 0xff"
)
WITHOUT_COUNTERPART = [
    f"tc qdisc add dev lo root {words}"
    for words in (
        "red limit 400000 avpkt 1000 ecn nodrop",
        "red limit 9000000 avpkt 100000",
        "red limit 9000000 min 1000000 max 3000000 avpkt 100000 burst 20",
        "codel target 5000s",
        "codel target -1",
        "codel target 150ms",
        "codel interval 1ms",
        "pfifo",
        "bfifo",
        "pfifo limit 0",
        "handle 1: stab overhead 4 pfifo limit 7",
        "cake autorate-ingress",
        "cake bandwidth 10mbit autorate-ingress",
        "cake bandwidth 8bit",
        "cake bandwidth 4tbit",
        "cake memlimit 1500",
        "cake memlimit 1",
        "cake overhead -64",
        "cake overhead -4 atm mpu 20",
        "cake overhead -10 ether-vlan",
        "cake overhead 250 docsis",
        "cake raw overhead 243",
        *(
            f"fq quantum 3028 initial_quantum 15140 {words}"
            for words in ("limit 0", "flow_limit 0", "maxrate 0", "refill_delay 0")
        ),
        "fq_pie quantum 1mb",
        "sfq perturb 2147483",
        "sfb increment 0",
        "sfb increment nan",
        "sfb increment 1e-9",
        "sfb db 700000",
        "sfb target 4000000000",
    )
]


@pytest.mark.parametrize(
    "answer",
    [
        answer
        for answer in RECORDED
        if answer["shown"] and answer["command"] not in WITHOUT_COUNTERPART and answer["command"] != HIDDEN
    ],
    ids=lambda answer: answer["command"],
)
def test_a_command_that_was_read_is_written_with_the_same_meaning(answer):
    read = read_tc(answer["command"])
    rate_bps = max(1000, read.rate_bps or DEFAULT_RATE_BPS)
    line = line_of(dict(read.queue), f"{rate_bps}bit", size="29B")
    assert line.spec is not None
    again = read_tc(line.spec)
    if answer["command"] == AS_AUTOMATIC:
        assert effective(dict(again.queue), rate_bps) == effective(dict(read.queue), rate_bps)
    else:
        assert read_as(again) == read_as(read)
    differ = [remark for remark in line.remarks if " in aqmlab, " in remark and " in Linux" in remark]
    assert [remark.partition(":")[0] for remark in differ] == ["`target`"] * (answer["command"] in WRAPPED)


@pytest.mark.parametrize(
    "answer",
    [answer for answer in RECORDED if answer["shown"] and answer["command"] != HIDDEN],
    ids=lambda answer: answer["command"],
)
def test_what_tc_shows_is_read(answer):
    kind, _, words = shown_on_ethernet(answer).partition(" ")
    try:
        read = read_tc(f"qdisc {kind} 8001: dev lo root refcnt 2 {words}\n{STATISTICS}")
    except NoCounterpartError:
        assert answer["command"] in WITHOUT_COUNTERPART
        return
    ours, theirs = read_as(read), kept(answer["options"])
    for name, value in theirs.items():
        # tc shows six digits of a probability, three of a time and of most sizes.
        assert ours[name] == pytest.approx(value, rel=6e-3 if name != "max_p" else 1e-5), name


@pytest.mark.parametrize(
    ("words", "shown", "values"),
    [
        (
            "",
            "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms"
            " memory_limit 32Mb ecn drop_batch 64",
            {},
        ),
        (
            "limit 500 flows 64 quantum 300 target 3ms interval 70ms memory_limit 4mb drop_batch 7 noecn",
            "limit 500p flows 64 quantum 300 target 3ms interval 70ms memory_limit 4Mb drop_batch 7",
            {"limit_packets": 500, "flows": 64, "quantum_bytes": 300, "batch": 7, "ecn": False},
        ),
        (
            "ce_threshold 1ms ce_threshold_selector 0x1/0x3 quantum 100",
            "limit 10240p flows 1024 quantum 256 target 5ms ce_threshold 999us ce_threshold_selector 0x1/0x3"
            " interval 100ms memory_limit 32Mb ecn drop_batch 64",
            {"quantum_bytes": 256, "ce_threshold_for": "ect1"},
        ),
        (
            "ce_threshold 0",
            "limit 10240p flows 1024 quantum 1514 target 5ms ce_threshold 0us interval 100ms"
            " memory_limit 32Mb ecn drop_batch 64",
            {"ce_threshold_ns": 1},
        ),
    ],
)
def test_fq_codel_is_read_shown_and_written_as_linux_has_it_on_ethernet(words, shown, values):
    """The lines are those that Linux 6.1 showed for these commands on a veth interface."""
    read = read_tc(f"fq_codel {words}")
    assert read.shown == f"fq_codel {shown}"
    ours = effective(read.queue, DEFAULT_RATE_BPS)
    assert {name: ours[name] for name in values} == values
    assert ours["mtu_of"] == "all"
    again = read_tc(line_of(dict(read.queue)).spec)
    assert again.shown == read.shown
    listed = read_tc(f"qdisc fq_codel 8001: dev v0 root refcnt 2 {shown}\n Sent 0 bytes 0 pkt\n")
    theirs = effective(listed.queue, DEFAULT_RATE_BPS)
    assert {name for name in ours if ours[name] != theirs[name]} <= {"ce_threshold_ns"}


def test_codels_threshold_is_read_and_shown():
    read = read_tc("codel ce_threshold 2ms ecn")
    assert read.shown == "codel limit 1000p target 5ms ce_threshold 2ms interval 100ms ecn"
    assert line_of(dict(read.queue)).spec == "codel limit 1000 target 5ms interval 100ms ce_threshold 2ms ecn"


def test_the_probability_of_linux():
    """Linux 6.1 shows 0.61035 for `min 30000 max 35000 probability 1`, which is 524287 * 5000 / 2^32."""
    words = "red limit 1000000 min 30000 max {} avpkt 1500 burst 20 bandwidth 10mbit probability 1 ecn"
    for high, expected in ((35_000, 524_287 * 5000 / 2**32), (30_001, 0.5 - 2**-32), (30_000, 1.0 - 2**-32)):
        read = read_tc(words.format(high))
        assert read.queue["max_p"] == expected
        named = [remark for remark in read.remarks if "`probability 1` is 0." in remark]
        assert len(named) == (expected < 0.9)


def test_a_rise_that_linux_rounds_is_remarked_on_when_reading_too():
    # 1.5e-4 * 2^32 / 250 000 B = 2.577 units of 2^-32 per byte, rounded down to two.
    words = "red limit 500000 min 50000 max 300000 avpkt 1000 burst 200 probability 1.5e-4"
    share = 2 * 250_000 / 2**32
    assert any(f"`probability 1.5e-4` is {share:.6g} in Linux" in remark for remark in read_tc(words).remarks)


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        ("red limit 400000.9 avpkt 1000", "tc keeps `limit 400000.9` as 400kB"),
        ("red limit 400000 avpkt 1000 bandwidth 12345bit", "tc keeps `bandwidth 12345bit` as 12.344kbit"),
        ("red limit 400000 avpkt 1000 bandwidth 7", "tc takes `bandwidth 7` as not given"),
        ("red limit 400000 avpkt 1000 bandwidth 800bit", "where a link has at least 1kbit"),
        ("red limit 400000 avpkt 1000 burst 0", "tc takes `burst 0` as not given"),
        ("red limit 400000 min 30000 max 90000 avpkt 1000 burst 300", "the burst seems to be too large"),
        ("red limit 400000 avpkt 1000 harddrop", "`harddrop` has no effect without `ecn`"),
        ("red limit 400000 avpkt 1000 adaptative", NEVER_ADAPTS),
        ("red limit 3000 min 1200 avpkt 1024 burst 2", "the average cannot reach `max`, which is 3.6kB"),
        ("codel target 1.5ms interval 20.0005ms", "tc keeps `interval 20.0005ms` as 20ms"),
        ("codel limit 0", "tc takes `limit 0` as not given"),
        ("tc qdisc change dev eth0 root codel limit 7", "`change` keeps the options"),
        ("bfifo limit 1000", "a packet of more than 1kB never finds room"),
        ("qdisc red 1: root refcnt 2 limit 400000b min 30000b max 90000b", "`tc -d qdisc show` prints them"),
        ("qdisc bfifo 1: root refcnt 2 limit 100Kb", "`limit 100Kb` may be up to 15 B"),
        ("qdisc red 1: root limit 2Mb min 30000b max 90000b ewma 5 probability 0.02", "1023 B (Mb)"),
    ],
)
def test_what_tc_and_linux_change_is_remarked_on(words, remark):
    assert any(remark in found for found in read_tc(words).remarks), read_tc(words).remarks


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
    # The answer to these words is among the recorded ones.
    assert line.spec == (
        "red limit 150000 min 22500 max 67500 avpkt 1500 burst 91 probability 0.1 bandwidth 10000000bit"
        " ecn harddrop"
    )
    answer = next(answer for answer in RECORDED if answer["command"].endswith(f"root {line.spec}"))
    assert answer["shown"] == line.shown
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
    assert f"probability {1 - 2**-32}" in line.spec
    assert any("sends `probability 1` as 0" in remark for remark in line.remarks)


def test_the_rise_of_a_small_probability_over_far_thresholds_is_rounded():
    queue = {"kind": "red", "limit": "500kB", "min_th": "50kB", "max_th": "300kB"}
    line = line_of({**queue, "max_p": 1.5e-4})
    assert any(f"is {2 * 250_000 / 2**32:.6g} in Linux" in remark for remark in line.remarks)
    # tc refuses a rise of at most 2^-31 per byte, which is 1.16e-4 here.
    refused = line_of({**queue, "max_p": 1e-4})
    assert refused.spec is None
    assert "it must exceed `0.000116`" in refused.remarks[0]


def test_values_that_the_kernel_refuses_have_no_line():
    # The preset gives max a quarter of 985 Mbit/s * 100 ms, which has 22 bits, and burst the weight 2^-10.
    delays = {"delay": "50ms", "access_rate": "none"}
    described = scenario({"kind": "red", "preset": "linux"}, "984Mbit", "1500B")
    described["topology"] |= delays
    assert next(line.spec for line in tc_lines(described) if line.link == "bottleneck") is not None
    described["topology"]["rate"] = "985Mbit"
    line = next(line for line in tc_lines(described) if line.link == "bottleneck")
    assert line.spec is None
    assert "`Invalid argument`: with `max` 3078125, the weight must be at least 2^-9" in line.remarks[0]


def test_fast_slow_and_small_links_have_lines():
    fast = line_of({"kind": "red", "limit": "100p"}, "40Gbit")
    assert fast.spec is not None
    assert fast.spec.endswith("bandwidth 34359738360bit")
    assert any("tc refuses a `bandwidth` above 34359738360 bit/s" in remark for remark in fast.remarks)
    assert line_of({"kind": "droptail", "limit": "10p"}, "1kbit").spec == "pfifo limit 10"
    assert line_of({"kind": "droptail", "limit": "700B"}, size="200B").spec == "bfifo limit 700"
    # The kernel makes 976 units of 1024 ns of 1 ms, and one less of 999 us.
    exact = line_of({"kind": "codel", "preset": "linux", "target": "999424ns"})
    assert exact.spec == "codel limit 1000 target 1ms interval 100ms"
    short = line_of({"kind": "codel", "target": "500ns", "interval": "1us"})
    assert short.spec == "codel limit 1000 target 1us interval 1us"
    assert any("`target` and `interval` are 0ns and 0ns" in remark for remark in short.remarks)


def test_limits_that_count_otherwise():
    assert line_of({"kind": "droptail", "limit": "50p", "limit_rule": "below"}).spec == "pfifo limit 49"
    reached = line_of({"kind": "droptail", "limit": "50kB", "limit_rule": "reached"})
    assert reached.spec == "bfifo limit 50000"
    assert "bfifo refuses it" in reached.remarks[0]


def test_codel_is_kept_in_units_of_1024_ns():
    # 5 ms is 4882 of these units, and 100 ms is 97656; tc shows these times with three digits.
    line = line_of({"kind": "codel", "limit": "100p", "target": "5ms", "interval": "100ms", "ecn": True})
    assert line.spec == "codel limit 100 target 5ms interval 100ms ecn"
    assert line.remarks == (
        "`arithmetic`: `exact` in aqmlab, `linux` in Linux",
        "`mtu`: 1.5kB in aqmlab, 1.514kB in Linux",
        "Linux keeps CoDel's times in units of 1024 ns:"
        " `target` and `interval` are 4999.168us and 99999.744us",
    )


def test_pie_of_the_rfc_differs_from_linuxs_where_its_preset_says_so():
    linux = line_of({"kind": "pie", "preset": "linux", "limit": "100p", "ecn": True, "delay": "rate"})
    words = "pie limit 100 target 15000us tupdate 15ms alpha 2 beta 20 ecn dq_rate_estimator"
    assert linux.spec == words
    assert not [remark for remark in linux.remarks if " in aqmlab, " in remark]
    assert any("`t_update` is 16ms" in remark for remark in linux.remarks)
    rfc = line_of({"kind": "pie", "limit": "100p", "alpha": 0.1})
    assert rfc.spec == "pie limit 100 target 15000us tupdate 14ms alpha 2 beta 20"
    for remark in (
        "`alpha`: `0.1` in aqmlab, `0.125` in Linux",
        "`arithmetic`: `exact` in aqmlab, `linux` in Linux",
        "`derandomize`: false in aqmlab, true in Linux",
    ):
        assert remark in rfc.remarks


def test_a_size_beyond_tc_has_no_line():
    line = line_of({"kind": "droptail", "limit": "5000MB"})
    assert line.spec is None
    assert "beyond the 32 bits" in line.remarks[0]


def test_every_discipline_has_a_line_or_a_reason():
    for entry in aqm_list():
        if entry["name"] not in NONE_IN_LINUX:
            leaf = {"name": "all", "rate": "1Mbit", "queue": "codel"}
            own = {
                "tbf": {"rate": "1Mbit", "burst": "3kB", "limit": "9kB"},
                "htb": {"class": [leaf]},
                "gred": {"class": [{"name": "all", "limit": "100kB", "min_th": "9kB", "max_th": "30kB"}]},
                "cake": {},
            }
            line = line_of({"kind": entry["name"], **own.get(entry["name"], {"limit": "100p"})})
            assert line.spec, entry["name"]
    names = {entry["name"] for entry in aqm_list()}
    assert set(NONE_IN_LINUX) < names


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("htb", "`htb` may contain others: give all commands of its device to"),
        ("rde limit 3", "`rde` is not a queue discipline (`red`?)"),
        ("red limit 400000 avpkt 1000 ecn nodrop", "`nodrop` has no equivalent in aqmlab"),
        ("red limit 400000 avpkt 1000 nodrop", "the kernel refuses `nodrop` without `ecn`"),
        ("red limit 400000 avpkt 1000 qevent early_drop block 10", "only the kernel can attach actions"),
        ("red limit 400000 avpkt 1000 bandwidth 40gbit", "write at most `34359738367bit`"),
        ("red limit 400000 min 900 max 9000 avpkt 1000", "`min` 900 must be at least one `avpkt`"),
        ("red limit 400000 min 30000 max 90000 avpkt 1000 burst 100000000", "is too large"),
        ("red limit 4000000000 avpkt 1000", "it must exceed `0.31`"),
        ("red limit 9e8 min 3e8 max 4e8 avpkt 1500 burst 210000 probability 1", "`Invalid argument`"),
        ("red limit -5 avpkt 1000", "`-5` is negative"),
        ("red limit 5000000000 avpkt 1000", "write at most `4294967295`"),
        ("red limit 400000 avpkt 1000 probability often", "`often` is not a probability"),
        ("tc qdisc add dev eth0 root handle 12345: pfifo limit 7", "`12345:` is not a value of `handle`"),
        ("tc qdisc add dev eth0 root root pfifo limit 7", "names its root or parent twice"),
        ("tc qdisc add root pfifo limit 7", "without `dev`"),
        ("tc qdisc add dev eth0 pfifo limit 7", "neither `root` nor `parent`"),
        ("tc qdisc add dev eth0 root stab overhead 4 pfifo limit 7", "`stab` has no equivalent"),
        ("tc qdisc add dev eth0 root 'pfifo limit 7", "no closing quotation"),
        ("tc qdisc del dev eth0 root", "`tc qdisc delete` sets no queue discipline"),
        (
            "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
            "`tc class` names no queue discipline",
        ),
        ("pfifo limit 5; pfifo limit 6", "there are 2 disciplines"),
        ("# pfifo limit 5", "there is no discipline"),
        ("red limit 400000", "`avpkt` must be given"),
        ("red limit 400000 avpkt", "`avpkt` has no value"),
        (
            "red limit 400000 avpkt 1000 burst 20 min 30000",
            "burst `20` is too small for `min` 30000; it must be at least 30",
        ),
        ("pie alpha 33", "tc refuses `alpha` 33; write at most 32, in sixteenths"),
        ("pie limit 100p", "`100p` is not a whole number"),
        ("fq_pie alpha 33", "fq_pie: tc refuses `alpha` 33; write at most 32, in sixteenths"),
        ("fq_pie ecn_prob 100", "tc refuses `ecn_prob` 100; write at most 99, in percent"),
        ("fq_pie flows 65537", "the kernel refuses `flows` 65537; write at most 65536"),
        ("fq_pie quantum 2mb", "the kernel refuses `quantum` 2097152; write at most 1048576 bytes"),
        ("sfq limit 1", "tc refuses a `limit` below 2 packets"),
        ("sfq divisor 500", "refuses `divisor` 500; write a power of two of at most 65536"),
        ("sfq perturb 2147484", "the kernel refuses `perturb` 2147484; write at most 2147483 seconds"),
        ("sfq limit 5 depth 1 flows 1", "raise `depth` or `flows`"),
        ("sfq ecn limit 100", "tc requires `redflowlimit` with `ecn`, in bytes"),
        ("sfq redflowlimit 9000 max 10000", "`max` 10000, which exceeds `redflowlimit` 9000"),
        ("codel limit 100p", "`100p` is not a whole number"),
        ("codel limit 09", "octal"),
        ("codel target 10ns", "`10ns` is not a time"),
        ("fq_codel ce_threshold 1ms ce_threshold_selector 2/3", "`2/3` is not `1/3`, ECT(1)"),
        ("fq_codel flows 0x", "`0x` is not a whole number"),
        ("pfifo", "takes the device's txqueuelen"),
        ("cake target 5ms", "cake: `target` is not an option"),
        ("cake overhead 0x10", "`0x10` is not a whole number of bytes from -64 to 256"),
        ("cake autorate-ingress", "aqmlab does not; write `bandwidth`"),
        ("cake overhead -5", "aqmlab has no negative overhead, such as -5; write at least `overhead 0`"),
        ("choke limit 100", "tc requires `bandwidth`, the rate of the link"),
        ("choke limit 100 bandwidth 10mbit max 101", "tc refuses `max` 101, which exceeds `limit` 100"),
        ("choke limit 100 bandwidth 10mbit min 9 max 9", "tc refuses `min` 9, which is not below `max` 9"),
        ("choke limit 131072 bandwidth 10mbit min 10 max 30", "write at most 131071 packets"),
        ("sfb increment 1.5", "`1.5` is not a number from 0 to 1"),
        ("sfb ecn", "sfb: `ecn` is not an option"),
        ("cobalt", "tc does not know `cobalt`: Linux has no COBALT alone; the nearest is `cake"),
        ("avq", "tc does not know `avq`: Linux has no AVQ"),
        ("tc qdisc add dev eth0 root", "there is no discipline"),
        ("", "there is no discipline"),
    ],
)
def test_complaints_name_the_word_and_what_would_be_right(spec, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        read_tc(spec)


@pytest.mark.parametrize("answer", UNREAD, ids=[answer["command"] for answer in UNREAD])
def test_disciplines_of_several_lines_are_named(answer):
    """Alone, they are not what they are with their other lines."""
    with pytest.raises(UsageError, match=r"may contain others|has a line for each virtual queue"):
        read_tc(answer["command"])


@pytest.mark.parametrize(
    ("words", "queue"),
    [
        ("", {}),
        ("rtt 50ms", {"interval": "50ms"}),
        ("oceanic", {"interval": "300ms"}),
        ("docsis", {"overhead": 18, "mpu": 64}),
        ("docsis ethernet", {"overhead": 56, "mpu": 84}),
        ("ethernet raw", {"mpu": 84}),
        ("raw overhead -4", {"overhead": 10}),
        ("atm", {"framing": "atm"}),
        ("pppoe-ptm ether-vlan ether-vlan", {"overhead": 38, "framing": "ptm"}),
        ("besteffort dual-dsthost ingress wash", {"tins": "besteffort", "isolation": "dual-dsthost"}),
        ("bandwidth 1500kbit memlimit 1mb", {"bandwidth": "1500kbit", "memory_limit": "1048576B"}),
        ("autorate-ingress bandwidth 1mbit", {"bandwidth": "1Mbit"}),
    ],
)
def test_cakes_words_become_parameters(words, queue):
    read = read_tc(f"cake {words}")
    given = {"kind": "cake", "preset": "linux", **queue}
    if "wash" in words:
        given |= {"ingress": True, "wash": True}
    assert effective(read.queue, DEFAULT_RATE_BPS) == effective(given, DEFAULT_RATE_BPS)


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        ("fq_pie target 5s", "Linux keeps the nanoseconds of `target 5s` in 32 bits: 705032.704us"),
        ("fq_pie memory_limit 1mb", "Linux loses no packet at `memory_limit`"),
        ("fq_pie quantum 100", "Linux raises the quantum to 256 B"),
        ("fq_pie tupdate 9.5ms", "`t_update` is 11ms with 1000 ticks per second"),
        ("sfq quantum 200", "Linux raises the quantum to 256 B"),
        ("sfq limit 3000 flows 50 depth 10", "Linux lowers `limit 3000` to 500"),
        ("sfq depth 300", "Linux lowers `depth 300` to 127"),
        ("sfq flows 200 divisor 64", "Linux lowers `flows 200` to 64"),
        ("sfq redflowlimit 60000 harddrop", "`harddrop` has no effect without `ecn`"),
        ("sfq redflowlimit 60000", "Linux never loses a packet at it"),
        ("sfq redflowlimit 60000 probability 1", "`probability 1` is 0.610349 in Linux"),
        ("qdisc sfq 8001: root limit 127p quantum 1514b divisor 1024", "`tc -d qdisc show` prints it"),
        ("cake nat", "`nat` has no effect"),
        ("cake no-split-gso", "`no-split-gso` has no effect"),
        ("cake fwmark 7", "`fwmark` has no effect"),
        ("cake ingress", "the 14 bytes of Ethernet"),
        ("cake rtt 0", "sets the target to 1 us"),
        ("cake bandwidth 12345bit", "tc keeps `bandwidth 12345bit` as 12.344kbit"),
        ("cake bandwidth 7", "tc takes `bandwidth 7` as not given"),
        ("sfb", "takes the device's txqueuelen as its limit; here 1000"),
        ("sfb increment 0.0001", "Linux keeps `increment 0.0001` as 0.000106813, a multiple of 1/65535"),
        ("sfb target 0", "tc takes `target 0` as not given"),
        ("choke limit 100 bandwidth 10mbit probability 1", "`probability 1` is 0.000518795 in Linux"),
        ("choke limit 70000 bandwidth 10mbit", "the burst seems to be too large: the weight is 2^-13"),
        ("qdisc choke 1: root limit 1000p min 83p max 250p", "`tc -d qdisc show` prints them"),
    ],
)
def test_remarks_of_todays_queues(words, remark):
    assert any(remark in found for found in read_tc(words).remarks), read_tc(words).remarks


def test_what_linux_does_otherwise_than_cake_sfb_and_choke_is_named():
    cake = line_of({"kind": "cake", "bandwidth": "5Mbit", "target": "9ms", "queues": 64, "overhead": 3})
    assert cake.spec == "cake bandwidth 5000000bit diffserv3 triple-isolate rtt 100ms noatm overhead 3 mpu 0"
    assert "`target`: 9ms in aqmlab, 5ms in Linux" in cake.remarks
    assert "`queues`: `64` in aqmlab, `1024` in Linux" in cake.remarks
    large = line_of({"kind": "cake", "memory_limit": "1MB", "bandwidth": "5000001bit"})
    assert large.spec.endswith(" memlimit 1000000")
    assert "`bandwidth`: 5000.001kbit in aqmlab, 5Mbit in Linux" in large.remarks
    sfb = line_of({"kind": "sfb", "limit": "100p"})
    assert sfb.spec == (
        "sfb rehash 20000 db 20000 limit 100 max 25 target 6 increment 0.005 decrement 0.005"
        " penalty_rate 10 penalty_burst 20"
    )
    assert "`bins`: `23` in aqmlab, `16` in Linux" in sfb.remarks
    assert line_of({"kind": "sfb", "preset": "linux", "decrement": 11 / 65535}).spec.endswith(
        " increment 0.001 decrement 0.00016784924086366064 penalty_rate 10 penalty_burst 20"
    )
    choke = line_of({"kind": "choke", "limit": "100p", "comparisons": 3})
    assert choke.spec == (
        "choke limit 100 min 5 max 15 avpkt 1500 burst 48 probability 0.1 bandwidth 10000000bit"
    )
    assert "`comparisons`: `3` in aqmlab, `1` in Linux" in choke.remarks


def test_what_linux_does_otherwise_than_fq_pie_and_sfq_is_named():
    fq_pie = line_of({"kind": "fq_pie", "limit": "100p", "mark_ecnth": 0.125})
    assert fq_pie.spec == (
        "fq_pie limit 100 flows 1024 quantum 1514 memory_limit 33554432 ecn_prob 12"
        " target 15000us tupdate 14ms alpha 2 beta 20"
    )
    for remark in (
        "`mark_ecnth`: `0.125` in aqmlab, `0.12` in Linux",
        "`memory_full`: `drop` in aqmlab, `count` in Linux",
        "`arithmetic`: `exact` in aqmlab, `linux` in Linux",
    ):
        assert remark in fq_pie.remarks
    red = {"redflowlimit": "60kB", "ecn": True, "ecn_region": "rfc3168", "max_p": 1.0}
    sfq = line_of({"kind": "sfq", "limit": "100p", "depth": 200, "perturb": "2500ms", **red})
    assert sfq.spec == (
        "sfq limit 100 quantum 1514 depth 200 flows 128 divisor 1024 perturb 2 redflowlimit 60000"
        f" min 5000 max 15000 avpkt 1000 burst 8 probability {1 - 2**-32} ecn harddrop"
    )
    for remark in (
        "`depth`: `200` in aqmlab, `127` in Linux",
        "`perturb`: 2.5s in aqmlab, 2s in Linux",
        "`turn`: `packet` in aqmlab, `quantum` in Linux",
        "tc sends `probability 1` as 0; the line has the largest value that tc keeps",
        "Linux lowers `flows 128` to 100",
    ):
        assert remark in sfq.remarks, sfq.remarks
    refused = line_of({"kind": "sfq", "divisor": 1000})
    assert refused.spec is None
    assert "write a power of two of at most 65536" in refused.remarks[0]


@pytest.mark.parametrize(("shown", "target"), [("0us", "1us"), ("499us", "500us"), ("504us", "504us")])
def test_a_target_that_tc_shows_rounded_down_is_the_one_that_leads_to_it(shown, target):
    """Linux 6.1 shows 499us for `target 500us`: 7812 units of 64 ns are 499.968 us."""
    for kind in ("pie limit 1000p", "fq_pie limit 1000p flows 1024"):
        read = read_tc(f"qdisc {kind.replace(' ', ' 8001: dev lo root ', 1)} target {shown} tupdate 15ms")
        assert read.queue["target"] == target
        assert f" target {target} " in line_of(dict(read.queue)).spec
        assert f" target {shown} " in line_of(dict(read.queue)).shown


def test_an_older_tc_shows_the_divisor_behind_sfqs_queues():
    read = read_tc(
        "qdisc sfq 8001: dev lo root limit 127p quantum 1514b flows 128/512 divisor 512 perturb 9sec"
    )
    assert read.queue == {
        "kind": "sfq",
        "preset": "linux",
        "limit": "127p",
        "quantum": "1.514kB",
        "flows": 128,
        "divisor": 512,
        "perturb": "9s",
    }


def test_a_bare_rate_is_in_bits_per_second():
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 2500").rate_bps == 2500
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 1mbps").rate_bps == 8_000_000
    assert read_tc("red limit 400000 avpkt 1000 bandwidth 1mibit").rate_bps == 2**20


RED = "red limit 3000 min 1200 avpkt 1024 burst 2 bandwidth 10mbit probability 0.4 ecn"


@pytest.mark.parametrize(
    "text",
    [
        f"qdisc add dev sim0 root {RED}",
        f"sudo tc qdisc replace dev eth0 handle 1: root {RED} 2>/dev/null",
        f"sudo -E /sbin/tc -s -d q a dev eth0 parent 1:10 handle 10: {RED}",
        f"ip netns exec router tc -n other qdisc add dev eth0 root {RED} || exit 1",
        f"$ tc qdisc add dev $DEV root {RED}   # as in the paper",
        RED.replace(" min", " \\\n    min"),
        # From https://github.com/direct-code-execution/ns-3-dce/issues/145
        f'process_router.ParseArguments ("qdisc add dev eth0 root handle 1: {RED}");',
        f"h1.cmd('tc qdisc add dev h1-eth0 root {RED}')",
        f"tc qdisc del dev eth0 root; tc qdisc add dev eth0 root {RED}",
    ],
)
def test_a_command_is_found_where_people_write_it(text):
    assert read_tc(text).spec == RED


def test_a_script_and_what_tc_shows_are_read_line_by_line():
    script = """#!/bin/sh
        # a shaper
        tc qdisc add dev eth0 root handle 1: htb default 10
        tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
        tc qdisc add dev eth0 parent 1:10 handle 10: bfifo limit 30kb
        ip link set eth0 up
        tc qdisc add dev eth0 handle ffff: ingress
        """
    found = read_tc_script(script)
    assert [type(one) for one in found] == [TcSkipped, TcSkipped, TcQueue, TcSkipped, TcSkipped]
    shown = """qdisc noqueue 0: dev lo root refcnt 2
qdisc codel 800b: dev eth0 root refcnt 2 limit 100p target 999us interval 50ms ecn
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  count 0 lastcount 0 ldelay 0us drop_next 0us
  maxpacket 0 ecn_mark 0 drop_overlimit 0
qdisc pfifo 10: dev eth1 parent 1:10 limit 7p
"""
    skipped, codel, pfifo = read_tc_script(shown)
    assert isinstance(skipped, TcSkipped)
    # 976 units of 1024 ns are 999.424 us, which tc shows as 999us.
    assert codel.queue["target"] == "999.424us"
    assert pfifo.queue == {"kind": "droptail", "limit": "7p"}
    with pytest.raises(UsageError, match=r"line 1: pfifo limit: `x` is not a size.*line 3: .*twice"):
        read_tc_script("pfifo limit x\npfifo limit 2\ntc qdisc add dev a root root pfifo limit 3\n")
    with pytest.raises(UsageError, match=r"sets no queue discipline.*without a counterpart"):
        read_tc_script("tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root hhf\n")


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
    ended = aqmlab_cli("aqm", "tc", ROOT / "scenarios/demo_live.toml", "--dev", "va", "--dev", "vb")
    assert ended.returncode == 0
    devices = re.findall(r"^# link (\w+),.*\ntc qdisc add dev (\w+) ", ended.stdout, re.MULTILINE)
    assert set(devices) == {("bottleneck", "va"), ("reverse", "vb")}
    few = aqmlab_cli("aqm", "tc", ROOT / "scenarios/demo_live.toml", "--dev", "va")
    assert few.returncode == 2
    assert "once for each of the links `bottleneck`, `reverse`" in few.stderr
    lines = [line for line in ended.stdout.splitlines() if not line.startswith("#")]
    assert lines[0] == "tc qdisc add dev va root pfifo limit 100"
    assert any("Linux has no BLUE" in line for line in ended.stdout.splitlines())
    assert "#   `max_p`" not in ended.stdout
    found = json.loads(aqmlab_cli("aqm", "tc", ROOT / "scenarios/demo_live.toml", "--json").stdout)
    assert [entry["line"] for entry in found if entry["kind"] == "pi"] == [None]
    for words in ((), ("x.toml", "--read", "pfifo limit 3")):
        refused = aqmlab_cli("aqm", "tc", *words)
        assert refused.returncode == 2
        assert "give either a scenario" in refused.stderr


def test_standard_input_is_read():
    shown = b"qdisc pfifo 10: dev eth1 parent 1:10 limit 7p\nqdisc mq 0: dev eth0 root\n"
    command = [sys.executable, "-m", "aqmlab", "aqm", "tc", "--read", "-"]
    ended = subprocess.run(command, input=shown, capture_output=True, check=True)
    assert ended.stdout.decode().splitlines() == [
        "# pfifo limit 7p",
        'queue = { kind = "droptail", limit = "7p" }',
        "# qdisc mq 0: dev eth0 root",
        "#   skipped: `mq` is a Linux discipline without a counterpart in aqmlab, which has `red`, `codel`,"
        " `fq`, `fq_codel`, `fq_pie`, `sfq`, `pie`, `dualpi2`, `cake`, `choke`, `sfb`, `pfifo`, `bfifo`",
    ]
    ended = subprocess.run(command, input=b"\xff\xfe", capture_output=True, check=False)
    assert ended.returncode == 2
    assert b"is not a queue discipline" in ended.stderr
