"""The grammar of claims: every rule, every error with its position, and arbitrary text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aqmlab.claims import parse
from aqmlab.claims import tree as t
from aqmlab.claims.functions import FUNCTIONS
from aqmlab.claims.parse import DEEPEST
from aqmlab.claims.scan import LONGEST, SourceLocation
from aqmlab.errors import ScenarioError


def metric(name, **settings):
    return t.MetricOf(0, name, tuple(t.Matcher(0, t.Label(0, k), t.label(v)) for k, v in settings.items()))


A, B = metric("a"), metric("b")


def less(a, b):
    return t.Compare(0, a, (("<", b),))


def number(digits, unit=""):
    return t.Number(0, digits, unit)


def over(*axes):
    return tuple(t.Choice(0, t.label(axis), "") for axis in axes)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a < b", less(A, B)),
        ("a<b", less(A, B)),
        ("a <= b < 5", t.Compare(0, A, (("<=", B), ("<", number("5"))))),
        ("a == 0", t.Compare(0, A, (("==", number("0")),))),
        ("a in [1 %, 2.5 %]", t.Between(0, A, number("1", "%"), number("2.5", "%"))),
        ("a < 10ms", less(A, number("10", "ms"))),
        ("a < 10 ms", less(A, number("10", "ms"))),
        ("a < 1.5Mbit", less(A, number("1.5", "Mbit"))),
        ("a < 1.5Mbit/s", less(A, number("1.5", "Mbit/s"))),
        ("a < .5e3p", less(A, number(".5e3", "p"))),
        ("a < 5%", less(A, number("5", "%"))),
        # a quotient, not a unit
        ("a < 5ms/b", less(A, t.Arithmetic(0, number("5", "ms"), (("/", B),)))),
        ("a < 5ms / 3", less(A, t.Arithmetic(0, number("5", "ms"), (("/", number("3")),)))),
        # products bind tighter; sums and products are left-associative
        (
            "a - b + 2 * a < b",
            less(
                t.Arithmetic(0, A, (("-", B), ("+", t.Arithmetic(0, number("2"), (("*", A),))))),
                B,
            ),
        ),
        ("a * (a - b) < b", less(t.Arithmetic(0, A, (("*", t.Arithmetic(0, A, (("-", B),))),)), B)),
        ("-a < b", less(t.Negative(0, A), B)),
        ("-(a + b) < b", less(t.Negative(0, t.Arithmetic(0, A, (("+", B),))), B)),
        ("(a) < (b)", less(A, B)),
        # conditions
        ("a < b and b < a", t.And(0, (less(A, B), less(B, A)))),
        ("a < b or b < a and a < a", t.Or(0, (less(A, B), t.And(0, (less(B, A), less(A, A)))))),
        ("(a < b or b < a) and a < a", t.And(0, (t.Or(0, (less(A, B), less(B, A))), less(A, A)))),
        ("not a < b and b < a", t.And(0, (t.Not(0, less(A, B)), less(B, A)))),
        ("not (a < b and b < a)", t.Not(0, t.And(0, (less(A, B), less(B, A))))),
        # braces
        ("x{arm=RED} < b", less(metric("x", arm="RED"), B)),
        (
            "x{arm='gentle RED', topology.rate=1.5Mbit, from=10s} < b",
            less(metric("x", arm="gentle RED", **{"topology.rate": "1.5Mbit", "from": "10s"}), B),
        ),
        ('x{arm="it\'s"} < b', less(t.MetricOf(0, "x", (t.Matcher(0, t.label("arm"), t.label("it's")),)), B)),
        # quantifiers
        ("for all buffer: a < b", t.For(0, "all", over("buffer"), less(A, B))),
        ("for some arm, topology.rate: a < b", t.For(0, "some", over("arm", "topology.rate"), less(A, B))),
        (
            "for most buffer in (4p, 12p to 72p): a < b",
            t.For(
                0,
                "most",
                (
                    t.Choice(
                        0,
                        t.label("buffer"),
                        "in",
                        (t.Pick(0, t.label("4p")), t.Pick(0, t.label("12p"), t.label("72p"))),
                    ),
                ),
                less(A, B),
            ),
        ),
        (
            "for all arm except (RED): for some buffer: a < b or b < a",
            t.For(
                0,
                "all",
                (t.Choice(0, t.label("arm"), "except", (t.Pick(0, t.label("RED")),)),),
                t.For(0, "some", over("buffer"), t.Or(0, (less(A, B), less(B, A)))),
            ),
        ),
        (
            "for all window in (every 20s from 0s until 200s): a < b",
            t.For(
                0,
                "all",
                (
                    t.Choice(
                        0,
                        t.label("window"),
                        "in",
                        (t.Every(0, t.label("20s"), t.label("0s"), t.label("200s")),),
                    ),
                ),
                less(A, B),
            ),
        ),
        # calls
        ("abs(a) < b", less(t.Call(0, "abs", (A,)), B)),
        ("max(a, b, 5) < b", less(t.Call(0, "max", (A, B, number("5"))), B)),
        ("max(a over buffer and arm) < b", less(t.Call(0, "max", (A,), over("buffer", "arm")), B)),
        ("mean(a) < b", less(t.Call(0, "mean", (A,)), B)),
        ("quantile(a, 0.9) < b", less(t.Call(0, "quantile", (A, number("0.9"))), B)),
        (
            "share(a < b) > 50 %",
            t.Compare(0, t.Call(0, "share", (less(A, B),)), ((">", number("50", "%")),)),
        ),
        ("count(a < b over buffer) < b", less(t.Call(0, "count", (less(A, B),), over("buffer")), B)),
        ("any(a < b)", t.Test(0, "any", (less(A, B),))),
        ("increasing(a over buffer)", t.Test(0, "increasing", (A,), over("buffer"))),
        ("no_trend(a over buffer, 2 %)", t.Test(0, "no_trend", (A, number("2", "%")), over("buffer"))),
        (
            "argmax(a over buffer) == 4p",
            t.BestIs(0, t.Call(0, "argmax", (A,), over("buffer")), (t.label("4p"),)),
        ),
        (
            "argmin(a over arm) in ('x y', B)",
            t.BestIs(0, t.Call(0, "argmin", (A,), over("arm")), (t.label("x y"), t.label("B"))),
        ),
    ],
)
def test_every_rule(text, tree):
    assert parse(text) == tree
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", 1, "a metric, a number or a function is missing before the end"),
        ("a <", 4, "is missing before the end"),
        ("a < 1 b", 7, "`b` comes after the end"),
        ("a", 1, "a claim is a condition, but this is a value"),
        ("a + 1", 1, "a claim is a condition"),
        ("a = b", 3, "`=` is not a comparison; write `==`"),
        ("a < b < a < b", 11, "at most three parts"),
        ("a < 5foo", 6, "`foo` is not a unit; the units are `s`"),
        ("a < 5 foo", 7, "`foo` comes after the end"),
        ("a # b", 3, "`#` has no meaning here"),
        ("a \x00 b", 3, "the character U+0000 has no meaning here"),
        ("a < 'b'", 5, "is missing before `'b'`"),
        ("(a < b", 7, "`)` is missing before the end"),
        ("(a < b) + 1 < 2", 1, "this is an operand of `+` and must be a value, but it is a condition"),
        ("1 + (a < b) < 2", 5, "this is an operand of `+` and must be a value, but it is a condition"),
        ("-(a < b) < 2", 2, "is an operand of `-` and must be a value"),
        ("a < b < (a < b)", 9, "this is compared and must be a value"),
        ("not a", 5, "`not` applies to a condition"),
        ("a and a < b", 1, "`and` joins conditions"),
        ("a < b or a", 10, "`or` joins conditions"),
        ("x{} < b", 3, "a key is missing before `}`"),
        ("x{arm} < b", 6, "`=` is missing before `}` after the key `arm`"),
        ("x{arm=} < b", 7, "a value is missing before `}`"),
        ("x{arm=gentle RED} < b", 14, "put a label with spaces in quotes"),
        ("x{arm=all} < b", 7, "`all` is a keyword of the grammar"),
        ("for any buffer: a < b", 5, "`for` is followed by `all`, `most` or `some`, not by `any`"),
        ("for all buffer a < b", 16, "`:` is missing before `a`"),
        ("for all buffer in 4p: a < b", 19, "`(` is missing"),
        ("for all in (4p): a < b", 9, "`in` is a keyword of the grammar"),
        ("for all buffer in (4p: a < b", 22, "`)` is missing before `:`"),
        ("for all window in (every 5s): a < b", 28, "`from` is missing before `)`"),
        ("for all buffer: a", 17, "`for` applies to a condition"),
        ("a in (1, 2)", 6, "`in` is followed by a range"),
        ("a in [1]", 8, "`,` is missing before `]`"),
        ("foo(a) < b", 1, "there is no function `foo`"),
        ("incresing(a over b)", 1, "did you mean `increasing`"),
        ("abs(a, b) < b", 1, "`abs` takes 1 argument; 2 are given"),
        ("quantile(a) < b", 1, "`quantile` takes 2 arguments; 1 are given"),
        ("max(a) < b", 1, "`max` needs an axis; write `max(x over AXIS)`"),
        ("range(a) < b", 1, "`range` needs an axis"),
        ("mean() < b", 1, "takes 1 argument; 0 are given"),
        ("median(a over buffer) < b", 1, "`median` takes no axis"),
        ("slope(a over buffer and arm) < b", 25, "`slope` takes only one axis"),
        ("rank_correlation(a over buffer and arm) < b", 36, "`rank_correlation` takes only one axis"),
        ("correlation(a over buffer) < b", 1, "`correlation` takes 2 arguments; 1 are given"),
        ("cdf_gap(a, b, c) < b", 1, "`cdf_gap` takes 2 arguments; 3 are given"),
        ("share(a) < b", 7, "`share` takes a condition"),
        ("mean(a < b) < b", 6, "is an argument of `mean` and must be a value, but it is a condition"),
        ("argmax(a over buffer) < 4p", 23, "a label is compared with `==` or `in`"),
        ("argmax(a over buffer) in [4p]", 26, "`in` is followed by labels in parentheses"),
        ("and < b", 1, "is missing before `and`"),
        ("((((" * 10 + "a", DEEPEST + 1, f"more than {DEEPEST} levels"),
        ("not " * 40 + "a < b", 4 * DEEPEST + 1, f"more than {DEEPEST} levels"),
        ("-" * 40 + "a < b", DEEPEST + 1, f"more than {DEEPEST} levels"),
        ("a < " + "1 + " * LONGEST + "1", LONGEST + 1, f"at most {LONGEST} are allowed"),
    ],
)
def test_every_complaint_has_its_place(text, at, message):
    with pytest.raises(ScenarioError) as caught:
        parse(text, SourceLocation("M02", "x.toml", 7, 1))
    assert str(caught.value).startswith(f"x.toml:7:{at}: claim `M02`: "), str(caught.value)
    assert message in str(caught.value)
    (problem,) = caught.value.errors
    assert (problem["line"], problem["column"]) == (7, at)


def test_places_in_texts_of_several_lines_and_without_a_file():
    with pytest.raises(ScenarioError, match=r"^x\.toml:9:3: "):
        parse("a <\n b and\n  # ", SourceLocation("c", "x.toml", 7, 11))
    with pytest.raises(ScenarioError, match=r"^claim `c`, character 4: "):
        parse("a <", SourceLocation("c"))


def test_quotes_say_that_a_word_is_a_label():
    choice = t.Choice(0, t.Label(0, "buffer"), "in", (t.Pick(0, t.Label(0, "first", quoted=True)),))
    assert parse("for all buffer in ('first'): a < b").choices == (choice,)
    assert parse("for all buffer in (first): a < b").choices != (choice,)
    assert parse(r"x{arm='a\'b\\c'} < b").first.settings[0].value.text == r"a'b\c"


def test_a_long_chain_is_no_deep_one():
    claim = parse("a < " + " + ".join(["1"] * 900))
    assert len(claim.rest[0][1].rest) == 899
    assert parse(str(claim)) == claim


def test_the_row_of_every_function_is_complete():
    every = [f for by_domain in FUNCTIONS.values() for f in by_domain.values()]
    assert all(1 <= f.least <= f.most for f in every)
    assert [f.name for f in every if f.domain == "seeds" and not f.test and f.interval is None] == []
    assert all(f.phrase.format(name="f", one="a", last="b", all="a and b", st="", est="") for f in every)


# --- arbitrary texts and arbitrary trees

WORDS = [*t.WORDS, *FUNCTIONS, "a", "arm", "RED", "'x y'", "{", "}", "(", ")", "[", "]", ",", ":", "=", "=="]
WORDS += [
    "<",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "5",
    "10ms",
    "5 %",
    "1.5Mbit",
    "\n",
    "#",
    "'",
    "\\",
    "é",
    "window",
    "4p",
]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
@example("'\\")
@example("5e")
@example("a{b='")
@example("٣ < 5")
@example("a < 5" + "0" * 400)
def test_any_text_is_a_claim_or_refused(text):
    try:
        claim = parse(text, SourceLocation("c", "f", 1, 1))
    except ScenarioError:
        return
    assert parse(str(claim)) == claim


plain = st.text("abzAZ019.-_+é", min_size=1, max_size=4)
labels = st.one_of(plain, st.text(max_size=5), st.sampled_from(sorted(t.WORDS))).map(t.label)
names = st.sampled_from(["goodput_bps", "a", "b_2"])
numbers = st.builds(
    number, st.sampled_from(["0", "5", "1.5", ".25", "2e3"]), st.sampled_from(["", "ms", "%", "p"])
)
picks = st.one_of(
    st.builds(lambda f: t.Pick(0, f), labels),
    st.builds(lambda f, u: t.Pick(0, f, u), labels, labels),
    st.builds(lambda s, f, u: t.Every(0, s, f, u), labels, labels, labels),
)
choices = st.one_of(
    st.builds(lambda a: t.Choice(0, a, ""), labels),
    st.builds(
        lambda a, m, p: t.Choice(0, a, m, tuple(p)),
        labels,
        st.sampled_from(["in", "except"]),
        st.lists(picks, min_size=1, max_size=2),
    ),
)
keys = st.one_of(plain.filter(lambda w: w not in t.WORDS), st.sampled_from(["from", "until"])).map(
    lambda text: t.Label(0, text)
)
settings = st.builds(lambda k, v: t.Matcher(0, k, v), keys, labels)
metrics = st.builds(lambda n, s: t.MetricOf(0, n, tuple(s)), names, st.lists(settings, max_size=2))
relations = st.sampled_from(["<", "<=", ">", ">=", "=="])


def grown(inner):
    """A pair of strategies, for expressions and for conditions, each one level deeper than those of
    ``inner``."""
    values, conditions = inner
    tails = st.lists(st.tuples(st.sampled_from("+-"), values), min_size=1, max_size=2)
    products = st.lists(st.tuples(st.sampled_from("*/"), values), min_size=1, max_size=2)
    axis = st.lists(choices, min_size=1, max_size=1)
    more_values = st.one_of(
        metrics,
        numbers,
        st.builds(lambda v: t.Negative(0, v), values),
        st.builds(lambda v, r: t.Arithmetic(0, v, tuple(r)), values, st.one_of(tails, products)),
        st.builds(lambda v: t.Call(0, "abs", (v,)), values),
        st.builds(lambda v, w: t.Call(0, "max", (v, w)), values, values),
        st.builds(lambda v, o: t.Call(0, "slope", (v,), tuple(o)), values, axis),
        st.builds(lambda c: t.Call(0, "share", (c,)), conditions),
        st.builds(lambda c, o: t.Call(0, "count", (c,), tuple(o)), conditions, axis),
    )
    best = st.builds(
        lambda f, v, o: t.Call(0, f, (v,), tuple(o)), st.sampled_from(["argmax", "argmin"]), values, axis
    )
    more_conditions = st.one_of(
        st.builds(
            lambda v, r: t.Compare(0, v, tuple(r)),
            values,
            st.lists(st.tuples(relations, values), min_size=1, max_size=2),
        ),
        st.builds(lambda v, a, b: t.Between(0, v, a, b), values, values, values),
        st.builds(lambda b, w: t.BestIs(0, b, tuple(w)), best, st.lists(labels, min_size=1, max_size=2)),
        st.builds(lambda v, o, w: t.Test(0, "no_trend", (v, w), tuple(o)), values, axis, values),
        st.builds(lambda c: t.Test(0, "any", (c,)), conditions),
        st.builds(lambda c: t.Not(0, c), conditions),
        st.builds(lambda p: t.And(0, tuple(p)), st.lists(conditions, min_size=2, max_size=3)),
        st.builds(lambda p: t.Or(0, tuple(p)), st.lists(conditions, min_size=2, max_size=3)),
        st.builds(
            lambda q, o, c: t.For(0, q, tuple(o), c),
            st.sampled_from(["all", "most", "some"]),
            st.lists(choices, min_size=1, max_size=2),
            conditions,
        ),
    )
    return more_values, more_conditions


LEVELS = [(st.one_of(metrics, numbers), st.builds(less, metrics, numbers))]
for _ in range(3):
    LEVELS.append(grown(LEVELS[-1]))


@given(st.one_of(*(conditions for _, conditions in LEVELS)))
def test_what_is_printed_is_read_as_the_same(claim):
    assert parse(str(claim)) == claim
