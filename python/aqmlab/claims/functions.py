"""The functions of claims: their arguments and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Domain = Literal["values", "curves", "axis", "seeds"]


@dataclass(frozen=True)
class Function:
    """A function of the grammar.

    Attributes
    ----------
    name
        Its name.
    domain
        What it is computed over: several values of one seed, whole distribution functions of one
        seed, the labels of an axis seed by seed, or the seeds.
    least, most
        Numbers of arguments.
    condition
        Whether its first argument is a condition.
    test
        Whether its value is a truth value, not a number.
    single
        Whether it takes one axis only, because the order of the labels matters or the result is a
        label.
    smooth
        Whether its value changes little when one seed is left out. It does not if it has a kink where
        its arguments are equal, or if it depends on a count and therefore jumps.
    difference
        Whether its value is a difference of its argument's values, in their unit.
    spread
        Whether it is a standard deviation over the seeds, whose distribution is skewed.
    meaning
        The function's meaning in one sentence.
    """

    name: str
    domain: Domain
    least: int
    most: int
    meaning: str
    condition: bool = False
    test: bool = False
    single: bool = False
    smooth: bool = True
    difference: bool = False
    spread: bool = False


MANY = 16
"""Largest number of arguments of a call."""

_ALL = (
    Function("abs", "values", 1, 1, "the absolute value"),
    Function("sqrt", "values", 1, 1, "the square root; not defined below zero"),
    Function("log", "values", 1, 1, "the natural logarithm of a pure number; not defined at zero and below"),
    Function("min", "values", 2, MANY, "the smallest of several values", smooth=False),
    Function("max", "values", 2, MANY, "the largest of several values", smooth=False),
    Function(
        "default", "values", 2, 2, "the first value or, where that is not defined, the second", smooth=False
    ),
    Function("defined", "values", 1, 1, "whether the value is defined", test=True),
    Function(
        "cdf_gap",
        "curves",
        2,
        2,
        "the largest vertical gap between two distribution functions, up to the time given",
        difference=True,
    ),
    Function(
        "cdf_crossing",
        "curves",
        2,
        2,
        "the share of requests or pages that take longer than the crossing time: the time at which the first"
        " of two distribution functions falls behind the second, and at which the lead of the first,"
        " integrated over the logarithm of time, is largest",
    ),
    Function("min", "axis", 1, 1, "the smallest value over the labels", smooth=False),
    Function("max", "axis", 1, 1, "the largest value over the labels", smooth=False),
    Function("mean", "axis", 1, 1, "the mean over the labels"),
    Function("sum", "axis", 1, 1, "the sum over the labels"),
    Function(
        "range",
        "axis",
        1,
        1,
        "the largest value over the labels minus the smallest",
        smooth=False,
        difference=True,
    ),
    Function(
        "largest_step",
        "axis",
        1,
        1,
        "the largest absolute step from label to label",
        single=True,
        smooth=False,
        difference=True,
    ),
    Function(
        "slope",
        "axis",
        1,
        1,
        "the slope of the least-squares line over numeric labels",
        single=True,
        difference=True,
    ),
    Function(
        "change",
        "axis",
        1,
        1,
        "the rise of the least-squares line from the smallest label to the largest; labels that are not"
        " numbers count by their positions",
        single=True,
        difference=True,
    ),
    Function(
        "rank_correlation",
        "axis",
        1,
        2,
        "Spearman's coefficient of the values and the order of labels, or of two values over the labels",
        single=True,
    ),
    Function("correlation", "axis", 2, 2, "Pearson's coefficient of two values over the labels"),
    Function("argmax", "axis", 1, 1, "the label of the largest value", single=True),
    Function("argmin", "axis", 1, 1, "the label of the smallest value", single=True),
    Function("count", "axis", 1, 1, "the number of labels for which the condition is true", condition=True),
    Function(
        "increasing",
        "axis",
        1,
        2,
        "each step to the next label is above zero or, if there is a tolerance, above minus the tolerance",
        test=True,
        single=True,
    ),
    Function(
        "decreasing",
        "axis",
        1,
        2,
        "each step to the next label is below zero or, if there is a tolerance, below the tolerance",
        test=True,
        single=True,
    ),
    Function(
        "no_trend", "axis", 2, 2, "`change` is between minus and plus the tolerance", test=True, single=True
    ),
    Function("mean", "seeds", 1, 1, "the mean over the seeds"),
    Function("median", "seeds", 1, 1, "the median over the seeds", smooth=False),
    Function(
        "std", "seeds", 1, 1, "the standard deviation over the seeds (n - 1)", difference=True, spread=True
    ),
    Function(
        "quantile", "seeds", 2, 2, "the value that the given share of the seeds does not exceed", smooth=False
    ),
    Function(
        "share",
        "seeds",
        1,
        1,
        "the share of the seeds for which the condition is true",
        condition=True,
        smooth=False,
    ),
    Function(
        "any",
        "seeds",
        1,
        2,
        "the condition is true for at least one seed; fails if it is true for none and there are enough seeds"
        " to detect a share of 15 % (or the given share) with a probability of 95 %",
        condition=True,
        test=True,
    ),
)

FUNCTIONS: Mapping[str, Mapping[Domain, Function]] = {
    name: {f.domain: f for f in _ALL if f.name == name} for name in dict.fromkeys(f.name for f in _ALL)
}
"""The functions by name, then by domain, because ``max`` takes several values or an axis."""

BEST = ("argmax", "argmin")
"""Functions that return a label."""

OF_PAIRS = ("correlation", "rank_correlation")
"""Functions that may take a second value per label when applied over an axis."""


def function_of(name: str, *, over: bool) -> Function | None:
    """Return the intended function: over an axis if one is named, else over several values or the seeds."""
    domains: tuple[Domain, ...] = ("axis",) if over else ("values", "curves", "seeds")
    return next((FUNCTIONS[name][d] for d in domains if d in FUNCTIONS[name]), None)
