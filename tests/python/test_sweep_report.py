"""The report over a sweep, as text and as Chromium shows it."""

from __future__ import annotations

import csv
import html
import json
import re

import numpy as np
import pytest
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.cells import Cells, cells_of
from aqmlab.metrics import EVERY_CLASS, find
from aqmlab.reports import write_sweep_report
from aqmlab.reports.best import best_arms
from aqmlab.reports.sweep.answer import answer
from aqmlab.reports.sweep.differences import comparisons, differences
from aqmlab.reports.sweep.distributions import delay_cdf
from aqmlab.results import Results
from aqmlab.stats import Estimate
from browser import CHROMIUM
from sweeping import tiny
from synthetic_sweep import QUEUE, RATES, synthetic

DELAY = "queueing_delay_p95_s"
LOST = {(3, 4): "it needs more than 1 GiB of memory", (3, 7): "it needs more than 2 GiB of memory"}
LOST |= {(20, 1): "the worker was ended by signal 9"}


@pytest.fixture(scope="module")
def sweep():
    """240 runs: 2 arms x 4 rates x 3 numbers of flows x 10 seeds, three of them lost."""
    return synthetic(lost=LOST)


@pytest.fixture(scope="module")
def file(sweep, tmp_path_factory):
    return write_sweep_report(sweep, tmp_path_factory.mktemp("report") / "report.html")


def data_of(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="sweep-data">(.*?)</script>', text, flags=re.S)[1])


# As text.


def test_the_table_has_a_row_a_cell_with_the_figures_of_the_statistics(sweep, file):
    page = file.read_text(encoding="utf-8")
    rows = re.findall(r"<tr>(.*?)</tr>", page.split("<tbody>")[-1], flags=re.S)
    assert len(rows) == len(sweep.cells) == 24
    cells = cells_of(sweep)
    column = [metric.name for metric in cells.metrics].index(DELAY)
    for row, cell in zip(rows, sweep.cells, strict=True):
        figures = re.findall(r'data-value="([^"]*)" data-half="([^"]*)" data-n="(\d+)"', row)
        mean, half, n = figures[column]
        values = np.array(list(sweep.values(DELAY, cell).values()))
        low, high = scipy_stats.t.interval(0.95, len(values) - 1, values.mean(), scipy_stats.sem(values))
        assert float(mean) == pytest.approx(1e3 * values.mean())
        assert float(half) == pytest.approx(1e3 * (high - low) / 2)
        assert int(n) == len(values)


def test_missing_runs_are_listed_by_cause(file):
    page = html.unescape(file.read_text(encoding="utf-8"))
    table = page.split('class="text missing"')[1].split("</table>")[0]
    assert re.findall(r"<td>(.*?)</td>", table) == [
        "it needs more than 1 GiB of memory",
        "2",
        "PI, rate 5Mbit, count 20 (seeds 4, 7)",
        "the worker was ended by signal 9",
        "1",
        "RED, rate 50Mbit, count 20 (seed 1)",
    ]
    assert "237 of 240 runs are there" in page


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
    text = write_sweep_report(claimed, tmp_path / "claims.html").read_text(encoding="utf-8")
    block = text.split('<ul class="checks claims">')[1].split('<h2 id="checks">')[0]
    assert re.findall(r'<li class="(\w+)">', block) == ["holds", "fails", "undecided", "fails"]
    page = html.unescape(text)
    assert "Of 3 firm claims 1 holds, 1 fails and 1 is undecided; of 1 soft claim 1 fails." in page
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
    from dataclasses import replace

    made = claim("M9", "goodput_bps{arm=DropTail} > 1bit", text="Something gets through.")
    claimed = replace(experiment, details=dict(experiment.details) | {"claims": [made]})
    page = aqmlab.reports.write_report(claimed, tmp_path / "claims.html").read_text(encoding="utf-8")
    assert "<b>M9</b> Something gets through." in page
    assert "Of 1 firm claim 1 is undecided." in page
    assert "2 of the 5 values that are needed at least" in page


def test_checks_are_shown_with_what_they_found(file):
    page = html.unescape(file.read_text(encoding="utf-8"))
    block = page.split('<h2 id="checks">')[1].split('<h2 id="table">')[0]
    assert "books balance" in block
    assert "in 2 of 24 cells, at worst in PI, rate 5Mbit, count 20: 2 of 10 runs are missing" in block


def test_the_answer_counts_the_cases(sweep):
    cells = cells_of(sweep)
    assert answer(cells, [differences(cells, metric) for metric in cells.metrics]) == (
        "P95 queueing delay is lower in 8 of 12 cases with PI than with RED; in 4 they cannot be told apart."
        " Goodput is lower in 12 of 12 cases with PI than with RED."
    )


def test_the_answer_of_many_arms_says_how_often_each_is_ahead():
    cells = cells_of(synthetic(arms=["DropTail", "RED", "PI"], seeds=5))
    said = answer(cells, [differences(cells, metric) for metric in cells.metrics])
    assert re.match(r"Of 12 cases, the shortest p95 queueing delay has PI in \d+ \(8 for certain\)", said)
    assert said.endswith("Of 12 cases, the highest goodput has DropTail in 12 (12 for certain).")


def test_the_answer_of_one_arm_is_a_range():
    cells = cells_of(synthetic(arms=["RED"], seeds=5))
    said = answer(cells, [])
    assert "(rate 50Mbit, count 5) to" in said
    assert "(rate 5Mbit, count 80)." in said


def test_differences_are_paired_and_stand_by_holm_over_the_cases(sweep):
    cells = cells_of(sweep)
    found = differences(cells, find(DELAY))
    assert found.pairs == (("PI", "RED"),)
    p_values = []
    for contrast in found.contrasts[0]:
        a, b = (sweep.values(DELAY, cell) for cell in (contrast.cell, contrast.other))
        seeds = sorted(a.keys() & b.keys())
        test = scipy_stats.ttest_rel([a[s] for s in seeds], [b[s] for s in seeds])
        assert contrast.found.p_value == pytest.approx(test.pvalue)
        p_values.append(test.pvalue)
    # Holm by hand: the smallest p against alpha / 12, the next against alpha / 11, until one is larger.
    order = np.argsort(p_values)
    passed = [p_values[i] <= 0.05 / (12 - rank) for rank, i in enumerate(order)]
    first_kept_back = passed.index(False)
    standing = {int(i) for i in order[:first_kept_back]}
    assert {i for i, contrast in enumerate(found.contrasts[0]) if contrast.stands} == standing
    assert 0 < len(standing) < 12
    assert comparisons([found]).count == 12


def test_a_difference_that_is_seen_alone_may_not_stand_among_twelve():
    cells = cells_of(synthetic(arms=["RED", "PI"], seeds=10), ["goodput_bps"])
    spread = np.array([-1.0, 1.0] * 5)
    values = {}
    for i, (_, (red, pi)) in enumerate(cells.cases):
        # In one case the mean is 0.85 of the standard deviation, in the others as good as nothing.
        shift = 0.85 if i == 3 else 0.01
        values[red] = dict.fromkeys(range(10), 1.0)
        values[pi] = dict(enumerate(1.0 + shift + spread))
    made = Cells(cells.results, cells.metrics, {"goodput_bps": values})
    p_value = scipy_stats.ttest_1samp(0.85 + spread, 0).pvalue
    assert 0.05 / 12 < p_value < 0.05
    contrast = differences(made, cells.metrics[0]).contrasts[0][3]
    assert contrast.found.p_value == pytest.approx(p_value)
    assert contrast.found.seen
    assert not contrast.stands


def test_the_distribution_is_the_mean_of_the_seeds_with_its_interval(sweep):
    cell = sweep.cells[5]
    found = delay_cdf(sweep, cell)
    assert found.n == 10
    for place in (1, 20, 40, len(found.delay_ms) - 1):
        shares = []
        for run in sweep.measured(cell):
            bins = run.queues[QUEUE, EVERY_CLASS].sojourn
            below = sum(
                w
                for high, w in zip(bins.high, bins.weight, strict=True)
                if high <= found.delay_ms[place] * 1e6
            )
            shares.append(below / bins.total)
        assert found.share[place] == pytest.approx(np.mean(shares))
        half = scipy_stats.t.ppf(0.975, 9) * np.std(shares, ddof=1) / np.sqrt(10)
        assert found.low[place] == pytest.approx(max(0, np.mean(shares) - half))
        assert found.high[place] == pytest.approx(min(1, np.mean(shares) + half))
    assert found.share[0] == 0
    assert found.share[-1] == 1


def test_the_best_arms_are_the_first_and_those_that_cannot_be_told_from_it():
    apart = {("b", "a"): Estimate(1.0, 0.5, 10), ("c", "a"): Estimate(1.0, 2.0, 10)}

    def difference(arm, other):
        return apart.get((arm, other), Estimate(0.0, 0.0, 10))

    assert best_arms({"a": 1.0, "b": 2.0, "c": 2.0}, "less", difference) == {"a", "c"}
    assert best_arms({"a": 1.0, "c": 2.0}, "less", difference) == frozenset()
    assert best_arms({"a": 1.0, "b": 2.0}, "", difference) == frozenset()


def test_an_experiment_without_a_sweep_has_the_page_without_axes(experiment, tmp_path):
    file = write_sweep_report(Results.of_experiment(experiment), tmp_path / "plain.html")
    data = data_of(file)
    assert data["axes"] == []
    assert [cell["at"] for cell in data["cells"]] == [[], []]
    assert 'data-figure="heat"' not in file.read_text(encoding="utf-8")


def test_one_seed_has_no_interval(tmp_path):
    file = write_sweep_report(synthetic(seeds=1, axes={"topology.rate": RATES}), tmp_path / "one.html")
    text = file.read_text(encoding="utf-8")
    assert "One run a cell (seed 1): no interval." in text
    assert "±" not in text.split("<tbody>")[-1].split("</tbody>")[0]
    assert all(entry[1] is None for entry in data_of(file)["estimates"][DELAY])


def test_a_sweep_without_a_finished_run_says_so(tmp_path):
    lost = {(i, 1): "no memory" for i in range(8)}
    bare = synthetic(axes={"topology.rate": RATES}, seeds=1, lost=lost)
    text = write_sweep_report(bare, tmp_path / "bare.html").read_text(encoding="utf-8")
    assert "Nothing was delivered" in text
    assert "0 of 8 runs are there" in text
    assert "data-figure" not in text.split("<script")[0]


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
    first = (path / "report.html").read_bytes()
    ended = aqmlab_cli("report", path, "--metric", "jain_index", "--json")
    content = json.loads(ended.stdout)
    assert [metric["name"] for metric in content["metrics"]] == ["jain_index"]
    results = aqmlab.load_results(path)
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


# In a browser.


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, and whatever it asked for, said or complained of."""

    def __init__(self, browser, file, **context):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.requests, self.said, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(file.as_uri())

    def ready_ms(self):
        """Milliseconds from the start of loading to the second frame after all scripts have run."""
        frames = (
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(performance.now()))))"
        )
        return self.page.evaluate(frames)


@pytest.fixture(scope="module")
def watched(chromium, file):
    shown = Watched(chromium, file, viewport={"width": 1280, "height": 900})
    yield shown
    shown.context.close()


@pytest.fixture
def page(watched):
    watched.page.reload()
    return watched.page


def column(page, index):
    return page.eval_on_selector_all(
        f"#cells tbody tr:not([hidden]) > :nth-child({index + 1})", "cells => cells.map(c => c.dataset.value)"
    )


def test_the_page_opens_at_once_and_fetches_nothing(chromium, file):
    assert file.stat().st_size < 5_000_000
    times = []
    for _ in range(3):
        shown = Watched(chromium, file)
        times.append(shown.ready_ms())
        assert shown.requests == [file.as_uri()]
        assert shown.said == []
        # Panels, heat maps, trade-off and distributions are drawn.
        assert shown.page.locator("svg.plot").count() == 3 + 3 + 4 + 4
        shown.context.close()
    assert min(times) < 2000, times


def test_columns_sort_up_and_down_by_value(page, sweep):
    head = page.locator("#cells thead th", has_text="queueing delay, p95")
    index = page.eval_on_selector_all(
        "#cells thead th", "heads => heads.findIndex(h => h.textContent.includes('queueing delay, p95'))"
    )
    head.locator("button").click()
    values = [float(value) for value in column(page, index)]
    assert values == sorted(values)
    assert len(values) == len(sweep.cells)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert [float(value) for value in column(page, index)] == sorted(values, reverse=True)
    # Labels sort in the order of the scenario: 5 Mbit/s before 10, not "10" before "5".
    page.locator("#cells thead th", has_text="rate").locator("button").click()
    first = page.eval_on_selector_all(
        "#cells tbody tr > :first-child", "cells => cells.map(c => c.textContent)"
    )
    assert [label for i, label in enumerate(first) if i % 6 == 0] == list(RATES)


def test_rows_are_filtered_by_label_and_by_words(page):
    page.locator("#cells-filter select").nth(0).select_option("=10Mbit")
    assert page.locator("#cells-count").text_content() == "6 of 24 cells"
    page.locator("#cells-filter input").fill("pi 80")
    assert page.locator("#cells tbody tr:not([hidden])").count() == 1
    assert page.locator("#cells tbody tr:visible th").text_content() == "PI"


def test_pointer_and_keys_show_the_value_of_a_mark(page, sweep):
    point = page.locator('[data-figure="panels"] svg.plot').nth(2).locator("circle").nth(0)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    said = page.locator("#tip").text_content()
    cell = next(c for c in sweep.select("RED") if c.label("rate") == "5Mbit" and c.label("count") == "80")
    mean = 1e3 * np.mean(list(sweep.values(DELAY, cell).values()))
    assert said.startswith("RED, rate 5Mbit, count 80\n")
    assert float(re.search(r"p95 ([\d.]+) ±", said)[1]) == pytest.approx(mean, rel=0.01)
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()
    for name in ("panels", "heat", "trade-off", "cdf"):
        plot = page.locator(f'[data-figure="{name}"] svg.plot').first
        plot.focus()
        page.keyboard.press("ArrowRight")
        first = page.locator("#tip").text_content()
        page.keyboard.press("ArrowRight")
        assert page.locator("#tip").is_visible()
        assert page.locator("#tip").text_content() != first


def test_choosers_redraw_and_keep_the_keyboard(page, watched):
    figure = page.locator('[data-figure="panels"]')
    select = figure.locator("select[data-key=metric]")
    select.select_option("goodput_bps")
    assert "goodput [Mbit/s]" in figure.locator(".note").text_content()
    assert page.evaluate("document.activeElement.dataset.key") == "metric"
    figure.locator("select[data-key=x]").select_option("1")
    # What was across is now a panel for each.
    assert figure.locator("svg.plot").count() == 4
    figure.locator("select[data-key=by]").select_option("-")
    assert figure.locator("svg.plot").count() == 1
    assert figure.locator("select[data-key=held-0]").count() == 1
    lines = figure.locator(".curve").count()
    page.locator("input[data-arm='1']").uncheck()
    assert figure.locator(".curve").count() == lines / 2
    for name in ("log", "same"):
        for box in page.locator(f"input[data-key={name}]").all():
            box.check()
    assert watched.said == []


def test_differences_that_do_not_stand_are_hatched(page, sweep):
    found = differences(cells_of(sweep), find(DELAY)).contrasts[0]
    hatched = page.eval_on_selector_all(
        '[data-figure="heat"] svg.plot rect', "all => all.filter(r => r.style.fill.includes('hatch')).length"
    )
    assert hatched == sum(not contrast.stands for contrast in found)


@pytest.mark.parametrize("name", ["panels", "heat", "trade-off", "cdf"])
def test_every_figure_is_kept_as_csv(page, sweep, name, tmp_path):
    with page.expect_download() as got:
        page.locator(f'[data-figure="{name}"]').get_by_role("button", name="CSV").click()
    got.value.save_as(tmp_path / "figure.csv")
    with (tmp_path / "figure.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["topology.rate"] for row in rows} == set(RATES)
    if name == "trade-off":
        assert len(rows) == sum(len(sweep.runs(cell)) for cell in sweep.cells)
    if name == "panels":
        assert len(rows) == len(sweep.cells)
        for row in rows:
            (cell,) = sweep.select(
                row["arm"], {"rate": row["topology.rate"], "count": row["traffic.ftp.count"]}
            )
            mean = 1e3 * np.mean(list(sweep.values(DELAY, cell).values()))
            assert float(row["mean"]) == pytest.approx(mean, rel=1e-5)


def test_the_table_is_kept_as_csv(page, sweep, tmp_path):
    with page.expect_download() as got:
        page.locator("#cells-filter").get_by_role("button", name="CSV").click()
    got.value.save_as(tmp_path / "cells.csv")
    with (tmp_path / "cells.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["arm"] for row in rows] == [cell.arm for cell in sweep.cells]
    values = list(sweep.values("goodput_bps", sweep.cells[3]).values())
    assert float(rows[3]["goodput_bps [Mbit/s]"]) == pytest.approx(np.mean(values) / 1e6)
    assert rows[3]["goodput_bps n"] == "8"


EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`${alert(3)}"


def test_hostile_texts_stay_texts(chromium, tmp_path):
    hostile = synthetic(
        title=EVIL,
        question='"><svg onload=alert(4)>',
        arms=[EVIL, "PI"],
        axes={EVIL: [EVIL, "10Mbit"], "traffic.ftp.count": ["5", '"><b>']},
        flows=20,
        seeds=2,
        lost={(0, 1): f"no {EVIL}"},
        warnings=[EVIL],
    )
    file = write_sweep_report(hostile, tmp_path / "evil.html")
    text = file.read_text(encoding="utf-8")
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script>", text)) == 8
    shown = Watched(chromium, file)
    shown.page.locator('[data-figure="panels"] svg.plot').first.focus()
    shown.page.keyboard.press("ArrowRight")
    assert EVIL in shown.page.locator("#tip").text_content()
    assert shown.page.locator("h1").text_content() == EVIL
    assert shown.page.locator("main img, main svg[onload], main td b").count() == 0
    assert (shown.said, shown.dialogs, shown.requests) == ([], [], [file.as_uri()])
    shown.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hundred_cells_on_a_narrow_screen(chromium, tmp_path, scheme):
    many = synthetic(
        arms=["DropTail", "RED", "PI", "BLUE", "REM"],
        axes={"topology.rate": ["1Mbit", *RATES], "traffic.ftp.count": ["2", "5", "20", "80"]},
        seeds=5,
    )
    file = write_sweep_report(many, tmp_path / "many.html")
    assert file.stat().st_size < 5_000_000
    shown = Watched(chromium, file, viewport={"width": 480, "height": 900}, color_scheme=scheme)
    assert shown.ready_ms() < 2000
    assert shown.page.locator("#cells tbody tr").count() == 100
    # Only tables and figures of their own scroll sideways.
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 480
    assert shown.said == []
    shown.context.close()


def test_without_scripts_the_table_is_there_and_paper_shows_no_choosers(chromium, file, page):
    bare = Watched(chromium, file, java_script_enabled=False)
    assert bare.page.locator("#cells tbody tr").count() == 24
    assert bare.page.locator("noscript p").is_visible()
    assert bare.page.locator("#cells-filter").is_hidden()
    bare.context.close()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".controls").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
