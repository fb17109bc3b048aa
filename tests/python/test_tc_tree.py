"""Trees of disciplines and classes in tc's syntax: what they become, and what is no tree."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from aqmlab.errors import UsageError
from aqmlab.language.scenario import resolve
from aqmlab.tc import read_tc_script, read_tc_trees

ROUTER = """#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 12
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 3mbit ceil 10mbit burst 3000 prio 1
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 10mbit quantum 3000
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 6000001bit ceil 8mbit
tc qdisc add dev eth0 parent 1:10 handle 10: codel limit 100 target 3ms
tc qdisc add dev eth0 parent 1:11 handle 11: prio bands 2
tc qdisc add dev eth0 parent 11:1 pfifo limit 20
tc qdisc add dev eth0 parent 11:2 handle 20: tbf rate 2mbit burst 5000 latency 50ms
"""


def plan_of(queue, traffic):
    scenario = {
        "duration": "1s",
        "topology": {"kind": "dumbbell", "rate": "100Mbit", "delay": "1ms", "queue": queue},
        "traffic": [
            {"name": name, "kind": "cbr", "rate": "1Mbit", "size": "1000B", "rtt": "10ms"} for name in traffic
        ],
    }
    return resolve(scenario)["arms"][0]["plan"]["links"][0]["queue"]


def test_the_lines_of_a_router_are_one_queue():
    (tree,) = read_tc_trees(ROUTER)
    assert tree.dev == "eth0"
    assert tree.queue["kind"] == "htb"
    root, ten, eleven, twelve = tree.queue["class"]  # in the order of their numbers, as Linux serves them
    assert root == {"name": "1-1", "rate": "10Mbit"}
    assert ten["queue"]["kind"] == "codel"
    assert (ten["parent"], ten["ceil"], ten["quantum"], ten["traffic"]) == ("1-1", "10Mbit", "3kB", ["1-10"])
    assert (eleven["burst"], eleven["prio"]) == ("3kB", 1)
    bands = eleven["queue"]["class"]
    assert [band["queue"]["kind"] for band in bands] == ["droptail", "tbf"]
    assert bands[1]["queue"] == {
        "kind": "tbf",
        "preset": "linux",
        "rate": "2Mbit",
        "burst": "5kB",
        "latency": "50ms",
    }
    assert "traffic" not in twelve
    assert twelve["rate"] == "6Mbit"
    assert twelve["queue"] == {"kind": "droptail", "limit": "1000p"}
    remarks = "\n".join(tree.remarks)
    assert "1:12 rate: Linux keeps 6Mbit, in whole bytes per second" in remarks
    assert "1:12: without a discipline, Linux gives a class a FIFO" in remarks
    assert "filters are not read" in remarks


def test_a_scenario_accepts_the_queue_that_was_read():
    (tree,) = read_tc_trees(ROUTER)
    queue = plan_of(tree.queue, ["1-10", "1-11", "band1", "other"])
    assert queue["kind"] == "htb"
    # What is printed is what was read.
    assert tomllib.loads(tree.toml)["topology"]["queue"] == tree.queue


def test_what_tc_shows_is_read_as_what_was_written():
    """The lines of each recorded case, and what Linux showed after them."""
    text = (Path(__file__).parents[2] / "vectors/linux-shapers/shown.txt").read_text()
    cases = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    seen = 0
    for name, block in zip(cases[::2], cases[1::2], strict=True):
        commands = "\n".join(f"tc {line[2:]}" for line in block.splitlines() if line.startswith("# "))
        shown = "\n".join(line for line in block.splitlines() if not line.startswith("#"))
        (written,), (found,) = read_tc_trees(commands), read_tc_trees(shown)

        def plain(value):
            """Leave out what tc rounds when it shows it, and what it always shows."""
            if isinstance(value, dict):
                skipped = ("burst", "cburst", "latency", "limit", "mtu", "quantum", "rate", "interval")
                return {key: plain(one) for key, one in value.items() if key not in skipped}
            return [plain(one) for one in value] if isinstance(value, list) else value

        if "red" not in name:  # tc shows RED's weight, and not what it was computed from
            assert plain(found.queue) == plain(written.queue), name
        seen += 1
    assert seen == 19


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tc qdisc add dev eth0 parent 1:99 pfifo limit 5", "line 11: qdisc pfifo has the parent `1:99`"),
        ("tc qdisc add dev eth0 parent 9:1 pfifo limit 5", "which no line adds; there are `1:`, `1:1`"),
        (
            "tc qdisc add dev eth0 root pfifo limit 5",
            "line 11: the device already has a root discipline (line 2)",
        ),
        ("tc qdisc add dev eth0 parent 1:10 pfifo limit 5", "`1:10` already has the discipline of line 7"),
        (
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
            "`1:10` is already the class of line 5",
        ),
        (
            "tc class add dev eth0 parent 1:21 classid 1:20 htb rate 1mbit\n"
            "tc class add dev eth0 parent 1:20 classid 1:21 htb rate 1mbit",
            "line 11: class 1:20 is its own ancestor: `1:20` in `1:21` in `1:20`",
        ),
        ("tc class add dev eth0 parent 1:1 classid 1:20 htb ceil 1mbit", "class 1:20: `rate` must be given"),
        ("tc class add dev eth0 parent 1:1 classid 1:20 htb rate fast", "`fast` is not a rate"),
        ("tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit prio 9", "`prio` 9 is more than 7"),
        ("tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit mpu 9", "have different `overhead`"),
        ("tc class add dev eth0 classid 1:20 htb rate 1mbit", "has neither `root` nor `parent`"),
        ("tc qdisc add dev eth0 parent 1:12 red limit 9000", "line 11: red: `avpkt` must be given"),
        ("tc qdisc add dev eth0 parent 1:12 tbf rate 1mbit burst 5000", "either `limit` or `latency`"),
        (
            "tc qdisc add dev eth0 parent 1:12 tbf rate 1mbit burst 5000 limit 9000 speed 2",
            "`speed` is no option",
        ),
    ],
)
def test_what_is_no_tree_is_refused_where_it_stands(line, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        read_tc_trees(ROUTER + line + "\n")


def test_without_a_default_packets_would_bypass_the_tree():
    with pytest.raises(UsageError, match=r"line 2: .*`1:0`, which is no leaf, so Linux sends them unshaped"):
        read_tc_trees(ROUTER.replace(" default 12", ""))
    with pytest.raises(UsageError, match="htb has no class"):
        read_tc_trees("tc qdisc add dev eth0 root handle 1: htb default 1")


def test_bands_and_quanta_of_ets():
    (tree,) = read_tc_trees("tc qdisc add dev eth0 root handle 2: ets bands 4 strict 1 quanta 4500 3000")
    strict, rest = tree.queue["class"]
    assert tree.queue["scheduler"] == "strict"
    assert strict["name"] == "band1"
    shared = rest["queue"]
    unit = int(shared["quantum"].removesuffix("B"))
    assert [one["weight"] * unit for one in shared["class"]] == [4500, 3000, 1514]


def test_a_text_without_a_tree_has_none():
    assert read_tc_trees("red limit 400000 avpkt 1000") == []
    assert read_tc_trees("tc qdisc add dev eth0 root codel") == []
    assert len(read_tc_script("tc qdisc add dev eth0 root codel")) == 1


def test_the_command_prints_the_queue_of_a_tree(aqmlab_cli):
    ended = aqmlab_cli("aqm", "tc", "--read", ROUTER)
    assert ended.returncode == 0
    assert ended.stdout.startswith("# eth0\n[topology.queue]\nkind = ")
    assert tomllib.loads(ended.stdout)["topology"]["queue"]["class"][0] == {"name": "1-1", "rate": "10Mbit"}
    as_json = json.loads(aqmlab_cli("aqm", "tc", "--read", ROUTER, "--json").stdout)
    assert as_json[0]["queue"]["kind"] == "htb"


def test_a_tree_is_written_as_lines_that_read_as_itself(tmp_path, aqmlab_cli):
    (tree,) = read_tc_trees("\n".join(ROUTER.splitlines()[:7]) + TBF)
    file = tmp_path / "router.toml"
    traffic = "".join(
        f'[[traffic]]\nname = "{name}"\nkind = "cbr"\nrate = "1Mbit"\nsize = "900B"\nrtt = "9ms"\n'
        for name in [*traffic_of(tree), "other"]
    )
    head = 'duration = "1s"\n[topology]\nkind = "dumbbell"\nrate = "100Mbit"\ndelay = "1ms"\n'
    file.write_text(head + tree.toml + traffic)
    ended = aqmlab_cli("aqm", "tc", str(file))
    assert ended.returncode == 0, ended.stderr
    # The lines of the other direction are for another device.
    shown, _, _ = ended.stdout.partition("# link reverse")
    lines = [line for line in shown.splitlines() if line.startswith("tc ")]
    assert lines[0] == "tc qdisc add dev eth0 root handle 1: htb default 4"
    (again,) = read_tc_trees("\n".join(lines))
    first, second = (plan_of(one.queue, [*traffic_of(one), "other"])["settings"] for one in (tree, again))
    for one in [*first["class"], *second["class"]]:  # they have other numbers
        one.pop("name")
        one.pop("parent", None)
        one.pop("traffic", None)
        if one["queue"] and one["queue"]["kind"] == "tbf":
            # `latency` is written as the `limit` that follows from it, which is that of the queue inside.
            for name in ("latency", "latency_ns", "limit", "limit_bytes"):
                one["queue"]["settings"].pop(name, None)
    assert first == second


TBF = "\ntc qdisc add dev eth0 parent 1:11 handle 20: tbf rate 2mbit burst 5000 latency 50ms\n"


def traffic_of(tree):
    return [leaf["traffic"][0] for leaf in tree.queue["class"] if "traffic" in leaf]


def test_netem_is_a_path_and_its_fifo_may_be_the_queue():
    under_netem = "tc qdisc add dev eth0 root handle 1: netem delay 20ms 2ms loss 1% rate 1gbit\n"
    (tree,) = read_tc_trees(f"{under_netem}tc qdisc add dev eth0 parent 1:1 codel limit 100 target 3ms\n")
    (alone,) = read_tc_trees("tc qdisc add dev eth0 root codel limit 100 target 3ms") or [None]
    assert alone is None  # a single discipline is no tree
    assert (tree.queue["kind"], tree.queue["limit"], tree.queue["target"]) == ("codel", "100p", "3ms")
    said = "\n".join(tree.remarks)
    assert "netem delay 20ms 2ms: the delay of a path: write it into the `rtt`" in said
    assert "netem loss 1%: loss outside queues" in said
    assert "netem rate 1gbit: the rate of a link" in said
    assert "nothing manages" not in said

    shaped = "tc qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 32k latency 50ms\n"
    (tree,) = read_tc_trees(f"{shaped}tc qdisc add dev eth0 parent 1: handle 2: netem delay 20ms limit 50\n")
    assert tree.queue["queue"] == {"kind": "droptail", "limit": "50p"}
    assert any("in netem's FIFO of 50 packets" in remark for remark in tree.remarks)
    with pytest.raises(UsageError, match="line 1: netem: `reorder` has no counterpart"):
        read_tc_trees("tc qdisc add dev eth0 root netem delay 10ms reorder 25%")
    with pytest.raises(UsageError, match="line 1: netem: `20ms` is no option of netem"):
        read_tc_trees("tc qdisc add dev eth0 root netem 20ms")
