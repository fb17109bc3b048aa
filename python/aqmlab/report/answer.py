"""The answer in a sentence or two, from the table and from nothing else."""

from __future__ import annotations

from aqmlab.answers import Table
from aqmlab.figures import display_unit, estimate_text, number
from aqmlab.stats import Estimate

DELAY = "queueing_delay_p95_s"
GOODPUT = "goodput_bps"
DROPS = "drop_percent"


def answer(table: Table) -> str:
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
    first = (
        f"{best} has the shortest queueing delay: 95 % of its packets wait at most {_text(delays[best], 's')},"
        f" against {_text(delays[worst], 's')} with {worst}"
    )
    richest = max(goodputs, key=lambda arm: goodputs[arm].mean)
    return f"{first}. {_price(table, best, richest)}"


def _single(table: Table, delays: dict[str, Estimate], goodputs: dict[str, Estimate]) -> str:
    arm = table.arms[0]
    drops = table.estimate(arm, DROPS) if DROPS in {m.name for m in table.metrics} else None
    lost = f"; {estimate_text(drops, '%')} % of the packets were dropped" if drops else ""
    return (
        f"Goodput was {_text(goodputs[arm], 'bit/s')}, and 95 % of the packets waited at most"
        f" {_text(delays[arm], 's')} in the queue{lost}."
    )


def _price(table: Table, best: str, richest: str) -> str:
    """What the arm of the shortest delay pays in goodput."""
    if best == richest:
        return "It also has the highest goodput."
    paid = table.difference(richest, best, GOODPUT)
    whole = table.estimate(richest, GOODPUT)
    if paid is None or whole is None or whole.mean == 0:
        return f"No seed was run both with it and with {richest}, so its price in goodput is not known."
    percent = f"{number(100 * paid.mean / whole.mean, 2)} %"
    if paid.half_width is None:
        return f"It delivers {percent} less than {richest}; with one run, there is no interval for that."
    width = number(100 * paid.half_width / whole.mean, 2)
    if not paid.excludes_zero():
        return (
            f"Its goodput cannot be told from the highest, that of {richest} ({percent} less, ± {width},"
            f" n = {paid.n} paired seeds)."
        )
    return f"It pays with {percent} (± {width}, n = {paid.n} paired seeds) of the goodput of {richest}, the highest."


def _present(table: Table, metric: str) -> dict[str, Estimate]:
    estimates = {arm: table.estimate(arm, metric) for arm in table.arms}
    return {arm: est for arm, est in estimates.items() if est is not None}


def _text(est: Estimate, unit: str) -> str:
    return f"{estimate_text(est, unit)} {display_unit(unit)}"
