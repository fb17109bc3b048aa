"""What a sweep says about queueing delay and its price: a few sentences, from the figures alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aqmlab.answers import Answer
from aqmlab.figures import display_unit, estimate_text
from aqmlab.metrics import Metric, find
from aqmlab.reports.answer import DELAY, GOODPUT
from aqmlab.reports.sweep.differences import Differences
from aqmlab.results import Cell
from aqmlab.stats.sentence import spoken


def answer(cells: Answer, of_metrics: Sequence[Differences]) -> str:
    """Which arm waits least in how many cases, and which delivers most."""
    found = {entry.metric.name: entry for entry in of_metrics}
    shown = {metric.name for metric in cells.shown}
    told = [name for name in (DELAY, GOODPUT) if name in shown]
    if not told:
        return "Nothing was delivered in the measured intervals, so there is nothing to compare."
    arms = cells.results.arms
    if len(arms) == 1:
        return " ".join(_range(cells, find(name)) for name in told)
    if len(arms) == 2:
        return " ".join(_of_two(found[name]) for name in told)
    return " ".join(_of_many(cells, found[name]) for name in told)


def _range(cells: Answer, metric: Metric) -> str:
    """The least and the greatest mean of the only arm."""
    means = {cell: est for cell in cells.results.cells if (est := cells.estimate(cell, metric.name))}
    least, most = (choose(means, key=lambda cell: means[cell].mean) for choose in (min, max))
    unit = display_unit(metric.unit)
    what = _subject(metric)
    if least == most:
        return f"{what} is {estimate_text(means[least], metric.unit)} {unit}."
    return (
        f"{what} goes from {estimate_text(means[least], metric.unit)} {unit} ({case_text(least)})"
        f" to {estimate_text(means[most], metric.unit)} {unit} ({case_text(most)})."
    )


def _of_two(found: Differences) -> str:
    """In how many cases the second arm is below the first, above it, or not significantly different."""
    ((arm, other),) = found.pairs
    contrasts = found.contrasts[0]
    standing = [c.found.estimate.mean for c in contrasts if c.stands and c.found.estimate is not None]
    lower = sum(mean < 0 for mean in standing)
    higher, open_ = len(standing) - lower, len(contrasts) - len(standing)
    parts = [f"{word} in {count}" for word, count in (("lower", lower), ("higher", higher)) if count]
    if not parts:
        return (
            f"{_subject(found.metric)} does not differ significantly between {arm} and {other} in"
            f" {_cases(open_)}."
        )
    counts = f"{' and '.join(parts)} of {_cases(len(contrasts))}"
    said = f"{_subject(found.metric)} is {counts} with {arm} than with {other}"
    return f"{said}; in {open_} the difference is not significant." if open_ else f"{said}."


def _of_many(cells: Answer, found: Differences) -> str:
    """How often each arm is the best, and how often significantly so."""
    metric, best = found.metric, (min if found.metric.better == "less" else max)
    firsts: Counter[str] = Counter()
    sure: Counter[str] = Counter()
    for _, of_case in cells.cases:
        means = {cell.arm: est.mean for cell in of_case if (est := cells.estimate(cell, metric.name))}
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
        f"{arm} has the {what} {spoken(metric.label)} in {count} of {_cases(total)}"
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
    """``rate 5Mbit, count 20``: a cell without its arm."""
    return str(cell).removeprefix(cell.arm).removeprefix(", ") or cell.arm


def _subject(metric: Metric) -> str:
    what = spoken(metric.label)
    return what[0].upper() + what[1:]


def _cases(count: int) -> str:
    return f"{count} case" if count == 1 else f"{count} cases"
