"""Doubts about a scenario's settings: for each, one scenario that raises it and one that does not."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest

import aqmlab
from aqmlab.errors import RecordingError
from aqmlab.paths import load
from aqmlab.results.answers import answer
from aqmlab.results.comparison import why_not_paired
from aqmlab.soundness import examine

BASE = {
    "duration": "4s",
    "warmup": "2s",
    "runs": 1,
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "access_rate": "20Mbit",
        "queue": {"kind": "droptail", "limit": "30p"},
    },
    "traffic": [{"name": "ftp", "kind": "bulk", "count": 2, "rtt": "30ms"}],
}


@pytest.fixture
def ask(tmp_path):
    """Run a scenario with these queues, one per arm, and this traffic; return its checks by kind."""

    def asked(*queues, traffic=(), rate="2Mbit", arms=()):
        scenario = copy.deepcopy(BASE)
        scenario["topology"]["rate"] = rate
        if traffic:
            scenario["traffic"] = [BASE["traffic"][0] | one for one in traffic]
        given = [{"name": name, "topology.queue": queue} for name, queue in queues] + list(arms)
        if given:
            scenario["arm"] = given
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        made = aqmlab.run(scenario, output=folder, report=False)
        return {check.kind: check for check in examine(made)}

    return asked


def only(check):
    (doubt,) = check.doubts
    return doubt


RED = {"kind": "red", "limit": "30p", "ecn": True}
ECN = {"tcp": {"ecn": True}}


def test_a_queue_that_marks_needs_flows_that_can_be_marked(ask):
    doubt = only(ask(("RED", RED))["ecn"])
    assert doubt.severity == "warning"
    assert doubt.sentence == (
        "`bottleneck` has red with ECN, but the data of `ftp` is not ECN-capable: it can only be dropped"
    )
    assert ask(("RED", RED), traffic=[ECN])["ecn"].doubts == ()
    # One class that can be marked is enough.
    assert ask(("RED", RED), traffic=[{"name": "old"}, {"name": "new"} | ECN])["ecn"].doubts == ()
    assert ask(("RED", RED | {"ecn": False}))["ecn"].finding == "no queue marks"


def test_inner_queues_are_asked_about_their_own_classes(ask):
    inner = [
        {"name": "marked", "traffic": ["old"], "queue": RED},
        {"name": "rest", "queue": {"kind": "droptail", "limit": "30p"}},
    ]
    traffic = [{"name": "old"}, {"name": "new"} | ECN]
    wrong = ask(("classes", {"kind": "classes", "class": inner}), traffic=traffic)["ecn"]
    assert "the data of `old` is not ECN-capable" in only(wrong).sentence
    inner[0]["traffic"] = ["new"]
    assert ask(("classes", {"kind": "classes", "class": inner}), traffic=traffic)["ecn"].doubts == ()


def test_dctcp_needs_a_queue_that_marks(ask):
    dctcp = {"tcp": {"congestion": "dctcp", "ecn": True}}
    unmarked = RED | {"ecn": False}
    for queue in (BASE["topology"]["queue"], unmarked):
        doubt = only(ask(("one", queue), traffic=[dctcp])["dctcp"])
        assert doubt.severity == "warning"
        assert doubt.sentence.startswith(
            "the flows of `ftp` use DCTCP, but no queue that their data cross marks"
        )
    assert ask(("RED", RED), traffic=[dctcp])["dctcp"].doubts == ()
    policed = {"kind": "policer", "rate": "1Mbit", "burst": "10kB", "queue": RED}
    assert ask(("policed", policed), traffic=[dctcp])["dctcp"].doubts == ()
    assert ask(traffic=[ECN])["dctcp"].finding == "no flow uses DCTCP or Prague"


def test_a_packet_is_sent_within_codels_target(ask):
    """1500 B take 12 ms at 1 Mbit/s, and 4.8 ms at 2.5 Mbit/s; the target is 5 ms."""
    codel = ("CoDel", {"kind": "codel"})
    doubt = only(ask(codel, rate="1Mbit")["codel"])
    assert doubt.severity == "warning"
    assert "sends a packet of 1500 B in 12 ms, longer than CoDel's target of 5ms" in doubt.sentence
    assert ask(codel, rate="2.5Mbit")["codel"].doubts == ()
    longer = ("CoDel", {"kind": "codel", "target": "15ms", "interval": "300ms"})
    assert ask(longer, rate="1Mbit")["codel"].doubts == ()


def test_a_packet_fits_codels_mtu(ask):
    """At 100 Mbit/s, 9000 B take 0.72 ms, less than the target."""
    jumbo = [{"tcp": {"mss": "8960B"}}]
    doubt = only(ask(("CoDel", {"kind": "codel", "mtu": "1500B"}), traffic=jumbo, rate="100Mbit")["codel"])
    assert "have up to 9000 B, but CoDel's `mtu` is 1500 B" in doubt.sentence
    assert (
        ask(("CoDel", {"kind": "codel", "mtu": "9000B"}), traffic=jumbo, rate="100Mbit")["codel"].doubts == ()
    )


@pytest.mark.parametrize("kind", ["fq_codel", "cobalt", "cake"])
def test_packets_suit_all_disciplines_with_codels_law(ask, kind):
    title = {"fq_codel": "FQ-CoDel", "cobalt": "COBALT", "cake": "CAKE"}[kind]
    doubt = only(ask((kind, {"kind": kind}), rate="1Mbit")["codel"])
    assert f"sends a packet of 1500 B in 12 ms, longer than {title}'s target of 5ms" in doubt.sentence
    assert ask((kind, {"kind": kind}), rate="2.5Mbit")["codel"].doubts == ()
    jumbo = [{"tcp": {"mss": "8960B"}}]
    found = ask((kind, {"kind": kind}), traffic=jumbo, rate="100Mbit")["codel"].doubts
    assert [f"but {title}'s `mtu` is 1500 B" in doubt.sentence for doubt in found] == [True] * (
        kind == "fq_codel"
    )
    assert ask(("PIE", {"kind": "pie"}))["codel"].finding == "no queue has CoDel's law"


def test_a_shaper_with_tins_raises_its_target_where_packets_take_long(ask):
    """At 1 Mbit/s, one and a half packets of 1514 B take 18 ms, so CAKE's target of 5 ms is raised."""
    cake = {"kind": "cake", "bandwidth": "1Mbit"}
    assert ask(("CAKE", cake))["codel"].doubts == ()
    small = only(ask(("CAKE", cake | {"mtu": "500B"}))["codel"])
    assert "in 12 ms, longer than CAKE's target of 6ms" in small.sentence


def test_coupled_queues_need_capable_flows(ask):
    doubt = only(ask(("DualPI2", {"kind": "dualpi2"}))["coupled"])
    assert doubt.severity == "warning"
    assert doubt.sentence == (
        "no flow that enters `bottleneck` is ECN-capable: the L queue of DualPI2 stays empty, and all"
        " traffic is in the other one"
    )
    assert ask(("DualPI2", {"kind": "dualpi2"}), traffic=[ECN])["coupled"].doubts == ()
    assert ask(("RED", RED))["coupled"].finding == "no queues are coupled"


def test_isolation_of_hosts_needs_several_hosts(ask):
    """The flows of a class share their hosts."""
    cake = {"kind": "cake"}
    doubt = only(ask(("CAKE", cake))["hosts"])
    assert doubt.severity == "note"
    assert "isolates hosts (`triple-isolate`), but the flows of a class run" in doubt.sentence
    two = ask(("CAKE", cake), traffic=[{"name": "laptop"}, {"name": "phone"}])["hosts"]
    assert (two.finding, two.doubts) == ("several classes, so several hosts, share it", ())
    for isolation in ("flows", "flowblind"):
        found = ask(("CAKE", cake | {"isolation": isolation}))["hosts"]
        assert found.finding == "no queue isolates hosts"


def test_arms_with_different_disciplines_have_equal_buffers(ask):
    small, large = ({"kind": "droptail", "limit": "20p"}, {"kind": "red", "limit": "60p"})
    doubt = only(ask(("DropTail", small), ("RED", large))["buffers"])
    assert doubt.severity == "warning"
    assert doubt.sentence == (
        "the buffers of the arms differ, from 20p with DropTail to 60p with RED, and that of DropTail was"
        " full at times: differences between arms are due to both, discipline and buffer"
    )
    equal = ask(("DropTail", small), ("RED", large | {"limit": "20p"}))["buffers"]
    assert equal.doubts == ()
    # If buffers are the only difference, they are what is compared.
    assert ask(("20", small), ("60", small | {"limit": "60p"}))["buffers"].doubts == ()
    # A limit that no packet reached has no part in the result.
    far = ask(("DropTail", small | {"limit": "900p"}), ("RED", large | {"limit": "800p"}))["buffers"]
    assert far.doubts == ()


def test_flows_that_differ_in_congestion_control_differ_in_nothing_else(ask):
    cubic = {"name": "cubic", "tcp": {"congestion": "cubic"}}
    reno = {"name": "reno", "tcp": {"congestion": "reno"}}
    assert ask(traffic=[cubic, reno])["tcp"].doubts == ()
    dctcp = {"name": "dctcp", "tcp": {"congestion": "dctcp", "ecn": True}}
    assert ask(traffic=[dctcp, reno])["tcp"].doubts == ()
    more = cubic | {"tcp": {"congestion": "cubic", "initial_window": 10}}
    doubt = only(ask(traffic=[more, reno])["tcp"])
    assert doubt.severity == "note"
    assert doubt.sentence == (
        "`cubic` and `reno` differ in congestion (cubic and reno) and in 1 other parameter of TCP:"
        " initial_window (10 and 3)"
    )
    linux = {"name": "linux", "tcp": {"profile": "linux", "congestion": "cubic"}}
    assert " other parameters of TCP: " in only(ask(traffic=[linux, reno])["tcp"]).sentence
    # Classes that differ in something else are not compared by their congestion control.
    assert (
        ask(traffic=[reno, reno | {"name": "big", "tcp": {"congestion": "reno", "initial_window": 10}}])[
            "tcp"
        ].doubts
        == ()
    )


def test_a_class_of_two_arms_is_compared_too(ask):
    arms = [
        {"name": "Reno"},
        {"name": "CUBIC", "traffic.ftp.tcp.congestion": "cubic", "traffic.ftp.tcp.initial_window": 10},
    ]
    doubt = only(ask(arms=arms)["tcp"])
    assert (
        "the flows of `ftp` in Reno and in CUBIC differ in congestion (reno and cubic) and in 1"
        in doubt.sentence
    )
    del arms[1]["traffic.ftp.tcp.initial_window"]
    assert ask(arms=arms)["tcp"].doubts == ()


def test_a_limit_of_one_packet_has_an_effect(ask):
    """The queue never has more than one packet waiting because it drops the others."""
    doubt = only(ask(("one", {"kind": "droptail", "limit": "1p"}))["bottleneck"])
    assert "never had more than one packet waiting" not in doubt.sentence


def test_a_buffer_that_other_parameters_follow_has_an_effect(tmp_path):
    """RED's thresholds are shares of the buffer, so the buffer matters although no packet finds it full."""
    scenario = copy.deepcopy(BASE) | {"sweep": {"topology.queue.limit": ["100p", "200p"]}}
    red = {"kind": "red", "limit": "100p"}
    for thresholds, words in (
        (
            {"min_th": "0.1buffer", "max_th": "0.3buffer"},
            "matters only where other parameters of the queue follow",
        ),
        ({"min_th": "10p", "max_th": "30p"}, "its size has no effect"),
    ):
        scenario["topology"]["queue"] = red | thresholds
        swept = aqmlab.sweep(scenario, store=tmp_path / words[:3])
        list(swept)
        checks = {check.kind: check for check in examine(load(swept.path))}
        assert words in only(checks["buffer"]).sentence


def test_equal_values_are_not_explained_by_what_was_not_checked(tmp_path):
    """Two seeds without requests: a metric without values says nothing about chance."""
    scenario = copy.deepcopy(BASE) | {"runs": 2}
    made = aqmlab.run(scenario, output=tmp_path / "runs", report=False)
    note = "all seeds gave the same values in main: there is no interval"
    assert answer(made, ["throughput_bps"]).chance_note() == note
    assert answer(made, ["throughput_bps", "page_time_mean_s"]).chance_note() == note
    assert answer(made, ["page_time_mean_s"]).chance_note() == ""
    # Full links carry the same in all seeds even if starts are drawn; other values differ.
    scenario["traffic"][0]["start"] = {"uniform": ["0s", "1s"]}
    drawn = aqmlab.run(scenario, output=tmp_path / "drawn", report=False)
    assert answer(drawn, ["queueing_delay_mean_s"]).chance_note() == ""


def test_other_traffic_is_not_another_version(tmp_path):
    """The parts of the program that draw web pages are not those that draw bulk transfers."""
    one = aqmlab.run(BASE, output=tmp_path / "bulk", report=False)
    other = copy.deepcopy(BASE)
    other["traffic"] = [
        {
            "name": "web",
            "kind": "requests",
            "rate": "5/s",
            "request": "300B",
            "response": "9kB",
            "rtt": "30ms",
        }
    ]
    two = aqmlab.run(other, output=tmp_path / "web", report=False)
    reason = why_not_paired(one, one.cells[0], two, two.cells[0])
    assert reason == "only one of them has the traffic `ftp`"


def test_a_file_that_is_gone_is_not_corrupt(tmp_path):
    aqmlab.run(BASE, output=tmp_path / "runs", report=False)
    results = load(tmp_path / "runs")
    results.values("throughput_bps", results.cells[0])
    (tmp_path / "runs").rename(tmp_path / "moved")
    with pytest.raises(RecordingError, match=r"cannot read .*No such file or directory") as error:
        results.tables.rows("queues", "t_ns")
    assert load(tmp_path / "moved").tables.rows("queues", "t_ns")
    assert "corrupt" not in str(error.value)


def test_without_its_working_directory_a_program_says_so(tmp_path):
    aqmlab.run(BASE, output=tmp_path / "here" / "runs", report=False)
    program = (
        "import os, shutil, sys, aqmlab\n"
        "from aqmlab.errors import AqmlabError\n"
        "results = aqmlab.load('runs')\n"
        "shutil.rmtree(os.getcwd())\n"
        "try:\n"
        "    results.tables.rows('queues', 't_ns')\n"
        "except AqmlabError as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "here",
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
        timeout=60,
    )
    assert "the working directory no longer exists" in ended.stdout
    assert "corrupt" not in ended.stdout


def test_shapers_that_do_not_shape_promise_too_much_or_leave_red_awake(ask):
    fifo = {"kind": "droptail", "limit": "30p"}
    tbf = {"kind": "tbf", "rate": "1Mbit", "burst": "3kB"}
    assert ask(("tbf", tbf | {"queue": fifo}))["shaper"].doubts == ()
    assert ask(("none", fifo))["shaper"].finding == "there is no shaper"
    doubt = only(ask(("tbf", tbf | {"rate": "2Mbit", "queue": fifo}))["shaper"])
    assert "`bottleneck` sends 2Mbit, and its tbf lets 2Mbit pass" in doubt.sentence
    doubt = only(ask(("tbf", tbf | {"preset": "linux", "queue": RED}))["shaper"])
    assert "`red` inside is never idle" in doubt.sentence
    assert ask(("tbf", tbf | {"preset": "linux", "queue": RED | {"idle": "never"}}))["shaper"].doubts == ()
    assert ask(("tbf", tbf | {"queue": RED}))["shaper"].doubts == ()

    def tree(first, second):
        return {
            "kind": "htb",
            "queue": fifo,
            "class": [
                {"name": "all", "rate": "1Mbit"},
                {"name": "a", "parent": "all", "rate": first, "traffic": ["ftp"]},
                {"name": "b", "parent": "all", "rate": second},
            ],
        }

    assert ask(("htb", tree("400kbit", "600kbit")))["shaper"].doubts == ()
    doubt = only(ask(("htb", tree("500kbit", "600kbit")))["shaper"])
    assert "the classes inside `all` have rates of 1.1Mbit together" in doubt.sentence


@pytest.mark.parametrize("rate", ["400kbit", "500kbit", "2Mbit"])
def test_a_shaper_inside_a_shaper_that_is_not_slower_never_shapes(ask, rate):
    inside = {"kind": "tbf", "rate": rate, "burst": "3kB", "queue": {"kind": "droptail", "limit": "30p"}}
    tree = {"kind": "htb", "class": [{"name": "all", "rate": "500kbit", "queue": inside}]}
    tbf = {"kind": "tbf", "rate": "500kbit", "burst": "3kB", "queue": inside}
    # The inner shaper is checked against its link as well.
    doubts = [
        [doubt.sentence for doubt in ask(("shaped", queue))["shaper"].doubts if "inside" in doubt.sentence]
        for queue in (tree, tbf)
    ]
    if rate == "400kbit":
        assert doubts == [[], []]
    else:
        passes = f"lets {rate} pass, and the"
        assert f"the tbf inside its class `all` {passes} class `all` sends at most 500kbit" in doubts[0][0]
        assert f"the tbf inside its tbf {passes} tbf sends at most 500kbit" in doubts[1][0]
