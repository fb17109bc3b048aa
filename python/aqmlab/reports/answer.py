"""Puts the answer into a sentence or two, using only its figures, and finds the best arms of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from aqmlab.answers import Answer
from aqmlab.cells import Cell
from aqmlab.figures import counted, display_unit, estimate_text, listed, number
from aqmlab.metrics import Metric
from aqmlab.reports.differences import Differences, differences
from aqmlab.stats import Estimate
from aqmlab.stats.sentence import spoken

DELAY = "queueing_delay_p95_s"
GOODPUT = "goodput_bps"
DROPS = "drop_percent"


def in_words(answer: Answer, compared: Sequence[Differences] | None = None) -> str:
    """Return the conclusion about queueing delay and its cost.

    Arms are compared seed by seed because they share their arrivals. Over several cases, the text
    counts the cases in which an arm is ahead.

    Parameters
    ----------
    answer
        The answer, with one case or many.
    compared
        The differences between its arms, if they have been computed already.
    """
    if not answer.results.axes:
        return _of_one_case(answer)
    shown = {metric.name: metric for metric in answer.shown}
    named = [name for name in (DELAY, GOODPUT) if name in shown]
    if not named:
        return "Nothing was delivered in the measured intervals, so there is nothing to compare."
    if len(answer.compared) == 1:
        return " ".join(_range(answer, shown[name]) for name in named)
    if compared is None:
        compared = [differences(answer, shown[name]) for name in named]
    found = {entry.metric.name: entry for entry in compared}
    say = _of_two if len(answer.compared) == 2 else _of_many
    return " ".join(say(answer, found[name]) for name in named)


def _of_one_case(table: Answer) -> str:
    delays = _present(table, DELAY)
    goodputs = _present(table, GOODPUT)
    if not delays or not goodputs:
        return "Nothing was delivered in the measured interval, so there is nothing to compare."
    if len(table.compared) == 1:
        return _single(table, delays, goodputs)
    best = min(delays, key=lambda arm: delays[arm].mean)
    worst = max(delays, key=lambda arm: delays[arm].mean)
    if delays[best].mean == delays[worst].mean:
        return "All arms have the same queueing delay."
    equals = [arm for arm in delays if arm != best and _same(table.difference(arm, best, DELAY))]
    if len(equals) == len(delays) - 1 and len(table.results.finished_seeds) > 1:
        return (
            "The arms do not differ significantly in queueing delay: 95 % of the packets wait at most"
            f" {_text(delays[best], 's')} with {best}, the shortest delay, and"
            f" {_text(delays[worst], 's')} with {worst}, the longest."
        )
    first = (
        f"{best} has the shortest queueing delay: 95 % of its packets wait at most"
        f" {_text(delays[best], 's')}, against {_text(delays[worst], 's')} with {worst}"
    )
    if len(table.results.finished_seeds) == 1:
        first += " (one run per arm: no interval, so the difference may be chance)"
    if equals:
        first += f". The difference from {listed(equals)} is not significant"
    richest = max(goodputs, key=lambda arm: goodputs[arm].mean)
    return f"{first}. {_price(table, best, richest)}{_losses(table, best, worst)}"


def best_arm(table: Answer) -> str:
    """Return the arm with the shortest queueing delay; the first arm if there are many cases or no delays."""
    delays = {} if table.results.axes else _present(table, DELAY)
    return min(delays, key=lambda arm: delays[arm].mean) if delays else table.compared[0]


def _single(table: Answer, delays: dict[str, Estimate], goodputs: dict[str, Estimate]) -> str:
    arm = table.compared[0]
    drops = table.estimate(arm, DROPS)
    lost = f"; {estimate_text(drops, '%')} % of the packets were dropped" if drops else ""
    return (
        f"Goodput was {_text(goodputs[arm], 'bit/s')}, and 95 % of the packets waited at most"
        f" {_text(delays[arm], 's')} in the queue{lost}."
    )


def _price(table: Answer, best: str, richest: str) -> str:
    """Describe what the arm with the shortest delay costs in goodput."""
    if best == richest:
        return f"{best} also has the highest goodput."
    paid = table.difference(richest, best, GOODPUT)
    whole = table.estimate(richest, GOODPUT)
    if paid is None or whole is None or whole.mean == 0:
        return f"No seed was run with both {best} and {richest}, so the cost in goodput is unknown."
    percent = f"{number(100 * paid.mean / whole.mean, 2)} %"
    if paid.half_width is None:
        return f"{best} delivers {percent} less than {richest}."
    width = number(100 * paid.half_width / whole.mean, 2)
    if not paid.excludes_zero():
        return (
            f"The goodput of {best} does not differ significantly from the highest, that of {richest}"
            f" ({percent} lower, ± {width}, n = {paid.n} paired seeds)."
        )
    cost = f"{percent} (± {width}, n = {paid.n} paired seeds)"
    return f"The goodput of {best} is {cost} below the highest, that of {richest}."


def _losses(table: Answer, best: str, worst: str) -> str:
    drops = _present(table, DROPS)
    if best not in drops or worst not in drops:
        return ""
    of_best, of_worst = (estimate_text(drops[arm], "%") for arm in (best, worst))
    return f" {best} drops {of_best} % of the packets; {worst} drops {of_worst} %."


def _same(difference: Estimate | None) -> bool:
    return difference is not None and difference.half_width is not None and not difference.excludes_zero()


def _present(table: Answer, metric: str) -> dict[str, Estimate]:
    estimates = {arm: table.estimate(arm, metric) for arm in table.compared}
    return {arm: est for arm, est in estimates.items() if est is not None}


def _text(est: Estimate, unit: str) -> str:
    return f"{estimate_text(est, unit)} {display_unit(unit)}"


def _range(answer: Answer, metric: Metric) -> str:
    """Return the smallest and the largest mean of the only arm over the cases."""
    cells = (cell for cell in answer.results.cells if cell.arm in answer.compared)
    means = {cell: est for cell in cells if (est := answer.estimate(cell, metric.name))}
    least, most = (choose(means, key=lambda cell: means[cell].mean) for choose in (min, max))
    unit = display_unit(metric.unit)
    what = _subject(metric)
    if least == most:
        return f"{what} is {estimate_text(means[least], metric.unit)} {unit}."
    return (
        f"{what} goes from {estimate_text(means[least], metric.unit)} {unit} ({case_text(least)})"
        f" to {estimate_text(means[most], metric.unit)} {unit} ({case_text(most)})."
    )


def _of_two(answer: Answer, found: Differences) -> str:
    """Count the cases in which the second arm is lower, higher or not significantly different."""
    ((arm, other),) = (pair for pair in found.pairs if set(pair) == set(answer.compared))
    contrasts = found.between(arm, other)
    standing = [c.found.estimate.mean for c in contrasts if c.stands and c.found.estimate is not None]
    lower = sum(mean < 0 for mean in standing)
    higher, open_ = len(standing) - lower, len(contrasts) - len(standing)
    parts = [f"{word} in {count}" for word, count in (("lower", lower), ("higher", higher)) if count]
    if not parts:
        return (
            f"{_subject(found.metric)} does not differ significantly between {arm} and {other} in"
            f" {counted(open_, 'case')}."
        )
    counts = f"{' and '.join(parts)} of {counted(len(contrasts), 'case')}"
    said = f"{_subject(found.metric)} is {counts} with {arm} than with {other}"
    return f"{said}; in {open_} the difference is not significant." if open_ else f"{said}."


def _of_many(answer: Answer, found: Differences) -> str:
    """Count how often each arm is the best, and how often significantly so."""
    metric, best = found.metric, (min if found.metric.better == "less" else max)
    firsts: Counter[str] = Counter()
    sure: Counter[str] = Counter()
    for _, of_case in answer.cases:
        asked = (cell for cell in of_case if cell.arm in answer.compared)
        means = {cell.arm: est.mean for cell in asked if (est := answer.estimate(cell, metric.name))}
        if not means:
            continue
        top = best(means, key=lambda arm: means[arm])
        firsts[top] += 1
        sure[top] += _beats_all(found, top, of_case[0], set(means) - {top})
    total = firsts.total()
    what = "shortest" if metric.name == DELAY else "highest"
    (arm, count), *others = firsts.most_common()
    rest = "".join(f"; {name} in {n} (significantly in {sure[name] or 'none'})" for name, n in others)
    return (
        f"{arm} has the {what} {spoken(metric.label)} in {count} of {counted(total, 'case')}"
        f" (significantly in {sure[arm] or 'none'}){rest}."
    )


def _beats_all(found: Differences, arm: str, of_case: Cell, others: set[str]) -> bool:
    """Whether every other arm of a case differs significantly from this one."""
    standing = {
        frozenset((c.cell.arm, c.other.arm))
        for of_pair in found.contrasts
        for c in of_pair
        if c.stands and c.cell.settings == of_case.settings
    }
    return all(frozenset((arm, other)) in standing for other in others)


def case_text(cell: Cell) -> str:
    """The settings of a cell without its arm: ``rate 5Mbit, count 20``."""
    return str(cell).removeprefix(cell.arm).removeprefix(", ")


def _subject(metric: Metric) -> str:
    what = spoken(metric.label)
    return what[0].upper() + what[1:]


def best_arms(
    means: Mapping[str, float], better: str, difference: Callable[[str, str], Estimate | None]
) -> frozenset[str]:
    """Return the arm with the best mean, and the arms that do not differ significantly from it (paired).

    Parameters
    ----------
    means
        Means by arm.
    better
        ``"less"``, ``"more"``, or empty where neither is better.
    difference
        Returns the difference between two arms, computed seed by seed.

    Returns
    -------
    frozenset
        Empty if no arm differs, because a mark would then be meaningless.
    """
    if not better or len(means) < 2:
        return frozenset()
    top = (min if better == "less" else max)(means, key=lambda arm: means[arm])
    chosen = set()
    for arm in means:
        found = difference(arm, top)
        if found is not None and not found.excludes_zero():
            chosen.add(arm)
    return frozenset() if len(chosen) == len(means) else frozenset(chosen)
