"""The playground in Chromium: the bits of native runs, every knob, lesson and key, and what must not work."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest

import aqmlab
from browser import CHROMIUM, needs_chromium
from test_webassembly import SCENARIOS, has_target, lack

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "target" / "playground"
LESSONS = json.loads((ROOT / "playground/lessons/en.json").read_text(encoding="utf-8"))["lessons"]
AXE = "4.14.1"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

pytestmark = [needs_chromium, pytest.mark.xdist_group("playground")]
sync_api = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="module")
def address():
    """The address of the built page on a file server."""
    if not has_target():
        lack("the target wasm32-unknown-unknown is not installed")
    subprocess.run([sys.executable, ROOT / "tools/playground.py"], check=True, capture_output=True)

    class Files(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=PAGE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, address):
    """Opens the page; at the end, nothing may have been said on the console or fetched from elsewhere."""
    contexts, said, fetched = [], [], []

    def opened(fragment="", *, silent=True, scripts=(), **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        if silent:
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        for script in scripts:
            page.add_init_script(script)
        page.goto(address + fragment)
        page.locator("body[data-ready], #problems:not([hidden])").first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    own = address.removesuffix("index.html")
    assert [url for url in fetched if not url.startswith((own, "blob:"))] == []


def settled(page):
    page.locator("#status").filter(has_text=re.compile("Paused|ended|no run")).wait_for()


def run_to_end(page):
    page.locator("#speed").fill("8")
    page.locator("#play").click()
    page.locator("#status").filter(has_text="The run has ended").wait_for()


def problems(page):
    box = page.locator("#problems")
    return box.inner_text() if box.is_visible() else ""


RUN = """async ([text, arm]) => {
  const { Run } = await import("./run.js");
  const run = await Run.begin();
  const about = await run.open({ text, arm });
  if (about.problems) return about;
  while (!run.ended) await run.advance(run.reached + 5, 200);
  const identity = await run.finish();
  run.close();
  return { ...identity, seconds: about.end_ns / 1e6 / run.wall };
}"""
TOML = """async (query) => {
  const { Run } = await import("./run.js");
  const { fromFragment, toml } = await import("./scenario.js");
  const run = await Run.begin();
  const catalogue = await run.catalogue();
  run.close();
  const { settings, wrong } = await fromFragment(catalogue, query);
  return [toml(catalogue, settings), wrong];
}"""


def same_as_native(answer, text, folder):
    file = folder / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    result = aqmlab.run(file, output=folder / "run", arms=[answer["arm"]], runs=1, report=False)
    [native] = result.runs
    assert answer["seed"] == native.manifest.seed
    assert answer["tables"] == {name: table.digest for name, table in native.manifest.tables.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_has_the_digests_of_a_native_run(name, open_page, tmp_path):
    text = (ROOT / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    answer = open_page(bypass_csp=True).evaluate(RUN, [text, None])
    same_as_native(answer, text, tmp_path)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson["name"])
def test_what_is_copied_as_toml_has_the_digests_of_a_native_run(lesson, open_page, tmp_path):
    page = open_page(bypass_csp=True)
    text, wrong = page.evaluate(TOML, urlencode(lesson["set"]))
    assert wrong == []
    answer = page.evaluate(RUN, [text, None])
    same_as_native(answer, text, tmp_path)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson["name"])
def test_a_lesson_sets_the_knobs_and_runs_to_its_end(lesson, open_page):
    page = open_page()
    page.locator("#lessons").select_option(lesson["name"])
    page.locator("#lesson h2").filter(has_text=lesson["title"]).wait_for()
    settled(page)
    answer = page.locator("#lesson details")
    assert answer.get_attribute("open") is None
    assert answer.locator("p").first.is_hidden()
    answer.locator("summary").click()
    assert answer.locator("p").first.is_visible()
    assert f"lesson={lesson['name']}" in page.url
    run_to_end(page)
    assert problems(page) == ""
    page.locator(".digests").nth(1).wait_for()


def test_each_knob_changes_the_scenario(open_page):
    page = open_page()
    settled(page)
    other = {
        "rate": "5Mbit",
        "low": "1Mbit",
        "from": "5s",
        "until": "9s",
        "delay": "20ms",
        "buffer": "99p",
        "flows": "3",
    }
    other |= {
        "rtt": "90ms",
        "far": "2",
        "far_rtt": "200ms",
        "web": "3",
        "cross": "1Mbit",
        "mss": "960B",
        "duration": "20s",
        "seed": "7",
    }
    words = {
        "course": "falls",
        "tcp": "cubic",
        "far_tcp": "bbr",
        "game": "yes",
        "ecn": "yes",
        "ack": "yes",
        "stack": "rfc",
    }

    def text():
        page.locator("#as-toml").click()
        found = page.locator("#shown-text").input_value()
        page.locator("#shown-close").click()
        return found

    before = text()
    for name in [
        "rate",
        "course",
        "low",
        "from",
        "until",
        "far",
        *sorted((other | words).keys() - {"rate", "course", "low", "from", "until", "far"}),
    ]:
        knob = page.locator(f"#knob-{name}")
        if name in words:
            knob.select_option(words[name])
        else:
            knob.fill(other[name])
            knob.press("Enter")
            knob.blur()
        settled(page)
        assert problems(page) == "", name
        after = text()
        assert after != before, name
        before = after
    page.locator("#knob-rate-slide").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#knob-rate-slide").blur()
    settled(page)
    assert text() != before
    run_to_end(page)
    assert problems(page) == ""


def test_each_discipline_runs_on_either_side(open_page):
    page = open_page("#duration=4s")
    kinds = [option.get_attribute("value") for option in page.locator("#queue-1 option").all()]
    assert {"droptail", "red", "codel", "fq_codel", "pie", "cake", "dualpi2"} <= set(kinds)
    for kind in kinds:
        page.locator("#queue-1").select_option(kind)
        page.locator("#queue-2").select_option("")
        settled(page)
        assert problems(page) == "", kind
        run_to_end(page)
        assert problems(page) == "", kind


@pytest.mark.parametrize("kind", ["red", "codel", "pie"])
def test_each_parameter_of_a_discipline_has_a_knob(kind, open_page):
    page = open_page(f"#duration=5s&q1={kind}&q2=")
    settled(page)
    page.locator('[data-queue="1"] summary').click()
    params = [
        param
        for param in aqmlab.aqm_show(kind)["params"]
        if param["kind"] not in ("list", "table", "discipline")
    ]
    assert params
    for param in params:
        knob = page.locator(f"#queue-1-{param['name']}")
        assert param["help"] in knob.get_attribute("title")
        if param["kind"] in ("flag", "choice"):
            now = knob.locator("option").first.inner_text().removeprefix("default: ")
            if now in ("true", "false") or now in param["values"].split(" | "):
                knob.select_option(now)
        elif re.fullmatch(r"[\d.]+\w*", now := knob.get_attribute("placeholder")):
            knob.fill(now)
            knob.press("Enter")
        settled(page)
        assert problems(page) == "", (param["name"], now)


def test_a_wrong_value_is_refused_and_shown(open_page):
    page = open_page("#q1=red&q2=")
    page.locator('[data-queue="1"] summary').click()
    knob = page.locator("#queue-1-max_p")
    knob.fill("7")
    knob.press("Enter")
    page.locator("#problems").wait_for()
    assert "max_p" in problems(page)
    assert "line " in problems(page)
    assert knob.get_attribute("aria-invalid") == "true"
    assert page.locator("#play").is_disabled()
    knob.fill("0.1")
    knob.press("Enter")
    page.locator("#problems").wait_for(state="hidden")
    assert page.locator("#play").is_enabled()


def test_keys(open_page):
    page = open_page("#duration=30s")
    settled(page)
    page.locator("body").press(".")
    page.locator("body").press(".")
    page.locator("#clock").filter(has_text=re.compile(r"^(?!0\.000)")).wait_for()
    page.locator("body").press("]")
    assert page.locator("#speed").input_value() == "5"
    page.locator("body").press("[")
    assert page.locator("#speed").input_value() == "4"
    page.locator("body").press(" ")
    page.locator("#play").filter(has_text="Pause").wait_for()
    page.locator("body").press(" ")
    page.locator("#play").filter(has_text="Run").wait_for()
    page.locator("body").press("r")
    page.locator("#clock").filter(has_text="0.000 s").wait_for()
    page.locator("body").press("l")
    page.locator("#lesson h2").filter(has_text="1. ").wait_for()
    page.locator("body").press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    # In a field, keys are letters.
    page.locator("#knob-rate").press("r")
    assert "r1" in page.locator("#knob-rate").input_value()


def test_the_rate_changes_at_the_running_instant(open_page):
    page = open_page("#duration=30s&q2=")
    page.locator("#speed").fill("6")
    page.locator("#play").click()
    page.locator("#clock").filter(has_text=re.compile(r"^[3-9]\.")).wait_for()
    page.locator("#now-outage").click()
    page.locator("#knob-course").wait_for()
    assert page.locator("#knob-course").input_value() == "outage"
    begun = page.locator("#knob-from").input_value()
    assert re.fullmatch(r"\d+ms", begun)
    page.locator("#clock").filter(has_text=re.compile(r"^(1\d|2\d|[4-9])\.")).wait_for()
    assert problems(page) == ""


@pytest.mark.parametrize(
    ("fragment", "word"),
    [
        ("#rate=%22%5D%0Atitle=1", "rate"),
        ("#rate=<img src=x onerror=hacked=1>", "rate"),
        ("#seed=alert(1)", "seed"),
        ("#q1=nothing", "no discipline"),
        ("#q1=red&q1.max_p=" + "9" * 500, "too long"),
        ("#q1=red&q1.constructor=1", "no parameter"),
        ("#__proto__=1", "no knob"),
        ("#tcp=../../etc", "tcp"),
        ("#lesson=<script>", "lesson"),
        ("#toml=AAAA", "no readable scenario"),
        ("#toml=" + "A" * 300_000, "no readable scenario"),
        ("#%E0%A4%A", "no knob"),
    ],
)
def test_a_hostile_address_is_refused_in_words(fragment, word, open_page):
    page = open_page(fragment, bypass_csp=True)
    page.locator("#problems").wait_for()
    assert word in problems(page)
    assert page.evaluate("() => globalThis.hacked") is None
    run_to_end(page)


def test_a_value_from_the_address_cannot_leave_its_string(open_page):
    page = open_page('#q1=red&q1.min_th=3p" , max_th = "9p&q2=')
    page.locator("#problems").wait_for()
    assert "min_th" in problems(page)
    page.locator("#as-toml").click()
    assert r'min_th = "3p\" , max_th = \"9p"' in page.locator("#shown-text").input_value()


BOMB = 'title = "x"\n' + "#" * 200_000


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("picture.toml", "\x00\x01\x02 not a scenario", "line 1"),
        ("empty.toml", "", "traffic"),
        ("large.toml", BOMB, "at most"),
        (
            "misspelt.toml",
            (ROOT / "scenarios/mm1.toml").read_text(encoding="utf-8").replace("duration", "duratoin"),
            'line 7, column 1: unknown key "duratoin"',
        ),
        (
            "trace.toml",
            (ROOT / "scenarios/one_flow.toml")
            .read_text(encoding="utf-8")
            .replace('"bulk"', '"trace"\nfile = "connections.csv"'),
            "a WebAssembly module has no files",
        ),
        (
            "huge.toml",
            (ROOT / "scenarios/demo.toml")
            .read_text(encoding="utf-8")
            .replace("count = 20", "count = 20000000"),
            "memory",
        ),
    ],
)
def test_a_file_that_is_no_scenario_for_the_page_is_refused_in_words(name, text, word, open_page):
    page = open_page()
    settled(page)
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": text.encode()})
    page.locator("#problems").wait_for()
    assert word in problems(page)


def test_a_file_runs_and_its_arms_can_be_chosen(open_page):
    page = open_page()
    settled(page)
    page.locator("#file").set_input_files(ROOT / "scenarios/lockout.toml")
    page.locator("#arm-1").wait_for()
    page.locator("#arm-2").select_option("FRED")
    page.locator(".arm-name").nth(1).filter(has_text="FRED").wait_for()
    address = page.url
    assert "toml=" in address
    page.locator("#knobs-back").wait_for()
    again = open_page(address[address.index("#") :])
    again.locator("#arm-1").wait_for()
    assert problems(again) == ""


def test_charts_have_tables_and_can_be_saved(open_page):
    page = open_page("#duration=10s")
    run_to_end(page)
    chart = page.locator('[data-chart="backlog"]').first
    chart.locator("summary").click()
    chart.locator("tbody tr").nth(20).wait_for(state="attached")
    assert "backlog" in chart.locator("thead").inner_text()
    for name, begins in [("SVG", b"<svg"), ("PNG", b"\x89PNG")]:
        with page.expect_download() as downloaded:
            chart.get_by_role("button", name=name).click()
        content = Path(downloaded.value.path()).read_bytes()
        assert content.startswith(begins)
        assert len(content) > 2000
    chart.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert "backlog" in page.locator("#tip").inner_text()


def test_python_is_python(open_page):
    page = open_page()
    settled(page)
    page.locator("#as-python").click()
    text = page.locator("#shown-text").input_value()
    compile(text, "copied", "exec")
    assert "aqmlab.run(" in text


def test_a_hidden_tab_pauses_and_goes_on(open_page):
    page = open_page("#duration=600s", bypass_csp=True)
    page.locator("#play").click()
    page.locator("#play").filter(has_text="Pause").wait_for()
    show = """(hidden) => {
      Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(show, True)
    page.locator("#play").filter(has_text="Run").wait_for()
    page.evaluate(show, False)
    page.locator("#play").filter(has_text="Pause").wait_for()


def test_a_browser_without_webassembly_is_told_so(open_page):
    page = open_page(scripts=["delete globalThis.WebAssembly"])
    assert "no WebAssembly" in problems(page)


@pytest.mark.parametrize("width", [360, 768, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_width(width, scheme, open_page, tmp_path):
    page = open_page(
        "#duration=5s&lesson=game",
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,
    )
    run_to_end(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.screenshot(path=tmp_path / "page.png", full_page=True)


@pytest.fixture(scope="module")
def axe():
    """The script of axe-core; a test dependency under MPL-2.0, which nothing of ours contains."""
    folder = ROOT / "target" / "axe"
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            lack("npm is not installed")
        install = ["npm", "install", "--silent", "--no-save", "--prefix", folder, f"axe-core@{AXE}"]
        ended = subprocess.run(
            install, capture_output=True, check=False, timeout=120, env={**os.environ, "CI": "1"}
        )
        if ended.returncode != 0 or not script.is_file():
            pytest.skip("axe-core could not be installed")
    return script


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["", "#lesson=game&rate=x"])
def test_axe_finds_nothing_serious(axe, fragment, scheme, open_page):
    page = open_page(fragment, bypass_csp=True, color_scheme=scheme)
    run_to_end(page)
    page.locator('[data-queue="1"] summary').click()
    page.locator('[data-chart="backlog"] summary').first.click()
    page.add_script_tag(path=axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    grave = [f for f in found if f["impact"] in ("serious", "critical")]
    assert [(f["id"], [node["html"] for node in f["nodes"]][:3]) for f in grave] == []


@pytest.fixture
def whole(address, chromium, tmp_path):
    """Opens a file without a server; it may fetch nothing, not even its own files."""
    assert address
    pages, said, fetched = [], [], []

    def opened(text, *, within=None):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        page = chromium.new_page()
        pages.append(page)
        page.set_default_timeout(60_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(file.as_uri())
        inside = page.frame_locator(within) if within else page
        inside.locator("body[data-ready]").wait_for()
        return inside

    yield opened
    for page in pages:
        page.close()
    assert said == []
    assert [url for url in fetched if not url.startswith(("file:", "blob:", "about:"))] == []


def test_one_file_runs_a_scenario_without_a_server(whole):
    scenario = ROOT / "scenarios/lockout.toml"
    page = whole(aqmlab.playground(scenario).html)
    assert page.locator("#arm-1").input_value() == "DropTail"
    page.locator("#as-toml").click()
    assert page.locator("#shown-text").input_value() == scenario.read_text(encoding="utf-8")
    page.locator("#shown-close").click()
    run_to_end(page)
    assert problems(page) == ""
    page.locator(".digests").nth(1).wait_for()


def test_a_notebook_shows_the_page_in_a_frame(whole):
    cell = aqmlab.playground()._repr_html_()
    page = whole(f"<!doctype html><meta charset=utf-8>{cell}", within="iframe")
    page.locator("#lessons").select_option("game")
    page.locator("#lesson h2").filter(has_text="10. ").wait_for()
    page.locator("#play").click()
    page.locator("#clock").filter(has_text=re.compile(r"^[1-9]")).wait_for()
    assert problems(page) == ""


def test_what_the_page_cannot_begin_with_is_refused(aqmlab_cli, tmp_path, address):
    assert address
    long = (ROOT / "scenarios/demo.toml").read_text(encoding="utf-8") + "#" * 100_000
    for name, text, word in [
        ("long.toml", long, "at most 100000"),
        ("wrong.toml", "duration = 1", "duration"),
    ]:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        ended = aqmlab_cli("playground", file, "-o", tmp_path / "page.html")
        assert ended.returncode == 2
        assert word in ended.stderr
    assert not (tmp_path / "page.html").exists()
    ended = aqmlab_cli("playground", "-o", tmp_path / "none" / "page.html")
    assert ended.returncode == 3
    assert "cannot write" in ended.stderr
