"""The answer over several sets of circumstances: where a choice is better, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from aqmlab.figures.trade_off import SHARE, Starved, TradeOff
from aqmlab.metrics import Metric
from aqmlab.reports.answer_words import (
    MOST_NAMED,
    be,
    does,
    extremes,
    mean_of,
    means_of,
    percent_range,
    superlatives,
    upper,
    used_text,
)
from aqmlab.results.cells import Cell
from aqmlab.stats.sentence import spoken
from aqmlab.text.numbers import counted, listed

_ONE_RUN = "In one run each (no interval), "


def of_cases(found: TradeOff) -> list[str]:
    """Return the sentences about each metric of the question, starved links and dominated choices."""
    question = found.question
    metrics = [metric for metric in question.asked if metric.name != SHARE and metric.better]
    # A question about delay and its price has two halves, which one sentence answers.
    halves = question.of_delay or not metrics
    if halves:
        metrics = [question.delay, question.price, *(metric for metric in question.others if question.asked)]
    metrics = [metric for metric in dict.fromkeys(metrics) if found.defined(metric)]
    if len(found.choices) == 2:
        said = [_of_two(found, metric) for metric in metrics]
        if halves and all(said[:2]):
            second = said[1].removeprefix(_ONE_RUN)
            said[:2] = [f"{said[0][:-1]}; {second[0].lower()}{second[1:]}"]
    else:
        said = [_of_many(found, metric) for metric in metrics]
    return [*said, _starvation_in_cases(found), _dominance_in_cases(found)]


def _of_two(found: TradeOff, metric: Metric) -> str:
    """State where the second choice is significantly lower or higher than the first, and by how much."""
    first, second = found.choices
    pairs = []
    for group in found.groups:
        by_name = {found.name(cell): cell for cell in group}
        if first in by_name and second in by_name and all(found.mean(c, metric) for c in by_name.values()):
            pairs.append((by_name[second], by_name[first]))
    if not pairs:
        return ""
    what = upper(spoken(metric.label))
    if len(found.results.finished_seeds) == 1:
        lower = sum(mean_of(found, cell, metric) < mean_of(found, other, metric) for cell, other in pairs)
        return (
            f"{_ONE_RUN}{spoken(metric.label)} {be(metric)} lower with {second} than"
            f" with {first} in {lower} of {counted(len(pairs), 'case')}."
        )
    ahead = found.ahead(metric, pairs)
    sign = -1 if metric.better == "less" else 1
    everywhere = [cell for cell, _ in pairs]
    parts: list[str] = []
    for word, better in (("lower", -1), ("higher", 1)):
        there = [(cell, other) for cell, other in pairs if ahead[cell, other] * sign == better]
        if not there:
            continue
        changes = [found.contrast(*pair, metric).relative.estimate for pair in there]
        by = percent_range([abs(change) for change in changes if change is not None])
        versus = "" if parts else f" with {second} than with {first}"
        where = _in_cases(found, [cell for cell, _ in there], everywhere)
        parts.append(f"{word}{versus} {where}{f', by {by}' if by else ''}")
    open_ = sum(not ahead[pair] for pair in pairs)
    if not parts:
        return (
            f"{what} {does(metric)} not differ significantly between {first} and {second} in"
            f" {counted(open_, 'case')}."
        )
    others = f"the other {open_}" if open_ > 1 else "the other"
    rest = f" (in {others}, the difference is not significant)" if open_ else ""
    return f"{what} {be(metric)} {' and '.join(parts)}{rest}."


def _of_many(found: TradeOff, metric: Metric) -> str:
    """Count how often each choice is the best, and how often significantly so."""
    firsts: dict[tuple[Cell, ...], Cell] = {}
    pairs: list[tuple[Cell, Cell]] = []
    for group in found.groups:
        means = means_of(found, group, metric)
        if not means:
            continue
        top = extremes(means, metric)[0]
        firsts[tuple(means)] = top
        pairs += [(top, other) for other in means if other != top]
    ahead = found.ahead(metric, pairs)
    count = Counter(found.name(top) for top in firsts.values())
    sure = Counter(
        found.name(top)
        for cells, top in firsts.items()
        if all(ahead[top, other] > 0 for other in cells if other != top)
    )
    if not count:
        return ""
    most, _ = superlatives(metric)
    (name, _), *others = count.most_common()
    ahead_there = [top for top in firsts.values() if found.name(top) == name]
    where = _in_cases(found, ahead_there, list(firsts.values()))
    rest = "".join(
        f"; {other} in {n} (significantly in {sure[other] or 'none'})" for other, n in others[:MOST_NAMED]
    )
    return (
        f"{name} has the {most} {spoken(metric.label)} {where}"
        f" (significantly in {sure[name] or 'none'}){rest}."
    )


def _starvation_in_cases(found: TradeOff) -> str:
    counts: dict[str, list[Starved]] = {}
    for one in found.starved.values():
        counts.setdefault(found.name(one.cell), []).append(one)
    parts = []
    for name, all_of in counts.items():
        least = min(all_of, key=lambda one: one.used.mean)
        where = _in_cases(found, [one.cell for one in all_of], [of[0] for of in found.groups])
        parts.append(f"{name} starves the link {where}, and uses {used_text(least.used)} of it at worst")
    return f"{'; '.join(parts)}." if parts else ""


def _dominance_in_cases(found: TradeOff) -> str:
    beaten = Counter(found.name(one.cell) for front in found.front for one in front.beaten)
    if not beaten:
        return ""
    delay, price = found.question.delay, found.question.price
    cases = counted(len(found.front), "case")
    parts = [f"{name} is in {n}" for name, n in beaten.most_common(MOST_NAMED)]
    name, number = beaten.most_common(1)[0]
    parts[0] = f"{name} is dominated in {number} of {cases}"
    return f"In {spoken(delay.label)} and {spoken(price.label)}, {listed(parts)}."


def _in_cases(found: TradeOff, there: Sequence[Cell], everywhere: Sequence[Cell]) -> str:
    """Return ``in 8 of 12 cases (count 20 or 80)``, or ``in all 12 cases``."""
    if len(there) == len(everywhere) > 1:
        return f"in all {len(everywhere)} cases"
    return f"in {len(there)} of {counted(len(everywhere), 'case')}{_where(found, there, everywhere)}"


def _where(found: TradeOff, there: Sequence[Cell], everywhere: Sequence[Cell]) -> str:
    """Describe some of the circumstances by their labels: `` (count 20 or 80)``; empty for all of them.

    It is also empty if they are neither a combination of labels nor a single case.
    """
    places, all_places = ([found.place(cell) for cell in cells] for cells in (there, everywhere))
    if len(places) == len(all_places):
        return ""
    axes = [axis for axis in found.results.axes if axis not in found.chosen_axes]
    labels = {axis.name: [x for x in axis.labels if any(p[axis.name] == x for p in places)] for axis in axes}
    combined = [dict(zip(labels, values, strict=True)) for values in product(*labels.values())]
    known = [place for place in all_places if place in combined]
    if len(known) != len(places):
        return ""
    parts = [
        f"{axis.short} {_or(labels[axis.name])}" for axis in axes if len(labels[axis.name]) < len(axis.labels)
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _or(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} or {labels[-1]}"
