"""What one part writes and another reads, on random data: it is read as it was written.

Quantities as text have such a test in ``crates/aqmlab-units/tests/text_round_trip.rs``, the cases of sweeps
in ``toml_text.rs`` of ``aqmlab-scenario``, and connection vectors in ``random_vectors.rs`` of ``aqmlab-sim``.
"""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aqmlab
from aqmlab.calibration.population import LEAST_A_SECOND, Population, populations
from aqmlab.calibration.writing import write_values
from aqmlab.language.scenario import read, resolve
from aqmlab.recordings.integrity import FORMAT_VERSION, read_json, sealed
from aqmlab.recordings.manifest import read_manifest
from aqmlab.recordings.plan import Plan, drawn_text
from aqmlab.sweeps.parcel import COURSES, RECORDINGS, SUMMARIES, packed, unpack

TOPOLOGY = {
    "kind": "dumbbell",
    "rate": "1Gbit",
    "delay": "5ms",
    "queue": {"kind": "droptail", "limit": "30p"},
}
REQUESTS = {
    "name": "web",
    "kind": "requests",
    "rate": "5/s",
    "request": "300B",
    "response": "9kB",
    "allow_overload": True,
}


def scenario(**changes):
    return {"duration": "10s", "topology": TOPOLOGY, "traffic": [REQUESTS | changes]}


def plan_of(content):
    return Plan.of(resolve(content)["arms"][0]["plan"])


SPANS = st.integers(1, 10**12)
SIZES = st.integers(1, 10**10)
SHAPES = st.floats(1.001, 99, allow_nan=False)


def drawn(values):
    """Distributions as plans have them: a number, or a form with its numbers."""
    pairs = st.lists(values, min_size=2, max_size=2, unique=True).map(sorted)
    points = st.lists(values, min_size=2, max_size=6, unique=True).map(sorted)
    return st.one_of(
        values,
        pairs.map(lambda pair: {"uniform": pair}),
        st.builds(lambda mean, offset: {"exponential": mean, "offset": offset}, values, values),
        st.builds(lambda mean, shape: {"pareto": mean, "shape": shape}, values, SHAPES),
        st.builds(
            lambda mean, shape, over: {"pareto": mean, "shape": shape, "max": mean + over},
            values,
            SHAPES,
            values,
        ),
        st.lists(values, min_size=1, max_size=5).map(lambda listed: {"list": listed}),
        st.builds(_empirical, points, st.data()),
    )


def _empirical(points, data):
    inner = st.floats(0.001, 0.999, allow_nan=False)
    shares = sorted(
        data.draw(st.lists(inner, min_size=len(points) - 2, max_size=len(points) - 2, unique=True))
    )
    return {"empirical": [list(pair) for pair in zip(points, [0.0, *shares, 1.0], strict=True)]}


@settings(max_examples=150)
@given(think=drawn(SPANS), response=drawn(SIZES))
def test_distributions_of_plans_are_written_as_scenarios_have_them(think, response):
    texts = {"think": drawn_text(think, "ns"), "response": drawn_text(response, "bytes")}
    changes = {
        key: tomllib.loads(f"it = {text}")["it"] if "{" in text else text for key, text in texts.items()
    }
    of_users = {key: REQUESTS[key] for key in ("name", "kind", "request")} | {"users": 1}
    entry = plan_of(scenario() | {"traffic": [of_users | changes]}).classes[0]
    assert entry.workload["think_ns"] == think
    assert entry.workload["response_bytes"] == response


KEYS = st.text(min_size=1, max_size=6).filter(lambda key: key.isprintable())
LEAVES = st.one_of(
    st.text(max_size=8),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_dict_is_a_scenario_in_toml(content):
    text, _ = read(content)
    assert tomllib.loads(text) == content


@settings(max_examples=100)
@given(st.floats(LEAST_A_SECOND, 1e5), st.integers(1, 10**12))
def test_a_calibrated_number_is_read_as_it_was_meant(rate, users):
    (entry,) = plan_of(scenario()).classes
    open_loop = Population(entry, "rate", 1.0)
    assert plan_of(scenario(rate=open_loop.toml(rate))).classes[0].workload["rate_per_s"] == pytest.approx(
        open_loop.rounded(rate), rel=1e-12
    )
    assert Population(entry, "users", 1.0).toml(users) == users


@settings(max_examples=30)
@given(st.floats(1e-3, 1e5))
def test_a_calibrated_scenario_differs_in_that_number_only(tmp_path_factory, rate):
    text, _ = read(scenario())
    commented = "# why\n" + text.replace('rate = "5/s"', 'rate = "5/s" # as measured')
    (one,) = populations(plan_of(scenario()), ["web"])
    file = tmp_path_factory.mktemp("calibrated") / "new.toml"
    write_values(commented, {one.path: one.toml(rate)}, None, file)
    written = file.read_text(encoding="utf-8")
    assert written == commented.replace('"5/s"', f'"{one.toml(rate)}"')
    assert tomllib.loads(written) == tomllib.loads(text) | {"traffic": [REQUESTS | {"rate": one.toml(rate)}]}


def test_a_plan_in_a_manifest_is_the_plan_of_its_scenario(tmp_path):
    made = aqmlab.run(scenario(), output=tmp_path / "run", runs=1, report=False)
    (manifest,) = (tmp_path / "run").glob("*/*/manifest.json")
    resolved = resolve(scenario())["arms"][0]
    content = json.loads(manifest.read_text(encoding="utf-8"))
    assert content["plan"] == resolved["plan"]
    assert Plan.of(content["plan"]) == made.runs[0].plan == Plan.of(resolved["plan"])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), JSON, min_size=1, max_size=4))
def test_a_sealed_file_is_read_as_it_was_written(tmp_path_factory, content):
    """Manifests, sweeps, experiments and the parcels of workers are such files."""
    content = content | {"format_version": FORMAT_VERSION}
    file = tmp_path_factory.mktemp("sealed") / "manifest.json"
    file.write_text(sealed(content), encoding="utf-8")
    assert {key: value for key, value in read_json(file).items() if key != "file_digest"} == content


@pytest.mark.parametrize("bring", [SUMMARIES, RECORDINGS])
def test_a_parcel_holds_what_was_packed(tmp_path, bring):
    aqmlab.run(scenario(), output=tmp_path / "run", runs=1, report=False)
    (recording,) = (file.parent for file in (tmp_path / "run").glob("*/*/manifest.json"))
    files = packed(recording, bring)
    unpack(files, tmp_path / "there")
    assert packed(tmp_path / "there", RECORDINGS) == files
    whole, there = (read_manifest(folder) for folder in (recording, tmp_path / "there"))
    assert {name for name in whole.tables if name not in there.tables} <= set(COURSES)
    assert there.plan == whole.plan
    if bring == RECORDINGS:
        assert there == whole
