"""Checks that most requests and pages end before the run does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from aqmlab.metrics import EVERY_CLASS
from aqmlab.metrics.waits import ALL_WAITS, Waits
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

MANY = 0.05
"""The share of unfinished requests from which figures of the completed ones may mislead (our choice)."""


def waits_have_ended(results: Results) -> Check:
    """Check for requests and pages that are in progress at the end; the slow ones are among them."""
    kind, findings = "unfinished", []
    shares: list[float] = []
    for cell in results.cells:
        for waits in ALL_WAITS:
            for class_name, cut, whole in _counts(results, cell, waits):
                share = cut / whole
                shares.append(share)
                if share >= MANY:
                    severity = _severity(results, waits, share)
                    findings.append(CellDoubt(cell, severity, *_words(waits, class_name, cut, share), share))
    finding = (
        f"at most {100 * max(shares):.1f} % of a class's requests or pages had not ended"
        if shares
        else "no class makes requests"
    )
    return Check(kind, "requests and pages end before the run", finding, merged(kind, results, findings))


def _severity(results: Results, waits: Waits, share: float) -> Literal["note", "warning"]:
    """Return "note" if the question is about medians or shares, which few unfinished ones do not move."""
    quantity = waits.time.replace(" ", "_")
    asked = [name for name in results.metrics if name.startswith(quantity)]
    return "note" if asked and f"{quantity}_mean_s" not in asked and share < 0.5 else "warning"


def _counts(results: Results, cell: Cell, waits: Waits) -> Iterator[tuple[str, int, int]]:
    """For each class, the numbers of unfinished and of all requests over the seeds, if there are any."""
    cut: dict[str, int] = {}
    whole: dict[str, int] = {}
    for run in results.measured(cell):
        for totals in waits.totals(run, EVERY_CLASS):
            name = totals.class_name
            ended = totals.completed + totals.failed
            cut[name] = cut.get(name, 0) + totals.censored
            whole[name] = whole.get(name, 0) + ended + totals.censored
    return ((name, cut[name], whole[name]) for name in whole if whole[name])


def _words(waits: Waits, class_name: str, cut: int, share: float) -> tuple[str, str]:
    """Return the sentence and the remedy."""
    sentence = (
        f"{cut} {waits.many} of `{class_name}` ({100 * share:.0f} %, over all runs) had not ended when their"
        f" run did: the mean {waits.time} and the sample contain only completed {waits.many}, which are the"
        " faster ones"
    )
    remedy = (
        f"make `duration` long compared with {waits.time}s, or use percentiles and shares, which take"
        " unfinished ones into account"
    )
    return sentence, remedy
