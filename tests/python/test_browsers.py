"""Users with browsers: what their plan says, what is recorded of their pages, what is refused."""

from __future__ import annotations

import tomllib

import pytest

import aqmlab
from aqmlab.errors import AqmlabError
from aqmlab.metrics import find

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
    return find(name).compute(recorded.measured()[0], "reverse", "web")


def test_pages_and_requests_are_recorded(recorded):
    pages = recorded.tables.rows("page_sample", "page_time_ns, objects, opens_connection", "")
    assert value(recorded, "pages_completed") == len(pages) > 300
    assert value(recorded, "pages_failed") == 0
    # The document alone takes two round trips of 40 to 80 ms.
    assert 0.16 < value(recorded, "page_time_median_s") < 1.0
    assert min(time for time, _, _ in pages) > 80e6
    assert all(opens for _, _, opens in pages)
    # 4.99 objects a page, with a standard deviation of 4.
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
