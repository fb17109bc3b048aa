"""Papers: folders of data that are run, scored and drawn."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab import _core
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.figures.over_time import quantities
from aqmlab.papers.causes import score_causes
from aqmlab.papers.check import problems
from aqmlab.papers.figures import draw_figure, one_of_each
from aqmlab.papers.folder import find_paper, read_paper
from aqmlab.papers.multiverse import multiverse, readings
from aqmlab.papers.multiverse_report import multiverse_markdown
from aqmlab.papers.over_time import shown
from aqmlab.papers.paper import KINDS, PaperFigure, Part, Thinned
from aqmlab.papers.reproduce import Wanted, reproduce
from aqmlab.papers.runner import Runner
from aqmlab.papers.scorecard import as_html, as_markdown, headline, making
from aqmlab.papers.scorecard_json import as_json
from aqmlab.papers.scoring import evidence, score_finding
from aqmlab.papers.sweep_figure import numbers
from aqmlab.papers.tables import AGREES, DIFFERS, NOT_SCORED, cell_expression, within
from aqmlab.papers.variants import variant
from aqmlab.plots.render import render
from toy_paper import TOY, edited

ROOT = Path(__file__).parents[2]
MADE = making("0.0", "abc1234")


def card_of(done):
    return as_json(done, MADE)


def markdown_of(done, folder):
    return as_markdown(done.paper, card_of(done), folder)


def html_of(done, folder):
    return as_html(done.paper, card_of(done), folder)


FOLDERS = sorted(file.parent for file in (ROOT / "papers").glob("*/paper.toml"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_says_what_can_be_run(folder):
    paper = read_paper(folder)
    assert problems(paper) == []
    assert paper.key == paper.path.name
    assert (paper.path / "README.md").is_file()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_small_version_of_every_experiment_begins(folder, tmp_path):
    """All cases and claims resolve, and the first and the last cell send traffic for their first moments."""

    class EnoughError(Exception):
        pass

    def look(now):
        if now["events"] > 100:
            raise EnoughError

    paper = read_paper(folder)
    for experiment in paper.experiments:
        cases = Runner(paper, tmp_path / "store").cases(experiment, {}, experiment.quick)
        for cell in (cases.cells[0], cases.cells[-1]):
            task = cases.task(cell, cases.seeds[0])
            with pytest.raises(EnoughError):
                _core.run_one(task.toml, task.file_name, task.arm, task.seed, tmp_path / "run", progress=look)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def toy(store):
    return reproduce(read_paper(TOY), store=store, jobs=2)


def test_the_toy_is_sound():
    assert problems(read_paper(TOY)) == []


def test_findings_are_scored(toy):
    assert {f.finding.name: f.status for f in toy.findings} == {"T1": "holds", "T2": "fails", "T3": "holds"}
    assert card_of(toy)["counts"]["firm"] == {"holds": 1, "fails": 1, "undecided": 0}
    assert toy.seeds == 6
    assert headline(card_of(toy)) == (
        "1 of 2 firm findings holds, 1 fails, 0 are undecided;"
        " 1 of 1 soft findings holds, 0 fail, 0 are undecided;"
        " 2 of 3 published numbers agree within their tolerance (6 seeds per cell)."
    )
    soft = replace(toy, findings=tuple(f for f in toy.findings if f.finding.strength == "soft"), tables=())
    assert (
        headline(card_of(soft)) == "1 of 1 soft findings holds, 0 fail, 0 are undecided (6 seeds per cell)."
    )
    assert headline(card_of(replace(soft, most_seeds=40))).endswith("(6 to 40 seeds per cell).")


def test_figures_stand_in_the_order_of_their_numbers(toy, tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("10", "9a", "B2", "7"):
        (tmp_path / "figures" / f"figure-{name}.svg").write_text("<svg/>")
    (tmp_path / "figures" / "figure-2a.svg").write_text("<svg/>")
    shown = re.findall(r"!\[(.+?)\]", markdown_of(toy, tmp_path))
    assert shown == ["Figure 2a: The queue", "figure-7", "figure-9a", "figure-10", "figure-B2"]


def test_a_cause_has_the_seeds_of_the_multiverse_or_those_of_the_score(tmp_path, store):
    other = 'design = "product"\nruns = 5'
    scored = edited(tmp_path, "paper.toml", other, other + '\ncause_seeds = "scored"')
    seeds = []
    for folder in (TOY, scored):
        paper = read_paper(folder)
        (finding,) = (f for f in paper.findings if f.name == "T2")
        runner = Runner(paper, store, None, None, None)
        seeds += [one.verdict.n for _, (one,) in score_causes([finding], runner)]
    assert seeds == [5, 6]


def test_a_multiverse_that_can_decide_nothing_is_refused(tmp_path):
    too_few = edited(tmp_path, "paper.toml", 'design = "product"\nruns = 5', 'design = "product"\nruns = 4')
    with pytest.raises(ScenarioError, match="`runs` is 4, and no finding is decided with fewer than 5 seeds"):
        read_paper(too_few)


def test_a_table_stands_beside_ours(toy):
    (table,) = toy.tables
    cells = {
        (row["label"], column["label"]): cell
        for row, of_row in zip(table.table.rows, table.cells, strict=True)
        for column, cell in zip(table.table.columns, of_row, strict=True)
    }
    assert cells["all, 40", "DropTail"].verdict == AGREES
    assert cells["all, 40", "RED"].verdict == DIFFERS
    assert cells["all, 80", "RED"].verdict == NOT_SCORED
    assert table.counts() == (2, 3)
    # 2 Mbit/s minus headers is the maximum.
    assert 1.7 < cells["all, 40", "DropTail"].ours.mean < 2.0 * 8 / 7
    shares = [branch.share for branch in cells["all, 40", "DropTail"].branches]
    assert sum(shares) == pytest.approx(1.0)


def test_seeds_of_branches_make_the_whole(toy):
    (table,) = toy.tables
    cell = table.cells[0][0]
    whole = sum(branch.share * branch.ours.mean for branch in cell.branches)
    assert whole == pytest.approx(cell.ours.mean)


def test_what_the_value_has_a_hole_for_is_no_label_of_a_branch(toy, store, tmp_path):
    folder = edited(tmp_path, "expected.toml", "} / 1e6", "} / {row.by}")
    text = (folder / "expected.toml").read_text()
    (folder / "expected.toml").write_text(text.replace('group = "ftp"', 'group = "ftp", by = "1e6"'))
    (table,) = reproduce(read_paper(folder), store=store, jobs=2, wanted=Wanted(tables=["I"])).tables
    assert table.cells == toy.tables[0].cells


def test_scorecards_tell_everything(toy, tmp_path):
    for figure in toy.figures:
        assert draw_figure(figure, toy.results.get(figure.experiment), tmp_path / "figures", "0.0").is_file()
    markdown = markdown_of(toy, tmp_path)
    assert "| T2 | **fails** | firm | no difference | RED loses nothing. | ours: " in markdown
    assert " | arm RED, limit 8p: drops: " in markdown
    assert (
        "RED's queue is shorter than DropTail's. | given<br>published: 9 against 31 packets | limit "
        in markdown
    )
    assert "**T2** fails. It is wrong.\n" in markdown
    assert "![Figure 1: Loss against buffer](figures/figure-1.svg)" in markdown
    page = html_of(toy, tmp_path)
    assert page.count("data:image/svg+xml;base64,") == 4
    assert "<details><summary>all 3 comparisons" not in page  # all of them are already shown
    assert "<script" not in page.split("<main>")[1]


@pytest.mark.parametrize(
    "content", [{"kind": "law", "law": "red"}, {"kind": "cumulative", "experiment": "loss.toml"}]
)
def test_figures_of_one_run_fit_a_column(toy, tmp_path, content):
    arm = {"arms": ["RED"], "where": {"limit": "40p"}}
    figure = PaperFigure("9", "Narrow", content.get("experiment", ""), content["kind"], {**arm, **content})
    drawn = draw_figure(figure, toy.results.get(figure.experiment), tmp_path, "0.0").read_text()
    (width,) = re.findall(r'<svg [^>]*width="([0-9.]+)pt"', drawn)
    assert float(width) == 3.5 * 72


def stated(toy, expect):
    """A finding with this statement, scored on the toy paper's runs."""
    finding = toy.findings[0].finding
    return score_finding(replace(finding, parts=(Part("loss.toml", expect, {}),)), toy.results)


def test_of_many_comparisons_a_few_are_shown_and_all_can_be_seen(toy, tmp_path):
    decided = stated(toy, "for all limit, arm: (drop_percent <= 90 % and drop_percent < 91 %)")
    assert sum(len(part.parts) for part in decided.parts) == 12
    few = evidence(decided)
    assert len(few) == 5
    # There are six different texts, one per cell, because the two bounds on a value yield the same text.
    assert few[-1] == "and 2 more"
    page = html_of(replace(toy, findings=(decided,)), tmp_path)
    assert "<details><summary>all 12 comparisons</summary>" in page


def test_what_is_undecided_says_why_first(toy):
    decided = stated(toy, "quantile(drop_percent{arm=RED, limit=8p}, 90 %) > 0")
    assert decided.status == "undecided"
    why, what = evidence(decided)
    assert "values" in why
    assert what.startswith("arm RED, limit 8p: 90 % quantile of drops = ")


RED, TAIL = "drop_percent{arm=RED, limit=8p}", "drop_percent{arm=DropTail, limit=40p}"
TAIL_8 = "drop_percent{arm=DropTail, limit=8p}"
IN_WORDS = {
    f"{RED} > 0": "arm RED, limit 8p: drops: ",
    f"{RED} / drop_percent{{arm=RED, limit=40p}} > 0": "arm RED: drops: limit 8p / limit 40p = ",
    f"{RED} - 2 * drop_percent{{arm=DropTail, limit=8p}} < 90 %": "limit 8p: drops: RED − 2 × DropTail = ",
    f"{RED} / utilisation_percent{{arm=RED, limit=8p}} > 0": "arm RED, limit 8p: drops / utilisation = ",
    f"max({RED}, {TAIL}) >= 0": "drops: the larger of RED, limit 8p and DropTail, limit 40p = ",
    f"abs(mean({RED} - {TAIL})) >= 0": "drops: |mean of (RED, limit 8p − DropTail, limit 40p)| = ",
    f"mean({RED} - {TAIL_8}) / 3 < 90 %": "limit 8p: drops: (mean of (RED − DropTail)) / 3 = ",
    f"2 * mean({RED}) - mean({TAIL_8}) < 90 %": "limit 8p: drops: 2 × (mean of RED) − (mean of DropTail) = ",
    f"mean({RED} + 2 * {TAIL_8}) > 0": "limit 8p: drops: mean of (RED + 2 × DropTail) = ",
    f"max({RED} / 2, {TAIL_8}) >= 0": "limit 8p: drops: the larger of (RED / 2) and DropTail = ",
    f"abs({RED} - {TAIL_8}) / 2 < 90 %": "limit 8p: drops: |RED − DropTail| / 2 = ",
    "mean(drop_percent{arm=RED} over limit) > 0": "arm RED: mean(drop_percent{arm=RED} over limit) = ",
}


@pytest.mark.parametrize("expect", IN_WORDS)
def test_evidence_is_in_words(toy, expect):
    assert evidence(stated(toy, expect))[0].startswith(IN_WORDS[expect])


def test_curves_are_in_the_unit_of_the_metric(toy, tmp_path):
    figure = next(f for f in toy.figures if f.name == "1")
    file = draw_figure(figure, toy.results["loss.toml"], tmp_path, "0.0")
    header, *rows = [line.split(",") for line in file.with_suffix(".csv").read_text().splitlines()]
    assert header == ["curve", "limit", "mean", "low", "high", "n"]
    assert len(rows) == 6
    # The mean is in percent, as in the metric; four flows with a buffer of 8 packets lose some packets.
    assert 0.5 < float(rows[0][2]) < 20.0


def drawn_over_time(toy, name):
    figure = next(f for f in toy.figures if f.name == name)
    results = toy.results["loss.toml"]
    axes = render(quantities(one_of_each(figure, results, "toy"), "bottleneck", *shown(figure))).axes
    return {
        (one.get_ylabel(), line.get_label()): line.get_xydata().T for one in axes for line in one.lines
    }, axes


def test_a_figure_over_time_shows_the_part_that_it_is_asked_for(toy, monkeypatch):
    whole, (queue, other, *_) = drawn_over_time(toy, "2a")
    assert set(whole) == {
        ("", "queue"),
        ("probability", "p"),
        *(("queue [packets]", name) for name in ("queue", "average")),
    }
    # DropTail, the last arm, has no average, but RED does.
    assert [text.get_text() for text in other.get_legend().get_texts()] == ["queue", "average"]
    assert queue.get_xlim() == (0.0, 8.0)
    assert queue.get_ylim() == other.get_ylim()
    # Twenty bins are too few for the 80 samples of the run, but enough for the part shown.
    monkeypatch.setattr("aqmlab.figures.over_time.MOST_BINS", 20)
    part, (rates, *_) = drawn_over_time(toy, "2b")
    assert rates.get_xlim() == (3.0, 4.5)
    times = part["rate [Mbit/s]", "arrivals"][0]
    assert sum((times > 3.0) & (times <= 4.5)) == 15


def test_what_arrives_leaves_or_is_dropped(toy):
    lines, _axes = drawn_over_time(toy, "2b")
    arrivals, departures = (lines["rate [Mbit/s]", name][1] for name in ("arrivals", "departures"))
    drops = lines["packets/s", "drops"][1]
    # At most 40 packets of 1500 B are still waiting at the end of the 8 s.
    assert drops.max() > 0.0
    assert abs((arrivals - departures).mean() - 0.012 * drops.mean()) <= 0.012 * 40 / 8
    # A packet counts when its transmission ends, so a bin of 100 ms may count one more than the link carries.
    assert departures.max() <= 2.12 < arrivals.max()


def test_the_same_again_runs_nothing(toy, store):
    again = reproduce(read_paper(TOY), store=store)
    assert again.runs == 0
    assert [f.verdict for f in again.findings] == [f.verdict for f in toy.findings]


def test_one_finding_can_be_asked_for(store):
    done = reproduce(read_paper(TOY), wanted=Wanted(findings=["t1"]), store=store)
    assert [f.finding.name for f in done.findings] == ["T1"]
    assert done.tables == ()


def test_what_is_only_drawn_does_not_count_as_seeds_of_the_score(store, tmp_path):
    experiment = '[[experiment]]\nfile = "drawn.toml"\n[reading]\n'
    folder = edited(tmp_path, "paper.toml", "[reading]\n", experiment)
    text = (folder / "paper.toml").read_text()
    (folder / "paper.toml").write_text(
        text.replace('experiment = "loss.toml"', 'experiment = "drawn.toml"', 1)
    )
    scenario = (folder / "loss.toml").read_text()
    (folder / "drawn.toml").write_text(scenario.replace("runs = 6", "runs = 2"))
    done = reproduce(read_paper(folder), store=store, wanted=Wanted(findings=["T1"], figures=["1"]))
    assert (done.seeds, len(done.results["drawn.toml"].seeds)) == (6, 2)
    assert reproduce(read_paper(folder), store=store, wanted=Wanted(figures=["1"])).seeds == 2


def test_the_small_version_leaves_out_what_it_has_not_got(store):
    done = reproduce(read_paper(TOY), quick=True, store=store)
    assert {f.finding.name: f.status for f in done.findings}["T3"] == "undecided"
    assert done.results["loss.toml"].axis("limit").labels == ("8p", "80p")
    assert "not to be quoted" in headline(card_of(done))


def test_the_small_version_can_be_what_a_store_begins_with(tmp_path):
    # The small version is a separate file in the store, written before any run.
    done = reproduce(read_paper(TOY), quick=True, store=tmp_path / "new", wanted=Wanted(findings=["T1"]))
    assert done.runs > 0


def test_every_reading_is_gone_through(store):
    paper = read_paper(TOY)
    assert list(readings(paper)) == [
        {},
        {"max_p": "0.02"},
        {"least RTO": "200 ms"},
        {"least RTO": "200 ms", "max_p": "0.02"},
    ]
    table = multiverse(paper, wanted=Wanted(findings=["T1", "T2"]), store=store)
    assert table.share(1, "fails") == 1.0
    assert table.best() in table.universes
    assert "| the fixed reading |  | 1 of 2 | nothing |" in multiverse_markdown(table, MADE)


def test_what_is_contradicted_is_no_reading(tmp_path, toy):
    paper = read_paper(edited(tmp_path, "paper.toml", 'name = "max_p"', 'name = "max_p"\ntest = true'))
    assert list(readings(paper)) == [{}, {"least RTO": "200 ms"}]
    # The setting can still be varied as a cause, and is not listed among the choices.
    (experiment,) = paper.experiments
    assert variant(paper, experiment, {"max_p": "0.02"}, Thinned()) != (TOY / "loss.toml").read_text()
    assert "| max_p |" in markdown_of(toy, tmp_path)
    assert "| max_p |" not in markdown_of(replace(toy, paper=paper), tmp_path)


def test_a_variant_changes_what_it_says_and_nothing_else():
    paper = read_paper(TOY)
    (experiment,) = paper.experiments
    own = (TOY / "loss.toml").read_text()
    assert variant(paper, experiment, {}, Thinned()) == own
    other = variant(paper, experiment, {"max_p": "0.02"}, Thinned())
    # Only RED has it.
    assert other.replace('"topology.queue.max_p" = 0.02\n', "") == own


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("paper.toml", 'key = "toy"\n', "", "`key` is missing; write a string"),
        ("paper.toml", 'mark = "unknown"', 'mark = "guessed"', "there is no value `guessed`"),
        ("paper.toml", 'file = "loss.toml"\ntitle', 'file = "gain.toml"\ntitle', "there is no such file"),
        ("paper.toml", 'chosen = "1 s"', 'chosen = "2 s"', "there is no value `2 s`"),
        ("paper.toml", "summary", "sumary", "there is no key `sumary`; did you mean `summary`?"),
        ("expected.toml", 'id = "T2"', 'id = "T1"', "there are two entries with this `id`"),
        ("expected.toml", 'id = "T1"', 'id = "T1"\nmark = "recalled"', "is never scored"),
        ("expected.toml", '"least RTO" = "200 ms"', '"RTO" = "200 ms"', "did you mean `least RTO`?"),
        ("expected.toml", "[[1.9, 1.0], [1.9, \"\"]]", "[[1.9, 1.0]]", "2 rows of 2 numbers"),
    ],
)  # fmt: skip
def test_a_wrong_folder_is_told_with_the_place(tmp_path, file, old, new, what):
    with pytest.raises(ScenarioError) as refused:
        read_paper(edited(tmp_path, file, old, new))
    assert what in str(refused.value)
    assert file in str(refused.value)


def test_a_finding_says_whether_it_is_firm(tmp_path):
    folder = edited(tmp_path, "expected.toml", 'strength = "soft"\n', "")
    with pytest.raises(ScenarioError) as refused:
        read_paper(folder)
    place = f"{folder / 'expected.toml'}:21: finding `T3`"
    assert str(refused.value) == f'{place}: `strength` is missing; write "firm" or "soft"'


PLACE = "a given value must name its place: write `source` with the section, table, figure, slide or line"


@pytest.mark.parametrize(
    ("file", "old", "new", "where", "what"),
    [
        (
            "expected.toml",
            'kind = "distinguishes"\n',
            "",
            ":1: finding `T1`",
            '`kind` is missing; write "distinguishes", "no difference" or "by construction"',
        ),
        ("expected.toml", '"by construction"', '"constructed"', ":21: finding `T3`", "there is no value"),
        ("expected.toml", 'source = "section 2"\n', "", ":1: finding `T1`", PLACE),
        ("expected.toml", '"section 2"', '"slide talk"', "", ""),
        ("expected.toml", '"section 2"', '"the text"', ":1: finding `T1`", "; `the text` is none"),
        ("expected.toml", 'source = "Table I"\n', "", ":34: table `I`", PLACE),
        ("expected.toml", '"section 2"', '"ours"', "", ""),
        ("expected.toml", '"section 2"', '"ours"\nmark = "given"', ":1: finding `T1`", "; `ours` is none"),
        ("expected.toml", 'published = "9', "published = true # ", ":1: finding `T1`", "must be a number"),
        (
            "expected.toml",
            'source = "Table I"',
            'mark = "recalled"',
            ":34: table `I`",
            "a table that is recalled is never scored; leave out `tolerance`",
        ),
        ("expected.toml", 'mark = "inferred"', 'mark = "recalled"', ":21: finding `T3`", "is never scored"),
        ("paper.toml", 'mark = "unknown"', 'mark = "given"\ntest = true', ":13: setting `least RTO`", PLACE),
        (
            "paper.toml",
            'mark = "unknown"',
            'mark = "given"\nsource = "section 3"',
            ":13: setting `least RTO`",
            "the paper gives `1 s`, which excludes the candidates `200 ms`; leave them out, or write",
        ),
        ("paper.toml", 'mark = "unknown"', 'mark = "given"\nsource = "page 3"\ntest = true', "", ""),
    ],
)
def test_what_is_known_and_what_a_finding_states_are_said(tmp_path, file, old, new, where, what):
    folder = edited(tmp_path, file, old, new)
    if not what:
        assert read_paper(folder).key == "toy"
        return
    with pytest.raises(ScenarioError) as refused:
        read_paper(folder)
    assert str(refused.value).startswith(f"{folder / file}{where}: ")
    assert what in str(refused.value)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_given_names_its_place_and_no_finding_is_of_an_unstated_kind(folder):
    whole = read_paper(folder)
    for paper in filter(None, (whole, whole.live)):
        for entry in (*paper.findings, *paper.tables, *paper.settings):
            assert entry.mark != "given" or re.search(r"\d|[IVX]|section|slides|abstract", entry.source), (
                entry
            )
        assert {finding.kind for finding in paper.findings} <= set(KINDS)


@pytest.mark.parametrize("file", ["paper.toml", "expected.toml"])
@pytest.mark.parametrize(
    ("wrong", "place", "what"),
    [
        (b"number = 5 %\n", "2:12", "Expected newline or end of document"),
        (b"title = 1\ntitle = 2\n", "3:10", "Cannot overwrite a value"),
        (b'text = """\nand on\n', "3", "Unterminated string"),
        (b"text = '\xff'\n", "2", "this is not UTF-8 text"),
    ],
)
def test_what_is_no_toml_is_told_with_file_and_line(tmp_path, file, wrong, place, what):
    shutil.copytree(TOY, tmp_path / "toy")
    broken = tmp_path / "toy" / file
    broken.write_bytes(b"# first\n" + wrong)
    with pytest.raises(ScenarioError) as refused:
        read_paper(tmp_path / "toy")
    assert str(refused.value).startswith(f"{broken}:{place}: {what}")
    assert "(at " not in str(refused.value)


def test_a_line_that_cannot_be_told_is_not_named(tmp_path):
    # The note is a multi-line text, which contains what looks like a table header.
    folder = edited(tmp_path, "expected.toml", 'note = "It is wrong."', 'note = """\n[[finding]]\n"""')
    text = (folder / "expected.toml").read_text()
    (folder / "expected.toml").write_text(text.replace('strength = "soft"\n', ""))
    with pytest.raises(ScenarioError, match=r"expected\.toml: finding `T3`: `strength` is missing"):
        read_paper(folder)


RTO = '"traffic.ftp.tcp.min_rto" = '


def test_a_column_names_the_entry_of_the_row():
    row = {"label": "AQM, DT", "PI": "PI-DT", "RED": "RED-DT"}
    asked = "drop_percent{arm='{row.{column.aqm}}'} + {column.more}"
    expression, where = cell_expression(
        asked, row, {"label": "x", "aqm": "RED", "more": "1", "limit": "4p"}, "t"
    )
    assert expression == "drop_percent{arm='RED-DT'} + 1"
    assert where == {"limit": "4p"}
    with pytest.raises(ScenarioError, match="t: this row has no `REM`"):
        cell_expression(asked, row, {"aqm": "REM", "more": "1"}, "t")


GOODPUT = "goodput_bps{class={row.group}}"
MAX_P = '"topology.queue.max_p" = '


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("expected.toml", "backlog_mean_packets{arm=RED}", "backlog_men_packets{arm=RED}", "did you mean"),
        ("expected.toml", "{class={row.group}} / 1e6", "{class={row.grup}} / 1e6", "has no `grup`"),
        ("expected.toml", GOODPUT, f"mean({GOODPUT})", "for all seeds"),
        ("paper.toml", 'y = "drop_percent"', 'y = "drop_precent"', "did you mean"),
        ("paper.toml", '"signals"]', '"signal"]', "figure 2b: rows: there is no row `signal`; did you mean"),
        ("paper.toml", 'from = "3s"', 'from = "3"', "figure 2b: `from` is `3`; write a time"),
        ("paper.toml", f'"1 s" = {{ {RTO}"1s" }}', f'"1 s" = {{ {RTO}"2s" }}', "the files do not contain it"),
        ("paper.toml", f'"0.02" = {{ {MAX_P}0.02 }}', f'"0.02" = {{ {MAX_P}0.1 }}', "0.02 changes nothing"),
        ("paper.toml", 'runs = 5, keep = { limit = ["8p", "80p"] } }', 'keep = { limit = ["9p"] } }', "`9p`"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_or_changes_nothing_is_a_problem(tmp_path, file, old, new, what):
    found = problems(read_paper(edited(tmp_path, file, old, new)))
    assert any(what in problem for problem in found), found


@pytest.mark.parametrize("quick", [False, True])
def test_a_wrong_name_is_told_before_anything_is_run(tmp_path, quick):
    folder = edited(
        tmp_path, "expected.toml", "drop_percent{arm=RED, limit=8p}", "drop_percent{arm=RDE, limit=8p}"
    )
    with pytest.raises(ScenarioError, match=r"expected\.toml:16:28: claim `T2`.*did you mean `RED`"):
        reproduce(read_paper(folder), quick=quick, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_tolerances():
    assert within(1.14, 1.0, "15 %")
    assert not within(1.16, 1.0, "15 %")
    assert within(0.5, 1.0, "factor 2")
    assert not within(0.49, 1.0, "factor 2")
    assert within(0.0, 0.09, "factor 2", both_below=0.1)
    assert not within(0.0, 0.11, "factor 2", both_below=0.1)
    with pytest.raises(UsageError, match="neither like"):
        within(1.0, 1.0, "about")


def test_labels_are_numbers_where_they_can_be():
    assert numbers(["4p", "12p"]) == ([4.0, 12.0], "packets")
    assert numbers(["17.8ms", "178ms"]) == ([17.8, 178.0], "ms")
    assert numbers(["4p", "12kB"]) == ([0.0, 1.0], None)
    assert numbers(["small", "large"]) == ([0.0, 1.0], None)
    assert numbers(["1.2.3", "4"]) == ([0.0, 1.0], None)  # a version is not a number
    assert numbers(["1e+3", "+5"]) == ([1000.0, 5.0], "")


def test_unknown_papers_and_parts_are_told_with_the_nearest_name(store):
    with pytest.raises(UsageError, match="there is no paper `nobody`"):
        find_paper("nobody")
    with pytest.raises(UsageError, match="there is no finding `T9`"):
        reproduce(read_paper(TOY), wanted=Wanted(findings=["T9"]), store=store)


@pytest.mark.usefixtures("toy")
def test_the_command_writes_a_scorecard(aqmlab_cli, store, tmp_path):
    # T2 fails, but the folder says why.
    done = aqmlab_cli("paper", "reproduce", TOY, "--store", store, "-o", tmp_path, "--json", "-q")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"]["firm"] == {"holds": 1, "fails": 1, "undecided": 0}
    names = {"scorecard.md", "scorecard.html", "scorecard.json", "figures"}
    assert {file.name for file in tmp_path.iterdir()} == names
    assert json.loads((tmp_path / "scorecard.json").read_text())["findings"] == told["findings"]
    (statement,) = told["findings"][0]["statements"]
    assert (statement["experiment"], statement["status"]) == ("loss.toml", "holds")
    assert [part["at"] for part in statement["parts"]] == [{"limit": of} for of in ("8p", "40p", "80p")]


@pytest.mark.parametrize("command", [("paper", "list"), ("paper", "reproduce", "blue")])
def test_a_program_without_papers_says_where_they_are(command, aqmlab_cli, monkeypatch, tmp_path):
    monkeypatch.setenv("AQMLAB_PAPERS", str(tmp_path))
    ended = aqmlab_cli(*command)
    assert ended.returncode == 2
    assert f"there are no papers in `{tmp_path}`: the installed package has none; run in a clone" in " ".join(
        ended.stderr.split()
    )
