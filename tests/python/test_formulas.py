"""The formulas in the documents compute the values of the metrics."""

from __future__ import annotations

import copy

import duckdb
import pytest

import aqmlab
from aqmlab.metrics import Scope, all_metrics, find
from aqmlab.metrics.formulas import FORMULAS
from conftest import SMALL

WEB = {
    "name": "web",
    "kind": "requests",
    "from": "right",
    "to": "left",
    "users": 3,
    "think": "100ms",
    "request": "400B",
    "response": "5kB",
    "rtt": "30ms",
}
PAGES = {"name": "pages", "kind": "pages", "from": "right", "to": "left", "users": 1, "think": "100ms"}
CALL = {
    "name": "call",
    "kind": "media",
    "control": {"kind": "constant"},
    "rate": "500kbit",
    "deadline": "40ms",
}
EVALUATED = ("flows", "summary", "request_summary", "page_summary", "frame_summary")
IN_WORDS = {"goodput_share_percent", "rtt_bias_exponent", "backlog_error_percent"}
IN_WORDS |= {"loss_percent", "loss_there_percent", "loss_back_percent"}
IN_WORDS |= {"jain_index_of_classes", "queue_share_percent"}
RESPONSIVE = ("jain_index", "timeouts_per_flow", "retransmissions")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """One run with losses, marks, requests and pages; RED marks the packets of downloads."""
    scenario = copy.deepcopy(SMALL)
    scenario["traffic"][0]["count"] = 6
    scenario["traffic"] += [WEB, PAGES | {"rtt": "30ms"}, CALL | {"rtt": "30ms"}]
    scenario["arm"] = scenario["arm"][1:]
    scenario["topology"]["rate"] = "8Mbit"
    scenario |= {"runs": 1, "duration": "30s"}
    return aqmlab.run(scenario, output=tmp_path_factory.mktemp("formulas") / "one")


def test_every_metric_has_a_formula_and_every_formula_a_metric():
    assert {metric.name for metric in all_metrics()} == set(FORMULAS)


@pytest.mark.parametrize(
    "name", [n for n, formula in FORMULAS.items() if formula.over in EVALUATED and n not in IN_WORDS]
)
def test_a_formula_gives_the_value(loaded, name):
    (cell,), (run,) = loaded.cells, loaded.runs
    (expected,) = loaded.values(name, cell, Scope(queue="bottleneck")).values()
    formula = find(name).formula
    text = formula.text.replace("/ T", f"/ {(run.t1_ns - run.t0_ns) / 1e9}")
    text = text.replace("/ C", f"/ {run.rate_bps('bottleneck')}")
    text = text.replace("t1_ns", str(run.t1_ns)).replace("t0_ns", str(run.t0_ns))
    only = {"summary": "queue = 'bottleneck' AND class = '*'"}.get(formula.over, "true")
    if name in RESPONSIVE:
        only = "class NOT IN ('cbr', 'call')"
    file = run.path / f"{formula.over}.parquet"
    (found,) = duckdb.sql(f"SELECT {text} FROM '{file}' WHERE {only}").fetchall()
    assert expected is not None
    assert float(found[0]) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    # A formula whose value is zero proves little; only these metrics may be zero in such a run.
    rare = {"drop_injected_percent", "lost_outside_queues", "requests_failed", "pages_failed"}
    assert expected or name in rare | {"drop_forced_percent", "spurious_retransmissions"}
