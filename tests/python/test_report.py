"""The report: self-contained, safe, and in agreement with the data."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import aqmlab
from aqmlab.figures.kinds import KINDS, PART_KINDS, WAIT_KINDS
from aqmlab.figures.trade_off import TradeOff
from aqmlab.plots.draw import draw
from aqmlab.recordings.time_series import run_series
from aqmlab.reports.answer import best_arm, in_words
from aqmlab.reports.network_svg import network_svg, spread
from aqmlab.reports.page import SCRIPTS, content_security_policy
from aqmlab.reports.repeat import command
from browser import ask, browse, needs_chromium


@pytest.fixture(scope="module")
def page(experiment):
    return (experiment.path / "report.html").read_text(encoding="utf-8")


def without_scripts(page):
    return re.sub(r"<script.*?</script>", "", page, flags=re.S)


def test_the_page_fetches_nothing(page):
    rest = without_scripts(page)
    assert "http://" not in rest.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in rest
    assert not re.search(r"<(script|img|iframe|link)[^>]*\s(src|href)=(?!\"data:)", page)
    assert "@import" not in rest


def test_only_the_pages_own_scripts_may_run(page):
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    assert len(scripts) == len(SCRIPTS)
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    assert "script-src 'none'" in content_security_policy([])


def test_the_page_is_of_moderate_size(page):
    assert len(page) < 300_000


def test_the_page_says_what_was_asked_and_found(page, experiment):
    results = aqmlab.answer(experiment)
    text = html.unescape(page)
    assert "Does it run?" in text
    assert in_words(results).replace(" ± ", "\u00a0±\u00a0")[:60] in text.replace("\u00a0%", " %").replace(
        "\u00a0ms", " ms"
    )
    for arm in results.arms:
        for metric in ("goodput_bps", "queueing_delay_p99_s"):
            from aqmlab.text.numbers import estimate_parts

            mean, half = estimate_parts(
                results.estimate(arm, metric), results.metrics[0].unit if metric == "goodput_bps" else "s"
            )
            assert mean in text
            assert f"±\u00a0{half}" in text or f"±&nbsp;{half}" in page
    assert "Mean ± half-width of the 95 % Student t interval over the seeds 1 to 2" in text
    assert "aqmlab run scenario.toml --seed 1 --runs 2" in text
    assert experiment.runs[0].manifest.plan_digest in text
    assert "topology.queue.limit" in text


def test_hostile_texts_stay_texts(small, tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    small |= {"title": evil, "question": '"><svg onload=alert(3)>', "runs": 1}
    small["arm"] = [{"name": "</script><script>alert(4)</script>"}]
    small["traffic"][0]["name"] = "a-b"
    made = aqmlab.run(small, output=tmp_path / "evil")
    page = (made.path / "report.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    for part in ("<script>alert", "<img src=x", "<svg onload"):
        assert part not in page
    # Scripts also contain the names of arms, which must not terminate them.
    assert len(re.findall(r"<script", page)) == len(re.findall(r"</script>", page)) == 1 + len(SCRIPTS)


def test_two_arms_stand_side_by_side_with_their_paired_difference(page, experiment):
    found = aqmlab.answer(experiment, "goodput_bps")
    arms = ("DropTail", "RED + ECN")
    ours, theirs = (np.array(list(found.by_seed(arm, "goodput_bps").values())) / 1e6 for arm in arms)
    apart = theirs - ours
    low, high = stats.t.interval(0.95, len(apart) - 1, apart.mean(), stats.sem(apart))
    section = html.unescape(page).split('<h2 id="differences">')[1].split("</table>")[0]
    assert re.findall(r'<th scope="col">(.*?)</th>', section)[:2] == list(arms)
    row = section.split("goodput [Mbit/s]</th>")[1].split("</tr>")[0].replace("\u2212", "-")
    first, second, difference, relative = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert float(first.split()[0]) == pytest.approx(ours.mean(), rel=0.01)
    assert float(second.split()[0]) == pytest.approx(theirs.mean(), rel=0.01)
    mean, half = map(float, difference.removesuffix(" n.s.").split(" ± "))
    assert (mean, half) == pytest.approx((apart.mean(), (high - low) / 2), rel=0.1)
    change = 100 * (theirs.mean() / ours.mean() - 1)
    assert float(relative.removesuffix(" %")) == pytest.approx(change, abs=0.1)


def test_one_run_has_no_interval(small, tmp_path):
    small |= {"runs": 1}
    made = aqmlab.run(small, output=tmp_path / "one")
    page = (made.path / "report.html").read_text(encoding="utf-8")
    assert "One run (seed 1): no interval; measured from 1 s to 6 s." in page
    assert "±" not in without_scripts(page).split("<footer>")[0].split("</style>")[1]
    assert "no interval, so the differences may be chance" in page


def test_a_run_without_samples_has_a_report_without_series(small, tmp_path):
    small |= {"record": {"queues": "0s", "flows": "0s"}, "runs": 1}
    made = aqmlab.run(small, output=tmp_path / "bare")
    page = (made.path / "report.html").read_text(encoding="utf-8")
    assert 'id="trade-off"' in page
    assert 'id="courses"' not in page


def test_a_report_of_one_run_alone(experiment, tmp_path):
    file = aqmlab.report(experiment.runs[0].path, tmp_path / "single.html")
    assert (
        "RED"
        not in Path(file).read_text(encoding="utf-8").split('<h2 id="parameters"')[0].split("</style>")[1]
    )


def test_the_answer_of_two_seeds_claims_only_what_they_show(experiment):
    """Delays differ by far more than between seeds; whether goodput differs, two seeds do not show."""
    found = TradeOff(aqmlab.answer(experiment))
    delays, goodputs = (
        [list(experiment.values(metric, cell).values()) for cell in experiment.cells]
        for metric in ("queueing_delay_mean_s", "goodput_bps")
    )
    assert stats.ttest_rel(*delays).pvalue < 0.05 < stats.ttest_rel(*goodputs).pvalue
    assert in_words(found).startswith("RED + ECN cuts mean queueing delay from ")
    assert "goodput, which is not significant." in in_words(found)
    assert best_arm(found) == "RED + ECN"


def test_the_command_quotes_what_a_shell_would_split(experiment):
    part = aqmlab.Results(
        path=experiment.path,
        title="",
        arms=("RED + ECN",),
        cells=(aqmlab.Cell((), "RED + ECN"),),
        seeds=(3,),
        finished={},
        details={"all_arms": ["DropTail", "RED + ECN"]},
    )
    assert command(part) == "aqmlab run scenario.toml --seed 3 --runs 1 --arm 'RED + ECN'"


def test_the_network_is_drawn_whole(experiment):
    drawing = network_svg(experiment.runs[0].plan, {"bottleneck": "<b> / red"})
    for text in ("3 × ftp", "1 × cbr", "bottleneck", "2 Mbit/s · 5 ms", "&lt;b&gt; / red", "base RTT 30 ms"):
        assert text in drawing
    assert spread({"uniform": [60_000_000, 100_000_000]}) == "60 ms to 100 ms"


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
def test_a_browser_shows_it_without_errors_and_without_the_network(experiment, tmp_path, width, scheme):
    dom, console, fetched = browse(experiment.path / "report.html", tmp_path, width, scheme)
    assert console == []
    # A trade-off figure, the backlog of two arms, distributions, and five figures over time.
    assert dom.count('class="plot') == 9
    assert fetched == set()


SHOWN = """(() => {
  const { data, figures } = aqmlab.report;
  const courses = figures.find((figure) => figure.name === "courses");
  const shown = () => ({
    titles: [...courses.body.querySelectorAll(".panel-title")].map((title) => title.textContent),
    csv: csvFile.text(courses.rows),
  });
  const choose = (arm) => {
    const select = courses.bar.querySelector("select[data-key=arm]");
    select.value = String(data.arms.findIndex(({ name }) => name === arm));
    select.dispatchEvent(new Event("change"));
    return shown();
  };
  return { before: shown(), droptail: choose("DropTail"), red: choose("RED + ECN") };
})()"""


def saved(csv_text, series):
    """The times and values of one series in a saved CSV text."""
    head, *rows = csv.reader(csv_text.splitlines())
    assert head == ["arm", "seed", "chart", "series", "time_s", "value"]
    found = [(float(t), float(value)) for *_, name, t, value in rows if name == series]
    return tuple(map(list, zip(*found, strict=True)))


@needs_chromium
def test_the_page_shows_the_arm_that_is_chosen_and_saves_what_it_shows(page, experiment, tmp_path):
    shown = ask(page, SHOWN, tmp_path)
    firsts = [experiment.runs_of(arm)[0] for arm in experiment.arms]
    droptail, red = run_series(experiment.tables, firsts, "bottleneck")
    for of_arm, of_run in ((shown["droptail"], droptail), (shown["red"], red)):
        times, backlog = saved(of_arm["csv"], "backlog")
        assert times == pytest.approx(list(of_run.queue.t_s), rel=1e-6)
        assert backlog == pytest.approx(list(of_run.queue.values["backlog_packets"]), rel=1e-6)
        assert saved(of_arm["csv"], "mean of all flows")[1] == pytest.approx(of_run.cwnd["mean"][1], rel=1e-6)
    assert saved(shown["red"]["csv"], "avg")[1] == pytest.approx(list(red.law["avg"][1]), rel=1e-6)
    assert shown["before"] in (shown["droptail"], shown["red"])
    # DropTail has no law.
    assert "Probability of the law" in shown["red"]["titles"]
    assert "Probability of the law" not in shown["droptail"]["titles"]
    assert ",avg," not in shown["droptail"]["csv"]


ZOOMED = """(async () => {
  const courses = aqmlab.report.figures.find((figure) => figure.name === "courses");
  const times = () => [...courses.body.querySelectorAll("svg.plot")].map((plot) => {
    const ticks = [...plot.querySelectorAll(".axes text[text-anchor=middle]")];
    return [ticks[0], ticks.at(-1)].map((text) => Number(text.textContent));
  });
  const press = (label) => { courses.bar.querySelector(`[data-key="${label}"]`).click(); return times(); };
  const whole = times();
  const inside = press("Zoom in"), later = press("Later"), all = press("The whole run");
  const plot = courses.body.querySelector("svg.plot"), box = plot.getBoundingClientRect();
  const at = (x) => ({ clientX: box.left + x, clientY: box.top + 80, bubbles: true, pointerId: 1 });
  plot.setPointerCapture = () => {};
  for (const [type, x] of [["pointerdown", 300], ["pointermove", 400], ["pointerup", 500]]) {
    plot.dispatchEvent(new PointerEvent(type, at(x)));
  }
  const { from, to } = courses.choice;
  courses.body.querySelector("svg.plot").dispatchEvent(new MouseEvent("dblclick"));
  return { whole, inside, later, all, dragged: [from, to], width: courses.width, after: courses.choice };
})()"""


@needs_chromium
def test_all_charts_over_time_show_the_interval_that_is_chosen(page, tmp_path):
    shown = ask(page, ZOOMED, tmp_path)
    for name, ends in (("whole", [0, 6]), ("inside", [1.5, 4.5]), ("later", [3, 6]), ("all", [0, 6])):
        assert shown[name] == [shown[name][0]] * 5
        assert shown[name][0] == pytest.approx(ends, abs=0.5)
    # The 6 s are drawn between margins of 52 pixels on the left and 10 on the right.
    a_pixel = 6 / (shown["width"] - 62)
    assert shown["dragged"] == pytest.approx([(300 - 52) * a_pixel, (500 - 52) * a_pixel], rel=1e-3)
    assert (shown["after"]["from"], shown["after"]["to"]) == (0, 6)


@needs_chromium
def test_the_watch_over_the_network_and_the_console_sees_what_it_should(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://127.0.0.1:9/x.png"><script>undefined_name()</script>', encoding="utf-8")
    _, console, fetched = browse(page, tmp_path)
    assert fetched == {"http://127.0.0.1:9/x.png"}
    assert any("undefined_name" in line for line in console)


def test_a_title_is_text_in_every_figure(experiment, tmp_path):
    """Dollar signs do not start a formula, and no title is wider than its figure."""
    from dataclasses import replace

    title = r"$\nosuch$ at 5 $ " + "and on " * 30
    named = replace(experiment, title=title)
    # Some figures need tables that are recorded on request (test_traces.py), and one needs 400 samples
    # (test_sources.py); figures of requests are tested in test_plot_requests.py, those of inner queues and
    # classes in test_flow_queues.py, that of a rate that changes in test_changing_rates.py.
    others = {"cwnd", "srtt", "time-sequence", "ladder", "variance-time", "inner-series", "flow-delay"}
    others |= {"delay-capacity", "autorate", "frame-delay-cdf", "media-rate", *WAIT_KINDS, *PART_KINDS}
    for kind in KINDS.keys() - others:
        drawing = draw(named, kind, tmp_path / f"{kind}.svg").read_text(encoding="utf-8")
        assert r"$\nosuch$ at 5 $" in drawing


def test_runs_that_end_at_different_times_are_said_to(small, tmp_path):
    """A condition stops each run when that run meets it, not all runs when the first one meets it."""
    small["stop"] = {"condition": {"queue": "bottleneck", "arrivals": 300}}
    stopped = aqmlab.run(small, output=tmp_path / "out", arms=["DropTail"])
    ends = sorted(run.t1_ns / 1e9 for run in stopped.runs)
    assert ends[0] < ends[1]
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert f"to {ends[0]:g} s at the earliest, {ends[1]:g} s at the latest" in page
    assert f"at most {ends[1]:g} s simulated in each run" in page


def test_a_run_that_ends_at_its_begin_has_a_report_without_figures(
    small: dict[str, Any], tmp_path: Path
) -> None:
    del small["duration"], small["warmup"]
    small["topology"]["access_rate"] = "none"
    del small["traffic"][0]["rtt"]
    small["stop"] = {"at": "6s", "condition": {"queue": "bottleneck", "arrivals": 1}}
    ended = aqmlab.run(small, output=tmp_path / "ended", jobs=1)
    assert all(run.t1_ns == 0 for run in ended.runs)
    answer = aqmlab.answer(ended)
    assert answer.estimate("DropTail", "goodput_bps") is None
    assert answer.estimate("DropTail", "backlog_mean_packets") is None
    assert "DropTail" in aqmlab.report(ended.path).read_text(encoding="utf-8")
