"""Cases that a sweep leaves out, and its axes as numbers."""

from __future__ import annotations

import json

import pytest
import tomli_w

import aqmlab
from aqmlab.text.units import si_numbers
from sweeping import tiny


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """Two rates times two limits times two thresholds: one rule leaves out two cases, and two cannot run."""
    red = {"kind": "red", "limit": "20p", "min_th": "3p", "max_th": "9p"}
    scenario = tiny(runs=1, arm=[{"name": "RED", "topology.queue.gentle": True}])
    scenario["topology"]["queue"] = red
    scenario["sweep"] = {
        "topology.rate": ["2Mbit", "4Mbit"],
        "topology.queue.limit": ["12p", "40p"],
        "topology.queue.max_th": ["9p", "30p"],
        "exclude": [{"rate": "2Mbit", "limit": "40p"}],
    }
    every = "for all rate, limit, max_th: goodput_bps > 1bit"
    scenario["claim"] = [{"name": "all", "expect": every, "strength": "soft"}]
    store = tmp_path_factory.mktemp("sparse") / "store"
    return store, scenario, aqmlab.sweep(scenario, store=store, report=True).wait()


def test_cases_that_cannot_run_are_left_out_with_their_reasons(sparse):
    store, scenario, results = sparse
    cases = [tuple(label for _, label in cell.settings) for cell in results.cells]
    assert cases == [
        ("2Mbit", "12p", "9p"),
        ("4Mbit", "12p", "9p"),
        ("4Mbit", "40p", "9p"),
        ("4Mbit", "40p", "30p"),
    ]
    assert [case.labels for case in results.left_out] == [("2Mbit", "12p", "30p"), ("4Mbit", "12p", "30p")]
    reason = "max_th `30p` exceeds limit `12p` (rate = 2Mbit, limit = 12p, max_th = 30p)"
    assert results.left_out[0].reason == reason
    again = aqmlab.load(results.path)
    assert (again.left_out, again.cells, again.missing) == (results.left_out, results.cells, ())
    assert (results.path / "report.html").is_file()
    claims = json.loads((results.path / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert [claim["status"] for claim in claims] == ["undecided"]
    found = aqmlab.forecast(scenario, store=store)
    assert (found.cases, found.runs, found.present, found.left_out) == (4, 4, 4, 4)


def test_the_command_prints_what_was_left_out(sparse, tmp_path, aqmlab_cli):
    store, scenario, _ = sparse
    file = tmp_path / "sparse.toml"
    file.write_text(tomli_w.dumps(scenario), encoding="utf-8")
    ended = aqmlab_cli("sweep", file, "--store", store, "--no-report")
    assert ended.returncode == 0, ended.stderr
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert "rate limit max_th left out" in lines
    said = "max_th `30p` exceeds limit `12p` (rate = 4Mbit, limit = 12p, max_th = 30p)"
    assert f"4Mbit 12p 30p {said}" in lines
    events = map(json.loads, aqmlab_cli("sweep", file, "--store", store, "--json").stdout.splitlines())
    (end,) = (event for event in events if event["event"] == "end")
    assert end["left_out"][1] == {
        "settings": {"topology.rate": "4Mbit", "topology.queue.limit": "12p", "topology.queue.max_th": "30p"},
        "reason": said,
    }
    assert "left out 4 cases" in " ".join(
        aqmlab_cli("sweep", file, "--store", store, "--dry-run").stdout.split()
    )


def test_a_sweep_of_which_no_case_can_run_is_refused(sparse, tmp_path):
    _, scenario, _ = sparse
    impossible = scenario["sweep"] | {"topology.queue.limit": ["8p"], "exclude": [{"rate": "2Mbit"}]}
    with pytest.raises(aqmlab.ScenarioError, match="exceeds limit `8p`"):
        aqmlab.sweep(scenario | {"sweep": impossible}, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_axes_are_numbers_in_si_units_beside_their_labels(sparse):
    store, _, results = sparse
    found = aqmlab.query(
        'SELECT rate, rate_bps, "limit", limit_packets, max_th_packets FROM summary'
        " WHERE class = '*' AND queue = 'bottleneck' ORDER BY ALL",
        store,
    )
    assert found.rows[0] == ("2Mbit", 2e6, "12p", 12.0, 9.0)
    assert found.rows[-1] == ("4Mbit", 4e6, "40p", 40.0, 30.0)
    columns = aqmlab.answer(results, ["goodput_bps"])._frame_columns()
    assert list(columns)[:6] == ["rate", "rate_bps", "limit", "limit_packets", "max_th", "max_th_packets"]
    assert columns["rate_bps"][1] == [2e6, 4e6, 4e6, 4e6]


def test_labels_as_numbers():
    for labels, unit, values in [
        (["5Mbit", "10 kbit"], "bps", [5e6, 1e4]),
        (["10ms", "1.5s"], "s", [0.01, 1.5]),
        (["1kB", "2KiB"], "bytes", [1000.0, 2048.0]),
        (["3p", "30p"], "packets", [3.0, 30.0]),
        (["1", "0.02"], "value", [1.0, 0.02]),
    ]:
        found = si_numbers(labels)
        assert (found.unit, [found.values[label] for label in labels]) == (unit, values)
    for mixed in (["3p", "3kB"], ["2bdp"], ["red", "pi"], ["1", "many"], []):
        assert si_numbers(mixed) is None
