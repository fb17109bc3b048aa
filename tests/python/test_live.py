"""Live runs from the command line: output, files and exit codes.

The router itself is a stand-in here (``live_worlds.py``); ``test_live_smoke.py`` runs the real one.
"""

from __future__ import annotations

import json
import tomllib

import pytest
import tomli_w

import aqmlab
import live_worlds
from aqmlab.cli.progress import ProgressLine, progress_text
from aqmlab.metrics import Histogram
from aqmlab.recordings import faithfulness
from aqmlab.reports.live import exceedance
from aqmlab.results import both
from aqmlab.soundness import examine
from aqmlab.sweeps.progress import Progress, UnderWay


@pytest.fixture
def tiny_file(small, tmp_path):
    """Two arms, one run each."""
    small |= {"duration": "3s", "runs": 1}
    file = tmp_path / "tiny.toml"
    file.write_text(tomli_w.dumps(small), encoding="utf-8")
    return file


def test_a_faithful_run_ends_with_its_verdict_a_table_and_a_report(aqmlab_cli, router, tiny_file, tmp_path):
    router("faithful")
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("faithful: 2 of 2 runs\n")
    for word in ("DropTail", "RED + ECN", "goodput [Mbit/s]", "p99.9 [us]", "17.0", "cannot be set"):
        assert word in ended.stdout
    # The stand-in's kernel does not report timeouts, so the table must not show a column of zeros.
    assert "timeouts" not in ended.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.index("faithful: 2 of 2 runs") < page.index("<h1>")
    for word in ('id="faithfulness"', "half a packet time", "net.ipv4.tcp_ecn", "3 s live", "40 / 40"):
        assert word in page
    assert "aqmlab live scenario.toml" in page
    assert "the digests below" not in page, "a live run's do not come out again"


def test_a_skipped_arm_is_exit_6_and_its_reason_is_kept(aqmlab_cli, router, tiny_file, tmp_path):
    router("lacks-red")
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 6, ended.stderr
    reason = "this kernel has no queue discipline `red`"
    assert f"warning: RED + ECN: skipped: {reason}" in ended.stderr
    assert ended.stderr.endswith("error: 1 arm skipped: `RED + ECN`\n")
    assert ended.stdout.startswith("faithful: 1 of 1 run\n")
    assert (tmp_path / "out" / "report.html").is_file()
    both = aqmlab_cli("run", "--both", tiny_file, "-o", tmp_path / "both")
    assert both.returncode == 6, both.stderr
    failing = {"name": "all", "expect": "goodput_bps{arm=DropTail} > 1Gbit"}
    scenario = {**tomllib.loads(tiny_file.read_text(encoding="utf-8")), "runs": 6, "claim": [failing]}
    tiny_file.write_text(tomli_w.dumps(scenario), encoding="utf-8")
    assert aqmlab_cli("live", tiny_file, "-o", tmp_path / "failing").returncode == 1
    swept = {**scenario, "runs": 1, "claim": [], "sweep": {"topology.rate": ["2Mbit", "3Mbit"]}}
    tiny_file.write_text(tomli_w.dumps(swept), encoding="utf-8")
    ended = aqmlab_cli("sweep", "--host", "live", tiny_file, "--store", tmp_path / "store")
    assert ended.returncode == 6, ended.stderr


def test_an_unfaithful_run_is_exit_5_and_says_why_first(aqmlab_cli, router, tiny_file, tmp_path):
    router("red-unfaithful")
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 5, ended.stderr
    reason = "p99 lateness 2300 us is above 600 us, half a packet time of `bottleneck`"
    assert ended.stdout.startswith(f"NOT FAITHFUL: {reason} (of RED + ECN, seed 1; 1 of 2 runs)\n")
    assert "serious" in ended.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'class="verdict unfaithful"' in page
    # No conclusion is drawn from figures that must not be used.
    assert 'class="answer"' not in page
    assert "p95 queueing delay" not in ended.stdout
    assert "12.0 ms at 1.500 s" in page
    assert "and 69 more; the longest of all took 31.0 ms" in page
    assert "other, hybrid, 12.5 % without spinning" in page
    assert "fifo, hybrid<" in page
    assert "70 (31.0 ms)" in ended.stdout
    assert " 37 " in ended.stdout
    for cell in ("<td>70</td>", "<td>37</td>", "<code>mtu</code>"):
        assert cell in page
    assert "<code>initial window</code>" not in page, "the kernel's default"
    # The recording is whole and can be read again, with the same verdict.
    again = aqmlab_cli("report", tmp_path / "out")
    assert "NOT FAITHFUL, seed 1" in again.stdout


def test_json_has_the_verdicts(aqmlab_cli, router, tiny_file, tmp_path):
    router("red-unfaithful")
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out", "--json", "-q", "--no-report")
    assert ended.returncode == 5
    assert ended.stderr == ""
    answer = json.loads(ended.stdout)
    assert answer["faithful"] is False
    assert [v["faithful"] for v in answer["verdicts"]] == [True, False]
    assert answer["verdicts"][1]["lateness"]["p99_ns"] == 2_300_000
    assert answer["verdicts"][0]["remarks"] == ["tcp.min_rto of `ftp` cannot be set: the kernel's 200ms hold"]
    assert answer["cells"][0]["values"]["timeouts_per_flow"]["mean"] is None
    assert answer["cells"][0]["values"]["goodput_bps"]["mean"] > 0
    assert not (tmp_path / "out" / "report.html").exists()
    assert [v["capture_failure"] for v in answer["verdicts"]] == [None, None]


def test_packets_that_could_not_be_kept_end_in_3_with_everything_else(
    aqmlab_cli, router, tiny_file, tmp_path
):
    router("packets-lost")
    out = tmp_path / "out"
    ended = aqmlab_cli("live", tiny_file, "-o", out, "--pcap", "all")
    assert ended.returncode == 3, ended.stderr
    told = (
        "error: RED + ECN, seed 1: `packets.pcapng` could not be written beyond 2.3 s: the disk is full; the"
        " rest is recorded\n"
    )
    assert ended.stderr.count("error: ") == ended.stderr.count(told) == 1
    assert ended.stdout.startswith("faithful: 2 of 2 runs\n")
    assert (out / "report.html").exists()
    # Reading the existing recording is not a failure.
    assert aqmlab_cli("report", out).returncode == 0


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        (
            "killed",
            4,
            "error: 2 of 2 runs failed; the first: DropTail, seed 1: the live router was killed by SIGKILL",
        ),
        ("traceback", 4, "DropTail, seed 1: the live router ended with 1: OSError: the tunnel is gone"),
        ("garbage", 4, "sent an invalid message"),
        (
            "HostError:this machine cannot run the scenario live: there is no /dev/net/tun; modprobe tun",
            3,
            "modprobe tun",
        ),
        ("HostError:cannot write `x`: No space left on device", 3, "No space left on device"),
        ("RunError:the machine was suspended for 3s at 1s; the run is void", 4, "was suspended for 3s"),
        ("UsageError:this scenario cannot run live: 300 classes", 2, "cannot run live: 300 classes"),
    ],
)
def test_each_fault_is_a_sentence_and_an_exit_code_and_leaves_nothing(
    aqmlab_cli, router, tiny_file, tmp_path, mode, code, words
):
    router(mode)
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == code, ended.stderr
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "out").exists()


def test_the_command_line_says_where_runs_before_a_fault_are(aqmlab_cli, router, small_file, tmp_path):
    router("second-killed")
    ended = aqmlab_cli("live", small_file, "-o", tmp_path / "out")
    assert ended.returncode == 4
    kept = f"2 of 4 runs failed; the others are kept in `{tmp_path / 'out'}`; the first: DropTail, seed 2: "
    assert ended.stderr.startswith(f"error: {kept}the live router was killed")


def test_what_cannot_be_removed_does_not_hide_what_went_wrong(router, tiny_file, tmp_path, aqmlab_cli):
    router("leaves-something-else")
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 4
    arm = tmp_path / "out" / "droptail"
    assert "DropTail, seed 1: the live router was killed by SIGKILL" in ended.stderr
    assert ended.stderr.endswith(f"; `{arm}` cannot be removed: Directory not empty\n")
    assert (arm / "notes.txt").read_text() == "mine"


def test_runs_before_a_fault_are_kept(router, small, tmp_path):
    router("second-killed")
    with pytest.raises(aqmlab.RunError) as told:
        aqmlab.run(small, host="live", output=tmp_path / "out", report=False)
    kept = f"2 of 4 runs failed; the others are kept in `{tmp_path / 'out'}`; the first: DropTail, seed 2: "
    assert str(told.value).startswith(f"{kept}the live router was killed")
    # Runs are executed seed by seed, so both arms of the first seed have finished.
    kept = [(run.arm, run.seed) for run in aqmlab.load(tmp_path / "out").runs]
    assert kept == [
        ("DropTail", 1),
        ("RED + ECN", 1),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["live", "{tmp}/none.toml"], "cannot read the scenario"),
        (["live", "{tiny}", "--arm", "BLUE"], "there is no arm `BLUE`"),
        (["live", "{tiny}", "--runs", "0"], "`0` runs"),
        (["live", "{tiny}", "-o", "{tmp}"], "exists already"),
        (["run", "--both", "{tiny}", "-o", "{tmp}"], "exists already"),
        (["live", "{swept}"], "has a [sweep] of 2 cases; live runs have a single case"),
        (["run", "--both", "{swept}"], "has a [sweep] of 2 cases; live runs have a single case"),
        (["live"], "Missing argument"),
    ],
)
def test_a_wrong_request_is_exit_2_before_anything_runs(
    aqmlab_cli, router, tiny_file, tmp_path, words, message
):
    router("killed")
    swept = tmp_path / "swept.toml"
    text = tiny_file.read_text(encoding="utf-8") + '[sweep]\n"topology.rate" = ["1Mbit", "2Mbit"]\n'
    swept.write_text(text, encoding="utf-8")
    ended = aqmlab_cli(*(word.format(tmp=tmp_path, tiny=tiny_file, swept=swept) for word in words))
    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stdout == ""


def test_ctrl_c_ends_with_130_and_nothing_left(router, tiny_file, tmp_path, aqmlab_cli, monkeypatch):
    router("obedient")
    # Ctrl-C comes as soon as the router reports progress, as if a user had waited for that.
    monkeypatch.setattr(ProgressLine, "update", live_worlds.interrupt_when_it_runs())
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 130
    assert (
        "stopping: packets in flight are still forwarded; press Ctrl-C again to end the run now"
        in ended.stderr
    )
    assert ended.stderr.endswith("interrupted\n")
    assert not (tmp_path / "out").exists()


def test_what_an_interrupted_run_has_left_is_kept_and_called_that(
    router, tiny_file, tmp_path, aqmlab_cli, monkeypatch
):
    router("leaves-a-part")
    monkeypatch.setattr(ProgressLine, "update", live_worlds.interrupt_when_it_runs())
    ended = aqmlab_cli("live", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 130
    out = tmp_path / "out"
    assert ended.stderr.endswith(
        f"interrupted; finished runs are kept in `{out}`; resume with `--resume -o {out}`\n"
    )
    report = aqmlab_cli("report", tmp_path / "out")
    assert "the run with seed 1 was interrupted at 3.0 s" in report.stdout
    assert "faithful (interrupted)" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_both_compares_arm_by_arm_and_says_that_one_run_has_no_interval(
    aqmlab_cli, router, tiny_file, tmp_path
):
    router("faithful")
    ended = aqmlab_cli("run", "--both", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("faithful: 2 of 2 runs\n")
    assert "Live runs against simulated ones, over 2 arms: goodput differs by 0.0 %" in ended.stdout
    assert "goodput [Mbit/s]" in ended.stdout
    assert "no interval" in ended.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.index("faithful: 2 of 2 runs") < page.index("<h1>")
    assert "One run on each side (seed 1): no interval; differences may be due to chance." in page
    assert "not measured live" in page, "timeouts, which the stand-in's kernel does not report"
    # The stand-in's live run is the simulation, so nothing differs.
    assert "goodput differs by 0.0\u00a0%" in page
    for name in ("simulated", "live"):
        assert f'href="{name}/report.html"' in page
        assert (tmp_path / "out" / name / "report.html").is_file()
    report = aqmlab_cli("report", tmp_path / "out", "-o", tmp_path / "again.html")
    assert report.returncode == 0, report.stderr
    assert (tmp_path / "again.html").is_file()
    drawn = aqmlab_cli("plot", tmp_path / "out", "series")
    assert drawn.returncode == 4
    assert f"name `{tmp_path / 'out' / 'simulated'}` or `{tmp_path / 'out' / 'live'}`" in drawn.stderr


def test_both_of_an_unfaithful_run_is_exit_5(aqmlab_cli, router, tiny_file, tmp_path):
    router("unfaithful")
    ended = aqmlab_cli("run", "--both", tiny_file, "-o", tmp_path / "out", "--json", "-q", "--no-report")
    assert ended.returncode == 5
    answer = json.loads(ended.stdout)
    assert answer["faithful"] is False
    assert {one["case"] for one in answer["comparison"]["compared"]} == {"DropTail", "RED + ECN"}
    assert (answer["comparison"]["first"], answer["comparison"]["second"]) == ("simulated", "live")


def test_both_leaves_nothing_where_live_cannot(aqmlab_cli, router, tiny_file, tmp_path):
    router("HostError:this machine cannot")
    ended = aqmlab_cli("run", "--both", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 3
    assert not (tmp_path / "out").exists()


def test_both_that_was_ended_before_it_was_simulated_says_where_its_live_runs_are(
    router, tiny_file, tmp_path, aqmlab_cli, monkeypatch
):
    router("leaves-a-part")
    monkeypatch.setattr(ProgressLine, "update", live_worlds.interrupt_when_it_runs())
    live = tmp_path / "out" / "live"
    ended = aqmlab_cli("run", "--both", tiny_file, "-o", tmp_path / "out")
    assert ended.returncode == 130
    assert f"interrupted; finished runs are kept in `{live}`; " in ended.stderr
    ended = aqmlab_cli("report", tmp_path / "out")
    assert ended.returncode == 4
    assert (
        f"was interrupted before its simulation; `aqmlab report {live}` shows the live runs" in ended.stderr
    )
    assert aqmlab_cli("report", live).returncode == 0


def test_seeds_of_both_make_pairs_with_intervals(router, small, tmp_path):
    router("faithful")
    small["duration"] = "3s"
    found = aqmlab.run_both(small, output=tmp_path / "out", runs=3, jobs=2)
    assert found.comparison.unpaired == ()
    goodput = next(one for one in found.comparison.compared if one.metric.name == "goodput_bps")
    assert goodput.found.estimate.n == 3
    assert goodput.found.estimate.half_width == 0
    assert list(both.grouped(found)) == ["DropTail", "RED + ECN"]
    assert found.note.startswith("95 % t intervals over 3 seeds, each both simulated and run live with")
    assert found.summary.startswith("Live runs against simulated ones, over 2 arms: goodput differs by 0.0 %")


def test_doctor_tells_each_remedy(aqmlab_cli, router):
    router("doctor")
    ended = aqmlab_cli("doctor")
    assert ended.returncode == 0, ended.stderr
    for word in ("kernel", "SCHED_FIFO", "warning", "setcap cap_sys_nice+ep", "live runs work here"):
        assert word in ended.stdout
    answer = json.loads(aqmlab_cli("doctor", "--json").stdout)
    assert answer["can_run"] is True
    assert [finding["severity"] for finding in answer["findings"]] == ["ok", "warning"]


def test_doctor_ends_with_3_where_live_cannot_run(aqmlab_cli, router):
    router("hopeless")
    ended = aqmlab_cli("doctor")
    assert ended.returncode == 3
    assert "modprobe tun" in ended.stdout
    assert "live runs cannot work here" in ended.stdout


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [
        # A packet of 1500 B takes 60 us at 200 Mbit/s, and half of that is 30 us.
        (
            "punctual",
            0,
            ["real-time ", "200", "1.2", "fit for live runs", "105000 packets", "p50 60 us"],
        ),
        # At 10 Mbit/s, a packet takes 1200 us, and 601 us is more than half of that.
        ("late", 5, ["real-time, refused", "9.98", "NOT FAITHFUL even at 10 Mbit/s", "not known"]),
    ],
)
def test_selftest_says_up_to_which_rate_this_machine_is_faithful(aqmlab_cli, router, mode, code, words):
    router(mode)
    ended = aqmlab_cli("live", "selftest", "-q")
    assert ended.returncode == code, ended.stderr
    for word in words:
        assert word in ended.stdout
    answer = json.loads(aqmlab_cli("live", "selftest", "--json", "-q").stdout)
    assert answer["passed"] is (code == 0)
    assert answer["faithful_up_to_bps"]["ordinary"] == pytest.approx(1.2e6)
    assert "bins" not in answer["realtime"]["lateness"]


def test_the_selftest_refuses_what_it_ignores(aqmlab_cli):
    for words in (
        ("--runs", "3"),
        ("-o", "out"),
        ("--seed", "7"),
        ("--arm", "RED"),
        ("--force",),
        ("--resume",),
    ):
        ended = aqmlab_cli("live", "selftest", *words)
        assert ended.returncode == 2
        assert "the self-test does not accept `--" in ended.stderr
    ended = aqmlab_cli("live", "selftest", "--pcap", "bottleneck", "--no-report")
    assert "does not accept `--pcap`, `--no-report`; it accepts `--json` and `--quiet`" in ended.stderr


def test_selftest_counts_processor_time_too(router):
    from aqmlab.live.selftest import selftest

    router("punctual")
    found = selftest()
    # An eighth of a processor at 100 Mbit/s corresponds to seven tenths of a processor at 560 Mbit/s.
    assert found.carried_bps == pytest.approx(560e6)
    assert found.faithful_up_to_bps(found.trials[0]) == pytest.approx(200e6)


def test_a_verdict_is_none_of_a_simulation_and_its_text_of_a_live_run(
    experiment, router, tiny_file, tmp_path
):
    assert faithfulness.faithfulness_of(experiment.runs[0]) is None
    assert not any(check.kind in ("live", "stack") for check in examine(experiment))
    router("unfaithful")
    live = aqmlab.run(tiny_file, host="live", output=tmp_path / "out", report=False)
    found = faithfulness.verdicts(live.runs)
    assert [v.faithful for v in found] == [False, False]
    # Invalid frames and packets in flight do not count as lost; the packets dropped by TUN are among the
    # hidden drops.
    assert found[0].lost_unseen == 7 + 20 + 10
    assert found[0].wait == "hybrid, 12.5 % without spinning"
    assert found[0].text.startswith("NOT FAITHFUL: p99 lateness")
    assert found[0].lateness_s("p99") == 2.3e-3
    assert live.details["host"] == "live"


def test_progress_is_one_line():
    def text(**live):
        run = UnderWay("RED", 1, done_s=13.6, total_s=20.0, **live)
        return progress_text(Progress(runs_total=8, runs_done=1, to_go_s=126, under_way=(run,)), 23.0)

    assert text(phase="run") == "runs 1/8 · 0.0435/s · 2 min to go · RED, seed 1: run 14/20 s"
    assert text(phase="drain", lateness_max_s=1.24e-3).endswith(
        "RED, seed 1: drain 14/20 s, worst 1.2 ms late"
    )


def test_the_tail_of_lateness_is_drawn_from_whole_bins():
    bins = Histogram((0, 1_000, 10_000), (999, 9_999, 50_999), (490, 500, 10))
    x, y = exceedance(bins)
    # The curve begins at a tenth of a microsecond, because nothing below that is visible. Each later point
    # gives the upper limit of a bin and the share of packets beyond it.
    assert x == [0.1, 0.999, 9.999]
    assert y == pytest.approx([1.0, 0.51, 0.01])
    many = Histogram(tuple(range(1000, 9000)), tuple(range(1000, 9000)), (1,) * 8000)
    x, y = exceedance(many)
    assert len(x) <= 301
    assert x == sorted(x)
    assert y == sorted(y, reverse=True)
    assert (x[0], y[0]) == (1.0, 1.0)
    assert y[-1] == pytest.approx(1 / 8000)
