"""Characterizations: verdicts by hand, branches, bands, the RFC's arithmetic, bad inputs, a small run."""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy import stats

import aqmlab
from aqmlab.characterization import Characterization
from aqmlab.characterization.arms import Arm, prepare
from aqmlab.characterization.baseline import departures, write_bands
from aqmlab.characterization.controls import CONTROLS, read_controls
from aqmlab.characterization.costs import costs
from aqmlab.characterization.queues import AQMS, LINKS, read_aqms
from aqmlab.characterization.sections import chosen, own_sections, rfc_sections
from aqmlab.characterization.verdicts import (
    branches_of,
    compare,
    detail,
    find_branches,
    matters,
    sentences,
    word,
)
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.language.scenario import resolve
from aqmlab.results.cells import Cell
from browser import browse, needs_chromium

ROOT = Path(__file__).parents[2]
DELAY, GOODPUT = "queueing_delay_mean_s", "goodput_bps"
TINY = """
title = "Tiny"
question = "Does it end?"
duration = "8s"
warmup = "2s"
metrics = ["queueing_delay_mean_s", "goodput_bps"]
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "5ms"
queue = { kind = "droptail", limit = "20p" }
[[traffic]]
name = "long"
kind = "bulk"
count = 3
rtt = "60ms"
start = { uniform = ["0s", "1s"] }
[record]
queues = "0s"
flows = "0s"
"""


def world(**by_metric):
    """Results in which `AQM` and `DropTail` have the given values, per metric."""
    cells = {name: Cell((), name) for name in ("DropTail", "AQM")}

    def values(metric, cell):
        return dict(enumerate(by_metric[metric][cell.arm == "AQM"], 1))

    return SimpleNamespace(cells=tuple(cells.values()), metrics=tuple(by_metric), values=values)


ARMS = (Arm("DropTail", ""), Arm("AQM", "AQM", "DropTail"))


def judged(**by_metric):
    return compare(world(**by_metric), ARMS)


def test_a_difference_is_decided_by_its_interval_not_by_its_mean():
    # Differences -10, -11, -9: mean -10, interval 4.303 / sqrt(3) = 2.5 wide. Those of the goodput are -30, 0
    # and 24: the mean is -2, and the interval contains zero.
    delay = ([0.050, 0.051, 0.052], [0.040, 0.040, 0.043])
    (found,) = judged(**{DELAY: delay})
    assert found.outcome == "better"
    assert found.found.estimate.half_width == pytest.approx(stats.t.ppf(0.975, 2) * 1e-3 / math.sqrt(3))
    (open_,) = judged(**{GOODPUT: ([100.0, 100.0, 100.0], [70.0, 100.0, 124.0])})
    assert (open_.outcome, word([open_])) == ("open", "no difference found")


def test_more_is_better_of_goodput_and_less_of_delay():
    found = judged(**{DELAY: ([5.0, 5.1, 5.2], [9.0, 9.1, 9.3]), GOODPUT: ([5.0, 5.1, 5.2], [9.0, 9.1, 9.3])})
    assert [one.outcome for one in found] == ["worse", "better"]
    assert word(found) == "delay for goodput"
    # The means are 5.1 and 9.1333: 79.1 % more of both.
    assert detail(found) == "better: rate +79 %; worse: delay +79 %"
    assert [word([one]) for one in found] == ["worse", "better"]


MORE, LESS = ([5.0, 5.1, 5.2], [9.0, 9.1, 9.3]), ([5.0, 5.1, 5.2], [1.0, 1.1, 1.3])


@pytest.mark.parametrize(
    ("by_metric", "said"),
    [
        ({DELAY: LESS, GOODPUT: LESS}, "goodput for delay"),
        ({"page_time_median_s": LESS, GOODPUT: LESS}, "goodput for delay"),
        ({DELAY: MORE, GOODPUT: MORE}, "delay for goodput"),
        ({DELAY: LESS, "drop_percent": MORE}, "better with more loss"),
        ({DELAY: MORE, "drop_percent": LESS}, "worse with less loss"),
        ({DELAY: LESS, "page_time_median_s": MORE, GOODPUT: LESS}, "mixed"),
        ({DELAY: LESS, "jain_index": LESS}, "mixed"),
    ],
)
def test_a_trade_off_names_what_is_given_for_what(by_metric, said):
    """RFC 7928, 2.7: the trade-off is between latency and goodput; losses alone are none (2.3)."""
    assert word(judged(**by_metric)) == said


def test_amounts_of_percentages_are_points_and_others_are_relative():
    found = judged(**{DELAY: LESS, "drop_percent": ([1.0, 1.1, 1.2], [3.0, 3.1, 3.2])})
    assert detail(found) == "better: delay −78 %; worse: loss +2.0 points"


def test_a_difference_that_does_not_matter_is_none():
    """Every seed loses a two-thousandth of the goodput: certain, and within one per cent."""
    (found,) = judged(**{GOODPUT: ([1000.0, 1010.0, 1020.0], [999.5, 1009.6, 1019.4])})
    assert found.stands
    assert (found.outcome, word([found])) == ("same", "same")
    assert "within 1 % of DropTail" in sentences([found])[0]


def test_holm_takes_all_comparisons_of_a_section_together():
    """A p value of 0.03 stands alone, and not next to one of 0.9 (Holm: 0.06)."""
    t = stats.t.ppf(1 - 0.03 / 2, 3)
    spread = [-1.5, -0.5, 0.5, 1.5]
    scale = math.sqrt(sum(x * x for x in spread) / 3) / 2
    values = ([100.0] * 4, [100.0 - t * scale + x for x in spread])
    (alone,) = judged(**{DELAY: values})
    assert alone.found.p_value == pytest.approx(0.03)
    assert alone.outcome == "better"
    both = judged(**{DELAY: values, GOODPUT: ([100.0, 100.0, 100.0, 100.0], [90.0, 112.0, 89.0, 110.0])})
    assert [one.outcome for one in both] == ["open", "open"]
    assert "does not stand" in sentences(both)[0]


def test_one_seed_has_no_verdict_and_a_missing_value_is_counted():
    (one,) = judged(**{DELAY: ([5.0], [1.0])})
    assert (one.outcome, word([one])) == ("untested", "no interval")
    (never,) = judged(**{"slow_until_s": ([None, None, None], [1.0, 1.1, 1.2])})
    assert never.outcome == "untested"
    assert "in 3 of 3 seeds with AQM, and in 0 of 3 seeds with DropTail" in sentences([never])[0]
    assert word([]) == "not measured"


def test_branches_are_two_groups_far_from_each_other():
    low, high = [1.0, 1.1, 1.2, 1.05], [5.0, 5.1, 5.3, 5.2, 5.15, 5.25]
    assert branches_of(low + high) == (tuple(sorted(low)), tuple(sorted(high)))
    assert branches_of([*low, *high[:5]]) is None, "nine seeds are too few"
    assert branches_of([float(i) for i in range(10)]) is None, "evenly spaced"
    assert branches_of([1.0] * 9 + [5.0]) is None, "one seed is an outlier, not a branch"
    assert branches_of([100.0 + x / 50 for x in low + high]) is None, "the gap does not matter"
    results = world(**{GOODPUT: ([3.0] * 10, [x * 1e6 for x in low + high])})
    (found,) = find_branches(results)
    assert "4 of 10 seeds near 1.1 Mbit/s and 6 of 10 seeds near 5.2 Mbit/s" in found.text


def test_flows_follow_the_projected_loss():
    """RFC 7928, 8.2.1: l = 0.76 N^2 / S^2, where S packets fit into path, buffer and transmission."""
    loss = {"8.2.2": 0.001, "8.2.3": 0.005, "8.2.4": 0.01}
    for section in rfc_sections(AQMS):
        if section.id in loss:
            topology, (traffic,) = section.content["topology"], section.content["traffic"]
            held = 10e6 * 0.1 / 8 / 1500 + int(topology["queue"]["limit"][:-1]) + 1
            assert topology["rate"] == "10Mbit"
            assert traffic["rtt"] == "100ms"
            assert traffic["count"] == round(held * math.sqrt(loss[section.id] / 0.76))


def test_load_and_buffer_follow_the_rate():
    section = next(section for section in rfc_sections(AQMS) if section.id == "9.2")
    made = prepare(AQMS, section, read_aqms(["codel", "cake"]), "50Mbit", quick=False).scenario
    assert made["topology"]["rate"] == "50Mbit"
    assert made["topology"]["queue"]["limit"] == made["topology"]["reverse_queue"]["limit"] == "415p"
    counts = {traffic["name"]: traffic.get("count") for traffic in made["traffic"]}
    assert (counts["forward"], counts["call"]) == (25, None)
    _, codel, cake = made["arm"]
    assert codel["topology.reverse_queue"] == {"kind": "codel", "limit": "415p"}
    assert cake["topology.queue"] == {"kind": "cake", "memory_limit": "622500B"}
    fixed = next(section for section in rfc_sections(AQMS) if section.id == "8.2.6.1")
    same = prepare(AQMS, fixed, read_aqms(["codel"]), "50Mbit", quick=False).scenario
    assert same["topology"] == fixed.content["topology"]


def test_each_parameter_is_halved_and_doubled_alone():
    (section,) = chosen(rfc_sections(AQMS), ["8.3"])
    made = prepare(AQMS, section, read_aqms(["codel"]), None, quick=False)
    tables = {table["name"]: table["topology.queue"] for table in made.scenario["arm"]}
    base = tables.pop("CoDel")
    assert {"CoDel, target 2.5ms", "CoDel, target 10ms", "CoDel, interval 200ms"} <= tables.keys()
    for name, queue in tables.items():
        changed = {key: value for key, value in queue.items() if base.get(key) != value}
        assert len(changed) == 1, name


def test_settings_that_matter_are_named():
    settings = [Arm("AQM", "AQM"), Arm("AQM, a 1", "AQM", "AQM"), Arm("AQM, a 4", "AQM", "AQM")]
    values = {
        "AQM": [0.05, 0.051, 0.052],
        "AQM, a 1": [0.04, 0.041, 0.0425],
        "AQM, a 4": [0.05, 0.051, 0.052],
    }
    results = SimpleNamespace(
        cells=[Cell((), name) for name in values],
        metrics=(DELAY,),
        values=lambda _metric, cell: dict(enumerate(values[cell.arm])),
    )
    said, others = matters(compare(results, settings))
    assert said == ["AQM, a 1: mean queueing delay better (−9.8 ms)"]
    assert others == ["AQM, a 4"]


@pytest.mark.parametrize("guide", [AQMS, LINKS])
def test_every_section_is_a_scenario_that_every_discipline_fits(guide):
    words = [aqm["name"] for aqm in aqmlab.aqm_list() if aqm["name"] != "droptail"]
    needing = {row["name"] for row in aqmlab.aqm_list() if _required(row["name"])}
    aqms = read_aqms([name for name in words if name not in needing])
    for section in rfc_sections(guide):
        if section.scenario is not None:
            made = prepare(guide, section, aqms, None, quick=True)
            found = resolve({k: v for k, v in made.scenario.items() if k != "sweep"})
            assert len(found["arms"]) == len(made.scenario["arm"]), section.id
            assert section.deviations, section.id


def _required(name):
    return any(row["default"] == "required" for row in aqmlab.aqm_show(name)["params"])


def test_every_section_is_a_scenario_that_every_control_fits():
    controls = read_controls(["reno", "bbr", "dctcp", "linux", "rfc"])
    for section in rfc_sections(CONTROLS):
        if section.scenario is not None:
            made = prepare(CONTROLS, section, controls, None, quick=True)
            found = resolve({k: v for k, v in made.scenario.items() if k != "sweep"})
            assert len(found["arms"]) == 1 + len(controls), section.id
            reference = {traffic["name"]: traffic.get("tcp") for traffic in section.content["traffic"]}
            for key in section.tested:
                assert reference[key.split(".")[1]] == {"profile": "modern", "congestion": "cubic"}, (
                    section.id
                )
        assert section.deviations, section.id


def test_load_follows_the_rate_of_a_control_and_its_buffer_does_too():
    (section,) = chosen(rfc_sections(CONTROLS), ["5.1.5"])
    made = prepare(CONTROLS, section, read_controls(["reno"]), "50Mbit", quick=False).scenario
    assert (made["topology"]["rate"], made["topology"]["queue"]["limit"]) == ("50Mbit", "1bdp")
    assert [traffic["rate"] for traffic in made["traffic"] if "rate" in traffic] == ["5/s"]
    _, reno = made["arm"]
    tcp = {"profile": "modern", "congestion": "reno"}
    assert reno == {"name": "Reno", "traffic.long.tcp": tcp, "traffic.short.tcp": tcp}


def test_a_control_that_needs_ecn_has_it():
    reno, dctcp, profile = read_controls(["reno", "dctcp", "rfc"])
    assert "ecn" not in reno.tcp
    assert dctcp.tcp["ecn"] is True
    assert (profile.name, profile.tcp) == ("rfc", {"profile": "rfc"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is no control to characterize"),
        (["cubic"], "CUBIC is what they are compared with"),
        (["bbrr"], "there is no congestion control `bbrr`; did you mean `bbr`?"),
        (["reno", "reno"], "two controls are called `Reno`"),
    ],
)
def test_unknown_controls_are_refused(words, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        read_controls(words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no control; write [[control]]"),
        ('[[control]]\nname = "a"', ":1: control `a`: `tcp` is missing"),
        ('\n[[control]]\nname = "a"\ntcp = { congestion = "cubic", cubic_cc = 5 }', ":2: control `a`: `tcp"),
        ('[[control]]\nname = "CUBIC"\ntcp = { congestion = "reno" }', "two controls are called `CUBIC`"),
    ],
)
def test_invalid_tables_of_controls_are_refused(tmp_path, text, said):
    file = tmp_path / "controls.toml"
    file.write_text(text)
    with pytest.raises((ScenarioError, UsageError), match=re.escape(said)):
        read_controls([str(file)])


def test_a_scenario_without_flows_under_test_is_refused(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    with pytest.raises(ScenarioError, match="there is no class `tested`"):
        own_sections(CONTROLS, tmp_path / "tiny.toml")


@pytest.mark.parametrize(("guide", "marker"), [(AQMS, "sections"), (CONTROLS, "sections of RFC 9743")])
def test_the_page_lists_every_section_with_what_differs(guide, marker):
    page = (ROOT / "docs" / "characterization.md").read_text(encoding="utf-8")
    rows = page.split(f"<!-- {marker} -->")[1].split(f"<!-- /{marker} -->")[0].strip().splitlines()[2:]
    listed = {row.split("|")[1].strip(): row for row in rows}
    assert list(listed) == [section.id for section in rfc_sections(guide)]
    for section in rfc_sections(guide):
        row = listed[section.id]
        assert section.title in row
        assert all(f"`{name}`" in row for name in section.content.get("metrics", ()))
        assert " ".join(section.deviations) in row


def test_costs_are_those_of_the_page_and_of_every_discipline_with_defaults():
    page = (ROOT / "docs" / "characterization.md").read_text(encoding="utf-8").split("## Complexity")[1]
    rows = re.findall(r"^\| `([a-z_0-9]+)` \| (\d+) \| (\d+) \| (\d+) \|", page.split("\n## ")[0], re.M)
    file = ROOT / "python" / "aqmlab" / "characterization" / "complexity.toml"
    measured = {kind: tuple(map(str, of.values())) for kind, of in tomllib.loads(file.read_text()).items()}
    assert measured == {kind: tuple(numbers) for kind, *numbers in rows}
    assert measured.keys() >= {row["name"] for row in aqmlab.aqm_list() if not _required(row["name"])}
    (red,) = costs(read_aqms(["red"]))
    assert (red.instructions, red.packet_bytes, red.flow_bytes) == measured["red"]


def test_what_there_is_more_of_is_the_rows_of_the_summary():
    made = SimpleNamespace(
        guide=AQMS, sections=[SimpleNamespace(section=SimpleNamespace(id="5.2"), results=None)]
    )
    many = Characterization.grid(SimpleNamespace(**vars(made), subjects=read_aqms(["red", "pie"])))
    assert [row[0].text for row in many.rows] == ["RED", "PIE"]


def test_a_band_is_a_prediction_interval_for_as_many_seeds(tmp_path):
    key = ("8.2.3", "CoDel", DELAY)
    settings = {"seeds": 3}
    write_bands(tmp_path / "bands.json", settings, {key: (1.0, 2.0, 3.0)})
    ((*_, low, high),) = json.loads((tmp_path / "bands.json").read_text())["bands"]
    reach = stats.t.ppf(0.975, 2) * math.sqrt(1 / 3 + 1 / 3)
    assert (low, high) == pytest.approx((2 - reach, 2 + reach))
    near, far = 2 + 0.99 * reach, 2 + 1.01 * reach
    assert departures(tmp_path / "bands.json", settings, {key: (near,)}) == ()
    (left,) = departures(tmp_path / "bands.json", settings, {key: (far,)})
    assert left.value == far
    (gone,) = departures(tmp_path / "bands.json", settings, {})
    assert "no value" in gone.text
    with pytest.raises(UsageError, match="written with `seeds` 3, not 4"):
        departures(tmp_path / "bands.json", {"seeds": 4}, {})
    with pytest.raises(UsageError, match="at least two seeds"):
        write_bands(tmp_path / "one.json", {"seeds": 1}, {})


@pytest.mark.parametrize("text", ["[]", "{", '{"format_version": 9}'])
def test_what_is_no_baseline_is_refused(tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match=r"b\.json: this is not a baseline"):
        departures(tmp_path / "b.json", {}, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is no AQM to characterize"),
        (["droptail"], "DropTail is what they are compared with"),
        (["codle"], "there is no queue discipline `codle`; did you mean `codel`?"),
        (["codel", "codel"], "two queues are called `CoDel`"),
        (["tbf"], "`tbf` has no default for `rate`; describe the queue in a file"),
    ],
)
def test_unknown_aqms_are_refused(words, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        read_aqms(words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no queue; write [[queue]]"),
        ("x = 1", "there is no key `x`"),
        ('[[queue]]\nname = "a"', ":1: queue `a`: `queue` is missing"),
        ('\n[[queue]]\nname = "a"\nqueue = { kind = "red", minn = 5 }', ":2: queue `a`: `queue"),
        ('[[queue]]\nname = "a"\nqueue = { kind = "red" }\nbuffer = 3', "there is no key `buffer`"),
        ('[[queue]\nname = "a"', ":1:8:"),
    ],
)
def test_invalid_tables_are_refused_with_their_place(tmp_path, text, said):
    file = tmp_path / "queues.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=re.escape(said)) as error:
        read_aqms([str(file)])
    assert str(error.value).startswith(str(file))
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_aqms([str(tmp_path / "none.toml")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TINY + '[[arm]]\nname = "a"\n', "remove [[arm]]: the arms are made from what is tested"),
        (
            TINY.replace('{ kind = "droptail", limit = "20p" }', '"droptail"'),
            "`topology.queue` must be a table",
        ),
        ('[[section]]\nid = "a"\n', "`file` is missing"),
        ('[[section]]\nid = "a"\nstates = "b"\nseeds = 3\n', "there is no key `seeds`"),
        ('title = "a"\n', "`topology` is missing"),
    ],
)
def test_own_scenarios_that_do_not_fit_are_refused(tmp_path, text, said):
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(ScenarioError, match=re.escape(said)):
        own_sections(AQMS, file)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sections": ["8.2.33"]}, "there is no section `8.2.33`; did you mean `8.2.3`?"),
        ({"sections": []}, "the list of sections is empty"),
        ({"seeds": 0}, "the number of seeds is 0"),
        ({"rate": "10 parsec", "sections": ["5.2"]}, "`--rate`"),
        ({"seeds": 1, "write_baseline": "b.json"}, "a baseline needs at least two seeds"),
        ({"baseline": "none.json"}, "none.json: cannot be read"),
        ({"rate": "0bit", "sections": ["5.2"]}, "write a rate above zero"),
        ({"cc": True, "links": True}, "`cc` and `links` exclude each other"),
    ],
)
def test_bad_options_are_refused_before_the_first_run(tmp_path, options, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        aqmlab.characterize("codel", output=tmp_path / "out", store=tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A characterization of two queues with two seeds and eight seconds."""
    folder = tmp_path_factory.mktemp("characterized")
    (folder / "tiny.toml").write_text(TINY)
    (folder / "ecn.toml").write_text(
        '[[section]]\nid = "ecn"\nfile = "tiny.toml"\necn = true\n'
        '[[section]]\nid = "<b>said</b>"\ntitle = "<i>"\nstates = "nothing runs"\n'
    )
    return folder


def characterized(folder, **options):
    return aqmlab.characterize(
        ["codel", "sfb"],
        output=folder / "out",
        store=folder / "store",
        seeds=2,
        jobs=2,
        scenarios=[folder / "tiny.toml", folder / "ecn.toml"],
        sections=["own: tiny", "ecn", "<b>said</b>"],
        **options,
    )


def test_a_characterization_has_verdicts_a_page_and_tables(tiny):
    found = characterized(tiny, write_baseline=tiny / "bands.json")
    own, ecn, said = found.sections
    assert [arm.name for arm in own.prepared.arms] == ["DropTail", "CoDel", "SFB"]
    assert len(own.comparisons) == 4
    assert {one.arm.against for one in ecn.comparisons} == {"CoDel", "SFB"}
    assert said.results is None
    assert any(found.values["ecn", "CoDel with ECN", GOODPUT])
    page = found.page.read_text()
    assert "<b>said</b>" not in page
    assert "&lt;i&gt;" in page
    with (found.path / "comparisons.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(own.comparisons) + len(ecn.comparisons)
    content = json.loads((found.path / "characterization.json").read_text())
    assert content["sections"][0]["verdicts"]["CoDel"]["word"] == own.word("CoDel")
    # The recordings decide, not the call: a second one runs nothing and says the same.
    before = {path: path.stat().st_mtime_ns for path in (tiny / "store").rglob("manifest.json")}
    again = characterized(tiny, baseline=tiny / "bands.json")
    assert {path: path.stat().st_mtime_ns for path in (tiny / "store").rglob("manifest.json")} == before
    assert again.to_json() == found.to_json()
    assert again.departures == ()


def test_a_control_is_compared_with_cubic(tiny):
    (tiny / "tested.toml").write_text(
        TINY.replace('"long"', '"tested"').replace(
            "count = 3", 'tcp = { profile = "modern", congestion = "cubic" }'
        )
    )
    found = aqmlab.characterize(
        "reno",
        cc=True,
        output=tiny / "cc",
        store=tiny / "store",
        seeds=2,
        scenarios=[tiny / "tested.toml"],
        sections=["own: tested"],
    )
    (own,) = found.sections
    assert {one.arm.against for one in own.comparisons} == {"CUBIC"}
    content = json.loads((found.path / "characterization.json").read_text())
    assert content["guide"] == "RFC 9743"
    assert content["subjects"] == {"Reno": {"profile": "modern", "congestion": "reno"}}
    page = found.page.read_text()
    assert "Against CUBIC on the same path" in page
    assert "Complexity" not in page


def test_the_command_exits_with_1_if_a_value_left_its_band(tiny, aqmlab_cli):
    bands = tiny / "bands.json"
    if not bands.exists():
        characterized(tiny, write_baseline=bands)
    words = ["characterize", "codel", "sfb", "-o", tiny / "out", "--store", tiny / "store", "--seeds", 2]
    words += ["--scenario", tiny / "tiny.toml", "--scenario", tiny / "ecn.toml"]
    words += ["--section", "own: tiny", "--section", "ecn", "--section", "<b>said</b>", "--baseline"]
    assert aqmlab_cli(*words, bands).returncode == 0
    content = json.loads(bands.read_text())
    content["bands"][0][3:] = [0.0, 0.0]
    moved = tiny / "moved.json"
    moved.write_text(json.dumps(content))
    ended = aqmlab_cli(*words, moved)
    assert ended.returncode == 1
    assert "its band is 0 to 0" in ended.stdout
    assert "Tiny" in ended.stdout


def test_a_queue_that_marks_nothing_has_no_ecn_to_compare(tiny):
    (tiny / "mute.toml").write_text('[[queue]]\nname = "mute"\nqueue = { kind = "droptail" }\n')
    found = aqmlab.characterize(
        str(tiny / "mute.toml"),
        output=tiny / "mute",
        store=tiny / "store",
        seeds=2,
        scenarios=[tiny / "ecn.toml"],
        sections=["ecn"],
    )
    (section,) = found.sections
    assert section.word("mute") == "marks nothing"
    assert "has no ECN" in section.sentences("mute")[0]


@needs_chromium
def test_the_page_draws_its_charts_without_errors_or_requests(tiny, tmp_path):
    page = tiny / "out" / "characterization.html"
    if not page.exists():
        characterized(tiny)
    dom, console, fetched = browse(page, tmp_path, width=500)
    assert console == []
    assert fetched <= {f"file://{page}"}
    assert dom.count('class="plot"') == 2
    assert "DropTail" in dom
