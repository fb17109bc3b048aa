"""The report over a sweep as rendered by Chromium."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from aqmlab.figures.differences import differences
from aqmlab.metrics import find
from aqmlab.reports import write_report
from aqmlab.reports.page import SCRIPTS
from aqmlab.results.answers import answer
from browser import CHROMIUM
from synthetic_sweep import DELAY, RATES, synthetic

MOST_ELEMENTS = 100_000


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
    """A page, with the requests, console output and errors that it causes."""

    def __init__(self, browser, file, **context):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.requests, self.said, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(file.as_uri())

    def elements(self):
        """The number of elements of the page, which determines the browser's cost of laying it out."""
        return self.page.evaluate("document.querySelectorAll('*').length")


@pytest.fixture(scope="module")
def watched(chromium, grid_report):
    shown = Watched(chromium, grid_report, viewport={"width": 1280, "height": 900})
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


def test_the_page_is_small_and_fetches_nothing(chromium, grid_report):
    assert grid_report.stat().st_size < 5_000_000
    shown = Watched(chromium, grid_report)
    assert shown.requests == [grid_report.as_uri()]
    assert shown.said == []
    # Panels, heat maps, trade-off and distributions are drawn.
    assert shown.page.locator("svg.plot").count() == 3 + 3 + 4 + 4
    assert shown.elements() < MOST_ELEMENTS, shown.elements()
    shown.context.close()


def test_columns_sort_up_and_down_by_value(page, grid):
    head = page.locator("#cells thead th", has_text="queueing delay, p95")
    index = page.eval_on_selector_all(
        "#cells thead th", "heads => heads.findIndex(h => h.textContent.includes('queueing delay, p95'))"
    )
    head.locator("button").click()
    values = [float(value) for value in column(page, index)]
    assert values == sorted(values)
    assert len(values) == len(grid.cells)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert [float(value) for value in column(page, index)] == sorted(values, reverse=True)
    # Labels are sorted in the order of the scenario: 5 Mbit/s before 10, not "10" before "5".
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


def test_pointer_and_keys_show_the_value_of_a_mark(page, grid):
    point = page.locator('[data-figure="panels"] svg.plot').nth(2).locator("path.mark").nth(0)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    said = page.locator("#tip").text_content()
    cell = next(c for c in grid.select("RED") if c.label("rate") == "5Mbit" and c.label("count") == "80")
    mean = 1e3 * np.mean(list(grid.values(DELAY, cell).values()))
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
    # The labels of the former x axis now have one panel each.
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


def test_differences_that_do_not_stand_are_hatched(page, grid):
    found = differences(answer(grid), find(DELAY)).contrasts[0]
    hatched = page.eval_on_selector_all(
        '[data-figure="heat"] svg.plot rect', "all => all.filter(r => r.style.fill.includes('hatch')).length"
    )
    assert hatched == sum(not contrast.stands for contrast in found)


def test_one_case_has_a_map_of_all_pairs_of_arms(chromium, tmp_path):
    arms = ["DropTail", "RED", "PI", "BLUE", "REM"]
    one_case = synthetic(arms=arms, axes={}, seeds=6)
    shown = Watched(chromium, write_report(one_case, tmp_path / "one.html"))
    found = differences(answer(one_case), find(DELAY))
    squares = shown.page.locator('[data-figure="heat"] svg.plot rect')
    assert squares.count() == 10
    hatched = squares.evaluate_all("all => all.filter(r => r.style.fill.includes('hatch')).length")
    assert hatched == sum(not contrast.stands for (contrast,) in found.contrasts)
    with shown.page.expect_download() as got:
        shown.page.locator('[data-figure="heat"]').get_by_role("button", name="CSV").click()
    got.value.save_as(tmp_path / "heat.csv")
    with (tmp_path / "heat.csv").open(newline="", encoding="utf-8") as lines:
        rows = {(row["arm"], row["minus"]): float(row["mean"]) for row in csv.DictReader(lines)}
    for pair, (contrast,) in zip(found.pairs, found.contrasts, strict=True):
        assert rows[pair] == pytest.approx(1e3 * contrast.found.estimate.mean, rel=1e-5)
    assert shown.said == []
    shown.context.close()


@pytest.mark.parametrize("name", ["panels", "heat", "trade-off", "cdf"])
def test_every_figure_is_kept_as_csv(page, grid, name, tmp_path):
    with page.expect_download() as got:
        page.locator(f'[data-figure="{name}"]').get_by_role("button", name="CSV").click()
    got.value.save_as(tmp_path / "figure.csv")
    with (tmp_path / "figure.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["topology.rate"] for row in rows} == set(RATES)
    if name == "trade-off":
        assert len(rows) == sum(len(grid.runs_of(cell)) for cell in grid.cells)
    if name == "panels":
        assert len(rows) == len(grid.cells)
        for row in rows:
            (cell,) = grid.select(
                row["arm"], {"rate": row["topology.rate"], "count": row["traffic.ftp.count"]}
            )
            mean = 1e3 * np.mean(list(grid.values(DELAY, cell).values()))
            assert float(row["mean"]) == pytest.approx(mean, rel=1e-5)


def test_the_table_is_kept_as_csv(page, grid, tmp_path):
    with page.expect_download() as got:
        page.locator("#cells-filter").get_by_role("button", name="CSV").click()
    got.value.save_as(tmp_path / "cells.csv")
    with (tmp_path / "cells.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["arm"] for row in rows] == [cell.arm for cell in grid.cells]
    values = list(grid.values("goodput_bps", grid.cells[3]).values())
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
    file = write_report(hostile, tmp_path / "evil.html")
    text = file.read_text(encoding="utf-8")
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script>", text)) == 1 + len(SCRIPTS)
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
    file = write_report(many, tmp_path / "many.html")
    assert file.stat().st_size < 5_000_000
    shown = Watched(chromium, file, viewport={"width": 480, "height": 900}, color_scheme=scheme)
    assert shown.elements() < MOST_ELEMENTS, shown.elements()
    assert shown.page.locator("#cells tbody tr").count() == 100
    # Only tables and individual figures scroll sideways.
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 480
    assert shown.said == []
    shown.context.close()


def test_without_scripts_the_table_is_there_and_paper_shows_no_choosers(chromium, grid_report, page):
    bare = Watched(chromium, grid_report, java_script_enabled=False)
    assert bare.page.locator("#cells tbody tr").count() == 24
    assert bare.page.locator("noscript p").is_visible()
    assert bare.page.locator("#cells-filter").is_hidden()
    bare.context.close()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".controls").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
