"""Answers the question of a scenario in a few sentences, using only its figures.

The first sentence is about the metrics that the scenario names or, if it names none, about queueing
delay and its price in goodput. The next ones name the choices that others dominate, and those that
starve a link. The command line and the report print the same sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.figures.trade_off import SHARE, Front, Starved, TradeOff
from aqmlab.metrics import Metric
from aqmlab.reports.answer_cases import of_cases
from aqmlab.reports.answer_words import (
    MOST_NAMED,
    be,
    case_text,
    do,
    does,
    extremes,
    mean_of,
    means_of,
    names_text,
    percent_text,
    span,
    superlatives,
    things,
    upper,
    used_text,
    value_text,
)
from aqmlab.results.answers import Answer
from aqmlab.results.answers import answer as answer_of
from aqmlab.results.cells import Cell
from aqmlab.stats import Difference
from aqmlab.stats.sentence import spoken
from aqmlab.text.numbers import listed

_NOTHING = "Nothing was delivered in the measured interval, so there is nothing to compare."
_NO_PAIR = "No two choices have finished runs in the same case, so there is nothing to compare."


def in_words(of: Answer | TradeOff) -> str:
    """Return the answer to the scenario's question: the sentences of :func:`sentences`, as one text."""
    return " ".join(sentences(of))


def sentences(of: Answer | TradeOff) -> list[str]:
    """Return the answer to the scenario's question; the first sentence answers it.

    Choices are compared seed by seed because they share their arrivals; a difference is stated only if it
    is significant. If there are several sets of circumstances, the text names those in which it is.

    Parameters
    ----------
    of
        The answer, or the comparison of its choices, if it has been made already.
    """
    found = of if isinstance(of, TradeOff) else TradeOff(of)
    question = found.question
    if not found.groups or not any(map(found.defined, (*question.asked, question.delay, question.price))):
        return [_NOTHING]
    if len(found.choices) == 1:
        said = _of_one_choice(found)
    elif len(found.groups) == 1:
        said = _of_one_case(found)
    else:
        said = of_cases(found)
    return [sentence for sentence in said if sentence] or [_NO_PAIR]


def best_arm(of: TradeOff) -> str:
    """Return the arm that the answer names first; the first arm if there are many circumstances."""
    if len(of.groups) == 1:
        question = of.question
        of_group = of.groups[0]
        if not question.of_delay and question.price in question.asked:
            means = means_of(of, of_group, question.price)
            return extremes(means, question.price)[0].arm
        if steps := _steps(of, of.front[0])[0]:
            return steps[0].arm
        if of.front[0].best:
            return of.front[0].best[0].arm
    return of.answer.compared[0]


# --- one choice


def _of_one_choice(found: TradeOff) -> list[str]:
    question = found.question
    metrics = question.asked or tuple(
        metric for metric in (question.delay, question.price, *question.others) if found.defined(metric)
    )
    if len(found.groups) > 1:
        return [_range(found, metric) for metric in metrics if metric.name != SHARE]
    (cell,) = found.groups[0]
    parts = [
        f"{spoken(metric.label)} {be(metric)} {value_text(found, found.mean(cell, metric), metric)}"
        for metric in metrics
        if found.defined(metric)
    ]
    listing = upper(f"{listed(parts)}.") if parts else ""
    return [listing, *(_shares(found) if any(m.name == SHARE for m in metrics) else [])]


def _range(found: TradeOff, metric: Metric) -> str:
    """Return the smallest and the largest mean of the only choice over its circumstances."""
    cells = (cell for group in found.groups for cell in group)
    means = {cell: est for cell in cells if (est := found.mean(cell, metric))}
    if not means:
        return ""
    least, most = (choose(means, key=lambda cell: means[cell].mean) for choose in (min, max))
    what = upper(spoken(metric.label))
    if means[least].mean == means[most].mean:
        return f"{what} {be(metric)} {value_text(found, means[least], metric)} in every case."
    goes = "go" if be(metric) == "are" else "goes"
    return (
        f"{what} {goes} from {value_text(found, means[least], metric)} ({case_text(least)})"
        f" to {value_text(found, means[most], metric)} ({case_text(most)})."
    )


# --- several choices in the same circumstances


def _of_one_case(found: TradeOff) -> list[str]:
    if len(found.results.finished_seeds) == 1:
        return _of_one_seed(found)
    question, (group,) = found.question, found.groups
    front = found.front[0]
    if question.of_delay:
        first = [_price(found, front)]
        named = _named(found, front)
        more = [_values(found, metric, named) for metric in question.others if metric.name != SHARE]
    else:
        first, more = [_ranked(found, group, m) for m in question.asked if m.name != SHARE], []
    if any(metric.name == SHARE for metric in question.asked):
        before = question.asked[0].name == SHARE
        first = [*_shares(found), *first] if before else [*first, *_shares(found)]
    return [*first, _starvation(found), _dominance(found, front), *more]


def _of_one_seed(found: TradeOff) -> list[str]:
    question, (group,) = found.question, found.groups
    metrics = question.asked or tuple(filter(found.defined, (question.delay, question.price)))
    parts = []
    for metric in metrics:
        means = means_of(found, group, metric)
        if metric.name == SHARE or not means:
            continue
        least, most = (choose(means, key=lambda cell: means[cell].mean) for choose in (min, max))
        if len(means) > 1 and means[least].mean == means[most].mean:
            listing = f"{value_text(found, means[least], metric)} in all"
        else:
            listing = f"{value_text(found, means[least], metric)} with {found.name(least)}"
            if len(means) > 1:
                listing += f" and {value_text(found, means[most], metric)} with {found.name(most)}"
            if len(means) > 2:
                listing = f"between {listing}"
        parts.append(f"{spoken(metric.label)} {be(metric)} {listing}")
    shares = _shares(found) if any(metric.name == SHARE for metric in metrics) else []
    if not parts:
        return shares or [_NOTHING]
    hedge = "In one run each (no interval, so the differences may be chance), "
    return [f"{hedge}{listed(parts)}.", *shares, _starvation(found)]


def _price(found: TradeOff, front: Front) -> str:
    """State how far each undominated choice shortens the delay, and what it costs."""
    question = found.question
    delay, price = question.delay, question.price
    if not front.cells:
        return f"No choice has both a {spoken(delay.label)} and a {spoken(price.label)}."
    steps, rich = _steps(found, front)
    if rich is None:
        return ""
    if steps:
        return _costs(found, front, rich, steps)
    filling = [cell for cell in front.cells if not found.idles(cell)]
    alike = _alike(found, front, rich)
    if len(filling) == len(alike) + 1:
        if len(filling) == 1:
            return (
                f"Only {found.name(rich)} fills the link: its {spoken(delay.label)} is"
                f" {value_text(found, found.mean(rich, delay), delay)}, its {spoken(price.label)}"
                f" {value_text(found, found.mean(rich, price), price)}."
            )
        spans = " or ".join(
            f"{spoken(metric.label)} ({span(found, means_of(found, filling, metric), metric)})"
            for metric in (delay, price)
        )
        which = (
            f"the {len(filling)} {things(found)}" if len(filling) > MOST_NAMED else names_text(found, filling)
        )
        return f"{which} do not differ significantly in {spans}."
    return _ahead_in_both(found, rich, filling, alike)


def _ahead_in_both(found: TradeOff, rich: Cell, filling: Sequence[Cell], alike: Sequence[Cell]) -> str:
    """State that one choice, or several that do not differ, leave nothing to choose."""
    delay, price = found.question.delay, found.question.price
    others = [cell for cell in filling if cell != rich and cell not in alike]
    tied = f" ({names_text(found, alike)} {do(alike)} not differ significantly from it)" if alike else ""
    slowest = max(others, key=lambda cell: mean_of(found, cell, delay))
    worst = extremes(means_of(found, others, price), price)[1]
    faster, richer = (
        of[rich, cell] > 0 for of, cell in zip(found.front[0].ahead, (slowest, worst), strict=True)
    )
    most, _ = superlatives(price)
    said = (
        f"{found.name(rich)}{tied} has the {most} {spoken(price.label)},"
        f" {value_text(found, found.mean(rich, price), price)}"
    )
    if richer:
        said += f" (against {value_text(found, found.mean(worst, price), price)} with {found.name(worst)})"
    said += (
        f", and no other {things(found)[:-1]} has a significantly shorter {spoken(delay.label)}:"
        f" {value_text(found, found.mean(rich, delay), delay)}"
    )
    if faster:
        said += (
            f", {percent_text(found.contrast(rich, slowest, delay), delay)} than with {found.name(slowest)}"
        )
    return f"{said}."


def _costs(found: TradeOff, front: Front, rich: Cell, steps: Sequence[Cell]) -> str:
    delay, price = found.question.delay, found.question.price
    parts = []
    for i, cell in enumerate(_few(found, rich, steps)):
        to = value_text(found, found.mean(cell, delay), delay)
        cost = f"for {percent_text(found.contrast(cell, rich, price), price)}"
        what = f" {spoken(price.label)}" if i == 0 else ""
        if not front.ahead[1][cell, rich]:
            what += f", which {_not_significant(found.contrast(cell, rich, price), front)}"
        tied = _alike(found, front, cell)
        same = f" (like {names_text(found, tied)})" if tied else ""
        if i == 0:
            start = f"from {value_text(found, found.mean(rich, delay), delay)} with {found.name(rich)}"
            parts.append(f"{found.name(cell)}{same} cuts {spoken(delay.label)} {start} to {to} {cost}{what}")
        else:
            parts.append(f"{found.name(cell)}{same} cuts it to {to} {cost}")
    return f"{'; '.join(parts)}."


def _not_significant(found: Difference, front: Front) -> str:
    """State that a difference does not stand, though it might do so if no others were compared."""
    if found.seen:
        return f"does not stand among the {len(front.ahead[1]) // 2} comparisons (Holm)"
    return "is not significant"


def _few(found: TradeOff, rich: Cell, steps: Sequence[Cell]) -> list[Cell]:
    """Return at most two steps: the one that saves most for what it costs, and the shortest delay."""
    if len(steps) <= 2:
        return list(steps)
    delay, price = found.question.delay, found.question.price
    ends = [mean_of(found, rich, metric) for metric in (delay, price)]
    last = min(steps, key=lambda cell: mean_of(found, cell, delay))
    spans = [
        abs(mean_of(found, last, metric) - end) for metric, end in zip((delay, price), ends, strict=True)
    ]

    def gain(cell: Cell) -> float:
        saved, paid = (
            abs(mean_of(found, cell, metric) - end) / (span or 1.0)
            for metric, end, span in zip((delay, price), ends, spans, strict=True)
        )
        return saved - paid

    knee = max(steps, key=gain)
    return [knee] if knee == last else [knee, last]


def _steps(found: TradeOff, front: Front) -> tuple[list[Cell], Cell | None]:
    """Return the undominated choices that shorten the delay at a price, and the one with the best price.

    Choices that starve a link are left out; of those that do not differ significantly, one is returned.
    """
    best = [cell for cell in front.best if not found.idles(cell)]
    if not best:
        return [], None
    rich, steps = best[0], list[Cell]()
    shorter = [cell for cell in best[1:] if front.ahead[0][cell, rich] > 0]
    for cell in shorter:
        alike = _alike(found, front, cell)
        if not {cell, *alike} & set(steps):
            steps.append(min([cell, *(one for one in alike if one in shorter)], key=found.groups[0].index))
    return steps, rich


def _alike(found: TradeOff, front: Front, cell: Cell) -> list[Cell]:
    """Return the undominated choices that differ significantly from one in neither metric."""
    others = [other for other in front.best if other != cell and not found.idles(other)]
    return [other for other in others if all(of.get((cell, other)) == 0 for of in front.ahead)]


def _named(found: TradeOff, front: Front) -> list[Cell]:
    """Return the choices whose further metrics are listed: those named, or all if they are asked for."""
    steps, rich = _steps(found, front)
    if rich is not None and steps:
        return [rich, *_few(found, rich, steps)]
    return list(found.groups[0]) if found.question.asked else []


def _dominance(found: TradeOff, front: Front) -> str:
    """Name the dominated choices, each with one that dominates it."""
    delay, price = found.question.delay, found.question.price
    if not front.beaten:
        return ""
    two = f"{spoken(delay.label)} and {spoken(price.label)}"
    if len(front.beaten) > MOST_NAMED + 1:
        return (
            f"In {two}, {len(front.beaten)} of {len(front.cells)} {things(found)} are dominated: another"
            " one is at least as good in both, and significantly better in one."
        )
    by: dict[Cell, list[Cell]] = {}
    for one in front.beaten:
        by.setdefault(one.by, []).append(one.cell)
    parts = [f"{found.name(winner)} dominates {names_text(found, cells)}" for winner, cells in by.items()]
    return f"In {two}, {listed(parts)}."


def _starvation(found: TradeOff) -> str:
    """Name the choices that starve a link, with their utilisation."""
    of_link: dict[str, list[Starved]] = {}
    for one in found.starved.values():
        of_link.setdefault(one.queue, []).append(one)
    sentences = []
    for queue, all_of in of_link.items():
        most = all_of[0]
        against = f"against {used_text(most.most)} with {found.name(most.other)}"
        if len(all_of) > MOST_NAMED:
            least = min(all_of, key=lambda one: one.used.mean)
            sentences.append(
                f"{len(all_of)} {things(found)} starve the link `{queue}`: with {found.name(least.cell)},"
                f" {used_text(least.used)} of it is used, {against}."
            )
            continue
        uses = [f"{found.name(one.cell)} uses {used_text(one.used)}" for one in all_of]
        if len(all_of) == 1:
            sentences.append(
                f"{found.name(most.cell)} starves the link `{queue}`: it uses {used_text(most.used)} of it,"
                f" {against}."
            )
        else:
            names = names_text(found, [one.cell for one in all_of])
            sentences.append(f"{names} starve the link `{queue}`: {listed(uses)} of it, {against}.")
    return " ".join(sentences)


def _ranked(found: TradeOff, group: Sequence[Cell], metric: Metric) -> str:
    """Name the best and the worst choice in a metric, and those that do not differ from the best."""
    means = means_of(found, group, metric)
    what = spoken(metric.label)
    if not means:
        return ""
    without = [cell for cell in group if cell not in means]
    missing = (
        f" {names_text(found, without)} {'has' if len(without) == 1 else 'have'} none." if without else ""
    )
    if len(means) == 1 or not metric.better:
        return f"{_values(found, metric, list(means))}{missing}"
    best, worst = extremes(means, metric)
    places = {cell: (means[cell].mean * (-1 if metric.better == "less" else 1),) for cell in means}
    ahead = found.ahead(metric, found.pairs(list(means), places))
    if means[best].mean == means[worst].mean:
        same = value_text(found, means[best], metric)
        return f"{upper(what)} {be(metric)} {same} with all {things(found)}.{missing}"
    like = [cell for cell in means if cell != best and ahead[best, cell] <= 0]
    if len(like) == len(means) - 1:
        return (
            f"{upper(what)} {does(metric)} not differ significantly between the {len(means)} {things(found)}:"
            f" {value_text(found, means[best], metric)} with {found.name(best)},"
            f" {value_text(found, means[worst], metric)} with {found.name(worst)}.{missing}"
        )
    most, least = superlatives(metric)
    text = (
        f"{upper(what)} {be(metric)} {most} with {found.name(best)}: {value_text(found, means[best], metric)}"
    )
    if worst not in like:
        change = found.contrast(best, worst, metric)
        last = f", the {least}" if len(means) > 2 else ""
        against = value_text(found, means[worst], metric)
        if change.relative.estimate in (None, -1.0):
            text += f", against {against} with {found.name(worst)}{last}"
        else:
            text += f", {percent_text(change, metric)} than with {found.name(worst)} ({against}{last})"
    if like:
        text += f"; {names_text(found, like)} {do(like)} not differ significantly from it"
    return f"{text}.{missing}"


def _values(found: TradeOff, metric: Metric, cells: Sequence[Cell]) -> str:
    """List the values of a metric, or the smallest and the largest of them."""
    means = {cell: est for cell in cells if (est := found.mean(cell, metric))}
    if not means:
        return ""
    named = list(means)
    if len(means) > MOST_NAMED + 1:
        named = [choose(means, key=lambda cell: means[cell].mean) for choose in (min, max)]
    parts = [f"{value_text(found, means[cell], metric)} with {found.name(cell)}" for cell in named]
    between = "from " if len(named) < len(means) else ""
    listing = " to ".join(parts) if between else listed(parts)
    return f"{upper(spoken(metric.label))}: {between}{listing}."


def _shares(found: TradeOff) -> list[str]:
    """State the share of each class in the goodput at the queue, by choice."""
    answer = answer_of(found.results, [SHARE], queue=found.answer.queue, by="class")
    (metric,) = answer.metrics
    group = found.groups[0]
    sentences = []
    for name in answer.classes:
        means = {
            cell: est
            for cell in group
            if any(row.cell == cell and row.part == name for row in answer.rows)
            and (est := answer.estimate(cell, SHARE, name))
        }
        if not means:
            continue
        if len(means) == 1 or len({value_text(found, est, metric) for est in means.values()}) == 1:
            sentences.append(f"{name} gets {value_text(found, next(iter(means.values())), metric)}")
            continue
        named = list(means)
        if len(means) > MOST_NAMED:
            named = [choose(means, key=lambda cell: means[cell].mean) for choose in (min, max)]
        parts = [f"{value_text(found, means[cell], metric)} with {found.name(cell)}" for cell in named]
        text = f"{name} gets {listed(parts)}"
        if len(means) == 2:
            first, second = means
            contrast = answer.contrast(first, second, SHARE, name)
            text += "" if contrast.seen or contrast.p_value is None else " (no significant difference)"
        sentences.append(text)
    return [f"Of the goodput at `{answer.queue}`, {'; '.join(sentences)}."] if sentences else []
