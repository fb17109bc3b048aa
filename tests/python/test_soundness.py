"""Checks that prevent bad science: for each, one scenario that raises the doubt and one that does not."""

from __future__ import annotations

import copy
import json
import re
import shutil
from dataclasses import replace

import pytest

import aqmlab
from aqmlab.metrics import Flows, flow_goodput
from aqmlab.paths import load
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Results
from aqmlab.soundness import doubts, examine
from aqmlab.soundness.doubt import CellDoubt, merged
from aqmlab.soundness.queue_history import queue_histories
from resealed import reseal

SOUND = {
    "title": "Sound",
    "duration": "25s",
    "warmup": "5s",
    "seed": 1,
    "runs": 5,
    "topology": {
        "kind": "dumbbell",
        "rate": "2Mbit",
        "delay": "5ms",
        "access_rate": "20Mbit",
        "queue": {"kind": "droptail", "limit": "30p"},
    },
    "traffic": [
        {"name": "ftp", "kind": "bulk", "count": 4, "rtt": "30ms", "start": {"uniform": ["0s", "300ms"]}}
    ],
    "record": {"queues": "20ms", "flows": "0s"},
    "arm": [
        {"name": "DropTail"},
        {"name": "RED", "topology.queue": {"kind": "red", "limit": "30p"}},
    ],
}


@pytest.fixture
def ask(tmp_path):
    """Run the sound scenario with changes, and return its checks by kind."""

    def asked(runs=5, arms=(0,), **changes):
        scenario = copy.deepcopy(SOUND) | {"runs": runs}
        scenario["arm"] = [SOUND["arm"][i] for i in arms]
        for path, value in changes.items():
            where, *rest = path.split("__")
            if rest:
                inner = scenario[where][0] if where == "traffic" else scenario[where]
                inner[rest[0]] = value
            else:
                scenario[where] = value
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        made = aqmlab.run(scenario, output=folder, jobs=2, report=False)
        return {check.kind: check for check in examine(made)}

    return asked


def only(check):
    (doubt,) = check.doubts
    return doubt


def test_a_sound_experiment_leaves_no_doubt(ask):
    checks = ask(arms=(0, 1))
    assert {kind: check.doubts for kind, check in checks.items() if check.doubts} == {}
    assert checks["finished"].finding == "10 of 10"
    assert checks["bottleneck"].question == "`bottleneck` is the bottleneck"
    assert checks["seeds"].finding == "5 in each cell"
    assert checks["books"].finding.startswith("all ")


def test_a_queue_where_nothing_waits_has_no_part_in_the_result(ask):
    access = ask(runs=1, topology__access_rate="1Mbit", traffic__count=1)
    doubt = only(access["bottleneck"])
    assert (doubt.severity, doubt.kind) == ("serious", "bottleneck")
    assert doubt.sentence.startswith("`bottleneck` never had more than one packet waiting (busy ")
    assert doubt.remedy == (
        "raise `access_rate`: the access links of all flows that cross `bottleneck` carry 1Mbit together,"
        " less than its 2Mbit"
    )
    calls = [{"name": "calls", "kind": "poisson", "rate": "100kbit", "size": "500B"}]
    doubt = only(ask(runs=1, traffic=calls)["bottleneck"])
    assert doubt.remedy == "raise the load or lower the rate of its link"


def test_a_slow_way_back_is_named_where_acknowledgments_limit_the_flows(ask):
    """Acknowledgments of 40 B at 10 kbit/s: 31 per second, for at most 0.73 Mbit/s of data."""
    slow = ask(runs=1, topology__reverse_rate="10kbit", topology__reverse_queue={"kind": "droptail"})
    doubt = only(slow["bottleneck"])
    assert doubt.remedy.startswith("raise the rate of `reverse`, which is busy 100.0 %")
    assert doubt.remedy.endswith("delays or drops the acknowledgments of these flows")


def test_the_queue_that_is_the_bottleneck_instead_is_named(tmp_path):
    """A hop that is narrower than the one under study."""
    scenario = copy.deepcopy(SOUND) | {"runs": 1, "arm": [{"name": "DropTail"}]}
    queue = {"kind": "droptail", "limit": "30p"}
    scenario["topology"] = {"kind": "graph", "access_rate": "20Mbit"}
    scenario["node"] = [{"name": name} for name in ("a", "b", "c")]
    scenario["link"] = [
        {"name": "narrow", "from": "a", "to": "b", "rate": "1Mbit", "delay": "2ms", "queue": queue},
        {"name": "bottleneck", "from": "b", "to": "c", "rate": "2Mbit", "delay": "2ms", "queue": queue},
    ]
    scenario["traffic"][0] |= {"from": "a", "to": "c"}
    made = aqmlab.run(scenario, output=tmp_path / "narrow", report=False)
    checks = {check.kind: check for check in examine(made)}
    doubt = only(checks["bottleneck"])
    assert doubt.severity == "serious"
    assert doubt.remedy.startswith("report on `narrow` instead (busy ")


def test_a_discipline_that_never_acts_is_told(ask):
    """A window limit keeps the backlog far below the buffer size; with greedy flows, that is a warning."""
    doubt = only(ask(runs=1, traffic__tcp={"max_window": 6})["bottleneck"])
    assert doubt.severity == "warning"
    assert "neither dropped nor marked a packet" in doubt.sentence
    poisson = [{"name": "calls", "kind": "poisson", "rate": "1500kbit", "size": "500B"}]
    open_loop = only(
        ask(runs=1, traffic=poisson, topology__queue={"kind": "droptail", "limit": "900p"})["bottleneck"]
    )
    assert open_loop.severity == "note"


def test_a_link_that_idles_is_told(ask):
    """With a buffer of two packets, a greedy flow leaves much of the link unused; a Poisson load does not
    fill the link."""
    tight = only(
        ask(runs=1, traffic__count=1, topology__queue={"kind": "droptail", "limit": "2p"})["bottleneck"]
    )
    assert tight.severity == "warning"
    assert "although some flows always have data to send" in tight.sentence
    percent = float(tight.sentence.split("busy ")[1].split(" %")[0])
    assert 20 < percent < 90
    poisson = [{"name": "calls", "kind": "poisson", "rate": "1500kbit", "size": "500B"}]
    light = only(
        ask(runs=1, traffic=poisson, topology__queue={"kind": "droptail", "limit": "2p"})["bottleneck"]
    )
    assert (light.severity, "the load does not fill it" in light.sentence) == ("note", True)


def test_flows_that_their_window_limits_do_not_ask_the_queue(ask):
    limited = only(ask(runs=2, traffic__tcp={"max_window": 6})["window"])
    assert limited.severity == "warning"
    assert limited.sentence == (
        "8 of 8 greedy flows (100 %, over all runs) are limited by their window, the 6 segments of"
        " `ftp`, not by the network"
    )
    by_buffer = only(ask(runs=1, traffic__count=1, traffic__tcp={"receive_window": "30kB"})["window"])
    assert "the 30kB of `ftp`" in by_buffer.sentence
    assert ask(runs=1, traffic__tcp={"max_window": 200})["window"].doubts == ()


def test_constant_sources_in_lockstep_are_told(ask):
    """Two sources of 1.2 Mbit/s at 2 Mbit/s: a sixth of the packets is lost, always of the same source."""
    traffic = [
        {"name": name, "kind": "cbr", "rate": "1200kbit", "size": "1000B", "start": start}
        for name, start in (("a", "0s"), ("b", "1ms"))
    ]
    doubt = only(ask(runs=1, traffic=traffic)["lockstep"])
    assert doubt.severity == "warning"
    assert doubt.sentence.startswith("the packets of 2 constant sources (`a` and `b`) meet the queue")
    loose = [source | {"random_gaps": True} for source in traffic]
    assert ask(runs=1, traffic=loose)["lockstep"].doubts == ()
    anywhere = [source | {"start": {"uniform": ["0s", "1s"]}} for source in traffic]
    assert ask(runs=1, traffic=anywhere)["lockstep"].doubts == ()
    # Gaps in the ratio 5 : 3 drift past each other.
    drifting = [traffic[0], traffic[1] | {"rate": "2Mbit"}]
    assert ask(runs=1, traffic=drifting)["lockstep"].doubts == ()
    light = [source | {"rate": "500kbit"} for source in traffic]
    assert ask(runs=1, traffic=light)["lockstep"].doubts == ()


def test_an_interval_of_few_packets_is_told_with_its_accuracy(ask):
    """In 0.6 s, a link of 2 Mbit/s sends 100 packets of 1500 B."""
    doubt = only(ask(runs=1, duration="5600ms")["short"])
    assert doubt.severity == "note"
    assert doubt.sentence == (
        "`bottleneck` can send only 100 packets in the measured interval: goodput counts whole packets, so it"
        " is accurate only to 1.0 %"
    )


def test_the_buffer_is_asked_for_where_arms_differ_in_nothing_else(ask, tmp_path):
    scenario = copy.deepcopy(SOUND) | {"runs": 1}
    scenario["traffic"][0] |= {"count": 1, "tcp": {"max_window": 25}}
    limits = ("4p", "40p", "80p")
    scenario["arm"] = [{"name": limit, "topology.queue.limit": limit} for limit in limits]
    made = aqmlab.run(scenario, output=tmp_path / "buffers", report=False)
    checks = {check.kind: check for check in examine(made)}
    doubt = only(checks["buffer"])
    assert (doubt.severity, [cell.arm for cell in doubt.cells]) == ("note", ["40p", "80p"])
    assert doubt.sentence.startswith("with 40p and 80p, at worst with ")
    assert "its size has no effect" in doubt.sentence
    assert ask(runs=1, arms=(0, 1))["buffer"].finding == "buffer size is not compared"


def test_requests_that_the_end_of_the_run_cuts_off_are_told_and_the_rare_ones_are_not(ask):
    web = {"name": "web", "kind": "requests", "rate": "10/s", "request": "100B", "response": "100B"}
    half = {**web, "server_delay": {"list": ["10ms", "100s"]}}
    checks = ask(runs=2, traffic=[half])
    doubt = only(checks["unfinished"])
    assert doubt.severity == "warning"
    # Half of the requests of 25 s have not ended; of the other half, those of 20 s are measured: 5 of 9.
    count, percent = map(int, re.match(r"(\d+) requests of `web` \((\d+) %", doubt.sentence).groups())
    assert 200 < count < 300
    assert 52 < percent < 60
    assert "the mean response time" in doubt.sentence
    assert "`duration`" in doubt.remedy
    third = {**web, "server_delay": {"list": ["10ms", "10ms", "10ms", "100s"]}}
    for metrics, severity in (
        (["drop_percent"], "warning"),
        (["response_time_mean_s", "response_time_median_s"], "warning"),
        (["response_time_median_s"], "note"),
    ):
        checks = ask(runs=2, traffic=[third], metrics=metrics)
        assert only(checks["unfinished"]).severity == severity, metrics
    checks = ask(runs=2, traffic=[web])
    assert checks["unfinished"].doubts == ()
    assert "0.0 %" in checks["unfinished"].finding
    assert ask(runs=2)["unfinished"].finding == "no class makes requests"


def test_a_warm_up_that_ends_while_flows_start_is_too_short(ask):
    early = only(ask(warmup="200ms")["start"])
    assert early.severity == "warning"
    assert early.sentence.startswith("the last flow starts at 0.")
    assert "fewer than 10 round trips to settle" in early.sentence


def joining(late):
    """Flows whose windows keep the backlog constant, and others that join them and raise it."""
    few = SOUND["traffic"][0] | {"tcp": {"max_window": 6}}
    return [few, few | {"name": "late", "bytes": "100MB"} | late]


BIG = {"kind": "droptail", "limit": "90p"}


def test_mser_finds_a_load_that_changes_after_the_warm_up(ask):
    """Measurement begins at 3 s, but four flows join only at 9 s, so the backlog before 9 s is different."""
    doubt = only(ask(traffic=joining({"start": "9s"}), warmup="3s", topology__queue=BIG)["warm-up"])
    assert doubt.severity == "warning"
    assert doubt.sentence.startswith("MSER-5 would measure the backlog from ")
    from_s = float(doubt.sentence.split("from ")[1].split(" s")[0])
    assert 9 <= from_s <= 10.5
    # Each flow has 6 segments in the network; 7 segments of all flows together are on the wire. The others
    # wait: 17 with 4 flows (before 9 s), and 41 with 8. So 24 fewer wait in 6 of the 22 s.
    assert 13 <= float(doubt.sentence.split("its mean ")[1].split(" % lower")[0]) <= 18
    late = ask(traffic=joining({"start": "9s"}), warmup="11s", topology__queue=BIG)
    assert late["warm-up"].doubts == ()


def test_a_load_that_grows_to_the_end_has_no_steady_state(ask):
    growing = {"start": {"spread": ["0s", "25s"]}, "count": 12}
    doubt = only(ask(traffic=joining(growing), topology__queue=BIG)["warm-up"])
    assert doubt.sentence.startswith("MSER-5 finds no steady state in the backlog")
    assert doubt.remedy.startswith("make the run longer")


def test_a_beginning_that_matters_less_than_chance_is_not_told(ask):
    """Nine flows begin at random times; from 12.3 s on, the mean is 7 packets higher (half-width: 10)."""
    scattered = {"start": {"uniform": ["0s", "25s"]}, "count": 9}
    few = SOUND["traffic"][0] | {"tcp": {"max_window": 6}}
    traffic = [few | {"count": 1}, few | {"name": "late", "bytes": "100MB"} | scattered]
    assert ask(traffic=traffic, topology__queue=BIG)["warm-up"].doubts == ()


def test_without_samples_mser_says_that_it_saw_nothing(ask):
    assert (
        "MSER-5 cannot be applied" in ask(runs=1, record={"queues": "0s", "flows": "0s"})["warm-up"].finding
    )


def test_courses_do_not_depend_on_how_many_runs_are_read_together(whole, monkeypatch):
    """Cells that share their runs, such as two settings with the same plan, share their series."""
    one = whole
    axis = Axis("a", "a", ("a",), ("1", "2"))
    twice = {
        Cell((("a", label),), cell.arm): one.runs_of(cell) for label in axis.labels for cell in one.cells
    }
    results = Results(
        title="",
        path=whole.path,
        arms=whole.arms,
        cells=tuple(twice),
        seeds=whole.seeds,
        finished={(cell, run.seed): run for cell, runs in twice.items() for run in runs},
        axes=(axis,),
    )
    together = queue_histories(results)
    assert list(together) == list(twice)
    for cell in one.cells:
        backlog, throughput = queue_histories(one)[cell]
        for label in axis.labels:
            assert together[Cell((("a", label),), cell.arm)] == (backlog, throughput)
        # The mean of the series is that of the metric: 4 s of 20 ms samples after a warm-up of 2 s.
        after = throughput.values[100:]
        seeds = one.values("throughput_bps", cell).values()
        assert sum(after) / len(after) == pytest.approx(sum(seeds) / 2, rel=0.005)
    monkeypatch.setattr("aqmlab.soundness.queue_history.RUNS_READ_TOGETHER", 1)
    assert queue_histories(results) == together


def test_seeds_that_change_nothing_are_told(ask):
    still = only(ask(runs=3, traffic__start="0s")["chance"])
    assert still.severity == "warning"
    assert still.sentence == "all 3 seeds gave identical counts for every queue and flow"
    assert ask(runs=1, traffic__start="0s")["chance"].doubts == ()


def test_few_seeds_are_told_with_what_they_cost(ask):
    one = only(ask(runs=1)["seeds"])
    assert one.severity == "warning"
    assert one.sentence.startswith("one run: no interval over seeds; by batch means its mean backlog is ")
    assert float(one.sentence.split(" is ")[1].split()[0]) == pytest.approx(20, abs=10)
    three = only(ask(runs=3)["seeds"])
    # t(2) / sqrt(3) = 4.303 / 1.732 = 2.484 against t(9) / sqrt(10) = 2.262 / 3.162 = 0.715
    assert three.sentence.startswith("3 seeds: intervals are 3.5 times as wide as with 10")
    assert three.severity == "note"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    scenario = copy.deepcopy(SOUND) | {"runs": 2, "duration": "6s", "warmup": "2s"}
    return aqmlab.run(scenario, output=tmp_path_factory.mktemp("sound") / "whole", report=False)


@pytest.fixture
def damaged(whole, tmp_path):
    shutil.copytree(whole.path, tmp_path / "copy")
    return tmp_path / "copy"


def checks_of(path):
    return {check.kind: check for check in examine(load(path))}


def test_missing_runs_are_serious(damaged):
    shutil.rmtree(damaged / "red" / "seed-2")
    doubt = only(checks_of(damaged)["finished"])
    assert doubt.severity == "serious"
    assert doubt.sentence == "with RED: 1 of 2 runs is missing, the first with seed 2 (not run)"
    assert [cell.arm for cell in doubt.cells] == ["RED"]
    assert doubts(load(damaged))[0] == doubt  # the most serious first


def rewrite(file, expression):
    """Replace a table's rows by the result of a SELECT on them."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {expression} FROM read_parquet('{file}')")
        connection.execute(f"COPY t TO '{file}' (FORMAT parquet)")
    reseal(file.parent)


def test_books_that_do_not_balance_are_serious(damaged):
    rewrite(
        damaged / "droptail" / "seed-1" / "summary.parquet",
        "* REPLACE (CASE WHEN queue = 'bottleneck' AND class = '*' THEN arrivals_packets + 1"
        " ELSE arrivals_packets END AS arrivals_packets)",
    )
    doubt = only(checks_of(damaged)["books"])
    assert doubt.severity == "serious"
    assert doubt.sentence == "with DropTail: packet counts do not balance at `bottleneck` (seed 1)"


def test_a_manifest_that_denies_its_books_is_believed(damaged):
    reseal(damaged / "red" / "seed-1", books_balanced=False)
    assert "according to its manifest" in only(checks_of(damaged)["books"]).sentence


def test_a_distribution_that_lacks_packets_is_serious(damaged):
    rewrite(
        damaged / "red" / "seed-2" / "histograms.parquet",
        "* REPLACE (weight + (kind = 'sojourn_ns' AND low = 0)::INTEGER AS weight)",
    )
    checks = checks_of(damaged)
    if not checks["distribution"].doubts:  # if every packet waited, there is no bin at 0: change all bins
        rewrite(damaged / "red" / "seed-2" / "histograms.parquet", "* REPLACE (weight + 1 AS weight)")
        checks = checks_of(damaged)
    assert "lacks packets (seed 2)" in only(checks["distribution"]).sentence


def test_samples_that_cannot_be_read_are_a_doubt_and_no_end(damaged):
    (damaged / "red" / "seed-2" / "queues.parquet").write_bytes(b"PAR1 and then nothing")
    doubt = only(checks_of(damaged)["warm-up"])
    assert doubt.severity == "serious"
    assert "red/seed-2/queues.parquet` is corrupt" in doubt.sentence


def test_a_sweep_tells_its_doubts_by_cell(tmp_path, aqmlab_cli, monkeypatch):
    """24 segments overflow the slow link's pipe and buffer (5 + 15) but not the fast one's (20 + 15)."""
    import tomli_w

    monkeypatch.setenv("AQMLAB_STORE", str(tmp_path / "store"))
    scenario = copy.deepcopy(SOUND) | {"runs": 1, "arm": [{"name": "DropTail"}]}
    scenario["sweep"] = {"topology.rate": ["2Mbit", "8Mbit"]}
    scenario["topology"]["queue"]["limit"] = "15p"
    scenario["traffic"][0] |= {"count": 1, "tcp": {"max_window": 24}}
    (tmp_path / "swept.toml").write_text(tomli_w.dumps(scenario))
    told = " ".join(aqmlab_cli("sweep", tmp_path / "swept.toml", "-q").stdout.split())
    assert "one run: no interval over seeds: set `runs` to 5 or more" in told
    assert "in DropTail, rate 8Mbit: 1 of 1 greedy flows (100 %, over all runs) are limited" in told
    events = aqmlab_cli("sweep", tmp_path / "swept.toml", "--json", "-q").stdout.splitlines()
    by_kind = {doubt["kind"]: doubt for doubt in json.loads(events[-1])["doubts"]}
    assert by_kind["window"]["cells"] == [{"arm": "DropTail", "settings": {"topology.rate": "8Mbit"}}]
    assert len(by_kind["seeds"]["cells"]) == 2


def grid():
    """Results of two arms and three rates, without runs, to test the wording."""
    axis = Axis("topology.rate", "rate", ("topology.rate",), ("5Mbit", "10Mbit", "20Mbit"))
    cells = tuple(Cell((("topology.rate", label),), arm) for label in axis.labels for arm in ("A", "B"))
    return Results(
        title="", path="nowhere", arms=("A", "B"), cells=cells, seeds=(1,), finished={}, axes=(axis,)
    )


def test_one_doubt_about_several_cells_is_told_once_in_the_words_of_the_worst():
    results = grid()
    parts = [CellDoubt(cell, "warning", f"busy {i} %", "do", -i) for i, cell in enumerate(results.cells)]
    (doubt,) = merged("bottleneck", results, parts[1:4])
    assert doubt.sentence == "in 3 of 6 cells, at worst in B, rate 5Mbit: busy 1 %"
    (single,) = merged("bottleneck", results, parts[:1])
    assert single.sentence == "in A, rate 5Mbit: busy 0 %"
    same = [CellDoubt(cell, "note", "three seeds", "more") for cell in results.cells]
    assert merged("seeds", results, same)[0].sentence == "three seeds"
    assert merged("seeds", results, same[:2])[0].sentence == "in 2 of 6 cells: three seeds"
    assert len(merged("mixed", results, parts[:2] + same[:2])) == 2
    assert doubt.to_json()["cells"][0] == {"arm": "B", "settings": {"topology.rate": "5Mbit"}}


def test_the_command_line_and_the_report_tell_the_same_doubts(small_file, aqmlab_cli, tmp_path):
    told = aqmlab_cli("run", small_file, "--runs", "1", "-o", tmp_path / "out", "-q")
    assert "one run: no interval over seeds" in told.stdout
    as_json = json.loads(aqmlab_cli("report", tmp_path / "out", "--json", "-q").stdout)
    kinds = {doubt["kind"] for doubt in as_json["doubts"]}
    assert "seeds" in kinds
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    results = load(tmp_path / "out")
    for check in examine(results):
        for doubt in check.doubts:
            assert f"<b>{doubt.severity}</b>" in page
    assert page.count('<li class="passed">') == sum(not check.doubts for check in examine(results))


def test_nothing_to_say_is_said_in_a_line(tmp_path, aqmlab_cli):
    import tomli_w

    (tmp_path / "sound.toml").write_text(tomli_w.dumps(SOUND))
    told = aqmlab_cli("run", tmp_path / "sound.toml", "-o", tmp_path / "out", "-q", "--no-report")
    assert told.stdout.endswith(f"no doubts: {len(examine(load(tmp_path / 'out')))} checks passed\n")


CBR = {"kind": "cbr", "rate": "1Mbit", "size": "1000B", "rtt": "60ms"}
CARRYING = {
    "title": "Carrying",
    "duration": "6s",
    "warmup": "2s",
    "topology": {
        "kind": "parking_lot",
        "hops": 2,
        "rate": "8Mbit",
        "delay": "10ms",
        "access_rate": "100Mbit",
        "queue": {"kind": "droptail", "limit": "40p"},
        "hop2": {"rate": "4Mbit"},
    },
    # Packets that wait before hop2 at t0 crossed hop1 before t0.
    "traffic": [
        CBR | {"name": "steady", "from": "r0", "to": "r2"},
        CBR | {"name": "back", "from": "r2", "to": "r0"},
        CBR | {"name": "flood", "from": "r1", "to": "r2", "rate": "5Mbit", "stop": "2s"},
    ],
}


@pytest.fixture(scope="module")
def carrying(tmp_path_factory):
    return aqmlab.run(CARRYING, output=tmp_path_factory.mktemp("carrying") / "runs", report=False)


def carried(results, more=None):
    """The check's result if the flows of each class in ``more`` had received that many more bytes."""
    measured = results.measured

    def doctored(cell=None):
        return tuple(
            replace(
                run, flows=Flows([_with(flow, (more or {}).get(flow.class_name, 0)) for flow in run.flows])
            )
            for run in measured(cell)
        )

    changed = replace(results)
    object.__setattr__(changed, "measured", doctored)
    (check,) = [check for check in examine(changed) if check.kind == "carried"]
    return check


def _with(flow, more):
    got = {name: getattr(flow, name) + more for name in flow._fields if name in GOT}
    return flow._replace(**got)


GOT = ("measured_delivered_bytes", "measured_received_bytes")


def test_what_was_on_its_way_when_the_interval_began_may_come_on_top(carrying):
    results = carrying
    run = results.measured(results.cells[0])[0]
    got = flow_goodput(run, run.flows[0]) * run.interval_s / 8
    # The queue before hop2 was full at t0, so `steady` received more than hop1 carried for it.
    assert got > run.queues["hop1", "steady"]["departures_bytes"]
    assert carried(results).doubts == ()


def test_flows_that_got_more_than_their_queue_carried_are_told_with_both_figures(carrying):
    # `back` received the 500 kB that both its queues carried. From hop2-reverse on, its path takes 25 ms: two
    # links of 10 ms, and a quarter of the 20 ms that the links leave of its round trip of 60 ms. At 4 Mbit/s,
    # 12.5 kB arrive in this time; three packets, one on each link and one at the end, are added.
    most = round(0.025 * 4e6 / 8) + 3 * 1000
    assert carried(carrying, {"back": most}).doubts == ()
    doubt = only(carried(carrying, {"back": most + 1}))
    assert doubt.severity == "serious"
    assert doubt.sentence == (
        "the flows that cross `hop2-reverse` received 1.031 Mbit/s, headers included, but the queue carried"
        " 1.000 Mbit/s for them, and at most 0.031 Mbit/s was in flight already (seed 1)"
    )
    doubt = only(carried(carrying, {"back": 500_000}))
    assert "received 2.000 Mbit/s" in doubt.sentence


def test_a_segment_comes_with_its_header(whole):
    results = whole
    run = results.measured(results.cells[0])[0]
    departed = run.queues["bottleneck", "ftp"]["departures_bytes"]
    payload = sum(flow_goodput(run, flow) for flow in run.flows) * run.interval_s / 8
    assert payload * 1500 / 1460 < departed
    # If all carried bytes were payload, the flows would have received too much: headers add 2.7 %, and the
    # path is short.
    every = int((departed - payload) / len(run.flows)) + 1
    assert carried(results).doubts == ()
    assert carried(whole, {"ftp": every}).doubts != ()


def test_the_sizes_of_a_schedule_are_in_its_file(tmp_path):
    (tmp_path / "list.csv").write_text("time_s,size_bytes,ecn\n0.5,500,ect0\n1,1200,\n")
    file = tmp_path / "list.toml"
    file.write_text(
        'duration = "3s"\n[topology]\nkind = "dumbbell"\nrate = "5Mbit"\ndelay = "10ms"\n'
        '[[traffic]]\nname = "list"\nkind = "schedule"\nfile = "list.csv"\naccess_at = "sender"\n'
    )
    assert examine(aqmlab.run(file, output=tmp_path / "run"))
