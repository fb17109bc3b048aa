"""`aqm check`: its scripts, its counts, and its report on a broken discipline."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

import aqmlab
from aqmlab.cli.progress import check_text, duration_s
from aqmlab.disciplines.contract import smallest_finding

ITEMS = ["conservation", "time order", "liveness", "deadline", "catching up", "bounded work", "replay"]


def test_every_discipline_passes_and_every_item_is_counted(aqmlab_cli):
    ended = aqmlab_cli("aqm", "check", "all", "--seeds", 20, "--json", "-q")
    assert (ended.returncode, ended.stderr) == (0, "")
    answer = json.loads(ended.stdout)
    assert [item["name"] for item in answer["items"]] == ITEMS
    assert [d["name"] for d in answer["disciplines"]] == [d["name"] for d in aqmlab.aqm_list()]
    for discipline in answer["disciplines"]:
        assert discipline["findings"] == []
        assert discipline["scripts"] == 20 * len(discipline["variants"])
        # Only shapers have deadlines.
        without = [] if discipline["name"] in ("tbf", "htb", "fq") else ["deadline"]
        assert [name for name in ITEMS if discipline["checks"][name] == 0] == without


def test_presets_and_words_are_all_tried():
    (red,) = aqmlab.aqm_check("red", seeds=1)["disciplines"]
    words = [p["values"].split(" | ") for p in aqmlab.aqm_show("red")["params"] if p["kind"] == "choice"]
    presets = aqmlab.aqm_show("red")["presets"]
    assert len(red["variants"]) == 2 * len(presets) + sum(map(len, words))
    assert {"preset ns2", "preset ns2, ecn", "uniformisation linux"} <= set(red["variants"])


def test_the_number_of_workers_changes_nothing():
    one, three = (aqmlab.aqm_check("rem", seeds=5, seed=40, jobs=n) for n in (1, 3))
    assert one == three
    assert one["first_seed"] == 40
    assert one != aqmlab.aqm_check("rem", seeds=5, seed=41)


def test_a_hunt_by_time_ends_in_time_and_begins_anywhere():
    before = time.monotonic()
    hunts = [aqmlab.aqm_check("droptail", for_s=0.3) for _ in range(2)]
    assert time.monotonic() - before < 10
    assert all(hunt["passed"] and hunt["disciplines"][0]["scripts"] > 0 for hunt in hunts)
    assert hunts[0]["first_seed"] != hunts[1]["first_seed"]


BROKEN = {
    "items": [{"name": name, "counts": "things"} for name in ITEMS],
    "disciplines": [
        {
            "name": "red",
            "variants": ["preset paper", "gentle"],
            "scripts": 2,
            "checks": dict.fromkeys(ITEMS, 7),
            "findings": [
                {
                    "variant": "preset paper",
                    "seed": 11,
                    "item": "replay",
                    "what": "a [longer] story",
                    "operation": 0,
                    "script": ["depart", "depart", "depart"],
                },
                {
                    "variant": "gentle",
                    "seed": 12,
                    "item": "conservation",
                    "what": "arrived 1, but [nothing] left",
                    "operation": 1,
                    "script": ["arrive 1.5kB, flow 3, NotEct", "depart"],
                },
            ],
        }
    ],
}


def test_a_broken_contract_is_exit_1_with_the_smallest_script(aqmlab_cli, monkeypatch):
    monkeypatch.setattr("aqmlab._core.aqm_check", lambda *_: json.dumps(BROKEN))
    ended = aqmlab_cli("aqm", "check", "red")
    assert ended.returncode == 1
    lines = [line.rstrip() for line in ended.stdout.splitlines()]
    begin = lines.index("red, gentle, seed 12: conservation (and with 1 more setting)")
    assert lines[begin + 1 :] == [
        "arrived 1, but [nothing] left",
        "    0  arrive 1.5kB, flow 3, NotEct",
        "    1  depart  <- here",
        "again: aqmlab aqm check red --seeds 1 --seed 12",
    ]
    ended = aqmlab_cli("aqm", "check", "red", "--json")
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["passed"] is False


def test_a_panic_comes_before_the_shortest_script():
    panic = {"script": [], "seed": 99}
    findings = [*BROKEN["disciplines"][0]["findings"], panic]
    assert smallest_finding({"findings": findings}) is panic
    assert smallest_finding({"findings": []}) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rde"], "there is no discipline `rde`; the disciplines are `red`, "),
        (["red", "--seeds", "0"], "`0` seeds"),
        (["red", "--seed", "-1"], "the seed `-1`"),
        (["red", "--jobs", "0"], "`0` is not a valid number of jobs"),
        (["red", "--for", "10"], "`10` has no unit; write a time"),
        (["red", "--for", "0s"], "no script can run in zero seconds"),
        (["red", "--for", "1s", "--seeds", "3"], "exclude each other"),
        ([], "Missing argument"),
    ],
)
def test_a_wrong_request_is_exit_2(aqmlab_cli, words, message):
    ended = aqmlab_cli("aqm", "check", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_name_lists_all_the_nearest_first(aqmlab_cli):
    ended = aqmlab_cli("aqm", "show", "bleu")
    assert ended.returncode == 2
    names = [entry["name"] for entry in aqmlab.aqm_list()]
    assert "the disciplines are `blue`, " in ended.stderr
    assert all(f"`{name}`" in ended.stderr for name in names)


def test_ctrl_c_ends_it():
    command = [sys.executable, "-m", "aqmlab", "aqm", "check", "all", "--for", "1h"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # After this wait, the program has installed its handlers, and the check, which would last an hour, is
        # still running.
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_progress_and_times_in_words():
    now = {"scripts_done": 1200, "scripts_total": 9000, "findings": 0}
    assert check_text(now, 2.0) == "scripts 1200/9000 · 600/s · 13 s to go"
    assert (
        check_text(now | {"scripts_total": None, "findings": 2}, 2.0)
        == "scripts 1200 · 600/s · 2 settings fail"
    )
    assert [duration_s(text) for text in ("90s", "10min", "1.5 h")] == [90, 600, 5400]


def test_show_tells_range_unit_default_source_aliases_and_what_presets_change(aqmlab_cli):
    params = {p["name"]: p for p in aqmlab.aqm_show("pi")["params"]}
    assert params["rtt"]["values"] == "1us to 3600s"
    assert params["rtt"]["unit"] == "ns, us, ms, s"
    assert params["gains"]["values"] == "published | auto"
    assert params["a"]["values"] == "above 0 to 1"
    shown = aqmlab_cli("aqm", "show", "blue").stdout
    for word in (
        "Decides at enqueue",
        "Feng et al. 2002",
        "FreezeTime (ns-3)",
        "ALTQ's blue as shipped",
        "0.125",
    ):
        assert word in shown
    # A preset's value is shown next to the default that it replaces.
    assert ["d2", "0.001", "0.00025"] in [line.split() for line in shown.splitlines()]


def test_list_tells_maturity_and_when_it_decides(aqmlab_cli):
    lines = aqmlab_cli("aqm", "list").stdout
    for entry in aqmlab.aqm_list():
        assert entry["maturity"] in lines
        assert entry["decides"] in {"enqueue", "dequeue", "enqueue and dequeue"}
    assert "enqueue and dequeue" in lines
