"""Random commands and random queues, compared with the real tc and a kernel."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aqmlab import TcQueue, read_tc
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.language.scenario import resolve
from aqmlab.recordings.plan import Link, Plan
from aqmlab.tc import NoCounterpartError, tc_lines
from aqmlab.tc.line import written
from guest import KERNEL
from tc_cases import commands, kept, read_as, scenario, shown_on_ethernet

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("AQMLAB_TC_SEED", "1"))
PROBE = "tc qdisc add dev lo root codel"


def answers(lines: list[str]) -> list[dict[str, Any]]:
    """The answers of tc and a kernel: of the guest if there is one, or else of this machine."""
    script = ROOT / "peers" / "linux" / "tc_answers.py"
    command = [sys.executable, str(script), *([KERNEL] if KERNEL else [])]
    text = "\n".join(lines)
    ran = subprocess.run(command, input=text, text=True, capture_output=True, timeout=3000, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def linux():
    """A function that asks tc and a kernel."""
    if shutil.which("tc") is None:
        pytest.skip("no tc (Debian package iproute2)")
    if KERNEL is None:
        command = ["unshare", "-rn", *PROBE.split()]
        tried = subprocess.run(command, text=True, capture_output=True, check=False)
        if tried.returncode != 0:
            pytest.skip(
                f"this kernel has no codel, and AQMLAB_GUEST_KERNEL names none: {tried.stderr.strip()}"
            )
    return answers


def test_two_thousand_random_commands_are_read_as_tc_and_the_kernel_read_them(linux):
    seen = Counter[str]()
    wrong = []
    for answer in linux(commands(SEED, 2000)):
        accepted = answer["refused"] is None
        try:
            read = read_tc(answer["command"])
        except NoCounterpartError:
            seen["no counterpart"] += 1
            fine = accepted
        except UsageError:
            seen["refused"] += 1
            fine = not accepted
        else:
            seen["read"] += 1
            fine = accepted and read.shown == shown_on_ethernet(answer)
            fine = fine and read_as(read) == kept(answer["options"])
        if not fine:
            wrong.append(answer)
    assert wrong == [], f"seed {SEED}: {seen}"
    assert min(seen["read"], seen["refused"]) > 500
    assert seen["no counterpart"] > 50


def links(seed: int, number: int) -> list[tuple[dict[str, Any], Link]]:
    """Valid random scenarios, each with the link of its queue."""
    draws, found = random.Random(seed), []
    while len(found) < number:
        drawn = scenario(draws)
        try:
            plan = Plan.of(resolve(drawn)["arms"][0]["plan"])
        except ScenarioError:
            continue
        found.append((drawn, plan.links[0]))
    return found


def test_four_hundred_random_queues_are_written_as_tc_and_the_kernel_accept_them(linux):
    drawn = links(SEED, 400)
    lines = [f"tc qdisc add dev lo root {written(link)[0]}" for _, link in drawn]
    seen, wrong = Counter[bool](), []
    for (described, link), answer in zip(drawn, linux(lines), strict=True):
        line = next(line for line in tc_lines(described) if line.link == link.name)
        accepted = answer["refused"] is None
        seen[accepted] += 1
        fine = (line.spec is not None) == accepted and line.shown == answer["shown"]
        if not fine or (accepted and (silent := unmentioned(link, answer["options"], line.remarks))):
            wrong.append((described["topology"], line, answer, fine or silent))
    assert wrong == [], f"seed {SEED}: {seen}"
    assert min(seen.values()) > 20


def unmentioned(link: Link, options: dict[str, int], remarks: tuple[str, ...]) -> list[str]:
    """The parameters that have another value in the kernel, and that no remark names."""
    ours, mean = link.settings, link.settings.get("mean_packet_bytes") or link.mean_packet_bytes
    theirs = options | {"min_th": options.get("min"), "max_th": options.get("max")}
    differ = []
    for name in ("limit", "min_th", "max_th"):
        in_bytes, packets = ours.get(f"{name}_bytes"), ours.get(f"{name}_packets")
        fifo_or_codel = link.queue in ("droptail", "codel")
        same = packets == theirs[name] if fifo_or_codel and packets is not None else in_bytes == theirs[name]
        if theirs[name] is not None and not same:
            differ.append(name)
    if link.queue == "codel":
        differ += [
            name for name in ("target", "interval") if ours[f"{name}_ns"] != 1000 * theirs[f"{name}_us"]
        ]
    if link.queue in ("red", "ared"):
        rise = max(1, options["max_p"] // max(1, options["max"] - options["min"]))
        chance = rise * max(1, options["max"] - options["min"]) / 2**32
        if options["max"] > options["min"] and abs(chance / ours["max_p"] - 1) > 1.001e-3:
            differ.append("probability")
        if ours["w_q"] != 2.0 ** -options["w_log"]:
            differ.append("w_q")
    if link.queue == "droptail" and ours["limit_rule"] != "fits":
        differ = []  # the line has the limit of the rule `fits`
    assert mean
    return [name for name in differ if not any(f"`{name}" in remark for remark in remarks)]


def test_what_tc_shows_is_read_as_the_state_that_it_shows(linux):
    """tc shows few digits, so the discipline is set again from what was read, and shown again."""
    shown = {answer["shown"]: answer for answer in linux(commands(SEED + 1000, 400)) if answer["shown"]}
    again, first = [], []
    for text, answer in shown.items():
        kind, _, words = text.partition(" ")
        try:
            read = read_tc(f"qdisc {kind} 8001: root refcnt 2 {words}")
        except NoCounterpartError:
            continue
        line = _line_of(read)
        if line is not None:
            again.append(f"tc qdisc add dev lo root {line}")
            first.append(answer)
    assert len(again) > 80
    wrong = []
    for before, after in zip(first, linux(again), strict=True):
        one, other = (_without_table(answer["shown"]) for answer in (before, after))
        if one != other:
            wrong.append((before, after))
    assert wrong == []


def _line_of(read: TcQueue) -> str | None:
    """The command for a queue on a link of 10 Mbit/s with packets of 29 B, which fit every queue.

    It is None if no burst of such packets leads to the queue's weight.
    """
    described = scenario(random.Random(0))
    described["topology"] |= {"rate": "10Mbit", "queue": dict(read.queue)}
    described["traffic"][0]["size"] = "29B"
    line = next(line for line in tc_lines(described) if line.link == "bottleneck")
    return None if any(remark.startswith("`w_q`") for remark in line.remarks) else line.spec


def _without_table(shown: str | None) -> str:
    """What tc shows, without what aqmlab does not keep.

    This is the table for idle times, which depends on the rate and the mean packet size, `harddrop` where it
    has no effect, and of cake, `raw`, which stands for the 14 bytes of Ethernet, and what does nothing.
    """
    text = str(shown).partition(" Scell_log")[0]
    text = re.sub(r" raw( [ap]tm)? overhead 0", lambda raw: f"{raw[1] or ' noatm'} overhead 14", text)
    text = re.sub(r" fwmark \S+", "", text.replace("no-split-gso", "split-gso"))
    return text if " ecn" in text else text.replace(" harddrop", "")
