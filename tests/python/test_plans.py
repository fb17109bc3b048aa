"""Plans as data: what the types write matches their schema, and what is no plan is refused."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

import aqmlab
from aqmlab import _core
from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Plan, drawn_text

ROOT = Path(__file__).parents[2]


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


CLASS = {
    "name": "web",
    "count": 3,
    "path": ["a-b"],
    "return_path": ["b-a"],
    "start_ns": {"pareto": 10**9, "shape": 1.5, "max": 90 * 10**9},
    "access": {"rate_bps": 10**8, "rtt_ns": {"uniform": [60_000_000, 100_000_000]}},
    "workload": {
        "kind": "on_off_tcp",
        "burst_bytes": {"empirical": [[1000, 0.5], [9000, 1]]},
        "off_ns": {"exponential": 10**9, "offset": 1_000_000},
        "begin": "on",
        "tcp": {"mss_bytes": 1460, "max_burst": None, "congestion": "reno", "ecn": True},
    },
}


def test_numbers_of_a_plan_are_shown_as_in_a_scenario():
    times = {"warmup_ns": 0, "stop": {"at_ns": 10**9}, "record": {"queues_ns": 0}}
    plan = Plan.of({"nodes": [], "links": [], "classes": [CLASS], **times})
    (web,) = plan.classes
    assert web.rtt == '{ uniform = ["60ms", "100ms"] }'
    assert web.what == (
        'TCP with ECN, bursts of { empirical = [["1kB", 0.5], ["9kB", 1]] },'
        ' off: { exponential = "1s", offset = "1ms" }'
    )


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
