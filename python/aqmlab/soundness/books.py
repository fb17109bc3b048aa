"""Checks that the counts agree with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.metrics import EVERY_CLASS
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.metrics import Measured, QueueTotals
    from aqmlab.results.results import Results

_REPORT_IT = "do not use these figures: the recording is damaged, or this is a bug to report"


def balanced(results: Results) -> Check:
    """Check every queue: initial contents plus arrivals equal departures, drops and final contents."""
    kind, findings, packets = "books", [], 0
    for cell in results.cells:
        wrong = []
        for run in results.measured(cell):
            packets += sum(totals["arrivals_packets"] for totals in _queues(run).values())
            if not run.run.manifest.books_balanced:
                wrong.append(f"in seed {run.run.seed}, according to its manifest")
            wrong += [
                f"at `{queue}` (seed {run.run.seed})"
                for queue, totals in _queues(run).items()
                if not _balances(totals)
            ]
        if wrong:
            sentence = f"packet counts do not balance {wrong[0]}"
            findings.append(CellDoubt(cell, "serious", sentence, _REPORT_IT, len(wrong)))
    finding = f"all {packets:,} arrivals are accounted for".replace(",", " ")
    return Check(kind, "packet counts balance", finding, merged(kind, results, findings))


def distributions(results: Results) -> Check:
    """Check histograms against the separately recorded sums: the number of packets must agree."""
    kind, findings = "distribution", []
    for cell in results.cells:
        wrong = [
            (queue, run.run.seed)
            for run in results.measured(cell)
            for queue, totals in _queues(run).items()
            if totals.sojourn_sums[0] != totals["sojourn_count"]
        ]
        if wrong:
            queue, seed = wrong[0]
            sentence = f"the delay distribution at `{queue}` lacks packets (seed {seed})"
            findings.append(CellDoubt(cell, "serious", sentence, _REPORT_IT, len(wrong)))
    finding = "every departure is counted; percentiles are exact to 1 %"
    return Check(kind, "delay distributions are complete", finding, merged(kind, results, findings))


def _queues(run: Measured) -> dict[str, QueueTotals]:
    return {name: totals for (name, of), totals in run.queues.items() if of == EVERY_CLASS}


def _balances(totals: QueueTotals) -> bool:
    came = totals["initial_in_system_packets"] + totals["arrivals_packets"]
    went = totals["departures_packets"] + totals.sum_over_reasons("dropped")
    return came == went + totals["final_in_system_packets"]
