"""The report over a sweep, as text: table, claims, checks, missing runs."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.recordings.recording import Run
from aqmlab.reports import write_report
from aqmlab.results.answers import answer
from browser import data_of
from live_worlds import live_object
from sweeping import tiny
from synthetic_sweep import DELAY, RATES, synthetic


def test_the_table_has_a_row_a_cell_with_the_figures_of_the_statistics(grid, grid_report):
    page = grid_report.read_text(encoding="utf-8")
    rows = re.findall(
        r"<tr>(.*?)</tr>",
        page.split('<table id="cells"')[1].split("</table>")[0].split("<tbody>")[1],
        flags=re.S,
    )
    assert len(rows) == len(grid.cells) == 24
    cells = answer(grid)
    column = [metric.name for metric in cells.shown].index(DELAY)
    for row, cell in zip(rows, grid.cells, strict=True):
        figures = re.findall(r'data-value="([^"]*)" data-half="([^"]*)" data-n="(\d+)"', row)
        mean, half, n = figures[column]
        values = np.array(list(grid.values(DELAY, cell).values()))
        low, high = scipy_stats.t.interval(0.95, len(values) - 1, values.mean(), scipy_stats.sem(values))
        assert float(mean) == pytest.approx(1e3 * values.mean())
        assert float(half) == pytest.approx(1e3 * (high - low) / 2)
        assert int(n) == len(values)


def test_missing_runs_are_listed_by_cause(grid_report):
    page = html.unescape(grid_report.read_text(encoding="utf-8"))
    table = page.split('class="text missing"')[1].split("</table>")[0]
    assert re.findall(r"<td>(.*?)</td>", table) == [
        "it needs more than 1 GiB of memory",
        "2",
        "PI, rate 5Mbit, count 20 (seeds 4, 7)",
        "the worker was killed by signal 9",
        "1",
        "RED, rate 50Mbit, count 20 (seed 1)",
    ]
    assert "237 of 240 runs are complete" in page


def claim(name, expect, *, strength="firm", text="", where=None):
    return {
        "name": name, "expect": expect, "strength": strength, "text": text, "where": where or {},
        "source": "IV-B", "line": 1, "column": 1,
    }  # fmt: skip


def test_claims_are_shown_with_every_comparison(tmp_path):
    claimed = synthetic(
        claims=[
            claim("M1", f"for all rate: {DELAY}{{arm=PI}} < {DELAY}{{arm=RED}}", where={"count": "80"}),
            claim("M2", "for all rate, count: goodput_bps{arm=PI} > goodput_bps{arm=RED}", strength="soft"),
            claim("M3", f"{DELAY}{{arm=PI, rate=5Mbit, count=5}} < {DELAY}{{arm=RED, rate=5Mbit, count=5}}"),
            claim("<b>", f"{DELAY}{{arm=PI, rate=5Mbit, count=80}} < 1ms", text="<img src=x>"),
        ]
    )
    text = write_report(claimed, tmp_path / "claims.html").read_text(encoding="utf-8")
    block = text.split('<ul class="checks claims">')[1].split('<h2 id="checks">')[0]
    assert re.findall(r'<li class="(\w+)">', block) == ["holds", "fails", "undecided", "fails"]
    page = html.unescape(text)
    assert "3 firm claims: 1 holds, 1 fails and 1 is undecided; 1 soft claim: 1 fails." in page
    cell, other = (next(iter(claimed.select(arm, {"rate": "5Mbit", "count": "80"}))) for arm in ("PI", "RED"))
    values, against = (list(claimed.values(DELAY, of).values()) for of in (cell, other))
    differences_ms = 1e3 * (np.array(values) - np.array(against))
    low, high = scipy_stats.t.interval(0.95, 9, differences_ms.mean(), scipy_stats.sem(differences_ms))
    row = page.split("rate 5Mbit</th>")[1].split("</tr>")[0]
    shown = re.search(r"(−[\d.]+) ms \((−[\d.]+) to (−[\d.]+)\)", row).groups()
    assert [float(part.replace("−", "-")) for part in shown] == pytest.approx(
        [differences_ms.mean(), low, high], rel=0.01
    )
    assert "8 more" in page
    assert "<b></b>" not in text
    assert "&lt;img src=x&gt;" in text


def test_claims_of_an_experiment_stand_in_its_report(experiment, tmp_path):
    made = claim("M9", "goodput_bps{arm=DropTail} > 1bit", text="Something gets through.")
    claimed = replace(experiment, claims=[made])
    page = aqmlab.reports.write_report(claimed, tmp_path / "claims.html").read_text(encoding="utf-8")
    assert "<b>M9</b> Something gets through." in page
    assert "1 firm claim: 1 is undecided." in page
    assert "2 values, fewer than the 5 required" in page


def test_checks_are_shown_with_what_they_found(grid_report):
    page = html.unescape(grid_report.read_text(encoding="utf-8"))
    block, folded = page.split('<h2 id="checks">')[1].split("</ul>")[:2]
    assert "<details><summary>" in folded
    assert "packet counts balance" in folded
    assert "in 2 of 24 cells, at worst in PI, rate 5Mbit, count 20: 2 of 10 runs are missing" in block


def test_an_experiment_without_a_sweep_has_the_page_without_axes(experiment, tmp_path):
    file = write_report(experiment, tmp_path / "plain.html")
    data = data_of(file.read_text(encoding="utf-8"))
    assert data["axes"] == []
    assert [cell["at"] for cell in data["cells"]] == [[], []]
    assert 'data-figure="panels"' not in file.read_text(encoding="utf-8")


def test_one_seed_has_no_interval(tmp_path):
    file = write_report(synthetic(seeds=1, axes={"topology.rate": RATES}), tmp_path / "one.html")
    text = file.read_text(encoding="utf-8")
    assert "One run per cell (seed 1): no interval; measured from 10 s to 110 s." in text
    assert "±" not in text.split('<table id="cells"')[1].split("</table>")[0]
    assert all(entry[1] is None for entry in data_of(file.read_text(encoding="utf-8"))["estimates"][DELAY])


def test_a_sweep_without_a_finished_run_says_so(tmp_path):
    lost = {(i, 1): "no memory" for i in range(8)}
    bare = synthetic(axes={"topology.rate": RATES}, seeds=1, lost=lost)
    text = write_report(bare, tmp_path / "bare.html").read_text(encoding="utf-8")
    assert "Nothing was delivered" in text
    assert "0 of 8 runs are complete" in text
    assert "data-figure" not in text.split("</style>")[1].split("<script")[0]


def test_the_commands_write_the_report_of_a_sweep(tmp_path, aqmlab_cli):
    import tomli_w

    scenario = tmp_path / "tiny.toml"
    swept = {"topology.rate": ["2Mbit", "4Mbit"]}
    scenario.write_text(tomli_w.dumps(tiny(runs=2, sweep=swept, claim=[])), encoding="utf-8")
    store = tmp_path / "store"
    ended = aqmlab_cli("sweep", scenario, "--store", store, "--no-report")
    (path,) = (store / "sweeps").iterdir()
    assert (ended.returncode, (path / "report.html").exists()) == (0, False)
    ended = aqmlab_cli("sweep", scenario, "--store", store)
    assert f"report     {path / 'report.html'}" in ended.stderr
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "Every value of each arm for rate 2Mbit, with" in page
    assert "Drawn for rate 2Mbit." in page
    of_runs = data_of(page)["courses"]["runs"]
    assert [run["cell"] for run in of_runs] == list(range(4))
    first = (path / "report.html").read_bytes()
    ended = aqmlab_cli("report", path, "--metric", "jain_index", "--json")
    content = json.loads(ended.stdout)
    assert [metric["name"] for metric in content["metrics"]] == ["jain_index"]
    results = aqmlab.load(path)
    for entry, cell in zip(content["cells"], results.cells, strict=True):
        assert (entry["settings"], entry["arm"]) == (dict(cell.settings), cell.arm)
        by_seed = results.values("jain_index", cell)
        assert entry["values"]["jain_index"]["by_seed"] == {str(s): v for s, v in by_seed.items()}
    assert (path / "report.html").read_bytes() == first
    assert aqmlab.report(path, tmp_path / "again.html").read_bytes() == first
    ended = aqmlab_cli("compare", f"{path}:DropTail", ":RED", "--metric", "goodput_bps")
    assert "rate 2Mbit" in ended.stdout
    ended = aqmlab_cli("report", path, "-o", "/proc/report.html")
    assert (ended.returncode, ended.stdout) == (3, "")


def test_a_sweep_names_runs_whose_courses_cannot_be_read(tmp_path):
    swept = {"topology.rate": ["2Mbit", "4Mbit"]}
    sweep = aqmlab.sweep(tiny(runs=2, sweep=swept, claim=[]), store=tmp_path / "store")
    results = sweep.wait()
    file = results.runs_of(results.cells[1])[0].path / "flow_series.parquet"
    file.write_bytes(b"PAR1")
    page = html.unescape(aqmlab.report(results.path).read_text(encoding="utf-8"))
    assert [run["cell"] for run in data_of(page)["courses"]["runs"]] == [0, 2, 3]
    assert str(file) in page.split('<h2 id="courses">')[1]
    for run in results.runs:
        (run.path / "flow_series.parquet").write_bytes(b"PAR1")
    page = html.unescape(aqmlab.report(results.path).read_text(encoding="utf-8"))
    assert data_of(page)["courses"] is None
    assert page.split('<h2 id="courses">')[1].count("flow_series.parquet") >= 4


def test_a_live_sweep_has_the_sections_of_live_runs(tmp_path):
    def as_live(run):
        live = live_object(faithful=run.arm != "DropTail")
        return Run(run.path, replace(run.manifest, host="live", live=live))

    swept = {"topology.rate": ["2Mbit", "4Mbit"]}
    results = aqmlab.sweep(tiny(runs=2, sweep=swept, claim=[]), store=tmp_path / "store").wait()
    live = replace(results, finished={place: as_live(run) for place, run in results.finished.items()})
    page = html.unescape(write_report(live, tmp_path / "live.html").read_text(encoding="utf-8"))
    assert page.index("NOT FAITHFUL") < page.index("<h1>")
    assert "live in each run" in page
    assert '<h2 id="faithfulness">' in page
    assert {one["name"] for one in data_of(page)["charts"]["lateness"][0]["series"]} == set(results.arms)
    assert "aqmlab sweep --host live scenario.toml --seed 1 --runs 2" in page
