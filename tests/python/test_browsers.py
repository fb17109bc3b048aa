"""Users with browsers: their plan, the records of their pages, and refused settings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import duckdb
import pytest
from scipy.integrate import quad

import aqmlab
from aqmlab.errors import AqmlabError
from aqmlab.metrics import Scope, find

SCENARIO = """
duration = "60s"
warmup = "5s"
[topology]
kind = "dumbbell"
rate = "1Gbit"
delay = "10ms"
queue = { kind = "droptail", limit = "2bdp" }
[[traffic]]
name = "web"
kind = "browsers"
from = "right"
to = "left"
users = 30
think = { exponential = "1s" }
start = { uniform = ["0s", "1s"] }
response = "3kB"
rtt = { uniform = ["40ms", "80ms"] }
[record]
requests = { sample = 100000 }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return aqmlab.run(
        tomllib.loads(SCENARIO), output=tmp_path_factory.mktemp("browsers") / "run", runs=1, report=False
    )


def value(recorded, name):
    return find(name).compute(recorded.measured()[0], Scope("reverse", "web"))


def test_pages_and_requests_are_recorded(recorded):
    pages = recorded.tables.rows("page_sample", "page_time_ns, objects, opens_connection", "")
    assert value(recorded, "pages_completed") == len(pages) > 300
    assert value(recorded, "pages_failed") == 0
    # The document alone takes two round trips of 40 to 80 ms.
    assert 0.16 < value(recorded, "page_time_median_s") < 1.0
    assert min(time for time, _, _ in pages) > 80e6
    assert all(opens for _, _, opens in pages)
    # There are 4.99 objects per page, with a standard deviation of 4.
    objects = [number for _, number, _ in pages]
    assert abs(sum(objects) / len(objects) - 4.99) < 5 * 4 / len(objects) ** 0.5
    assert value(recorded, "requests_completed") == pytest.approx(sum(objects), rel=0.05)


def test_a_plan_says_what_its_users_do(recorded):
    web = recorded.measured()[0].run.manifest.plan.classes[0]
    assert "browsers of 2000" in web.what
    assert web.workload["persistent"] == 0.1884


def test_their_connections_have_no_vectors_before_a_run(tmp_path):
    scenario = tmp_path / "web.toml"
    scenario.write_text(SCENARIO)
    with pytest.raises(AqmlabError, match="follows from its user's page"):
        aqmlab.write_vectors(scenario, tmp_path / "out.csv", classes="web")


# --- the stand-in for the UNC model: its distributions, and draws from them

STAND_IN = Path(__file__).parents[2] / "crates" / "aqmlab-scenario" / "models" / "unc_stand_in.toml"
DRAWS = 200_000
SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def points(distribution):
    """The points of an empirical distribution: sizes in bytes, and shares."""
    for text, share in distribution["empirical"]:
        number, unit = re.fullmatch(r"([\d.]+)([kMG]?B)", text).groups()
        yield float(number) * SIZES[unit], share


def seconds(text):
    return float(text.removesuffix("s"))


def test_shares_and_means_of_the_stand_in_by_quadrature():
    model = tomllib.loads(STAND_IN.read_text())
    # One trapezium between any two neighbouring points; all sizes below the first point count as its size.
    (least, share), *more = points(model["response"])
    total = small = least * share
    for (size, share), before in zip(more, points(model["response"]), strict=False):
        part = (share - before[1]) * (size + before[0]) / 2
        total += part
        small += part if size <= 10_000 else 0
    assert dict(points(model["response"]))[10_000] == 0.87
    assert small / total == pytest.approx(0.20, abs=0.005)
    assert total == pytest.approx(7500, rel=0.01)
    mean, shape, most = (
        seconds(model["think"]["pareto"]),
        model["think"]["shape"],
        seconds(model["think"]["max"]),
    )
    least = mean * (shape - 1) / shape
    beyond = (least / most) ** shape
    longer, _ = quad(lambda t: ((least / t) ** shape - beyond) / (1 - beyond), least, most, limit=200)
    assert least + longer == pytest.approx(30, rel=1e-3)


def test_draws_have_the_shares_and_means_of_the_stand_in(tmp_path):
    model = tomllib.loads(STAND_IN.read_text())
    scenario = {
        **tomllib.loads(SCENARIO),
        "duration": "1s",
        "warmup": "0s",
        "traffic": [
            {
                "name": "web",
                "kind": "requests",
                "rate": f"{DRAWS // 2}/s",
                "allow_overload": True,
                "exchanges": 2,
                **{key: model[key] for key in ("request", "response")},
                "pause": model["think"],
            }
        ],
    }
    aqmlab.write_vectors(scenario, tmp_path / "draws.parquet")
    drawn = f"'{tmp_path / 'draws.parquet'}'"
    shares = "avg((response_bytes <= 10000)::INTEGER), sum(response_bytes) FILTER (response_bytes <= 10000)"
    ((n, mean, spread, small, small_bytes),) = duckdb.sql(
        f"SELECT count(*), avg(response_bytes), stddev(response_bytes), {shares} FROM {drawn}"
    ).fetchall()
    assert n == pytest.approx(DRAWS, rel=0.02)
    assert small == pytest.approx(0.87, abs=5 * (0.87 * 0.13 / n) ** 0.5)
    error = spread / n**0.5
    assert mean == pytest.approx(7525, abs=5 * error)
    # This share varies as much as the total number of bytes, which depends on the largest objects.
    assert small_bytes / (n * mean) == pytest.approx(0.20, abs=0.20 * 5 * error / mean)
    ((n, mean, spread),) = duckdb.sql(
        f"SELECT count(*), avg(think_s), stddev(think_s) FROM {drawn} WHERE exchange = 1"
    ).fetchall()
    assert mean == pytest.approx(30, abs=5 * spread / n**0.5)
