"""Web pages: their records in a run, and their metrics compared with a sample of all pages."""

from __future__ import annotations

import math
import tomllib

import pytest

import aqmlab
from aqmlab.metrics import Scope, find
from aqmlab.metrics.waits import PAGES

SCENARIO = """
duration = "60s"
warmup = "5s"
[topology]
kind = "dumbbell"
rate = "50Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "2bdp" }
[[traffic]]
name = "web"
kind = "pages"
from = "right"
to = "left"
users = 15
think = { exponential = "1s" }
start = { uniform = ["0s", "1s"] }
weight = { pareto = "200kB", shape = 1.3, max = "10MB" }
objects = { uniform = [1, 40] }
rtt = "40ms"
[[traffic]]
name = "ftp"
kind = "bulk"
[record]
requests = { sample = 100000 }
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return aqmlab.run(
        tomllib.loads(SCENARIO), output=tmp_path_factory.mktemp("pages") / "run", runs=1, report=False
    )


@pytest.fixture(scope="module")
def times(recorded):
    return [row[0] for row in recorded.tables.rows("page_sample", "page_time_ns", "ORDER BY page_time_ns")]


def value(recorded, name, class_name="web"):
    return find(name).compute(recorded.measured()[0], Scope("bottleneck", class_name))


@pytest.mark.parametrize(
    ("name", "share"), [("page_time_median_s", 0.5), ("page_time_p90_s", 0.9), ("page_time_p99_s", 0.99)]
)
def test_quantiles_are_those_of_the_sorted_times(recorded, times, name, share):
    assert len(times) > 200
    # Of the pages that had not ended, and of those that had begun before, only ages are known.
    (run,) = recorded.measured()
    open_ended = sum(band.censored + band.entered.total for band in run.pages)
    least, most = (math.ceil(share * (len(times) + n)) - 1 for n in (-open_ended, open_ended))
    low, high = times[least], times[min(most, len(times) - 1)]
    assert 0.99 * low <= 1e9 * value(recorded, name) <= 1.01 * high
    assert value(recorded, name, "*") == value(recorded, name)


def test_mean_and_counts_are_those_of_the_sample(recorded, times):
    assert value(recorded, "page_time_mean_s") == pytest.approx(sum(times) / len(times) / 1e9)
    assert value(recorded, "pages_completed") == len(times)
    assert value(recorded, "pages_failed") == 0
    assert 0 < value(recorded, "pages_censored") <= 15


def test_shares_are_those_of_the_sample_and_of_the_pages_that_had_not_ended(recorded, times):
    """A page counts among those at risk from its age at the beginning of the interval to that at its end."""
    (run,) = recorded.measured()
    starts = recorded.tables.rows("page_sample", "start_ns, page_time_ns")
    pages = [(max(run.run.t0_ns - start, 0), time) for start, time in starts]
    for band in run.pages:
        for low, high, weight in zip(band.waited.low, band.waited.high, band.waited.weight, strict=True):
            pages += [(0, (low + high) / 2)] * weight
    assert len(pages) > len(times)
    for within_s in (0.3, 1.0, 3.0):
        left = 1.0
        for age in times:
            if age <= within_s * 1e9:
                left *= 1 - 1 / sum(entered < age <= end for entered, end in pages)
        found = find("page_time_within_percent").compute(
            run, Scope("bottleneck", "web", parameters={"within": within_s})
        )
        assert found == pytest.approx(100 * (1 - left), rel=0.02)


def test_weights_have_bands(recorded):
    (run,) = recorded.measured()
    weights = [row[0] for row in recorded.tables.rows("page_sample", "page_bytes")]
    bands = PAGES.bands(run, "web")
    assert len(bands) > 2
    for band in bands:
        found = find("pages_completed").compute(run, Scope("bottleneck", "web", parameters=band.parameters))
        assert found == sum(band.at_least <= weight < (band.below or 1e99) for weight in weights)


def test_a_page_takes_as_long_as_its_objects(recorded):
    """When a page ends, all of its objects have ended, the last one at that very instant."""
    objects = recorded.tables.rows("request_sample", "user, start_ns, start_ns + response_time_ns")
    pages = recorded.tables.rows("page_sample", "user, start_ns, start_ns + page_time_ns, objects")
    for user, start, end, count in pages[20:60]:
        ends = [done for of, asked, done in objects if of == user and start <= asked < end]
        assert len(ends) == count
        assert max(ends) == end


def test_a_class_without_pages_has_no_page_times(recorded):
    for name in ("page_time_median_s", "page_time_mean_s", "pages_completed", "pages_censored"):
        assert value(recorded, name, "ftp") is None
    assert value(recorded, "requests_completed") > 10 * value(recorded, "pages_completed")
