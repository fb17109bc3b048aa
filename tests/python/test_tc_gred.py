"""Tables of gred in tc's syntax, compared with what tc and Linux made of them, and written back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aqmlab.errors import UsageError
from aqmlab.language.scenario import resolve
from aqmlab.tc import NoCounterpartError, read_tc_trees

BLOCKS = (Path(__file__).parents[2] / "vectors/linux-gred/shown.txt").read_text().split("\n\n")
ETH0 = "tc qdisc change dev eth0 root handle 1: gred"


def commands(block):
    return "\n".join(line.removeprefix("# ") for line in block.splitlines() if line.startswith("# "))


def classes_of(queue, rate="10Mbit"):
    """The effective values of each class on a link of this rate."""
    names = [one["traffic"][0] for one in queue["class"] if "traffic" in one] or ["some"]
    scenario = {
        "duration": "1s",
        "topology": {"kind": "dumbbell", "rate": rate, "delay": "1ms", "queue": queue},
        "traffic": [
            {"name": name, "kind": "cbr", "rate": "1Mbit", "size": "1000B", "rtt": "10ms"}
            for name in [*names, "rest"]
        ],
    }
    settings = resolve(scenario)["arms"][0]["plan"]["links"][0]["queue"]["settings"]
    return {one["name"]: one for one in settings["class"]}


def shown_queues(block):
    """The virtual queues that tc shows: sizes, weight, probability, priority and flags of each."""
    found = {}
    pattern = r" vq (\d+) prio (\d+) limit (\d+)b min (\d+)b max (\d+)b (ecn )?(harddrop )?"
    pattern += r"ewma (\d+) probability (\S+)"
    for number, prio, *sizes, ecn, hard, ewma, chance in re.findall(pattern, block):
        found[f"dp{number}"] = (
            list(map(int, sizes)),
            2.0 ** -int(ewma),
            chance,
            int(prio),
            bool(ecn),
            bool(hard),
        )
    return found


def accepted(block):
    return "!" not in block and "qdisc gred" in block


def default_of(block):
    return f"dp{re.search('default ([0-9]+)', block)[1]}"


@pytest.mark.parametrize("block", [block for block in BLOCKS if accepted(block)], ids=commands)
def test_a_table_is_read_as_tc_and_linux_read_it(block):
    shown = shown_queues(block)
    if default_of(block) not in shown:
        with pytest.raises(NoCounterpartError, match="the default virtual queue 3 is not set up"):
            read_tc_trees(commands(block))
        block = re.sub("default 3", f"default {next(iter(shown))[2:]}", block)
    (tree,) = read_tc_trees(commands(block))
    priorities = [prio for *_, prio, _, _ in shown.values()]
    average = "class"
    if "grio" in block and len(shown) > 1:
        average = "priority" if len(set(priorities)) == len(shown) else "all"
    assert tree.queue.get("average", "class") == average
    rate = re.search("bandwidth (\\S+)", block)
    ours = classes_of(tree.queue, rate[1].replace("mbit", "Mbit") if rate else "10Mbit")
    assert list(ours) == list(shown)
    for name, (sizes, weight, chance, prio, ecn, hard) in shown.items():
        one = ours[name]
        assert [one["limit_bytes"], one["min_th_bytes"], one["max_th_bytes"]] == sizes
        # The kernel keeps the rise per byte in whole units, so what it shows may be a little less.
        assert (one["w_q"], one["max_p"]) == (weight, pytest.approx(float(chance), rel=1e-4))
        assert one["ecn"] == ecn
        assert not ecn or (one["ecn_region"] == "rfc3168") == hard
        if average == "priority":
            assert one["priority"] == prio


@pytest.mark.parametrize("block", [block for block in BLOCKS if accepted(block)], ids=commands)
def test_what_tc_shows_is_read_as_what_was_written(block):
    if default_of(block) not in (queues := shown_queues(block)):
        block = re.sub("default 3", f"default {next(iter(queues))[2:]}", block)
    shown = "\n".join(line for line in block.splitlines() if not line.startswith("#"))
    (written,), (found,) = read_tc_trees(commands(block)), read_tc_trees(shown)
    # tc shows neither `avpkt` nor `burst`, but the weight that they give.
    ours, theirs = classes_of(written.queue), classes_of(found.queue)
    assert list(ours) == list(theirs)
    for name in ours:
        for key in ("limit_bytes", "min_th_bytes", "max_th_bytes", "w_q", "priority", "ecn", "ecn_region"):
            assert ours[name].get(key) == theirs[name].get(key), (name, key)
        assert ours[name]["max_p"] == pytest.approx(theirs[name]["max_p"], rel=1e-4)


@pytest.mark.parametrize("block", [block for block in BLOCKS if "\n!" in block], ids=commands)
def test_what_tc_or_linux_refuses_is_refused(block):
    if "must be defined after" in block:
        return  # aqmlab reads the words of `setup` in any order
    with pytest.raises(UsageError, match=r"^line [12]: gred") as error:
        read_tc_trees(commands(block))
    assert not isinstance(error.value, NoCounterpartError)


def test_the_line_of_a_virtual_queue_is_named():
    with pytest.raises(UsageError, match="line 1: no line before this one sets up the table of gred"):
        read_tc_trees(f"{ETH0} limit 60000 min 9000 max 27000 avpkt 1000 DP 1")
    table = "tc qdisc add dev eth0 root handle 1: gred setup vqs 2 default 1\n"
    with pytest.raises(UsageError, match="line 3: gred: `speed` is not an option"):
        read_tc_trees(
            f"{table}{ETH0} limit 60000 min 9000 max 27000 avpkt 1000 vq 1\n{ETH0} limit 60000 speed 3 vq 0"
        )


def test_a_table_is_written_as_lines_that_read_as_itself(tmp_path, aqmlab_cli):
    file = tmp_path / "gred.toml"
    file.write_text(
        """
duration = "1s"
[topology]
kind = "dumbbell"
rate = "10Mbit"
delay = "1ms"
[topology.queue]
kind = "gred"
preset = "linux"
average = "priority"
mean_packet = "1kB"
class = [
  { name = "in", dscp = ["AF11"], limit = "60kB", min_th = "9kB", max_th = "27kB", ecn = true },
  { name = "out", limit = "40kB", min_th = "6kB", max_th = "12kB", max_p = 0.1, priority = 5 },
]
[[traffic]]
name = "x"
kind = "cbr"
rate = "1Mbit"
size = "900B"
rtt = "9ms"
"""
    )
    ended = aqmlab_cli("aqm", "tc", str(file))
    assert ended.returncode == 0, ended.stderr
    shown, _, _ = ended.stdout.partition("# link reverse")
    lines = [line for line in shown.splitlines() if line.startswith("tc ")]
    assert lines[0] == "tc qdisc add dev eth0 root handle 1: gred setup vqs 2 default 1 grio"
    assert lines[1].startswith(
        "tc qdisc change dev eth0 root handle 1: gred limit 60000 min 9000 max 27000 avpkt 1000"
    )
    assert lines[3:] == [
        "tc qdisc add dev eth0 clsact",
        "tc filter add dev eth0 egress protocol ip u32 match ip tos 0x28 0xfc flowid :0",
    ]
    (tree,) = read_tc_trees("\n".join(lines))
    first, second = classes_of(tree.queue).values()
    assert (first["limit_bytes"], first["priority"], first["ecn"], first["w_q"]) == (60_000, 1, True, 1 / 16)
    assert (second["max_th_bytes"], second["priority"], second["max_p"]) == (12_000, 5, 0.1)
