"""Requests: their records in a run, and the metrics compared with a count of individual requests."""

from __future__ import annotations

import math
import tomllib

import pytest

import aqmlab
from aqmlab.metrics import Scope, find

SCENARIO = """
duration = "40s"
warmup = "5s"
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "30p" }
[[traffic]]
name = "web"
kind = "requests"
rate = "15/s"
request = "300B"
response = { pareto = "4kB", shape = 1.3 }
exchanges = 2
pause = "100ms"
[[traffic]]
name = "api"
kind = "requests"
users = 3
think = "200ms"
request = "100B"
response = "500B"
[[traffic]]
name = "ftp"
kind = "bulk"
[record]
requests = { each = true, sample = 50 }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return aqmlab.run(
        tomllib.loads(SCENARIO), output=tmp_path_factory.mktemp("requests") / "run", runs=1, report=False
    )


def rows_of(experiment, class_name, outcome="completed"):
    where = f"WHERE outcome = '{outcome}'" + ("" if class_name == "*" else f" AND class = '{class_name}'")
    return [
        row[0]
        for row in experiment.tables.rows("requests", "end_ns - start_ns AS ns", f"{where} ORDER BY ns")
    ]


@pytest.mark.parametrize("class_name", ["web", "api", "*"])
@pytest.mark.parametrize(
    ("name", "share"),
    [("response_time_median_s", 0.5), ("response_time_p90_s", 0.9), ("response_time_p99_s", 0.99)],
)
def test_quantiles_are_those_of_the_sorted_times(recorded, class_name, name, share):
    times = rows_of(recorded, class_name)
    assert len(times) > 100
    run = recorded.measured()[0]
    # Of the requests that had not ended, and of those that had begun before, only ages are known.
    of_class = run.requests_of(class_name)
    open_ended = sum(totals.censored + totals.entered.total for totals in of_class)
    least, most = (math.ceil(share * (len(times) + n)) - 1 for n in (-open_ended, open_ended))
    low, high = times[least], times[min(most, len(times) - 1)]
    assert 0.99 * low <= 1e9 * find(name).compute(run, Scope("bottleneck", class_name)) <= 1.01 * high


@pytest.mark.parametrize("class_name", ["web", "api", "*"])
@pytest.mark.parametrize("outcome", ["completed", "failed", "censored"])
def test_counts_are_those_of_the_rows(recorded, class_name, outcome):
    value = find(f"requests_{outcome}").compute(recorded.measured()[0], Scope("bottleneck", class_name))
    assert value == len(rows_of(recorded, class_name, outcome))


def test_some_are_censored_and_what_ended_in_the_warm_up_does_not_count(recorded):
    assert rows_of(recorded, "*", "censored")
    first, last = recorded.tables.rows("requests", "min(end_ns), max(end_ns)")[0]
    assert 5e9 < first < last == 40e9


def test_a_class_without_requests_has_no_response_times(recorded):
    run = recorded.measured()[0]
    for name in ("response_time_median_s", "requests_completed", "requests_failed", "requests_censored"):
        assert find(name).compute(run, Scope("bottleneck", "ftp")) is None
    assert not run.requests_of("ftp")


def test_tables_are_whole_and_the_sample_is_of_the_rows(recorded):
    run = recorded.runs[0]
    assert run.damage() == ()
    assert run.manifest.tables["requests"].rows == recorded.tables.rows("requests", "count(*)")[0][0]
    columns = "class, user, serial, exchange, start_ns, response_bytes"
    sample = recorded.tables.rows("request_sample", f"{columns}, response_time_ns")
    rows = recorded.tables.rows("requests", f"{columns}, end_ns - start_ns", "WHERE outcome = 'completed'")
    assert len(sample) == 100
    assert set(sample) <= set(rows)


def test_a_run_without_requests_has_none_of_their_tables(tmp_path):
    text = SCENARIO[: SCENARIO.index('[[traffic]]\nname = "web"')] + '[[traffic]]\nkind = "bulk"\n'
    experiment = aqmlab.run(tomllib.loads(text), output=tmp_path / "run", runs=1, report=False)
    assert not [name for name in experiment.runs[0].manifest.tables if name.startswith("request")]
    assert find("response_time_median_s").compute(experiment.measured()[0], Scope("bottleneck")) is None
