"""Distributions of response times, compared with closed forms, SciPy, and a count of individual requests."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
from scipy import stats as scipy_stats

import aqmlab
from aqmlab.claims import Claim, score
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.metrics import Histogram, Scope, find
from aqmlab.metrics.response_times import ResponseTimes
from claim_worlds import World

SCENARIO = """
duration = "25s"
warmup = "5s"
[topology]
kind = "dumbbell"
rate = "2Mbit"
delay = "10ms"
queue = { kind = "droptail", limit = "60p" }
[[traffic]]
name = "web"
kind = "requests"
rate = "22/s"
request = "300B"
response = { pareto = "4kB", shape = 1.3 }
[[traffic]]
name = "ftp"
kind = "bulk"
[record]
requests = { each = true }
[[arm]]
name = "DropTail"
[[arm]]
name = "CoDel"
"topology.queue" = { kind = "codel", limit = "60p" }
"""
OF_BINS = 2e-4
"""Largest error of a share because the few requests of a bin are at risk together."""
TIMES = (0.03, 0.2, 1.0, 2.0, 7.0)
BANDS = ((0, 1000), (1000, 10_000), (10_000, 100_000), (0, 10_000), (10_000, None), (0, None))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    output = tmp_path_factory.mktemp("times") / "run"
    return aqmlab.run(tomllib.loads(SCENARIO), output=output, runs=5, report=False)


def exact(values, counts=None):
    """A histogram in which each bin contains only one value."""
    values, counts = np.unique(values, return_counts=True) if counts is None else (values, counts)
    values = tuple(int(value) for value in values)
    return Histogram(values, values, tuple(int(count) for count in counts))


def spread(low, high, weight):
    return Histogram((low,), (high,), (weight,))


class Rows:
    """The requests of one run and class, one by one."""

    def __init__(self, experiment, run, at_least=0, below=None):
        sizes = f"response_bytes >= {at_least}" + ("" if below is None else f" AND response_bytes < {below}")
        rows = experiment.tables.rows(
            "requests", "end_ns - start_ns, start_ns, outcome", f"WHERE class = 'web' AND {sizes}", [run]
        )
        of = {how: [ns for ns, _, outcome in rows if outcome == how] for how in ("completed", "censored")}
        self.completed, self.censored = np.array(of["completed"]), np.array(of["censored"])
        ended = np.array([ns for ns, _, _ in rows])
        entered = np.array([max(run.t0_ns - start, 0) for _, start, _ in rows])
        # The product-limit estimate, age by age.
        self.at = np.unique(self.completed)
        left, self.left = 1.0, []
        for age in self.at:
            at_risk = ((entered < age) & (ended >= age)).sum()
            left *= 1 - (self.completed == age).sum() / at_risk
            self.left.append(left)

    def share(self, t_s):
        past = np.searchsorted(self.at, t_s * 1e9, side="right")
        return 1 - self.left[past - 1] if past else 0.0

    def area(self, until_s):
        middles = (np.arange(40_000) + 0.5) * until_s / 40_000
        return float(np.mean([self.share(t_s) for t_s in middles]))


def sized(at_least, below):
    return {name: size for name, size in (("at_least", at_least), ("below", below)) if size}


# --- by arithmetic


def test_of_evenly_spread_times_the_function_is_a_line_and_the_area_that_of_a_triangle():
    times = ResponseTimes(spread(0, 1000, 10))
    assert [times.share_within(t) for t in (0, 250, 1000, 5000)] == [0.0, 0.25, 1.0, 1.0]
    assert times.area(1000) == pytest.approx(1 / 2)
    assert times.area(2000) == pytest.approx(3 / 4)
    assert times.area(500) == pytest.approx(1 / 4)


def test_a_step_has_the_area_to_the_right_of_it():
    times = ResponseTimes(exact([100, 100, 300, 800]))
    assert [times.share_within(t) for t in (99, 100, 299, 300, 800)] == [0.0, 0.5, 0.5, 0.75, 1.0]
    # The area is the mean of 1 - min(time, until) / until.
    assert times.area(400) == pytest.approx((2 * 300 + 100) / 4 / 400, rel=1e-12)


def failing():
    return ResponseTimes(exact([100] * 6 + [400] * 2), exact([50, 200, 300]), exact([350]))


def test_failed_requests_are_never_completed_and_censored_ones_count_while_it_is_known_of_them():
    times = failing()
    # At 100, 11 are at risk and 6 complete; at 350, 3 are at risk and 1 fails; at 400, the other 2 complete.
    assert times.share_within(99) == 0.0
    assert times.share_within(100) == pytest.approx(6 / 11)
    assert times.share_within(399) == pytest.approx(6 / 11)
    assert times.share_within(10**9) == pytest.approx(6 / 11 + 5 / 11 * 2 / 3)


def test_censored_and_failed_requests_count_as_scipy_counts_them():
    rng = np.random.default_rng(3)
    done, cut = rng.integers(1, 5000, 300), rng.integers(1, 5000, 80)
    times = ResponseTimes(exact(done), exact(cut))
    oracle = scipy_stats.ecdf(scipy_stats.CensoredData(uncensored=done, right=cut)).cdf
    asked = range(0, 4900, 3)
    assert times.shares_within(list(asked)) == pytest.approx(oracle.evaluate(np.array(asked)), abs=1e-12)


def test_nothing_is_known_of_no_request():
    nothing = ResponseTimes(Histogram())
    assert nothing.share_within(100) is None
    assert nothing.area(100) is None
    assert nothing.gap(ResponseTimes(exact([1])), 100) is None


def test_nothing_is_known_of_greater_ages_than_were_seen_unless_hardly_any_request_gets_as_old():
    times = ResponseTimes(exact([100] * 3), exact([500] * 2))
    assert times.share_within(500) == pytest.approx(3 / 5)
    assert times.share_within(501) is None
    assert times.area(500) == pytest.approx(3 / 5 * 4 / 5)
    assert times.area(501) is None
    assert times.gap(ResponseTimes(exact([100])), 501) is None
    assert times.crossing(ResponseTimes(exact([100])), 501) is None
    assert times.time_of(0.6) == pytest.approx(100)
    assert times.time_of(0.61) is None
    # One in a thousand is left: the share is known to 0.1 %.
    assert ResponseTimes(exact([100] * 999), exact([500])).share_within(10**9) == pytest.approx(0.999)
    assert ResponseTimes(exact([100] * 989), exact([500] * 11)).share_within(10**9) is None


def test_requests_from_before_the_measured_interval_count_from_their_age_at_its_beginning():
    # Of the two that are at risk at 100, one completes; at 400, that other and one that began before.
    times = ResponseTimes(exact([100] + [400] * 2), entered=exact([200]))
    assert times.share_within(100) == pytest.approx(1 / 2)
    assert times.share_within(400) == 1.0
    assert ResponseTimes(exact([400] * 2), entered=exact([200, 300])).share_within(100) is None


def test_completions_within_a_bin_are_at_risk_together():
    # Bins as in recordings: a request that enters, completes or is cut off in the same bin as others.
    bin_of = spread(1000, 1009, 4)
    times = ResponseTimes(bin_of, waited=spread(1000, 1009, 2), entered=spread(1000, 1009, 3))
    assert times.share_within(1009) == pytest.approx(4 / 6)
    assert times.share_within(1003) == pytest.approx(4 / 6 * 3 / 9)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_is_that_of_kolmogorov_and_smirnov(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(1, 400, 200), rng.integers(1, 500, 300)
    one, other = ResponseTimes(exact(a)), ResponseTimes(exact(b))
    assert one.gap(other, 1000) == pytest.approx(scipy_stats.ks_2samp(a, b).statistic, abs=1e-12)
    assert one.gap(other, 1000) == other.gap(one, 1000)
    clipped = scipy_stats.ks_2samp(np.where(a > 50, 999, a), np.where(b > 50, 999, b)).statistic
    assert one.gap(other, 50) == pytest.approx(clipped, abs=1e-12)


def crossing_of(a, b, until):
    """The crossing by its definition, on a fine grid of times."""
    times = np.geomspace(1, until, 200_001)
    of_a, of_b = (np.searchsorted(np.sort(each), times, side="right") / len(each) for each in (a, b))
    lead = np.cumsum(of_a - of_b) * np.diff(np.log(times))[0]
    best = int(np.argmax(lead))
    return 1.0 if lead[best] <= 0 else 1 - (of_a[best] + of_b[best]) / 2


@pytest.mark.parametrize("seed", range(3))
def test_the_crossing_is_where_the_added_lead_is_greatest(seed):
    rng = np.random.default_rng(seed)
    # `a` is mostly faster than `b`, but has a longer tail.
    a = np.where(rng.random(4000) < 0.97, rng.integers(90, 300, 4000), rng.integers(900, 9000, 4000))
    b = rng.integers(150, 1000, 4000)
    one, other = ResponseTimes(exact(a)), ResponseTimes(exact(b))
    assert one.crossing(other, 20_000) == pytest.approx(crossing_of(a, b, 20_000), abs=3e-3)
    assert 0.01 < one.crossing(other, 20_000) < 0.05
    assert other.crossing(one, 20_000) == pytest.approx(crossing_of(b, a, 20_000), abs=3e-3)


def test_who_is_never_ahead_has_fallen_behind_before_the_first_and_equals_do_not_cross():
    slow, fast = ResponseTimes(exact([200, 400])), ResponseTimes(exact([100, 300]))
    assert slow.crossing(fast, 1000) == 1.0
    assert fast.crossing(slow, 1000) == 0.0
    assert fast.crossing(fast, 1000) is None
    assert fast.crossing(ResponseTimes(Histogram()), 1000) is None


def test_the_time_reached_by_a_share_is_the_inverse_of_the_function():
    times = failing()
    assert times.time_of(6 / 11) == pytest.approx(100)
    assert times.time_of(6 / 11 + 1e-6) == pytest.approx(400)
    assert times.time_of(0.84) == pytest.approx(400)
    # Some requests fail and are never completed.
    assert times.time_of(0.86) is None
    assert times.time_of(0.0) is None
    even = ResponseTimes(spread(0, 1000, 10))
    assert [even.time_of(share) for share in (0.25, 0.8, 1.0)] == pytest.approx([250, 800, 1000])
    assert ResponseTimes(Histogram()).time_of(0.5) is None


# --- from rows


def test_the_time_reached_is_that_of_the_rows(recorded):
    measured = recorded.measured()[0]
    rows = Rows(recorded, measured.run)
    for percent in (50.0, 80.0):
        reached_s = find("response_time_reached_s").compute(
            measured, Scope("bottleneck", "web", parameters={"share": percent})
        )
        low, high = rows.share(0.99 * reached_s), rows.share(1.01 * reached_s)
        assert low - OF_BINS <= percent / 100 <= high + OF_BINS


def test_responses_at_rates_are_those_of_the_sample(recorded):
    measured = recorded.measured()[0]
    rows = recorded.tables.rows(
        "request_sample", "response_bytes, response_time_ns", "WHERE class = 'web'", [measured.run]
    )
    asked = {"low": 1e5, "high": 4e5, "at_least": 2e3, "below": 5e4}
    rates = [8e9 * size / ns for size, ns in rows if 2e3 <= size < 5e4]
    expected = sum(1e5 <= rate <= 4e5 for rate in rates) / len(rates)
    share = find("response_rate_within_percent")
    assert 0.05 < expected < 0.95
    assert share.compute(measured, Scope("bottleneck", "web", parameters=asked)) == pytest.approx(
        100 * expected
    )
    assert share.compute(measured, Scope("bottleneck", "web")) == 100.0
    assert share.compute(measured, Scope("bottleneck", "web", parameters={"at_least": 1e12})) is None


@pytest.mark.parametrize("sizes", BANDS)
def test_shares_are_those_of_the_rows(recorded, sizes):
    measured = recorded.measured()[0]
    rows = Rows(recorded, measured.run, *sizes)
    for t_s in TIMES:
        value = find("response_time_within_percent").compute(
            measured, Scope("bottleneck", "web", parameters={"within": t_s, **sized(*sizes)})
        )
        low, high = rows.share(0.99 * t_s), rows.share(1.01 * t_s)
        assert 100 * (low - OF_BINS) <= value <= 100 * (high + OF_BINS)


@pytest.mark.parametrize("until_s", [0.5, 2.0, 10.0])
def test_areas_are_those_of_the_rows(recorded, until_s):
    for measured in recorded.measured()[:2]:
        value = find("response_time_cdf_area_percent").compute(
            measured, Scope("bottleneck", "web", parameters={"within": until_s})
        )
        assert value == pytest.approx(100 * Rows(recorded, measured.run).area(until_s), abs=0.1)


@pytest.mark.parametrize("sizes", BANDS)
def test_means_and_counts_of_size_bands_are_those_of_the_rows(recorded, sizes):
    measured = recorded.measured()[0]
    rows = Rows(recorded, measured.run, *sizes)
    parameters = sized(*sizes)
    mean = find("response_time_mean_s").compute(measured, Scope("bottleneck", "web", parameters=parameters))
    assert mean == pytest.approx(rows.completed.mean() / 1e9, rel=1e-12)
    for how, count in (("completed", len(rows.completed)), ("censored", len(rows.censored))):
        found = find(f"requests_{how}").compute(measured, Scope("bottleneck", "web", parameters=parameters))
        assert found == count
    p95 = find("response_time_p95_s").compute(measured, Scope("bottleneck", "web", parameters=parameters))
    if p95 is None:
        # Too many of the large responses had not ended.
        assert sizes == (10_000, None)
        assert rows.share(1e9) < 0.95
    else:
        assert rows.share(0.99 * p95) - OF_BINS <= 0.95 <= rows.share(1.01 * p95) + OF_BINS


def test_a_size_inside_of_a_band_defines_nothing(recorded):
    measured = recorded.measured()[0]
    for parameters in ({"below": 2000.0}, {"at_least": 999.0}, {"at_least": 10_000.0, "below": 1000.0}):
        for name in ("response_time_median_s", "response_time_within_percent", "requests_completed"):
            assert find(name).compute(measured, Scope("bottleneck", "web", parameters=parameters)) is None


# --- in claims


def scored(results, text):
    (found,) = score(results, [Claim("c", text)])
    return found


def test_the_gap_of_two_arms_is_seed_by_seed_with_students_interval(recorded):
    cdf = "response_time_within_percent{{arm={}, class=web, within=2s}}"
    asked = f"cdf_gap({cdf.format('DropTail')}, {cdf.format('CoDel')})"
    part = scored(recorded, f"{asked} >= 0 %").parts[0]
    grid = np.linspace(0.0, 2.0, 4001)
    gaps = []
    for seed in recorded.seeds:
        one, other = (
            Rows(recorded, next(run for run in recorded.runs_of(arm) if run.seed == seed))
            for arm in ("DropTail", "CoDel")
        )
        gaps.append(max(abs(one.share(t_s) - other.share(t_s)) for t_s in grid))
    assert part.found.estimate == pytest.approx(np.mean(gaps), abs=0.01)
    half = scipy_stats.t.ppf(0.975, len(gaps) - 1) * scipy_stats.sem(gaps)
    assert (part.found.high - part.found.low) / 2 == pytest.approx(half, rel=0.15, abs=0.003)
    assert part.verdict.status == "holds"
    # A median over the seeds also uses all five of them; an arm does not differ from itself.
    assert scored(recorded, f"median({asked}) >= 0 %").parts[0].left.estimate.n == 5
    same = f"cdf_gap({cdf.format('CoDel')}, {cdf.format('CoDel')})"
    assert scored(recorded, f"{same} <= 0.1 %").status == "holds"


def test_what_was_asked_for_is_said_in_points(recorded):
    cdf = "response_time_within_percent{{arm={}, class=web}}"
    part = scored(recorded, f"cdf_gap({cdf.format('DropTail')}, {cdf.format('CoDel')}) < 90 %").parts[0]
    assert part.left.difference
    assert part.unit.percent


def test_areas_and_shares_of_size_bands_are_asked_for_in_claims(recorded):
    found = scored(
        recorded, "response_time_within_percent{arm=CoDel, class=web, within=500ms, below=10kB} > 0 %"
    )
    values = [100 * Rows(recorded, run, 0, 10_000).share(0.5) for run in recorded.runs_of("CoDel")]
    assert 100 * found.parts[0].left.estimate.estimate == pytest.approx(np.mean(values), abs=0.5)
    assert scored(recorded, "response_time_cdf_area_percent{arm=CoDel, class=web} < 100 %").status == "holds"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cdf_gap(jain_index, jain_index) < 5 %", "compares two distribution functions; write"),
        ("cdf_gap(response_time_within_percent, 5 %) < 5 %", "not `5 %`"),
        (
            "cdf_gap(response_time_within_percent{within=1s}, response_time_within_percent{within=2s}) < 5 %",
            "the two differ in `within`",
        ),
        ("cdf_gap(response_time_within_percent) < 5 %", "takes 2 arguments; 1 are given"),
        ("cdf_crossing(jain_index, jain_index) < 5 %", "`cdf_crossing` compares two distribution functions"),
        ("response_time_within_percent{within=5p} < 5 %", "`within` must be a time"),
        ("response_time_within_percent{below=5s} < 5 %", "`below` must be an amount of data"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text, message):
    world = World(lambda *_, **__: 1.0, arms=("RED",))
    with pytest.raises(ScenarioError, match=message.replace("(", r"\(")) as error:
        scored(world, text)
    assert "column" in str(error.value) or ":" in str(error.value)


def test_a_metric_that_is_no_value_of_a_distribution_has_none(recorded):
    with pytest.raises(UsageError, match="`jain_index` is not a value of a distribution function"):
        find("jain_index").distribution(recorded.measured()[0], Scope("bottleneck"))


# --- requests that have not ended

FAST_AND_SLOW = """
duration = "{until}s"
warmup = "{warmup}s"
[topology]
kind = "dumbbell"
rate = "1Gbit"
delay = "1ms"
queue = {{ kind = "droptail", limit = "10000p" }}
[[traffic]]
name = "web"
kind = "requests"
rate = "{rate}/s"
request = "100B"
response = "100B"
server_delay = {{ list = ["100ms", "10s"] }}
"""


@pytest.mark.parametrize(
    ("warmup", "until", "rate"), [(20, 31, 1000), (20, 24, 200), (0, 13, 200), (3, 9, 200)]
)
def test_half_of_requests_are_fast_whatever_part_of_the_slow_ones_is_seen(tmp_path, warmup, until, rate):
    text = FAST_AND_SLOW.format(warmup=warmup, until=until, rate=rate)
    found = aqmlab.run(tomllib.loads(text), output=tmp_path / "run", runs=1, report=False)
    (measured,) = found.measured()

    def value(name, **parameters):
        return find(name).compute(measured, Scope("bottleneck", "web", parameters=parameters))

    # The requests alternate, so among n of them, one may be missing on either side.
    slack = 100 / (rate * (until - warmup))
    assert value("response_time_within_percent") == pytest.approx(50, abs=slack)
    assert value("response_time_cdf_area_percent") == pytest.approx(50 * (2 - 0.102) / 2, abs=0.2)
    assert value("response_time_reached_s", share=49.0) == pytest.approx(0.104, rel=0.02)
    seen = value("requests_completed") + value("requests_censored")
    assert 100 * value("requests_completed") / seen < 90
    if until - warmup > 10.5:
        assert value("response_time_p90_s") == pytest.approx(10.0, rel=0.011)
