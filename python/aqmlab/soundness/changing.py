"""Checks of links whose rate changes during the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.recordings.plan import quantity_text
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.results.results import Results

OFF_PERCENT = 10.0
"""A capacity in the measured interval that differs from the planned mean by more than this is reported.

Buffers in bandwidth-delay products and automatic parameters then differ as much from their names; the
number is our choice.
"""


def capacity_is_as_planned(results: Results) -> Check:
    """Check that links whose rate changes had about the mean rate for which their queues were set up."""
    kind, findings, links = "capacity", [], 0
    for cell in results.cells:
        worst: CellDoubt | None = None
        for measured in results.measured(cell):
            run, name = measured.run, results.queue_of(cell)
            link = run.plan.link(name)
            if link is None or not run.changes(name):
                continue
            links += 1
            had = run.rate_bps(name)
            off = 100.0 * (had / link.rate_bps - 1)
            if abs(off) > OFF_PERCENT:
                side = "above" if off > 0 else "below"
                sentence = (
                    f"`{name}` had {quantity_text(had, 'bps')} in the measured interval of seed {run.seed},"
                    f" {abs(off):.0f} % {side} the mean of {link.rate} from which buffers in `bdp` and"
                    " automatic parameters are computed"
                )
                remedy = "measure over more of its course, or write these parameters in absolute numbers"
                if worst is None or abs(off) > worst.badness:
                    worst = CellDoubt(cell, "note", sentence, remedy, abs(off))
        if worst is not None:
            findings.append(worst)
    finding = "within a tenth of the plan" if links else "no rate changes"
    return Check(kind, "changing rates have the planned mean", finding, merged(kind, results, findings))
