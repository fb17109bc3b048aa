"""Plans as data: what the types write matches their schema, and plans of earlier versions are read."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import aqmlab
from aqmlab import _core
from aqmlab.errors import DamageError, UsageError
from aqmlab.recordings.early_plans import present
from aqmlab.recordings.manifest import read_manifest
from aqmlab.recordings.plan import Plan, drawn_text
from aqmlab.recordings.recording import load_run

ROOT = Path(__file__).parents[2]
EARLY = Path(__file__).parent / "recordings" / "format-2"


@pytest.fixture(scope="module")
def schema():
    found = aqmlab.schema("plan")
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda file: file.stem)
def test_plans_are_what_their_schema_says_and_are_read(file, schema):
    for arm in aqmlab.show(file)["arms"]:
        schema.validate(arm["plan"])
        plan = Plan.of(arm["plan"])
        assert [link.name for link in plan.links] == [link["name"] for link in arm["plan"]["links"]]
        assert all(entry.what for entry in plan.classes)


def test_a_plan_of_another_form_is_none(small, schema):
    plan = aqmlab.show(small)["arms"][0]["plan"]
    link = plan["links"][0]
    for wrong in ({"rate": "2Mbit"}, {"rate_bps": "2Mbit"}, {"rate_bps": 0.5}):
        with pytest.raises(jsonschema.ValidationError):
            schema.validate(plan | {"links": [link | wrong]})
    settings = link["queue"] | {"settings": {"limit_packets": 30, "limit": "30p"}}
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(plan | {"links": [link | {"queue": settings}]})


def test_a_plan_of_an_early_recording_is_that_of_today():
    content = json.loads((EARLY / "manifest.json").read_text())["plan"]
    assert isinstance(content["links"][0]["rate"], str)
    run = load_run(EARLY)
    assert run.plan == Plan.of(content)
    for link, early, of_manifest in zip(run.plan.links, content["links"], run.links, strict=True):
        assert (link.rate_bps, link.delay_ns) == (of_manifest.rate_bps, of_manifest.delay_ns)
        assert (link.rate, link.delay) == (early["rate"], early["delay"])
        assert link.limit == early["queue"]["settings"]["limit"]


EARLY_CLASS = {
    "name": "web",
    "count": 3,
    "path": ["a-b"],
    "return_path": ["b-a"],
    "start": '{ pareto = "1s", shape = 1.5, max = "90s" }',
    "stop": None,
    "access": {"rate": "100Mbit", "rtt": '{ uniform = ["60ms", "100ms"] }'},
    "loss": 0.0,
    "workload": {
        "kind": "on_off_tcp",
        "burst": '{ empirical = [["1kB", 0.5], ["9kB", 1]] }',
        "off": '{ exponential = "1s", offset = "1ms" }',
        "begin": "on",
        "tcp": {"mss": "1460B", "max_burst": "unlimited", "congestion": "reno", "ecn": True},
    },
}


def test_texts_of_early_plans_are_numbers_of_units():
    link = {"name": "a-b", "from": "a", "to": "b", "rate": "1.5Mbit", "delay": "2500us", "overhead": "38B"}
    settings = {"limit": "100p", "mean_packet": "1.5kB", "measure": "bytes", "max_p": 0.1, "ecn": False}
    link |= {"queue": {"kind": "red", "settings": settings}}
    rule = {"name": "r", "class": "web", "rate": "unlimited", "delay": "1ms"}
    packets = {"links": ["a-b"], "flows": None, "events": ["drop"], "from": "1s", "until": "2500ms"}
    record = {"queues": "100ms", "flows": "0s", "packets": packets, "limit": 9}
    content = {"nodes": ["a", "b"], "links": [link], "classes": [EARLY_CLASS], "delays": [rule]}
    plan = Plan.of(content | {"record": record, "warmup": "1s"})
    (found,), (web,), (delay,) = plan.links, plan.classes, plan.delays
    assert (found.rate_bps, found.delay_ns, found.overhead_bytes) == (1_500_000, 2_500_000, 38)
    assert found.settings == {
        "limit_packets": 100,
        "mean_packet_bytes": 1500,
        "measure": "bytes",
        "max_p": 0.1,
        "ecn": False,
    }
    assert plan.units_a_packet("a-b") == 1500
    assert web.start_ns == {"pareto": 10**9, "shape": 1.5, "max": 90 * 10**9}
    assert web.tcp == {"mss_bytes": 1460, "max_burst": None, "congestion": "reno", "ecn": True}
    # Distributions are written as in the scenario.
    assert web.rtt == EARLY_CLASS["access"]["rtt"]
    assert web.what == (
        'TCP with ECN, bursts of { empirical = [["1kB", 0.5], ["9kB", 1]] },'
        ' off: { exponential = "1s", offset = "1ms" }'
    )
    assert (delay.class_name, delay.limits_rate) == ("web", False)
    assert (plan.queues_every_ns, plan.packets.from_ns, plan.packets.until_ns) == (10**8, 10**9, 25 * 10**8)


def test_a_quantity_of_an_early_plan_that_is_none_is_told_with_the_file(tmp_path):
    manifest = json.loads((EARLY / "manifest.json").read_text())
    manifest["plan"]["links"][0]["rate"] = "10 apples"
    manifest.pop("file_digest")
    manifest["format_version"] = 1
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DamageError) as told:
        read_manifest(tmp_path)
    assert f"`{tmp_path / 'manifest.json'}` has a plan that cannot be read: " in str(told.value)
    assert "10 apples" in str(told.value)
    assert "Mbit" in str(told.value)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("1.5kB", "bytes", 1500),
        ("10Mbit", "bps", 10_000_000),
        ("40ms", "ns", 40_000_000),
        ("36p", "packets", 36),
    ],
)
def test_there_is_one_parser_of_quantities(text, unit, number):
    assert _core.quantity(text, unit) == number
    assert _core.quantity_text(number, unit) == text
    assert drawn_text(number, unit) == text
    with pytest.raises(UsageError, match="such as"):
        _core.quantity("10 apples", unit)


def test_present_plans_are_left_as_they_are(small):
    plan = aqmlab.show(small)["arms"][0]["plan"]
    assert Plan.of(plan).links[0].rate_bps == 2_000_000
    with pytest.raises(KeyError):
        present({"nodes": []})
