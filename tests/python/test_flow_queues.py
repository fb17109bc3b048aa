"""Queues per flow and coupled queues: metrics, the table and the figures of the queues inside a queue."""

from __future__ import annotations

import csv
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.metrics import Scope
from aqmlab.plots.appearance import Appearance
from aqmlab.plots.draw import draw, figure_of
from aqmlab.reports.render import render
from aqmlab.results.answers import BY_QUEUE
from aqmlab.soundness.live import headers_are_equal
from browser import ask, data_of, needs_chromium
from laid_out import nothing_is_covered

SCENARIO = """
duration = "8s"
warmup = "2s"
runs = 2
[topology]
kind = "dumbbell"
rate = "8Mbit"
delay = "5ms"
queue = { kind = "droptail", limit = "100p" }
[[traffic]]
name = "one"
kind = "bulk"
count = 1
rtt = "40ms"
tcp = { profile = "modern", ecn = true }
[[traffic]]
name = "four"
kind = "bulk"
count = 4
rtt = { uniform = ["20ms", "60ms"] }
tcp = { profile = "modern", ecn = true }
[[traffic]]
name = "call"
kind = "cbr"
rate = "80kbit"
size = "200B"
rtt = "30ms"
ecn = "ect1"
[record]
queues = "50ms"
[[arm]]
name = "DropTail"
[[arm]]
name = "FQ-CoDel"
topology.queue = { kind = "fq_codel", flows = 4 }
[[arm]]
name = "CAKE"
topology.queue = { kind = "cake", isolation = "flows", tins = "besteffort" }
[[arm]]
name = "DualPI2"
topology.queue = { kind = "dualpi2" }
"""
INSIDE = {
    "FQ-CoDel": ("bottleneck/sparse", "bottleneck/bulk"),
    "CAKE": ("bottleneck/sparse", "bottleneck/bulk"),
    "DualPI2": ("bottleneck/l4s", "bottleneck/classic"),
}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    file = tmp_path_factory.mktemp("flow-queues") / "two.toml"
    file.write_text(SCENARIO)
    return aqmlab.run(file, output=file.parent / "out")


def rows(run, table, select, where="true"):
    return duckdb.sql(f"SELECT {select} FROM '{run.path / table}.parquet' WHERE {where}").fetchall()


def cell_of(experiment, arm):
    (cell,) = experiment.select(arm)
    return cell


@pytest.mark.parametrize("class_name", ["*", "one", "call"])
@pytest.mark.parametrize("arm", INSIDE)
def test_the_share_of_a_queue_is_that_of_its_bytes(experiment, arm, class_name):
    for run in experiment.runs_of(arm):
        found = dict(
            rows(
                run,
                "summary",
                "queue, departures_bytes",
                f"queue LIKE 'bottleneck/%' AND class = '{class_name}'",
            )
        )
        for queue in INSIDE[arm]:
            shares = experiment.values(
                "queue_share_percent", cell_of(experiment, arm), Scope(queue, class_name)
            )
            assert shares[run.seed] == pytest.approx(100 * found[queue] / sum(found.values()), rel=1e-12)
    whole = experiment.values("queue_share_percent", cell_of(experiment, arm), Scope("bottleneck"))
    assert set(whole.values()) == {None}


def test_a_flow_that_sends_little_is_sparse(experiment):
    """One that sends less than a quantum per round is never bulk (Høiland-Jørgensen et al. 2018, III-B)."""
    cell = cell_of(experiment, "CAKE")
    mine = experiment.values("queue_share_percent", cell, Scope("bottleneck/sparse", "call")).values()
    others = experiment.values("queue_share_percent", cell, Scope("bottleneck/bulk", "four")).values()
    assert set(mine) == {100.0}
    assert min(others) > 50


def test_queues_in_use_and_collisions_come_from_the_laws_samples(experiment):
    cell = cell_of(experiment, "FQ-CoDel")
    used = experiment.values("flow_queues_mean", cell)
    collisions = experiment.values("flow_collision_percent", cell)
    for run in experiment.runs_of("FQ-CoDel"):
        measured = f"queue = 'bottleneck' AND t_ns > {run.t0_ns} AND t_ns <= {run.t1_ns}"
        ((mean,),) = rows(
            run,
            "law",
            "sum(value) / count(DISTINCT t_ns)",
            f"{measured} AND name IN ('new', 'old')",
        )
        assert used[run.seed] == pytest.approx(mean, rel=1e-12)
        assert 0 < used[run.seed] <= 4
        ((first, last),) = rows(
            run,
            "law",
            f"max(value) FILTER (t_ns <= {run.t0_ns}), max(value)",
            "name = 'collisions' AND queue = 'bottleneck'",
        )
        ((arrived,),) = rows(run, "queues", "sum(arrivals_packets)", measured)
        assert collisions[run.seed] == pytest.approx(100 * (last - first) / arrived, rel=1e-12)
        assert collisions[run.seed] > 0  # six flows share four queues
    for metric in ("flow_queues_mean", "flow_collision_percent"):
        assert set(experiment.values(metric, cell_of(experiment, "DropTail")).values()) == {None}


def test_a_part_of_the_run_has_its_own_collisions(experiment):
    cell = cell_of(experiment, "FQ-CoDel")
    halves = [experiment.values("flow_collision_percent", cell, Scope(window=w)) for w in ((2, 5), (5, 8))]
    for run in experiment.runs_of("FQ-CoDel"):
        counts = dict(
            rows(
                run,
                "law",
                "t_ns, value",
                "name = 'collisions' AND t_ns IN (2e9, 5e9, 8e9) AND queue = 'bottleneck'",
            )
        )
        for values, begin, end in zip(halves, (2, 5), (5, 8), strict=True):
            ((arrived,),) = rows(
                run,
                "queues",
                "sum(arrivals_packets)",
                f"queue = 'bottleneck' AND t_ns > {begin}e9 AND t_ns <= {end}e9",
            )
            grown = counts[end * 10**9] - counts[begin * 10**9]
            assert values[run.seed] == pytest.approx(100 * grown / arrived, rel=1e-12)


def test_jains_index_of_classes_counts_each_class_once(experiment):
    for arm in experiment.arms:
        cell = cell_of(experiment, arm)
        all_tcp = experiment.values("jain_index_of_classes", cell)
        named = experiment.values("jain_index_of_classes", cell, Scope(class_name="four,call"))
        for run in experiment.runs_of(arm):
            got = dict(rows(run, "flows", "class, sum(measured_received_bytes)", "true GROUP BY class"))

            def jain(*names, got=got):
                return sum(got[n] for n in names) ** 2 / (len(names) * sum(got[n] ** 2 for n in names))

            assert all_tcp[run.seed] == pytest.approx(jain("one", "four"), rel=1e-12)
            assert named[run.seed] == pytest.approx(jain("four", "call"), rel=1e-12)
        assert set(experiment.values("jain_index_of_classes", cell, Scope(class_name="one")).values()) == {
            None
        }


def test_an_answer_by_queue_has_a_row_for_each_queue_inside_the_bottleneck(experiment):
    answer = aqmlab.answer(experiment, by="queue")
    assert [(row.cell.arm, row.part) for row in answer.rows] == [
        (arm, queue) for arm, queues in INSIDE.items() for queue in queues
    ]
    for row in answer.rows:
        for run in experiment.runs_of(row.cell):
            ((drops, marks, backlog, delay),) = rows(
                run,
                "summary",
                "100 * (dropped_early_packets + dropped_forced_packets + dropped_overflow_packets) /"
                " arrivals_packets, 100 * (marked_early_packets + marked_forced_packets) /"
                f" nullif(ect_arrivals_packets, 0), backlog_packets_integral_ns / {run.t1_ns - run.t0_ns},"
                " sojourn_sum_ns / sojourn_count / 1e9",
                f"queue = '{row.part}' AND class = '*'",
            )
            found = {name: answer.by_seed(row.cell, name, row.part)[run.seed] for name in BY_QUEUE}
            assert found["drop_percent"] == pytest.approx(drops, rel=1e-12)
            assert found["mark_percent"] == pytest.approx(marks, rel=1e-12)
            assert found["backlog_mean_packets"] == pytest.approx(float(backlog), rel=1e-9)
            assert found["queueing_delay_mean_s"] == pytest.approx(float(delay), rel=1e-9)
    assert all(row.part in str(answer) for row in answer.rows)
    assert {entry["queue"] for entry in answer.to_json()["cells"]} == {
        q for of in INSIDE.values() for q in of
    }
    of_call = aqmlab.answer(experiment, "mark_percent", by="queue", class_name="call")
    assert of_call.estimate("DualPI2", "mark_percent", "bottleneck/l4s").mean > 0


def test_the_command_prints_the_queues_inside_a_queue(experiment, aqmlab_cli):
    told = aqmlab_cli("report", experiment.path, "--by", "queue")
    assert told.returncode == 0, told.stderr
    assert "the queues inside bottleneck" in told.stdout
    assert all(queue in told.stdout for queues in INSIDE.values() for queue in queues)
    told = aqmlab_cli("report", experiment.path, "--by", "queue", "--json", "--metric", "drop_percent")
    assert [cell["queue"] for cell in json.loads(told.stdout)["cells"]][:2] == list(INSIDE["FQ-CoDel"])


@pytest.mark.parametrize(
    ("metric", "queue", "told"),
    [
        (None, "reverse", "there is no queue inside `reverse`"),
        ("goodput_bps", None, "`goodput_bps` is about flows, which belong to no inner queue"),
        ("drop_percent{queue=bottleneck/sparse}", None, "names a queue: leave it out of the braces"),
    ],
)
def test_an_answer_by_queue_refuses_what_has_none(experiment, metric, queue, told):
    with pytest.raises(UsageError, match=told):
        aqmlab.answer(experiment, metric, queue=queue, by="queue")


def table(file):
    with file.open(encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.mark.parametrize(
    ("kind", "column", "where"),
    [
        ("inner-delay", "queue", "queue = 'bottleneck/{part}' AND class = '*'"),
        ("class-delay", "class", "queue = 'bottleneck' AND class = '{part}'"),
    ],
)
def test_delays_by_part_are_those_of_the_histograms(experiment, tmp_path, kind, column, where):
    found = table(aqmlab.plot(experiment.path, kind, tmp_path / "delays.csv"))
    parts = {(row["arm"], row[column]) for row in found}
    inside = {(arm, name.partition("/")[2]) for arm, names in INSIDE.items() for name in names}
    classes = {(arm, name) for arm in experiment.arms for name in ("one", "four", "call")}
    assert parts == (inside if column == "queue" else classes)
    for arm, part in parts:
        points = [row for row in found if (row["arm"], row[column]) == (arm, part)]
        assert float(points[-1]["share"]) == 1.0
        for point in points[:: max(len(points) // 7, 1)]:
            shares = []
            for run in experiment.runs_of(arm):
                ((below, all_packets),) = rows(
                    run,
                    "histograms",
                    f"sum(weight) FILTER (high / 1e6 <= {point['delay_ms']} * (1 + 1e-8)), sum(weight)",
                    f"kind = 'sojourn_ns' AND {where.format(part=part)}",
                )
                shares.append(float(below or 0) / float(all_packets))
            assert float(point["share"]) == pytest.approx(sum(shares) / len(shares), rel=1e-8, abs=1e-12)
            assert float(point["low_95"]) <= float(point["share"]) <= float(point["high_95"])


def test_inner_queues_over_time_are_their_samples(experiment, tmp_path):
    found = table(aqmlab.plot(experiment.path, "inner-series", tmp_path / "series.csv", until_s=4.0))
    assert max(float(row["t_s"]) for row in found) == 4
    for arm, names in INSIDE.items():
        run = experiment.runs_of(arm)[0]
        for name in names:
            mine = [row for row in found if (row["arm"], row["queue"]) == (arm, name.partition("/")[2])]
            samples = rows(
                run,
                "queues",
                "t_ns / 1e9, backlog_packets, departures_bytes * 8 / 50e3, marked_packets / 0.05,"
                " (dropped_by_law_packets + dropped_not_by_law_packets) / 0.05",
                f"queue = '{name}' AND t_ns > 0 AND t_ns <= 4e9 ORDER BY t_ns",
            )
            assert [[float(value) for value in list(row.values())[2:]] for row in mine] == [
                pytest.approx(list(map(float, sample)), rel=1e-8, abs=1e-9) for sample in samples
            ]


@pytest.mark.parametrize("kind", ["inner-delay", "class-delay", "inner-series"])
def test_figures_of_inner_queues_have_a_plot_per_arm(experiment, kind):
    figure = aqmlab.figure(experiment.path, kind)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == (list(experiment.arms) if kind == "class-delay" else list(INSIDE))
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    parts = ["one", "four", "call"] if kind == "class-delay" else ["sparse", "bulk", "l4s", "classic"]
    assert legend >= set(parts)
    one = aqmlab.figure(experiment.path, kind, arms=["DualPI2"])
    assert [axes.get_title() for axes in one.axes if axes.get_title()] == ["DualPI2"]


@pytest.mark.parametrize("kind", ["inner-delay", "class-delay", "inner-series"])
def test_no_word_lies_on_data_and_the_same_figure_has_the_same_bytes(experiment, tmp_path, kind):
    for width in (None, 3.5, 7.16):
        figure = figure_of(experiment, kind, look=Appearance(width))
        FigureCanvasAgg(figure).draw()
        nothing_is_covered(figure, width)
    titled = replace(experiment, title=r"$\nosuch$ at 5 $ " + "and on " * 30)
    first, again = (draw(titled, kind, tmp_path / f"{name}.svg").read_text() for name in "ab")
    assert first == again
    assert r"$\nosuch$ at 5 $" in first


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        (
            "inner-delay",
            {"arms": ["DropTail"]},
            "has nothing to show: no arm has a queue inside",
        ),
        (
            "inner-delay",
            {"metrics": ["goodput_bps"]},
            "shows queueing delay: leave out the metric",
        ),
        ("class-delay", {"queue": "bottleneck/l4s"}, "in no arm, packets of two classes left"),
        ("inner-series", {"arms": ["DropTail"]}, "no arm has a queue inside `bottleneck`"),
        ("inner-series", {"flows": ["one"]}, "shows queues, not flows or metrics; leave out `--flow`"),
        ("inner-series", {"from_s": 9.0}, "there is nothing to show"),
    ],
)
def test_figures_of_inner_queues_say_what_they_lack(experiment, kind, options, told):
    with pytest.raises(UsageError, match=told):
        aqmlab.figure(experiment.path, kind, **options)


def test_the_page_shows_inner_queues(experiment, tmp_path):
    page = render(experiment)
    data = data_of(page)
    assert "Queues inside the queue" in page
    panels = data["charts"]["inner-delay"]
    assert [panel["title"] for panel in panels] == list(INSIDE)
    points = table(aqmlab.plot(experiment.path, "inner-delay", tmp_path / "delays.csv"))
    for panel in panels:
        for line in panel["series"]:
            of_line = [row for row in points if (row["arm"], row["queue"]) == (panel["title"], line["name"])]
            last = [row for row in of_line if float(row["delay_ms"]) > 0.01]
            assert line["y"][1:] == pytest.approx([float(row["share"]) for row in last], rel=1e-5)
            assert line["x"][1:] == pytest.approx([float(row["delay_ms"]) for row in last], rel=1e-5)
    over_time = {panel["title"] for panel in data["charts"]["inner-series"]}
    assert {"DualPI2, backlog [packets]", "DualPI2, marks [packets/s]"} <= over_time
    others = page.partition("The other queues")[2].partition("</details>")[0]
    assert "reverse" in others
    assert "bottleneck/" not in others


def test_a_page_without_inner_queues_has_no_section_of_them(experiment):
    (cell,) = experiment.select("DropTail")
    one = replace(experiment, arms=("DropTail",), cells=(cell,))
    page = render(one)
    assert "Queues inside the queue" not in page
    assert not {"inner-delay", "class-delay", "inner-series"} & data_of(page)["charts"].keys()


def test_delays_of_single_flows_come_from_their_packets(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(SCENARIO.replace("[record]", '[record]\npackets = { links = ["bottleneck"] }'))
    experiment = aqmlab.run(file, output=tmp_path / "out", arms=["FQ-CoDel"], runs=1, report=False)
    (run,) = experiment.runs
    found = table(aqmlab.plot(experiment.path, "flow-delay", tmp_path / "delays.csv"))
    names = [*(f"four {i}" for i in range(4)), "call 0", "one 0"]
    assert sorted({row["flow"] for row in found}) == sorted(names)
    of_flow = dict(rows(run, "flows", "class || ' ' || index, flow"))
    for name in names:
        ((packets, longest),) = duckdb.sql(
            "SELECT count(*), max(sent.t_ns - came.t_ns) / 1e6"
            f" FROM '{run.path}/packets.parquet' sent JOIN '{run.path}/packets.parquet' came"
            " USING (place, flow, toward, number)"
            f" WHERE sent.event = 'dequeue' AND came.event = 'enqueue' AND flow = {of_flow[name]}"
            f" AND place = 'bottleneck' AND sent.t_ns > {run.t0_ns} AND sent.t_ns <= {run.t1_ns}"
        ).fetchall()
        points = [row for row in found if row["flow"] == name]
        assert float(points[-1]["delay_ms"]) == pytest.approx(longest, rel=1e-8)
        assert float(points[-1]["share"]) == 1.0
        middle = next(row for row in points if float(row["share"]) >= 0.5)
        ((within,),) = duckdb.sql(
            "SELECT count(*)"
            f" FROM '{run.path}/packets.parquet' sent JOIN '{run.path}/packets.parquet' came"
            " USING (place, flow, toward, number)"
            f" WHERE sent.event = 'dequeue' AND came.event = 'enqueue' AND flow = {of_flow[name]}"
            f" AND place = 'bottleneck' AND sent.t_ns > {run.t0_ns} AND sent.t_ns <= {run.t1_ns}"
            f" AND (sent.t_ns - came.t_ns) / 1e6 <= {middle['delay_ms']} * (1 + 1e-8)"
        ).fetchall()
        assert float(middle["share"]) == pytest.approx(within / packets, rel=1e-8)
    figure = aqmlab.figure(experiment.path, "flow-delay", flows=["call", "one 0"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["call 0", "one 0"]
    with pytest.raises(UsageError, match="no flow `five` was recorded"):
        aqmlab.figure(experiment.path, "flow-delay", flows=["five"])
    with pytest.raises(UsageError, match="no packet that left `reverse` in the measured interval"):
        aqmlab.figure(experiment.path, "flow-delay", queue="reverse")
    with pytest.raises(UsageError, match="leave out `--metric`"):
        aqmlab.figure(experiment.path, "flow-delay", metrics=["goodput_bps"])


def test_delays_of_single_flows_need_packets(experiment):
    with pytest.raises(UsageError, match="has no `packets`"):
        aqmlab.figure(experiment.path, "flow-delay")


@needs_chromium
def test_an_arm_that_is_not_ticked_has_no_plot(experiment, tmp_path):
    titles = (
        '[...document.querySelectorAll("[data-figure=inner-delay] .panel-title")].map((t) => t.textContent)'
    )
    script = f"""(async () => {{
      const before = {titles};
      document.querySelector(".arms [data-arm='1']").click();
      const legends = document.querySelector("[data-figure=inner-delay] svg.plot").textContent;
      return [before, {titles}, legends.includes("sparse") && legends.includes("classic")];
    }})()"""
    before, after, legend = ask(render(experiment), script, tmp_path)
    assert before == list(INSIDE)
    assert after == list(INSIDE)[1:]
    assert legend


def test_a_sweep_has_a_plot_for_each_arm_and_label(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(f'{SCENARIO}[sweep]\n"topology.rate" = ["4Mbit", "8Mbit"]\n')
    swept = aqmlab.sweep(file, store=tmp_path / "store", runs=1, report=False).wait()
    figure = aqmlab.figure(swept.path, "inner-delay")
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == [f"{arm}, rate {rate}" for rate in ("4Mbit", "8Mbit") for arm in INSIDE]
    answer = aqmlab.answer(swept, by="queue")
    assert [row.part for row in answer.rows] == 2 * [name for names in INSIDE.values() for name in names]
    assert "Queues inside the queue" in render(swept)
    rows = table(swept.path / "queues.csv")
    assert [row["queue"] for row in rows] == [row.part for row in answer.rows]
    first = answer.rows[0]
    share = answer.estimate(first.cell, "queue_share_percent", first.part)
    assert float(rows[0]["queue_share_percent"]) == share.mean


def test_flows_that_share_a_queue_share_its_rate(tmp_path):
    """Jain's index of a run is one of those of 25 flows of which some pairs share a queue, and no other."""
    scenario = tomllib.loads((Path(__file__).parents[2] / "scenarios/shared_queues.toml").read_text())
    scenario = {key: value for key, value in scenario.items() if key not in ("arm", "claim", "sweep")}
    scenario["traffic"][0]["count"] = 25
    scenario |= {"duration": "20s", "runs": 8}
    results = aqmlab.run(scenario, output=tmp_path / "out", report=False)
    (cell,) = results.cells
    found = results.values("jain_index", cell)
    collided = results.values("flow_collision_percent", cell)
    # With p pairs, 25 - p queues get the same, and each flow of a pair half of it.
    possible = [(25 - p) ** 2 / (25 * (25 - 2 * p + p / 2)) for p in range(6)]
    assert possible[1] == pytest.approx(0.9804, abs=1e-4)
    for seed, index in found.items():
        pairs = min(range(6), key=lambda p: abs(index - possible[p]))
        assert index == pytest.approx(possible[pairs], abs=0.004)
        assert (collided[seed] > 0) == (pairs > 0)
    assert min(found.values()) < 0.99 < max(found.values())


def of_the_kernel(run, spec):
    """The same run, as if the bottleneck had had a kernel's queue."""
    bottleneck, *others = run.plan.links
    plan = replace(run.plan, links=(replace(bottleneck, queue="tc", settings={"spec": spec}), *others))
    return replace(run, manifest=replace(run.manifest, plan=plan))


@pytest.mark.parametrize(
    ("queue", "spec", "names"),
    [
        ('{ kind = "fq_codel", preset = "linux" }', "fq_codel limit 1000", ["quantum"]),
        ('{ kind = "fq_codel", preset = "linux", quantum = "1500B" }', "fq_codel limit 1000", []),
        ('{ kind = "fq_codel", preset = "linux" }', "fq_codel quantum 1514", []),
        ('{ kind = "fq_pie", preset = "linux" }', "fq_pie", ["quantum", "mean_packet"]),
        ('{ kind = "pie", preset = "linux" }', "pie limit 1000", ["mean_packet"]),
        ('{ kind = "cake", preset = "linux" }', "cake besteffort", ["overhead"]),
        ('{ kind = "cake", preset = "linux", overhead = 0 }', "cake besteffort", []),
        ('{ kind = "sfq", preset = "linux" }', "fq_codel", []),
    ],
)
def test_a_header_that_the_kernels_queue_lacks_is_a_doubt(tmp_path, queue, spec, names):
    file = tmp_path / "pair.toml"
    text = SCENARIO.partition("[[arm]]")[0].replace('"8s"', '"3s"')
    arms = f'[[arm]]\nname = "ours"\ntopology.queue = {queue}\n[[arm]]\nname = "kernel"\n'
    file.write_text(text + arms)
    results = aqmlab.run(file, output=tmp_path / "out", runs=1, report=False)
    (kernel,) = results.select("kernel")
    finished = {
        at: of_the_kernel(run, spec) if at[0] == kernel else run for at, run in results.finished.items()
    }
    doubts = headers_are_equal(replace(results, finished=finished)).doubts
    if not names:
        assert not doubts
        return
    (doubt,) = doubts
    assert doubt.severity == "warning"
    assert all(f"`{name}`" in doubt.sentence for name in names)
    assert "ours" in doubt.sentence
