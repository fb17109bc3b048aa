"""The answer in a sentence or two, from the table alone; which arms are the best of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aqmlab.answers import Answer
from aqmlab.figures import display_unit, estimate_text, listed, number
from aqmlab.stats import Estimate

DELAY = "queueing_delay_p95_s"
GOODPUT = "goodput_bps"
DROPS = "drop_percent"


def answer(table: Answer) -> str:
    """What the experiment found about queueing delay and its price.

    Arms are compared seed by seed, for they share their arrivals; a difference whose 95 % interval holds zero
    is called that.
    """
    delays = _present(table, DELAY)
    goodputs = _present(table, GOODPUT)
    if not delays or not goodputs:
        return "Nothing was delivered in the measured interval, so there is nothing to compare."
    if len(table.arms) == 1:
        return _single(table, delays, goodputs)
    best = min(delays, key=lambda arm: delays[arm].mean)
    worst = max(delays, key=lambda arm: delays[arm].mean)
    if delays[best].mean == delays[worst].mean:
        return "All arms have the same queueing delay."
    equals = [arm for arm in delays if arm != best and _same(table.difference(arm, best, DELAY))]
    if len(equals) == len(delays) - 1 and len(table.results.finished_seeds) > 1:
        return (
            "The arms do not differ significantly in queueing delay: 95 % of the packets wait at most"
            f" {_text(delays[best], 's')} with {best}, the shortest, and {_text(delays[worst], 's')} with"
            f" {worst}."
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
    """The arm of the shortest queueing delay; the first one where none is known."""
    delays = _present(table, DELAY)
    return min(delays, key=lambda arm: delays[arm].mean) if delays else table.arms[0]


def _single(table: Answer, delays: dict[str, Estimate], goodputs: dict[str, Estimate]) -> str:
    arm = table.arms[0]
    drops = table.estimate(arm, DROPS)
    lost = f"; {estimate_text(drops, '%')} % of the packets were dropped" if drops else ""
    return (
        f"Goodput was {_text(goodputs[arm], 'bit/s')}, and 95 % of the packets waited at most"
        f" {_text(delays[arm], 's')} in the queue{lost}."
    )


def _price(table: Answer, best: str, richest: str) -> str:
    """The goodput that the arm of the shortest delay costs."""
    if best == richest:
        return f"{best} also has the highest goodput."
    paid = table.difference(richest, best, GOODPUT)
    whole = table.estimate(richest, GOODPUT)
    if paid is None or whole is None or whole.mean == 0:
        return f"No seed was run with both it and {richest}, so its cost in goodput is unknown."
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
    estimates = {arm: table.estimate(arm, metric) for arm in table.arms}
    return {arm: est for arm, est in estimates.items() if est is not None}


def _text(est: Estimate, unit: str) -> str:
    return f"{estimate_text(est, unit)} {display_unit(unit)}"


def best_arms(
    means: Mapping[str, float], better: str, difference: Callable[[str, str], Estimate | None]
) -> frozenset[str]:
    """The arm of the best mean, and the arms whose paired difference to it may be zero.

    Parameters
    ----------
    means
        By arm.
    better
        ``"less"``, ``"more"``, or empty where neither is.
    difference
        Of two arms, seed by seed.

    Returns
    -------
    frozenset
        Empty where nobody differs: a mark would say nothing.
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
