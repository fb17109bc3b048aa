"""Inference of readings, tested on a synthetic paper whose true reading is known, with real and fake runs."""

import json
import random
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab.errors import RecordingError, ScenarioError, UsageError
from aqmlab.papers.check import problems
from aqmlab.papers.folder import find_paper, read_paper
from aqmlab.papers.inference import infer
from aqmlab.papers.inference_json import FILE, inference_json, inference_text, read_inference, state_of
from aqmlab.papers.inference_report import conclusion, inference_markdown, inference_section, setting_text
from aqmlab.papers.measured_values import MeasuredValues, Measurer, ValueFile
from aqmlab.papers.names import names_of
from aqmlab.papers.paper import Target
from aqmlab.papers.scorecard_text import markdown_cell
from aqmlab.papers.targets import Targets
from toy_paper import TOY

ROOT = Path(__file__).parents[2]
MADE = {"version": "1", "commit": "abc", "date": "2026-11-23"}

SCENARIO = """
title = "Goodput of a link"
duration = "22s"
warmup = "2s"
runs = 3
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "5ms"
queue = { kind = "droptail", limit = "20p" }
[[traffic]]
name = "ftp"
kind = "bulk"
count = 4
rtt = "20ms"
start = { uniform = ["0s", "1s"] }
tcp = { profile = "rfc" }
[[arm]]
name = "one"
[[arm]]
name = "other"
"topology.queue.limit" = "30p"
"""
PAPER = """
key = "known"
title = "A paper whose reading is known"
year = 2001
summary = "Goodput is that of 3 Mbit/s."
[[experiment]]
file = "link.toml"
[[setting]]
name = "rate"
mark = "unknown"
why = "Not stated."
chosen = "2 Mbit/s"
[setting.candidates]
"1 Mbit/s" = { "topology.rate" = "1Mbit" }
"2 Mbit/s" = { "topology.rate" = "2Mbit" }
"3 Mbit/s" = { "topology.rate" = "3Mbit" }
[[setting]]
name = "start"
mark = "unknown"
why = "Not stated."
chosen = "within 1 s"
[setting.candidates]
"within 1 s" = {}
"within 0.5 s" = { "traffic.ftp.start" = { uniform = ["0s", "500ms"] } }
[[setting]]
name = "rate of nobody"
mark = "unknown"
why = "Not stated."
chosen = "as it is"
arms = ["third"]
[setting.candidates]
"as it is" = {}
"another" = { "topology.queue.limit" = "10p" }
[infer]
rule = "the first column is fitted"
fit = { table = "I", columns = ["one"] }
test = { table = "I", columns = ["other"] }
seeds = 2
final_seeds = 4
"""
EXPECTED = """
[[finding]]
id = "F1"
text = "The link is full."
strength = "firm"
kind = "distinguishes"
source = "section 2"
experiment = "link.toml"
expect = "utilisation_percent{arm=one} > 90 %"
[[finding]]
id = "F2"
text = "It is fast."
strength = "firm"
kind = "distinguishes"
source = "section 2"
experiment = "link.toml"
expect = "goodput_bps{arm=other} > 2.5Mbit/s"
[[table]]
id = "I"
title = "Goodput"
unit = "Mbit/s"
source = "Table I"
experiment = "link.toml"
value = "goodput_bps{class=ftp} / 1Mbit/s"
columns = [{ label = "one", arm = "one" }, { label = "other", arm = "other" }]
rows = [{ label = "all" }]
published = [[2.89, 2.89]]
"""


def folder(tmp_path, paper=PAPER, expected=EXPECTED, scenario=SCENARIO):
    path = tmp_path / "known"
    path.mkdir(parents=True, exist_ok=True)
    third = '[[arm]]\nname = "third"\n'
    for name, text in (("paper", paper), ("expected", expected), ("link", scenario + third)):
        (path / f"{name}.toml").write_text(text)
    return path


def refused(tmp_path, *, infer="", expected=EXPECTED):
    head, _, _ = PAPER.partition("[infer]")
    with pytest.raises(ScenarioError) as error:
        read_paper(folder(tmp_path, f"{head}[infer]\n{infer}", expected))
    return str(error.value)


# --- the table [infer]


def test_what_is_fitted_and_what_is_not_seen(tmp_path):
    spec = read_paper(folder(tmp_path)).inference
    assert spec.fit == (Target(table="I", row=0, column=0),)
    assert spec.test == (Target(table="I", row=0, column=1),)
    assert spec.settings == ("rate", "start", "rate of nobody")
    assert (spec.distance, spec.seeds, spec.final_seeds, spec.minutes) == ("log", 2, 4, 90.0)


def test_every_second_finding_is_fitted_where_nothing_is_named(tmp_path):
    head, _, _ = PAPER.partition("[infer]")
    spec = read_paper(folder(tmp_path, head)).inference
    assert (spec.fit, spec.test) == ((Target("F1"),), (Target("F2"),))
    assert spec.rule.startswith("the findings in the order of expected.toml")
    spec = read_paper(TOY).inference
    assert [target.finding for target in spec.fit] == ["T1", "T3"]


@pytest.mark.parametrize(
    ("rows", "places"),
    [('"odd"', [0, 2]), ('"even"', [1, 3]), ('["third", "first"]', [0, 2]), (None, [0, 1, 2, 3])],
)
def test_rows_are_named_or_every_second_one(tmp_path, rows, places):
    four = 'rows = [{ label = "first" }, { label = "second" }, { label = "third" }, { label = "fourth" }]'
    expected = EXPECTED.replace('rows = [{ label = "all" }]', four)
    expected = expected.replace("[[2.89, 2.89]]", '[[1, 2], [3, 4], [5, ""], ["", 8]]')
    named = "" if rows is None else f", rows = {rows}"
    line = f'fit = {{ table = "I", columns = ["one"]{named} }}\ntest = {{ table = "I", columns = ["other"] }}'
    head, _, _ = PAPER.partition("[infer]")
    spec = read_paper(folder(tmp_path, f"{head}[infer]\n{line}", expected)).inference
    # The paper has no number in the last row of this column.
    assert [target.row for target in spec.fit] == [place for place in places if place != 3]
    assert [target.row for target in spec.test] == [0, 1, 3]


FIT, TEST = 'fit = { table = "I", columns = ["one"] }', 'test = { table = "I", columns = ["other"] }'


@pytest.mark.parametrize(
    ("infer", "message"),
    [
        (
            f'{FIT}\ntest = {{ table = "I" }}',
            "table I, all, one is in `fit` and in `test`; what is tested must",
        ),
        (f'{FIT}\ntest = {{ findings = ["F1"] }}', "must both consist of cells, or both of findings"),
        (FIT, "`test` must be { table = ... }, { findings = [...] }, or a list of these"),
        (f"fit = 3\n{TEST}", "`fit` must be { table = ... }, { findings = [...] }, or a list of these"),
        (f"fit = []\n{TEST}", "`fit` must be { table = ... }"),
        (f'fit = {{ table = "II" }}\n{TEST}', "fit 1: there is no table `II`"),
        (
            f'fit = {{ table = "I", rows = ["al"] }}\n{TEST}',
            "fit 1: there is no row `al`; did you mean `all`",
        ),
        (
            f'fit = {{ table = "I", rows = "first" }}\n{TEST}',
            '`rows` is `first`; write "odd", "even" or a list',
        ),
        (
            f'fit = {{ table = "I", row = ["all"] }}\n{TEST}',
            "fit 1: there is no key `row`; did you mean `rows`",
        ),
        ('fit = { findings = ["F3"] }\ntest = { findings = ["F2"] }', "fit 1: there is no finding `F3`"),
        (
            f'fit = {{ table = "I", findings = ["F1"] }}\n{TEST}',
            "fit 1: write either `table` with its `rows`",
        ),
        (f"{FIT}\n{TEST}\nsettings = ['rat']", "settings: there is no setting `rat`; did you mean `rate`"),
        (f'{FIT}\n{TEST}\ndistance = "far"', "`distance`: there is no value `far`"),
        (
            f"{FIT}\n{TEST}\nseeds = 1",
            "`seeds` is 1; give at least 2: the noise is estimated from their spread",
        ),
        (f"{FIT}\n{TEST}\nminutes = 0", "`minutes` is 0; write a number above 0"),
        (f"{FIT}\n{TEST}\nminutes = true", "`minutes` is True; write a number above 0"),
        (f"{FIT}\n{TEST}\nsteps = 3", "there is no key `steps`"),
    ],
)
def test_a_wrong_section_is_told_with_file_and_line(tmp_path, infer, message):
    said = refused(tmp_path, infer=infer)
    assert message in said
    line = PAPER.partition("[infer]")[0].count("\n") + 1
    assert said.startswith(f"{tmp_path / 'known' / 'paper.toml'}:{line}: [infer]")


def test_a_published_zero_needs_a_floor(tmp_path):
    zero = EXPECTED.replace("[[2.89, 2.89]]", "[[0, 2.89]]")
    said = refused(tmp_path, infer=f"{FIT}\n{TEST}", expected=zero)
    assert (
        "table I, all, one: the published value is 0, so a relative distance from it is undefined; add the"
        " key `both_below` to its table" in said
    )
    head, _, _ = PAPER.partition("[infer]")
    zero = zero.replace('unit = "Mbit/s"', 'unit = "Mbit/s"\nboth_below = 0.5')
    assert read_paper(folder(tmp_path, f"{head}[infer]\n{FIT}\n{TEST}", zero)).inference.fit


def test_a_table_that_is_only_recalled_is_not_fitted(tmp_path):
    recalled = EXPECTED.replace('unit = "Mbit/s"', 'unit = "Mbit/s"\nmark = "recalled"')
    assert "table `I` is only recalled" in refused(tmp_path, infer=f"{FIT}\n{TEST}", expected=recalled)


def test_the_papers_of_the_project_say_what_is_fitted():
    for key in ("miskovic", "blue"):
        spec = find_paper(str(ROOT / "papers" / key)).inference
        assert spec.fit
        assert spec.test
        assert not set(spec.fit) & set(spec.test)
        assert re.search(r"written on \d+ November 2026, .*before the (first )?search", spec.rule)


INFERRED = [folder.parent.name for folder in sorted((ROOT / "papers").glob("*/inference.json"))]
"""The papers with an inference; that of an earlier reading is withdrawn until it is made again."""


@pytest.mark.parametrize("key", INFERRED)
def test_the_inferences_of_the_project_are_of_the_papers_as_they_stand(key):
    paper = find_paper(str(ROOT / "papers" / key))
    content = read_inference(paper.path)
    assert content["state"] == state_of(paper), f"aqmlab paper infer {key} makes a new one"
    assert content["rule"] == paper.inference.rule
    page = (paper.path / "inference.md").read_text()
    assert page.startswith(f"# Inference: {paper.title}")


# --- a fake runner


def surface(reading, _arm):
    """Return the goodput in bit/s, which depends only on the setting `rate`."""
    mbit = {"1 Mbit/s": 0.96, "3 Mbit/s": 2.89}.get(reading.get("rate", ""), 1.92)
    return 1e6 * mbit


class FakeRuns:
    """A stand-in for runs: the same reading, cell and seed always give the same value."""

    def __init__(self, monkeypatch, surface=surface, noise=0.01, interrupt_at=0):
        self.surface, self.noise, self.interrupt_at = surface, noise, interrupt_at
        self.made = Counter()
        self.calls = 0
        monkeypatch.setattr(Measurer, "_run", self.run)

    def run(self, _experiment, reading, queries, cells, seeds):
        self.calls += 1
        if self.calls == self.interrupt_at:
            raise KeyboardInterrupt
        for cell in queries:
            for seed in seeds if cell in cells else ():
                self.made[tuple(sorted(reading.items())), cell.arm, seed] += 1
                spread = random.Random(f"{sorted(reading.items())}/{cell.arm}/{seed}").gauss(0, 1)
                value = self.surface(reading, cell.arm) * (1 + self.noise * spread)
                yield cell, seed, {query.key: value for query in queries[cell]}


def text(found):
    return inference_text(inference_json(found, MADE))


def says(content):
    return {of["name"]: of["says"] for of in content["settings"]}


def test_the_true_candidate_is_found_and_the_others_say_nothing(tmp_path, monkeypatch):
    FakeRuns(monkeypatch)
    found = infer(read_paper(folder(tmp_path)), store=tmp_path / "store")
    assert found.reading == {"rate": "3 Mbit/s"}
    assert found.untouched == ("rate of nobody",)
    content = json.loads(text(found))
    assert says(content) == {"rate": "for", "start": "nothing", "rate of nobody": "untouched"}
    words = [setting_text(of) for of in content["settings"]]
    assert words == [
        "for 3 Mbit/s, against all others",
        "nothing: no candidate differs beyond the noise",
        "not varied: no fitted result depends on it",
    ]
    parts = content["parts"]
    assert parts["fit"]["fixed"]["mean"] == pytest.approx(0.409, abs=0.01)
    assert parts["test"]["inferred"]["mean"] < 0.02
    assert conclusion(content) == (
        "Inferred: rate: 3 Mbit/s. The part that the search has not seen improves as well: its error falls."
    )


def test_a_fit_that_does_not_carry_over_is_said_to_be_worse(tmp_path, monkeypatch):
    FakeRuns(monkeypatch)
    published = EXPECTED.replace("[[2.89, 2.89]]", "[[2.89, 1.92]]")
    found = infer(read_paper(folder(tmp_path, expected=published)), store=tmp_path / "store")
    assert found.reading == {"rate": "3 Mbit/s"}
    content = inference_json(found, MADE)
    assert content["parts"]["fit"]["difference"]["mean"] < -0.3
    assert content["parts"]["test"]["difference"]["mean"] > 0.3
    assert "**gets worse**: the better fit does not carry over" in conclusion(content)


def test_nothing_is_taken_that_is_noise(tmp_path, monkeypatch):
    FakeRuns(monkeypatch, lambda _reading, _arm: 2.5e6, noise=0.1)
    content = inference_json(infer(read_paper(folder(tmp_path)), store=tmp_path / "store"), MADE)
    assert content["reading"] == {}
    assert set(says(content).values()) == {"nothing", "untouched"}
    assert conclusion(content) == "No reading fits clearly better than the fixed one."


@pytest.mark.parametrize("after", [1, 2, 5, 9, 14, 18])
def test_an_interrupt_changes_no_byte(tmp_path, monkeypatch, after):
    paper = read_paper(folder(tmp_path))
    with monkeypatch.context() as patched:
        whole = FakeRuns(patched)
        expected = text(infer(paper, store=tmp_path / "whole"))
    assert whole.calls >= after
    with monkeypatch.context() as patched:
        first = FakeRuns(patched, interrupt_at=after)
        with pytest.raises(KeyboardInterrupt):
            infer(paper, store=tmp_path / "store")
        rest = FakeRuns(patched)
        assert text(infer(paper, store=tmp_path / "store")) == expected
        # What was measured before the interruption is not measured again.
        assert first.made + rest.made == whole.made
    with monkeypatch.context() as patched:
        again = FakeRuns(patched)
        assert text(infer(paper, store=tmp_path / "store")) == expected
        assert not again.made


def test_the_test_part_is_run_for_two_readings_only(tmp_path, monkeypatch):
    runs = FakeRuns(monkeypatch)
    infer(read_paper(folder(tmp_path)), store=tmp_path / "store")
    readings = {reading for reading, arm, _ in runs.made if arm == "other"}
    assert readings == {(), (("rate", "3 Mbit/s"),)}


def test_runs_of_the_search_may_be_shorter_and_those_of_the_last_look_are_whole(tmp_path, monkeypatch):
    runs = FakeRuns(monkeypatch)
    paper = read_paper(folder(tmp_path, PAPER + 'shorter = { duration = "8s" }\n'))
    assert problems(paper) == []
    found = infer(paper, store=tmp_path / "store")
    searched = {reading for reading, arm, _ in runs.made if dict(reading).get("length of the search's runs")}
    whole = {reading for reading, arm, _ in runs.made} - searched
    assert whole == {(), (("rate", "3 Mbit/s"),)}
    assert len(searched) > len(whole)
    assert found.reading == {"rate": "3 Mbit/s"}
    content = inference_json(found, MADE)
    assert content["shorter"] == {"duration": "8s"}
    assert "shorter than the scored ones" in inference_markdown(content)
    (wrong,) = problems(replaced(paper, shorter={"duration": "1s"}))
    assert wrong.startswith("setting length of the search's runs, shorter: link.toml: ")


def replaced(paper, **changed):
    return replace(paper, inference=replace(paper.inference, **changed))


def test_the_budget_ends_the_search_and_a_repetition_ends_at_the_same_place(tmp_path, monkeypatch):
    paper = read_paper(folder(tmp_path))
    clock = iter(range(0, 100_000))
    monkeypatch.setattr("aqmlab.papers.measured_values.time.monotonic", lambda: next(clock))
    FakeRuns(monkeypatch)
    # Each run of a reading takes a second, and the budget of 15 s must cover the readings with two seeds and
    # the final runs on both parts.
    found = infer(paper, store=tmp_path / "store", minutes=0.25)
    content = inference_json(found, MADE)
    assert content["budget_ended_in"]
    assert content["readings"] < 12
    assert "**The budget ended in the stage" in inference_markdown(content)
    again = FakeRuns(monkeypatch)
    assert text(infer(paper, store=tmp_path / "store", minutes=0.25)) == text(found)
    assert not again.made
    more = inference_json(infer(paper, store=tmp_path / "store", minutes=90), MADE)
    assert more["budget_ended_in"] is None
    assert more["readings"] > content["readings"]


def test_findings_are_so_or_not_in_each_seed(tmp_path, monkeypatch):
    # All metrics of a cell get the same fake value: for `other`, 2.89e6 (its goodput in bit/s); for the other
    # arms, 289 (their utilisation in %).
    FakeRuns(monkeypatch, lambda reading, arm: surface(reading, arm) / (1 if arm == "other" else 1e4))
    head, _, _ = PAPER.partition("[infer]")
    spec = '[infer]\nfit = { findings = ["F2"] }\ntest = { findings = ["F1"] }\nseeds = 2\n'
    content = inference_json(infer(read_paper(folder(tmp_path, head + spec)), store=tmp_path / "store"), MADE)
    assert content["reading"] == {"rate": "3 Mbit/s"}
    assert [part["items"][0]["fixed"]["mean"] for part in content["parts"].values()] == [0.0, 1.0]
    assert [part["items"][0]["inferred"]["mean"] for part in content["parts"].values()] == [1.0, 1.0]
    assert "share of findings that do not hold in that seed alone" in inference_markdown(content)


def test_nothing_to_search_is_refused(tmp_path, monkeypatch):
    runs = FakeRuns(monkeypatch)
    only = PAPER + 'settings = ["rate of nobody"]\n'
    with pytest.raises(UsageError, match="no fitted result of paper `known` depends on a setting"):
        infer(read_paper(folder(tmp_path, only)), store=tmp_path / "store")
    with pytest.raises(UsageError, match="`1` seeds are too few"):
        infer(read_paper(folder(tmp_path)), store=tmp_path / "store", seeds=1)
    assert not runs.made


def test_a_gap_between_two_recordings_is_refused(tmp_path, monkeypatch):
    runs = FakeRuns(monkeypatch)
    sides = (f"response_time_within_percent{{arm={arm}, within=1s}}" for arm in ("one", "other"))
    gap = f'expect = "cdf_gap({", ".join(sides)}) > 5 %"'
    expected = EXPECTED.replace('expect = "utilisation_percent{arm=one} > 90 %"', gap)
    head, _, _ = PAPER.partition("[infer]")
    with pytest.raises(UsageError, match="F1: `cdf_gap` compares two recordings, and a search keeps none"):
        infer(read_paper(folder(tmp_path, head, expected)), store=tmp_path / "store")
    assert not runs.made


def test_a_reading_that_cannot_be_run_is_listed(tmp_path, monkeypatch):
    FakeRuns(monkeypatch)
    wrong = PAPER.replace(
        '"within 0.5 s" = { "traffic.ftp.start" = { uniform = ["0s", "500ms"] } }',
        '"late" = { "traffic.ftp.start" = "90s" }\n"within 0.5 s" = { "traffic.ftp.start" = "0s" }',
    )
    content = inference_json(infer(read_paper(folder(tmp_path, wrong)), store=tmp_path / "store"), MADE)
    assert content["reading"] == {"rate": "3 Mbit/s"}
    failed = [failure for failure in content["failures"] if failure["reading"].get("start") == "late"]
    assert failed
    assert failed[0]["reason"].startswith("traffic.ftp.start: "), "no place in a file that is not kept"
    assert "## Readings that cannot be run" in inference_markdown(content)


# --- values


def test_values_survive_a_line_that_was_cut_off(tmp_path):
    values = ValueFile(tmp_path)
    values.add({"run1": {"a": 1.5, "b": None}}, "request1", 2.0)
    with values.file.open("a") as file:
        file.write('{"run": "run2", "val')
    again = ValueFile(tmp_path)
    assert not again.lacks("run1", ["a", "b"])
    assert again.lacks("run1", ["c"])
    assert again.lacks("run2", ["a"])
    assert (again.seconds("request1"), again.seconds("request2")) == (2.0, 0.0)
    again.add({"run2": {"a": 3.0}}, "request2", 1.0)
    last = ValueFile(tmp_path)
    assert last.of("run1") == {"a": 1.5, "b": None}
    assert last.of("run2") == {"a": 3.0}
    assert last.seconds("request2") == 1.0


# --- real runs


@pytest.mark.slow
def test_runs_give_the_same_with_any_number_of_workers(tmp_path):
    paper = read_paper(folder(tmp_path))
    two = infer(paper, store=tmp_path / "two", jobs=2)
    assert two.reading == {"rate": "3 Mbit/s"}
    content = inference_json(two, MADE)
    assert says(content)["rate"] == "for"
    assert says(content)["start"] == "nothing"
    assert text(infer(paper, store=tmp_path / "one", jobs=1)) == text(two)
    left = [path.name for path in (tmp_path / "one" / "papers" / "known" / "inference").iterdir()]
    assert len(left) == 1
    assert left[0].startswith("values-")


def test_the_command_writes_it_and_the_scorecard_shows_it(aqmlab_cli, tmp_path):
    path, out, store = folder(tmp_path), tmp_path / "out", tmp_path / "store"
    words = (path, "--store", store, "-o", out)
    done = aqmlab_cli("paper", "infer", *words, "--minutes", "5", "-j", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Inference: A paper whose reading is known")
    assert "infer      2 settings with 3 other candidates; a reading with 2 seeds takes" in done.stderr
    page = (out / "inference.md").read_text()
    assert "| rate | 2 Mbit/s | 3 Mbit/s | for 3 Mbit/s, against all others |" in page
    assert "How the two parts were chosen: the first column is fitted." in page
    done = aqmlab_cli("paper", "reproduce", *words, "-q")
    assert done.returncode == 0, done.stderr
    for name in ("scorecard.md", "scorecard.html"):
        card = (out / name).read_text()
        assert "The inferred reading" in card
        assert "for 3 Mbit/s, against all others" in card
    held = json.loads((out / "scorecard.json").read_text())["inference"]
    assert held == json.loads((out / FILE).read_text())
    about = (path / "paper.toml").read_text()
    (path / "paper.toml").write_text(about.replace("A paper whose reading is known", "Known"))
    assert aqmlab_cli("paper", "text", *words, "-q").returncode == 0
    assert (out / "inference.md").read_text() == page.replace("A paper whose reading is known", "Known")


def test_an_inference_of_another_state_is_not_shown(tmp_path, monkeypatch):
    FakeRuns(monkeypatch)
    path = folder(tmp_path)
    paper = read_paper(path)
    content = inference_json(infer(paper, store=tmp_path / "store"), MADE)
    assert content["state"] == state_of(paper)
    scenario = (path / "link.toml").read_text()
    (path / "link.toml").write_text(f"# A comment runs nothing else.\n{scenario}")
    assert content["state"] == state_of(read_paper(path))
    (path / "link.toml").write_text(scenario.replace("20ms", "21ms"))
    assert content["state"] != state_of(read_paper(path))
    lines = inference_section(content, stale=True)
    assert lines[-1].startswith("The inference of 2026-11-23 belongs to an earlier state of this folder")
    assert not any("3 Mbit/s" in line for line in lines)


def test_a_file_that_is_no_inference_is_told(tmp_path):
    assert read_inference(tmp_path) is None
    for wrong in ("{", "[]", '{"format_version": 99}'):
        (tmp_path / FILE).write_text(wrong)
        with pytest.raises(RecordingError, match=r"inference\.json.*`aqmlab paper infer` makes a new one"):
            read_inference(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "0"], "`--minutes 0` is not a valid budget; give a number above 0"),
        (["--seeds", "1"], "`1` seeds are too few; give at least 2"),
    ],
)
def test_a_wrong_budget_is_told(aqmlab_cli, tmp_path, options, message):
    done = aqmlab_cli("paper", "infer", folder(tmp_path), *options, "--store", tmp_path / "store")
    assert done.returncode == 2
    assert message in done.stderr


def test_cells_of_tables_hold_no_bars():
    assert markdown_cell("|f1 - f2|") == "\\|f1 - f2\\|"


def test_the_toy_can_be_inferred_from_its_findings(tmp_path, monkeypatch):
    FakeRuns(monkeypatch)
    path = tmp_path / "toy"
    shutil.copytree(TOY, path)
    content = inference_json(infer(read_paper(path), store=tmp_path / "store", seeds=2), MADE)
    assert content["of"] == "findings"
    assert [item["name"] for item in content["parts"]["test"]["items"]] == ["T2"]


@pytest.mark.parametrize("key", ["miskovic", "blue"])
def test_all_that_the_papers_fit_and_test_is_asked_for(key):
    """The values for time windows are requested, too, because each window has its own value."""
    paper = find_paper(str(ROOT / "papers" / key))
    names = {experiment.file: names_of(paper, experiment) for experiment in paper.experiments}
    targets = Targets(paper, names)
    parts = (paper.inference.fit, paper.inference.test)
    queries = [targets.queries(part) for part in parts]
    assert all(set(asked) <= set(names) for asked in queries)
    for part, asked in zip(parts, queries, strict=True):
        measured = {
            file: MeasuredValues(
                names[file].axes,
                names[file].arms,
                tuple(cells),
                (1, 2, 3),
                {(c, seed): {what.key: 1.0 for what in cells[c]} for c in cells for seed in (1, 2, 3)},
            )
            for file, cells in asked.items()
        }
        assert all(len(targets.errors(target, targets.ours(target, measured))) == 3 for target in part)
    if key == "blue":
        cells = queries[1]["traces.toml"].values()
        windows = {what.scope.window for of in cells for what in of if what.metric == "probability_mean"}
        assert (20.0, 40.0) in windows
        assert (160.0, 200.0) in windows
