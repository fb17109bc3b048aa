"""Calibration: loads that can be counted by hand, refused requests, and written files."""

from __future__ import annotations

import copy
import json
import math
import re
import tomllib

import numpy as np
import pytest
import tomli_w
from scipy import integrate, stats

import aqmlab
from aqmlab.calibration.arithmetic import (
    PACKMIME_TAIL,
    load_bps,
    mean_of,
    packmime_response_bytes,
    tail_index,
)
from aqmlab.calibration.fit import fit, needed, spread
from aqmlab.calibration.places import Load
from aqmlab.calibration.population import population_of
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.recordings.plan import Plan

SEGMENTS = math.ceil(20_000 / 1460)
ON_THE_WIRE = 20_000 + 40 * (SEGMENTS + 2)
"""Bytes of a response: 20 kB, plus the headers of its segments, of the SYN-ACK, and of the ACK of the
client's FIN."""

ONE_WAY_S = 0.01

FETCHES = {
    "title": "Fetches",
    "duration": "40s",
    "warmup": "5s",
    "topology": {
        "kind": "dumbbell",
        "rate": "10Mbit",
        "delay": "10ms",
        "queue": {"kind": "red", "limit": "20p"},
    },
    "traffic": [
        {
            "name": "web",
            "kind": "requests",
            "from": "right",
            "to": "left",
            "rate": "1/s",
            "request": "400B",
            "response": "20kB",
        },
        {"name": "ftp", "kind": "bulk", "count": 3},
    ],
}


def fetches(**changes):
    """The scenario with its class of requests changed."""
    scenario = copy.deepcopy(FETCHES)
    web = scenario["traffic"][0]
    web.update(changes)
    if "users" in changes:
        del web["rate"]
    return scenario


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("calibrated") / "store"


@pytest.fixture
def calibrate(store):
    """Call `aqmlab.calibrate` with few seeds and a store that the tests share."""

    def call(scenario, classes="web", target="35 %", on="bottleneck", **asked):
        return aqmlab.calibrate(
            scenario, classes, target, on, **{"runs": 4, "store": store, "jobs": 2, **asked}
        )

    return call


# --- loads by hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [("wire", ON_THE_WIRE), ("payload", 20_000)])
def test_the_rate_of_constant_sizes_is_the_load_by_a_connections_bytes(calibrate, store, count, size):
    found = calibrate({**fetches(), "title": "Counted"}, count=count)
    rate = 3.5e6 / 8 / size
    assert found.fit.low < rate < found.fit.high
    assert found.values["web"] == pytest.approx(rate, rel=0.03)
    assert found.proportional
    for value, by_seed in found.loads.items():
        requests = completed(store, "counted", found.classes[0].text(value))
        for seed, load in by_seed.items():
            # A few responses are cut off where the interval begins and ends. Headers that are not counted
            # would be noticed: they have as many bytes as 20 responses.
            assert abs(load * found.interval_s / 8 / size - requests[seed]) < 6


def completed(store, title, label):
    """Completed requests by seed, from the recordings of a calibration's runs."""
    for path in store.glob(f"sweeps/calibrate-web-{title}-*"):
        results = aqmlab.load(path)
        for cell in results.cells:
            if cell.label("value") == label and len(results.seeds) == 4:
                return results.values("requests_completed", cell)
    raise AssertionError(f"no run with {label}")


def test_the_way_of_the_requests_carries_their_bytes_and_acknowledgments(calibrate):
    found = calibrate(fetches(), target="200kbit", direction="requests", count="payload")
    assert found.asked.link.name == "reverse"
    assert found.values["web"] == pytest.approx(200e3 / 8 / 400, rel=0.05)
    assert calibrate(fetches(), on="reverse").asked.link.name == "bottleneck"
    assert calibrate(fetches(), target="1 %", on="reverse", direction="named").asked.link.name == "reverse"


def test_the_number_of_users_is_load_by_cycle_by_bytes(calibrate):
    # Little's law. With the handshake, the request, and four rounds of slow start from a window of three
    # segments (3, 4 or 5, 6 or more, the rest), a response takes 5 round trips of 20 ms, plus or minus one.
    users = fetches(users=7, think="5s", start={"uniform": ["0s", "5s"]})
    found = calibrate(users)
    least, most = (3.5e6 * (5 + rounds * 2 * ONE_WAY_S) / 8 / ON_THE_WIRE for rounds in (4, 6))
    assert least < found.fit.value < most
    assert found.values["web"] == round(found.fit.value)
    assert found.fit.half_width < 0.01
    assert found.proportional


def test_few_users_are_rounded_and_that_is_remarked(calibrate):
    users = fetches(users=7, think="5s", start={"uniform": ["0s", "5s"]})
    found = calibrate(users, target="0.7 %")
    assert found.values["web"] == 2
    assert found.fit.value == pytest.approx(0.02 * 107.9, rel=0.05)
    (remark,) = found.remarks
    assert remark.startswith(
        "The number of users must be whole: the load of 2 users differs from the target by \u2212"
    )


def test_bytes_that_a_link_adds_count_on_the_wire(calibrate):
    scenario = fetches()
    scenario["topology"]["overhead"] = "38B"
    found = calibrate(scenario)
    assert found.values["web"] == pytest.approx(3.5e6 / 8 / (ON_THE_WIRE + 38 * (SEGMENTS + 2)), rel=0.03)


def test_several_classes_keep_their_ratio_and_share_the_target(calibrate):
    scenario = fetches(rate="2/s")
    scenario["traffic"].append({**scenario["traffic"][0], "name": "more", "rate": "6/s", "response": "5kB"})
    found = calibrate(scenario, classes=["web", "more"])
    assert found.values["more"] == pytest.approx(3 * found.values["web"], rel=1e-3)
    small = 5000 + 40 * (math.ceil(5000 / 1460) + 2)
    assert found.values["web"] == pytest.approx(3.5e6 / 8 / (ON_THE_WIRE + 3 * small), rel=0.05)


def test_a_second_calibration_finds_all_runs_in_the_store(calibrate):
    first = calibrate(fetches())
    again = calibrate(fetches())
    assert again.runs_done == 0
    assert (again.values, again.loads) == (first.values, first.loads)
    assert again.to_json() == first.to_json()


@pytest.mark.slow
def test_packmime_offers_what_its_source_says(calibrate):
    # 3.5 Mbit/s of payload, 6700 B per response, 1.2 responses per connection: 54.4 connections/s.
    scenario = copy.deepcopy(FETCHES)
    scenario |= {"duration": "400s", "warmup": "60s"}
    scenario["traffic"] = [
        {
            "name": "web",
            "kind": "packmime",
            "from": "right",
            "to": "left",
            "rate": "27/s",
            "tcp": {"profile": "ns2", "max_window": 30},
        }
    ]
    found = calibrate(scenario, count="payload", runs=10)
    assert found.fit.low < 54.4 < found.fit.high
    assert 0.05 < found.spread.variation < 0.25
    assert found.tail == pytest.approx(1.23, abs=0.01)
    assert calibrate(scenario, runs=10).values["web"] < found.values["web"]


def test_a_load_that_does_not_follow_its_value_is_remarked(calibrate):
    # The link keeps its rate, and the users slow each other down as the link fills.
    users = fetches(users=7, think="500ms", start={"uniform": ["0s", "500ms"]})
    found = calibrate(users, target="90 %", keep="bottleneck")
    assert not found.proportional
    assert re.search(
        r"not proportional to the value: the load of one user of `web` changes by"
        r" −[0-9.]+ % from [0-9]+ to [0-9]+ users;",
        found.remarks[0],
    )
    assert found.spread.mean.mean == pytest.approx(9e6, rel=0.02)
    assert "links that keep their rate: `bottleneck` (10Mbit)" in found.differences


# --- networks -----------------------------------------------------------------------------------------------

GRAPH = {
    "title": "Graph",
    "duration": "40s",
    "warmup": "5s",
    "topology": {"kind": "graph", "access_rate": "none"},
    "node": [{"name": name} for name in ("client", "a", "b", "server")],
    "link": [
        {"from": "client", "to": "a", "rate": "8Mbit", "delay": "1ms"},
        {"name": "core", "from": "b", "to": "a", "rate": "10Mbit", "delay": "5ms", "queue": "red"},
        {"name": "access", "from": "server", "to": "b", "rate": "8Mbit", "delay": "1ms"},
    ],
    "traffic": [{**FETCHES["traffic"][0], "from": "client", "to": "server"}],
    "delay": [{"class": "web", "at": "exit", "delay": "3ms"}],
}


def test_links_that_are_kept_have_their_own_rate(calibrate, store):
    found = calibrate(GRAPH, on="core", keep=["access*", "client-a", "a-client"])
    assert found.values["web"] == pytest.approx(3.5e6 / 8 / ON_THE_WIRE, rel=0.05)
    assert found.differences[0] == "links 10 times as fast: `core` and back (100Mbit)"
    newest = max(store.glob("sweeps/calibrate-web-graph-*"), key=lambda path: path.stat().st_mtime)
    run = aqmlab.load(newest).runs[0]
    rates = {link.name: link.rate for link in run.plan.links}
    slow = dict.fromkeys(("client-a", "a-client", "access", "access-reverse"), "8Mbit")
    assert rates == {**slow, "core": "100Mbit", "core-reverse": "100Mbit"}


def test_a_parking_lot_is_measured_on_any_hop_in_any_direction(calibrate):
    scenario = fetches(**{"from": "r3", "to": "r0"})
    scenario["topology"] = {"kind": "parking_lot", "hops": 3, "rate": "10Mbit", "delay": "5ms"}
    scenario["topology"]["hop2"] = {"rate": "5Mbit", "reverse_rate": "20Mbit"}
    del scenario["traffic"][1]
    found = calibrate(scenario, target="1.75Mbit", on="hop2-reverse")
    assert found.asked.link.name == "hop2"
    assert found.asked.link.rate_bps == 5_000_000
    assert found.values["web"] == pytest.approx(1.75e6 / 8 / ON_THE_WIRE, rel=0.05)


def test_classes_that_send_too_do_not_count(calibrate):
    scenario = fetches()
    scenario["traffic"][1] = {"name": "cbr", "kind": "cbr", "rate": "2Mbit", "size": "500B"}
    alone, beside = calibrate(scenario), calibrate(scenario, others="cbr")
    assert "left out: `cbr`" in alone.differences
    assert not any("left out" in text for text in beside.differences)
    assert beside.values["web"] == pytest.approx(alone.values["web"], rel=0.02)


def test_what_arms_change_of_the_load_is_followed(calibrate):
    scenario = fetches()
    scenario["arm"] = [{"name": "small"}, {"name": "large", "traffic.web.response": "40kB"}]
    with pytest.raises(UsageError, match="`small` and `large` differ in settings that determine the load"):
        calibrate(scenario)
    large = 40_000 + 40 * (math.ceil(40_000 / 1460) + 2)
    assert calibrate(scenario, arm="large").values["web"] == pytest.approx(3.5e6 / 8 / large, rel=0.05)


def test_arms_that_enable_other_classes_are_one(calibrate):
    scenario = fetches()
    scenario["traffic"][1]["enabled"] = False
    scenario["arm"] = [{"name": "alone"}, {"name": "with ftp", "traffic.f*.enabled": True}]
    assert calibrate(scenario).values == calibrate(fetches()).values


def test_arms_and_cases_that_change_queues_only_are_one(calibrate):
    scenario = fetches()
    scenario["arm"] = [
        {"name": "DropTail", "topology.queue": "droptail", "traffic.ftp.count": 5},
        {"name": "RED", "topology.queue.limit": "50p", "topology.faults": {"drop": [3]}},
    ]
    scenario["sweep"] = {"topology.reverse_queue": ["droptail", "codel"]}
    assert calibrate(scenario).values == calibrate(fetches()).values


def test_a_case_is_named_where_they_differ(calibrate):
    scenario = fetches()
    scenario["sweep"] = {"topology.rate": ["5Mbit", "10Mbit"]}
    with pytest.raises(UsageError, match=r"cases of the sweep differ .* `--where`"):
        calibrate(scenario)
    found = calibrate(scenario, where={"rate": "5Mbit"})
    assert found.asked.bps == 1.75e6
    with pytest.raises(UsageError, match="there is no label of `rate` `7Mbit`"):
        calibrate(scenario, where={"rate": "7Mbit"})


# --- invalid requests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"target": "0 %"}, "the target `0 %` is not a positive load; give one above zero"),
        ({"target": "0Mbit"}, "the target `0Mbit` is not a positive load"),
        ({"target": "-5 %"}, "the target `-5 %` is not a positive load"),
        ({"target": "x %"}, 'the target `x %` is not a share; write "35 %", or a rate such as "3.5Mbit"'),
        ({"target": "nan %"}, "the target `nan %` is not a share"),
        ({"target": "35"}, "the target `35` has no unit; .* or a share of the link such as"),
        ({"target": "120 %"}, "is 120.0 % of the rate of `bottleneck` .10Mbit.; .* `--allow-overload`"),
        (
            {"target": "400 %", "allow_overload": True},
            "a link counts as uncongested up to 30 % load; give `--faster 14`",
        ),
        ({"classes": "wbe"}, "there is no class `wbe`; did you mean `web`?"),
        (
            {"classes": "ftp"},
            "`ftp` is not a population: traffic of kind `bulk` .*; here `web` can be calibrated",
        ),
        ({"classes": ()}, "no class to calibrate"),
        ({"on": "bottlneck"}, "there is no link `bottlneck`; did you mean `bottleneck`?"),
        ({"direction": "back"}, "there is no direction `back`"),
        ({"count": "packets"}, "there is no count `packets`"),
        ({"faster": 0.5}, "links cannot be made `0.5` times as fast"),
        ({"faster": math.nan}, "links cannot be made `nan` times as fast"),
        ({"keep": "acess"}, "there is no link `acess`"),
        ({"others": "cbr"}, "there is no class `cbr`"),
        ({"runs": 1}, "an interval needs at least 2 seeds, not `1`"),
        ({"warmup": "40s"}, "nothing is measured"),
        ({"arm": "RED"}, "there is no arm `RED`"),
        ({"where": {"rate": "5Mbit"}}, "there is no axis `rate`"),
    ],
)
def test_what_makes_no_sense_is_refused(calibrate, tmp_path, asked, complaint):
    copied = tmp_path / "copy.toml"
    with pytest.raises(UsageError, match=complaint):
        calibrate(fetches(), output=copied, **asked)
    assert not copied.exists()


def test_less_than_a_users_load_is_refused(calibrate):
    with pytest.raises(
        UsageError, match=r"one user of `web` offers more than 0.001000 Mbit/s .* take 0\.0063"
    ):
        calibrate(fetches(users=2, think="1s"), target="1kbit")


def test_a_class_that_does_not_cross_the_link_is_refused(calibrate):
    with pytest.raises(UsageError, match="`web` does not cross `uplink`: its requests cross `client-a`"):
        calibrate(
            {**GRAPH, "link": [*GRAPH["link"], UPLINK], "node": [*GRAPH["node"], {"name": "c"}]}, on="uplink"
        )


UPLINK = {"name": "uplink", "from": "b", "to": "c", "rate": "1Mbit", "delay": "1ms"}


def test_responses_that_go_different_ways_are_refused(calibrate):
    scenario = fetches()
    scenario["traffic"].append({**scenario["traffic"][0], "name": "back", "from": "left", "to": "right"})
    with pytest.raises(
        UsageError, match="those of `web` cross `bottleneck` and those of `back` cross `reverse`"
    ):
        calibrate(scenario, classes=["web", "back"])
    found = calibrate(scenario, classes=["web", "back"], direction="named")
    # In this direction, the second class adds its requests and the headers of its SYNs, requests and delayed
    # ACKs.
    assert 3.5e6 / 8 / (ON_THE_WIRE + 1500) < found.values["web"] < 3.5e6 / 8 / (ON_THE_WIRE + 600)


def test_a_swept_number_is_refused(calibrate):
    for path in ("traffic.web.rate", "traffic.w*.rate"):
        with pytest.raises(UsageError, match=r"the sweep sets `traffic\.web\.rate` itself"):
            calibrate(fetches() | {"sweep": {path: ["1/s", "2/s"]}})


def test_links_that_are_busy_all_the_same_are_reported(calibrate):
    scenario = copy.deepcopy(GRAPH)
    scenario["link"][2]["rate"] = "1Mbit"
    with pytest.raises(
        UsageError, match=r"`access` with 10Mbit is busy .* more than 30 %; give a larger `--faster`"
    ):
        calibrate(scenario, on="core")


@pytest.mark.parametrize("kind", ["requests", "browsers"])
def test_a_load_beyond_what_limits_the_class_is_refused(calibrate, kind):
    scenario = copy.deepcopy(GRAPH)
    scenario["link"][2]["rate"] = "1Mbit"
    users = scenario["traffic"][0]
    del users["rate"]
    users |= {"kind": kind, "users": 20, "think": "100ms"}
    with pytest.raises(
        UsageError, match=r"cannot be reached: it is .* something else limits the class|drops"
    ):
        calibrate(scenario, on="core", keep="access")


def test_more_users_than_this_machine_can_have_are_refused(calibrate):
    with pytest.raises(UsageError, match=r"users cannot be run: .* memory"):
        calibrate(fetches(users=1, think="10000000s", start={"uniform": ["0s", "50s"]}), target="90 %")


def test_a_class_that_is_silent_while_it_is_measured_is_refused(calibrate):
    with pytest.raises(UsageError, match="`web` sends nothing over `bottleneck` in the measured interval"):
        calibrate(fetches(stop="1s"))


def test_a_wrong_scenario_is_reported_as_such(calibrate):
    with pytest.raises(ScenarioError, match="response"):
        calibrate(fetches(response="20"))


# --- writing ------------------------------------------------------------------------------------------------

TEXT = """\
# A scenario with comments.
title = "Commented" # here too
duration = "30s"
warmup = "5s"

[topology]
kind = "dumbbell"
rate = "10Mbit"
delay = "10ms"

[[traffic]]
name = "web"
kind = "requests"
from = "right"
to = "left"
rate = "1/s"      # to be calibrated
request = "400B"
response = { pareto = "12kB", shape = 1.2, max = "40kB" }

[[arm]]
name = "base"

[[arm]]
name = "quoted"
"traffic.web.rate" = "7/s" # quoted

[[arm]]
name = "bare"
traffic.web.rate = "8/s"

[[arm]]
name = "headed"
[arm.traffic.web]
rate = "9/s"
"""


@pytest.fixture
def commented(tmp_path):
    file = tmp_path / "commented.toml"
    file.write_text(TEXT, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("arm", "before", "remark"),
    [
        (None, 'rate = "1/s"      # to be calibrated', "`quoted`, `bare` and `headed`"),
        ("quoted", '"traffic.web.rate" = "7/s" # quoted', "`bare` and `headed`"),
        ("bare", 'traffic.web.rate = "8/s"', "`quoted` and `headed`"),
        ("headed", 'rate = "9/s"', "`quoted` and `bare`"),
    ],
)
def test_one_number_is_written_and_nothing_else(calibrate, commented, tmp_path, arm, before, remark):
    copied = tmp_path / "copy.toml"
    found = calibrate(commented, arm=arm, output=copied)
    old, new = TEXT.splitlines(), copied.read_text(encoding="utf-8").splitlines()
    (changed,) = (i for i, (one, other) in enumerate(zip(old, new, strict=True)) if one != other)
    assert old[changed] == before
    number = before.split('"')[-2]
    assert new[changed] == before.replace(number, found.classes[0].toml(found.values["web"]))
    assert found.remarks == (f"These arms set `traffic.web.rate` themselves and keep it: {remark}.",)
    assert commented.read_text(encoding="utf-8") == TEXT
    assert len(aqmlab.show(copied)["arms"]) == 4


def test_an_arm_that_means_several_classes_gets_a_number_for_one(calibrate, commented, tmp_path):
    starred = TEXT.replace('"traffic.web.rate" = "7/s" # quoted', '"traffic.w*.rate" = "7/s"')
    commented.write_text(starred, encoding="utf-8")
    found = calibrate(commented, arm="quoted", output=tmp_path / "copy.toml")
    rate = found.classes[0].toml(found.values["web"])
    arm = tomllib.loads((tmp_path / "copy.toml").read_text())["arm"][1]
    assert arm == {"name": "quoted", "traffic.w*.rate": "7/s", "traffic.web.rate": rate}
    (planned,) = (arm for arm in aqmlab.show(tmp_path / "copy.toml")["arms"] if arm["name"] == "quoted")
    assert f"{planned['plan']['classes'][0]['workload']['rate_per_s']:g}/s" == rate


def test_a_scenario_is_changed_in_its_place(calibrate, commented):
    found = calibrate(commented, output=commented)
    assert tomllib.loads(commented.read_text())["traffic"][0]["rate"] == f"{found.values['web']:g}/s"


def test_ends_of_lines_stay(calibrate, commented):
    commented.write_bytes(TEXT.replace("\n", "\r\n").encode())
    calibrate(commented, output=commented)
    content = commented.read_bytes()
    assert content.count(b"\r\n") == content.count(b"\n") == TEXT.count("\n")


def test_users_are_written_as_a_whole_number(calibrate, tmp_path):
    file = tmp_path / "users.toml"
    file.write_text(tomli_w.dumps(fetches(users=7, think="5s", start={"uniform": ["0s", "5s"]})))
    calibrate(file, output=file)
    users = tomllib.loads(file.read_text())["traffic"][0]["users"]
    assert isinstance(users, int)
    assert users > 100


def test_another_file_is_never_overwritten(calibrate, commented, tmp_path):
    there = tmp_path / "there.toml"
    there.write_text("mine")
    with pytest.raises(UsageError, match=r"`.*there\.toml` exists; name another file, or remove it"):
        calibrate(commented, output=there)
    assert there.read_text() == "mine"
    with pytest.raises(UsageError, match=r"of `copy\.toml` does not exist"):
        calibrate(commented, output=tmp_path / "nowhere" / "copy.toml")


def test_a_copy_that_would_miss_its_files_is_refused(calibrate, tmp_path):
    scenario = fetches()
    scenario["traffic"].append({"name": "mail", "kind": "trace", "file": "mail.csv"})
    (tmp_path / "mail.csv").write_text("start_s,request_bytes,response_bytes\n1,100,2000\n")
    file = tmp_path / "traced.toml"
    file.write_text(tomli_w.dumps(scenario))
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match=r"would be invalid as `.*copy\.toml`"):
        calibrate(file, output=tmp_path / "other" / "copy.toml")
    # Files next to the scenario are found, even if the class that reads them is not the calibrated one.
    assert calibrate(file, others="mail", output=tmp_path / "copy.toml").values["web"] > 0


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_sentences(aqmlab_cli, commented, store):
    asked = ("calibrate", commented, "--class", "web", "--target", "35 %", "--on", "bottleneck")
    ended = aqmlab_cli(*asked, "--runs", "4", "--store", store, "--in-place")
    assert ended.returncode == 0
    assert ended.stdout.startswith("connections/s   load [Mbit/s]   of `bottleneck` [%]   between seeds [%]")
    assert "links 10 times as fast: `bottleneck` and back (100Mbit)" in ended.stdout
    assert (
        "A load of 3.500 Mbit/s (35.0 % of the rate of `bottleneck`), headers included, takes "
        in ended.stdout
    )
    assert "coefficient of variation between seeds" in ended.stdout
    assert "±1 % takes" in ended.stdout
    assert f"written    {commented}" in ended.stderr
    as_json = aqmlab_cli(*asked, "--runs", "4", "--store", store, "--json")
    content = json.loads(as_json.stdout)
    (web,) = content["classes"]
    assert web["toml"] == tomllib.loads(commented.read_text())["traffic"][0]["rate"]
    assert content["fit"]["low"] < web["value"] < content["fit"]["high"]
    assert {row["seed"] for row in content["loads_bps"]} == {1, 2, 3, 4}


def test_the_command_ends_with_2_and_writes_nothing(aqmlab_cli, commented, store):
    asked = ("calibrate", commented, "--class", "web", "--on", "bottleneck", "--store", store)
    for wrong, complaint in (
        (("--target", "0 %"), "is not a positive load"),
        (("--target", "35 %", "--in-place", "--write", "x.toml"), "choose one"),
    ):
        ended = aqmlab_cli(*asked, *wrong)
        assert ended.returncode == 2
        assert complaint in ended.stderr
    assert commented.read_text(encoding="utf-8") == TEXT


# --- arithmetic ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1.2, 1.8, 3.0])
def test_the_mean_of_a_truncated_pareto_is_its_integral(shape):
    mean, most = 12_000.0, 400_000.0
    law = stats.pareto(shape, scale=mean * (shape - 1) / shape)
    inside, _ = integrate.quad(lambda x: x * law.pdf(x), law.ppf(0), most, limit=500)
    assert mean_of({"pareto": mean, "shape": shape, "max": most}) == pytest.approx(
        inside / law.cdf(most), rel=1e-6
    )
    assert mean_of({"pareto": mean, "shape": shape}) == mean == pytest.approx(law.mean())


def test_means_of_other_distributions():
    assert mean_of(400) == 400
    assert mean_of({"exponential": 5, "offset": 2}) == 7
    assert mean_of({"uniform": [10, 30]}) == 20
    assert mean_of({"list": [1, 2, 6]}) == 3
    # A tenth of the values are 5; the others are uniform from 5 to 80.
    assert mean_of({"empirical": [[5, 0.1], [80, 1.0]]}) == pytest.approx(0.1 * 5 + 0.9 * 42.5)


def test_a_tail_without_variance_is_known_by_its_index():
    def index(response):
        (planned,) = aqmlab.show(
            {**fetches(response=response), "traffic": [fetches(response=response)["traffic"][0]]}
        )["arms"]
        plan = Plan.of(planned["plan"])
        return tail_index(population_of(plan.classes[0]), Load(1e6, plan.links[0], "wire", responses=True))

    assert index({"pareto": "12kB", "shape": 1.2}) == 1.2
    assert index({"pareto": "12kB", "shape": 1.2, "max": "1MB"}) is None
    assert index({"pareto": "12kB", "shape": 2.5}) is None
    assert index("20kB") is None


def test_a_bound_on_packmimes_responses_lowers_their_mean_and_ends_their_tail():
    # By integrating the segments of ns-2's table, for 27 connections per second.
    assert packmime_response_bytes(None) == 8.6e3
    for most, mean in [(1e5, 5146), (1e6, 6560), (9e6, 7382)]:
        assert packmime_response_bytes(most) == pytest.approx(mean, abs=50)

    def of(**keys):
        class_ = {"name": "web", "kind": "packmime", "rate": "20/s", "from": "right", "to": "left", **keys}
        (planned,) = aqmlab.show({**fetches(), "traffic": [class_]})["arms"]
        plan = Plan.of(planned["plan"])
        load = Load(1e6, plan.links[0], "payload", responses=True)
        return load_bps(population_of(plan.classes[0]), load), tail_index(
            population_of(plan.classes[0]), load
        )

    assert of() == (pytest.approx(8 * 20 * 1.2 * 8.6e3), PACKMIME_TAIL)
    assert of(max_response="9MB") == (pytest.approx(8 * 20 * 1.2 * 7382, rel=0.01), None)


def test_the_fit_is_the_ratio_of_sums_and_its_interval_is_over_seeds():
    loads = {10.0: {1: 98.0, 2: 103.0, 3: 99.0}, 20.0: {1: 205.0, 2: 202.0, 3: 193.0}}
    found = fit(loads, 150.0)
    slopes = [(98 + 205) / 30, (103 + 202) / 30, (99 + 193) / 30]
    low, high = stats.t.interval(0.95, 2, np.mean(slopes), stats.sem(slopes))
    assert (found.slope.low, found.slope.high) == pytest.approx((low, high))
    assert (found.value, found.low, found.high) == pytest.approx(
        (150 / np.mean(slopes), 150 / high, 150 / low)
    )
    assert found.proportional


def test_a_load_that_bends_is_no_line():
    loads = {10.0: {1: 100.0, 2: 101.0, 3: 99.0}, 20.0: {1: 180.0, 2: 181.0, 3: 179.0}}
    found = fit(loads, 150.0)
    assert not found.proportional
    assert found.change.mean == pytest.approx(-1 / found.slope.mean, rel=1e-6)


def test_seeds_that_an_accuracy_takes_are_the_least_that_give_it():
    loads = list(100 + 10 * np.array([-1.5, -0.5, 0.0, 0.5, 1.5]))
    seen = spread(loads)
    assert seen.variation == pytest.approx(np.std(loads, ddof=1) / np.mean(loads))
    found = needed(0.03, seen, 60.0, None)

    def half(n):
        return stats.t.ppf(0.975, n - 1) * seen.variation / math.sqrt(n)

    assert half(found.seeds) <= 0.03 < half(found.seeds - 1)
    # One long run: the cost grows with the square of the factor by which the interval must shrink, and is far
    # higher if the variance is infinite.
    assert found.seconds == pytest.approx(60 * (1.96 * seen.variation / 0.03) ** 2, rel=0.01)
    heavy = needed(0.03, seen, 60.0, 1.5)
    assert heavy.seeds == found.seeds
    assert heavy.seconds == pytest.approx(60 * (1.96 * seen.variation / 0.03) ** 3, rel=0.01)
