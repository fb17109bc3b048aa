"""Checks that traces were used whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.results.results import Results


def traces_are_whole(results: Results) -> Check:
    """Check for connections of a trace that were left out because they cannot be expressed."""
    kind, findings, traces = "trace", [], 0
    for cell in results.cells:
        for run in results.runs_of(cell)[:1]:
            for entry in run.plan.classes:
                traces += entry.kind == "trace"
                kinds = entry.left_out
                if not kinds:
                    continue
                left, total = sum(kinds.values()), sum(kinds.values()) + entry.count
                named = ", ".join(f"{count} {word}" for word, count in kinds.items())
                sentence = (
                    f"{left} of the {total} connections in {entry.workload['file']} of `{entry.name}` are"
                    f" left out, because they cannot be expressed: {named}"
                )
                remedy = "state it with the results: their load is missing (see docs/vectors.md)"
                findings.append(CellDoubt(cell, "note", sentence, remedy, left))
    finding = "no connection was left out" if traces else "there are no traces"
    return Check(kind, "traces are used whole", finding, merged(kind, results, findings))
