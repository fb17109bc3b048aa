"""Errors found before any run: names, units, nesting, unspecified cells."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab.claims import Claim, Names
from aqmlab.claims.functions import FUNCTIONS
from aqmlab.claims.names import window_label, window_of
from aqmlab.claims.ranges import Range
from aqmlab.claims.scan import SourceLocation
from aqmlab.errors import ScenarioError
from aqmlab.metrics import Parameter, Takes, Window, find
from aqmlab.metrics import registry as registry_module
from aqmlab.results.cells import Axis
from aqmlab.text.units import LITERALS, PERCENT, PURE, RATE, SIZE, TIME, quantity, unit_of_metric
from claim_worlds import BUFFER, COUNT

ELSEWHERE = Axis("topology.reverse_queue.limit", "reverse_queue.limit", (), ("9p", "18p"))
STEP = Axis("step", "step", (), ("first", "to", "a b"))
NAMES = Names(("RED", "Drop Tail", "BLUE"), (BUFFER, COUNT), ("bottleneck", "r0-r1"), ("ftp", "cbr"))


@pytest.fixture(autouse=True)
def band(monkeypatch):
    """Register a metric with a window and parameters, and one without; neither measures anything."""
    known = dict(registry_module._METRICS)
    monkeypatch.setattr(registry_module, "_METRICS", known)
    registry_module.metric(
        "band_percent",
        label="in band",
        unit="%",
        definition="a share",
        source="a test",
        takes=Takes.QUEUE | Takes.CLASS | Takes.WINDOW,
        parameters=(Parameter("low", "packets", "lower end"), Parameter("bin", "s", "length", 1.0)),
    )(lambda *_, **__: 50.0)
    registry_module.metric(
        "whole_percent", label="whole", unit="%", definition="a share", source="a test", takes=Takes.QUEUE
    )(lambda *_: 50.0)


def check(text, where=None, names=NAMES):
    Claim("M02", text, where=where or {}, origin=SourceLocation("M02", "x.toml", 7, 1)).check(names)


FIXED = {"arm": "RED", "limit": "4p", "count": "2"}


@pytest.mark.parametrize(
    "text",
    [
        "queueing_delay_mean_s < 10ms",
        "queueing_delay_mean_s + 5ms < 2 * queueing_delay_p99_s",
        "goodput_bps > 1.5Mbit",
        "goodput_bps / throughput_bps in [0.9, 1]",
        "goodput_bps * queueing_delay_mean_s > 10kB",
        "backlog_mean_packets in [9p, 13.5p]",
        "drop_percent < 5 %",
        "drop_percent < 0.05 * 100 %",
        "drop_percent > 0",
        "drop_percent <= 0.5 * drop_percent{arm=BLUE}",
        "drop_percent - drop_percent{arm=BLUE} in [-1 %, 1 %]",
        "jain_index > 90 %",
        "share(drop_percent > 1 %) >= 90 %",
        "share(drop_percent > 1 %) >= 0.9",
        "sqrt(jain_index) > 0.5 and log(jain_index) < 0",
        "sqrt(queueing_delay_mean_s * queueing_delay_p50_s) < 10ms",
        "default(queueing_delay_p99_s, 10s) < 1s",
        "share(defined(hurst)) > 0.5",
        "slope(goodput_bps over limit) > 0",
        "slope(goodput_bps over limit) * 68p > 10kbit",
        "change(goodput_bps over arm) > 0",
        "rank_correlation(jain_index over limit) > 0.8",
        "count(jain_index > 0.9 over limit and arm) >= 3",
        "argmax(abs(mean(goodput_bps{arm=RED} - goodput_bps{arm=BLUE})) over limit) == 4p",
        "argmin(mean(std(jain_index) over limit) over arm) in (RED, BLUE)",
        "goodput_bps{arm='Drop Tail', limit=last, queue=r0-r1, class=ftp} > 0",
        "goodput_bps{limit=first} < goodput_bps{limit='72p'}",
        "for all limit except (first): goodput_bps > goodput_bps{limit=previous}",
        "for all limit in (4p to 36p): for some arm: goodput_bps > 0",
        "for all class in (ftp, cbr): goodput_bps > 0",
        "goodput_bps{class='ftp, cbr'} > 0",
        "increasing(band_percent over window in (every 20s from 0s until 200s), 1 %)",
        "band_percent{low=9, bin=500ms, from=10s} > 50 %",
        "band_percent{low=9p, window=10s-20s} > 50 %",
        "band_percent{from=10s, until=20s} > 50 %",
        "any(drop_percent > 5 %, 10 %)",
        "no_trend(goodput_bps over limit, 100kbit)",
        "5 < jain_index < 6",
        "quantile(goodput_bps, 90 %) > 1Mbit",
    ],
)
def test_what_can_be_said(text):
    check(text, FIXED)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        # names
        ("goodput_bp > 0", 1, "there is no metric `goodput_bp`; did you mean `goodput_bps`?"),
        ("goodput_bps{arm=rde} > 0", 17, "there is no arm `rde`"),
        ("goodput_bps{arm='Drop tail'} > 0", 17, "did you mean `Drop Tail`?"),
        ("goodput_bps{limt=4p} > 0", 13, "there is no axis `limt`; did you mean `limit`?"),
        ("goodput_bps{limit=5p} > 0", 19, "there is no value of `topology.queue.limit` `5p`"),
        ("goodput_bps{queue=bottlenek} > 0", 19, "did you mean `bottleneck`?"),
        ("goodput_bps{class=ftpp} > 0", 19, "there is no class `ftpp`; did you mean `ftp`?"),
        ("goodput_bps{class='cbr,ftpp'} > 0", 19, "there is no class `ftpp`; did you mean `ftp`?"),
        ("goodput_bps{class='ftp,ftp'} > 0", 19, "there is no class `ftp,ftp`"),
        ("goodput_bps{limit=4p, limit=12p} > 0", 23, "`limit` is given twice"),
        ("goodput_bps{limit='first'} > 0", 19, "there is no value of `topology.queue.limit` `first`"),
        ("for all buffr: goodput_bps > 0", 9, "there is no axis `buffr`"),
        ("for all limit in (4p, 4p): goodput_bps > 0", 9, "`4p` is listed twice"),
        ("for all limit in (36p to 4p): goodput_bps > 0", 19, "`36p` comes after `4p`"),
        ("for all limit except (4p to 72p): goodput_bps > 0", 9, "no label of `limit` remains after"),
        ("for all limit, limit: goodput_bps > 0", 16, "`limit` is selected twice"),
        ("for all limit in (every 1s from 0s until 2s): goodput_bps > 0", 19, "`every` makes windows"),
        ("for all window: band_percent > 0", 9, "`window` cannot be selected as a whole here"),
        ("for all window in (1s): band_percent > 0", 20, "`1s` is not a window of time"),
        ("for all window in (3s-2s): band_percent > 0", 20, "ends before it begins"),
        ("for all window in (every 3s from 0s until 2s): band_percent > 0", 20, "makes 0 windows"),
        ("for all window in (every 1ms from 0s until 200s): band_percent > 0", 20, "makes 200000 windows"),
        ("for all window in (every 0s from 0s until 200s): band_percent > 0", 20, "makes 0 windows"),
        ("for all window in (every 5p from 0s until 200s): band_percent > 0", 26, "`5p` is not a time"),
        ("argmax(goodput_bps over limit in (4p, 12p)) == 36p", 48, "not among the labels"),
        ("argmax(goodput_bps over limit) == 5p", 35, "there is no value"),
        ("argmax(goodput_bps over limit in (4p)) == 4p", 1, "always returns one of these labels"),
        ("argmax(goodput_bps over count) in (2, 6)", 1, "always returns one of these labels"),
        ("argmax(2 over limit) in (4p, 12p)", 8, "`2` is a constant, not a measured value"),
        ("share(argmin(1Mbit over arm) == RED) > 50 %", 14, "`1Mbit` is a constant, not a measured value"),
        # windows and parameters
        ("whole_percent{from=10s} > 0", 1, "covers the measured interval; it accepts no window"),
        ("for all window in (1s-2s): whole_percent > 0", 28, "it accepts no window"),
        ("band_percent{from=10} > 0", 19, "`10` is not a time for `from`"),
        ("band_percent{from=10s, window=1s-2s} > 0", 1, "exclude each other"),
        ("band_percent{lo=9} > 0", 14, "there is no parameter of `band_percent` `lo`; did you mean `low`?"),
        ("band_percent{low=9ms} > 0", 18, "`9ms` is a time; `low` must be a number of packets"),
        ("band_percent{low=x} > 0", 18, "`x` is not a number for `low`"),
        # units
        ("queueing_delay_mean_s < 10Mbit", 25, "is a time and `10Mbit` is a rate: they cannot be compared"),
        ("queueing_delay_mean_s < 10", 25, "`10` is a pure number"),
        ("10p > queueing_delay_mean_s", 7, "`10p` is a number of packets"),
        ("queueing_delay_mean_s + goodput_bps < 1s", 25, "they cannot be added"),
        ("queueing_delay_mean_s in [1ms, 2p]", 32, "they cannot be compared"),
        ("drop_percent < 5", 16, "`drop_percent` is a percentage: write `5 %`"),
        ("drop_percent - 2 < 5 %", 16, "is a percentage: write `2 %`"),
        ("max(goodput_bps, 5s) > 1Mbit", 18, "they cannot be compared"),
        ("log(queueing_delay_mean_s) < 0", 1, "is a logarithm of a time"),
        ("sqrt(queueing_delay_mean_s) < 0", 1, "is a square root of a time"),
        ("default(queueing_delay_p99_s, 5p) > 1s", 31, "they cannot be compared"),
        ("jain_index < 1" + "0" * 400, 14, "is too large"),
        ("increasing(goodput_bps over limit, 5ms)", 36, "they cannot be compared"),
        ("increasing(goodput_bps over limit, -5kbit)", 36, "a tolerance is a number of at least 0"),
        (
            "slope(goodput_bps over arm) > 0",
            24,
            "the labels of `arm` are not numbers with one unit; use `change`",
        ),
        # levels
        ("1 < 2", 1, "two constants are compared; one side must be a measured value"),
        ("goodput_bps > 1Mbit and 1 < 2", 25, "two constants are compared"),
        ("increasing(5 over limit)", 12, "not a measured value"),
        ("max(5 over limit) > 4", 5, "not a measured value"),
        ("goodput_bps < median(goodput_bps)", 1, "combined with a figure over seeds; write mean(...)"),
        ("goodput_bps in [mean(goodput_bps), 5Mbit]", 1, "combined with a figure over seeds"),
        (
            "goodput_bps + mean(goodput_bps) > 0",
            1,
            "has a value per seed but is combined with a figure over seeds",
        ),
        (
            "mean(mean(goodput_bps)) > 0",
            6,
            "is computed over the seeds already; `mean` takes one value per seed",
        ),
        ("std(5) > 0", 5, "is a number; `std` takes one value per seed"),
        ("share(goodput_bps > mean(goodput_bps)) > 0", 21, "here each seed is evaluated separately"),
        (
            "share(any(goodput_bps > 0)) > 0",
            7,
            "`any` is computed over the seeds, but here each seed is evaluated",
        ),
        ("share(no_trend(goodput_bps over limit, 1kbit)) > 0", 7, "`no_trend` is computed over the seeds"),
        ("defined(hurst)", 1, "`defined` is evaluated for each seed"),
        (
            "rank_correlation(mean(goodput_bps) over limit) > 0",
            18,
            "`rank_correlation` is computed seed by seed",
        ),
        (
            "correlation(goodput_bps over limit, mean(goodput_bps)) > 0",
            37,
            "`correlation` is computed seed by seed",
        ),
        ("correlation(goodput_bps over limit, 5) > 0", 37, "`5` is a constant, not a measured value"),
        ("correlation(goodput_bps over limit in (4p), jain_index) > 0", 30, "needs at least two labels"),
        ("argmax(goodput_bps over limit) + 1 < 2", 1, "`argmax` returns a label"),
        ("quantile(goodput_bps, 1.5) > 0", 23, "a share is a number between 0 and 1"),
        ("quantile(goodput_bps, jain_index) > 0", 23, "a share is a number between 0 and 1"),
        ("any(goodput_bps > 0, 0)", 22, "a share is a number between 0 and 1"),
        ("largest_step(goodput_bps over limit in (4p)) > 0", 31, "needs at least two labels"),
        ("increasing(goodput_bps over limit in (4p))", 29, "needs at least two labels"),
    ],
)
def test_what_cannot(text, at, message):
    with pytest.raises(ScenarioError) as caught:
        check(text, FIXED)
    assert str(caught.value).startswith(f"x.toml:7:{at}: claim `M02`: "), str(caught.value)
    assert message in str(caught.value)


def test_an_open_cell_is_refused_with_what_is_open():
    with pytest.raises(ScenarioError) as caught:
        check("goodput_bps{count=2} > 0")
    assert "because `arm` (RED, Drop Tail, BLUE) and `limit` (4p, 12p, 36p, 72p) are not fixed" in str(
        caught.value
    )
    assert "fix each in braces, in `where`, or by `for all`" in str(caught.value)
    check("goodput_bps > 0", names=Names(("RED",), (Axis("a", "a", (), ("only",)),)))


def test_a_neighbour_is_of_something_that_is_bound():
    with pytest.raises(ScenarioError, match="`next` of `limit` needs an enclosing `for` or `over`"):
        check("goodput_bps{limit=next, count=2, arm=RED} > 0")


def test_the_examples_of_the_documents_can_be_said():
    text = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
    examples = text.partition("## Twelve examples")[2].split("```")[1].splitlines()[1:]
    arms = ("RED", "DropTail", "PI", "ARED", *(f"{kind}{i}" for kind in "BR" for i in range(1, 5)))
    names = Names(arms, (BUFFER, COUNT))
    assert len(examples) == 12
    for example in examples:
        check(example, FIXED, names)


def test_where_is_checked_like_the_text():
    for where, message in (
        ({"limt": "4p"}, "where: there is no axis `limt`"),
        ({"limit": "5p"}, "where: there is no value of `topology.queue.limit` `5p`"),
        ({"arm": "red"}, "where: there is no arm `red`"),
    ):
        with pytest.raises(ScenarioError, match=r"^x\.toml:7:1: claim `M02`") as caught:
            check("goodput_bps > 0", where)
        assert message in str(caught.value)


def test_an_axis_has_any_tail_that_is_its_own():
    names = Names(("RED",), (BUFFER, ELSEWHERE))
    for axis in ("queue.limit", "topology.queue.limit"):
        check(f"goodput_bps{{{axis}=4p, reverse_queue.limit=9p}} > 0", names=names)
    with pytest.raises(
        ScenarioError, match=r"the axis `limit` may mean `topology\.queue\.limit`, `topology\.rev"
    ):
        check("goodput_bps{limit=4p} > 0", names=names)


def test_labels_that_look_like_words_of_the_grammar():
    names = Names(("RED",), (STEP,))
    for label in ("first", "'first'", "last", "'to'", "'a b'"):
        check(f"goodput_bps{{step={label}}} > 0", names=names)


def test_a_word_is_a_parameter_before_it_is_an_axis():
    names = Names(("RED",), (Axis("queue.low", "low", (), ("1", "2")),))
    with pytest.raises(ScenarioError, match=r"`low` \(1, 2\) is not fixed"):
        check("band_percent{low=1} > 0", names=names)
    check("band_percent{low=1, queue.low=1} > 0", names=names)


# --- anything that parses is either accepted or refused, and causes no other error

WORDS = ["goodput_bps", "drop_percent", "jain_index", "band_percent", "{arm=RED, limit=4p}", "{limit=next}"]
WORDS += [
    "for all limit:",
    "for some arm in (RED, BLUE):",
    "over limit",
    "over arm and count",
    "over window in (1s-2s)",
]
WORDS += [f"{name}(" for name in FUNCTIONS] + [
    *"()+-*/,",
    "<",
    ">",
    "==",
    "in [",
    "]",
    "and",
    "not",
    "5 %",
    "1Mbit",
    "2",
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_text_is_checked_or_refused(text):
    with suppress(ScenarioError):
        check(text, FIXED)


# --- units


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("10ms", 0.01, TIME),
        ("0.1ms", 0.0001, TIME),
        ("2min", 120.0, TIME),
        ("1.5Mbit", 1.5e6, RATE),
        ("1.5Mbit/s", 1.5e6, RATE),
        ("1.5Mbps", 1.5e6, RATE),
        ("1kB", 8000.0, SIZE),
        ("1KiB", 8192.0, SIZE),
        ("7 %", 0.07, PERCENT),
        ("-0.1s", -0.1, TIME),
        ("20", 20.0, PURE),
        ("36 foo", None, None),
        ("RED", None, None),
        ("", None, None),
        ("1e999", None, None),
    ],
)
def test_quantities(text, value, unit):
    assert quantity(text) == (None if value is None else (value, unit))


def test_units_of_metrics_and_of_what_is_made_of_them():
    assert unit_of_metric("bit/s") == (1.0, RATE)
    assert unit_of_metric("B") == (8.0, SIZE)
    assert unit_of_metric("%") == (0.01, PERCENT)
    assert unit_of_metric("") == (1.0, PURE)
    assert RATE.times(TIME) == SIZE
    assert SIZE.times(RATE, -1) == TIME
    assert PERCENT.times(PERCENT, -1) == PURE
    assert PERCENT.times(PURE) == PERCENT
    assert PERCENT.times(PURE, -1) == PERCENT
    assert PURE.times(PERCENT, -1) == PURE
    assert TIME.times(TIME, -1) == PURE
    assert unit_of_metric("packets/s")[1].shown() == "packets/s"
    assert SIZE.text(8e4) == "10000 B"
    assert RATE.text(1.5e6) == "1.500 Mbit/s"
    assert PERCENT.text(0.05) == "5.000 %"
    assert all(factor > 0 for factor, _ in LITERALS.values())


def test_every_metric_has_a_unit_that_can_be_written():
    for metric in registry_module.all_metrics():
        unit = unit_of_metric(metric.unit)[1]
        assert unit.written() == metric.unit
        assert unit.written_value(unit_of_metric(metric.unit)[0]) == pytest.approx(1.0)
    assert find("goodput_bps").unit == "bit/s"


@given(st.floats(0, 1e4), st.floats(1e-3, 1e4))
def test_windows_as_labels_keep_their_ends(begin, length):
    window = Window(round(begin, 6), round(begin + length, 6))
    if window.from_s < window.until_s:
        assert window_of(window_label(window)) == pytest.approx(window)


# --- intervals

ends = st.tuples(st.floats(-100, 100), st.floats(0, 50)).map(lambda e: Range(e[0], e[0] + e[1]))
inside = st.floats(0, 1)


@given(ends, ends, inside, inside)
def test_an_interval_holds_what_comes_of_the_values_inside(a, b, s, t):
    x, y = a.low + s * (a.high - a.low), b.low + t * (b.high - b.low)
    for found, true in (
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (-a, -x),
        (3.0 - a, 3.0 - x),
        (2.0 * a, 2.0 * x),
        (a.absolute(), abs(x)),
        (a.least(b), min(x, y)),
        (a.greatest(b), max(x, y)),
    ):
        assert found.low - 1e-9 <= true <= found.high + 1e-9
    if b.low * b.high > 0 and min(abs(b.low), abs(b.high)) > 1e-3:
        quotient = a / b
        slack = 1e-9 * (1 + max(abs(quotient.low), abs(quotient.high)))
        assert quotient.low - slack <= x / y <= quotient.high + slack


def test_what_may_be_divided_by_zero_is_not_known():
    for divisor in (Range(-1.0, 1.0), Range(0.0, 1.0), Range(-1.0, 0.0)):
        assert math.isnan((Range(1.0, 2.0) / divisor).low)
    assert math.isnan(Range(-1.0, 1.0).rising(math.sqrt).low)
