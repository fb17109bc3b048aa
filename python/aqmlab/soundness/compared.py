"""Checks of what differs between the sides of a comparison, beyond what is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from aqmlab.metrics import EVERY_CLASS
from aqmlab.soundness.doubt import CellDoubt, Check, merged
from aqmlab.text.numbers import counted, listed

if TYPE_CHECKING:
    from aqmlab.recordings.plan import Link, TrafficClass
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

_OBVIOUS = ("congestion", "ecn")
"""Parameters that classes are compared by."""
_NAMED = 4
"""Largest number of parameters that are named one by one."""


def buffers_are_equal(results: Results) -> Check:
    """Check that arms with different disciplines have equal buffers, where a buffer was full."""
    kind, findings, arms = "buffers", [], 0
    for cells in _cases(results):
        found = {cell: link for cell in cells if (link := _judged(results, cell)) is not None}
        limits = {cell: size for cell, link in found.items() if (size := _packets(link)) is not None}
        arms = max(arms, len(limits))
        disciplines = {found[cell].queue for cell in limits}
        if len({round(size, 6) for size in limits.values()}) < 2 or len(disciplines) < 2:
            continue
        full = [cell for cell in limits if _overflows(results, cell)]
        if not full:
            continue
        smallest, largest = (of(limits, key=limits.__getitem__) for of in (min, max))
        sentence = (
            f"the buffers of the arms differ, from {found[smallest].limit} with {smallest.arm} to"
            f" {found[largest].limit} with {largest.arm}, and {_was_full(full)} full at times:"
            " differences between arms are due to both, discipline and buffer"
        )
        remedy = "give all arms the same `limit`, unless the buffer is part of what is compared"
        ratio = limits[largest] / limits[smallest]
        findings += [CellDoubt(cell, "warning", sentence, remedy, ratio) for cell in limits]
    finding = "they are equal, or none was full" if arms > 1 else "one arm: nothing to compare"
    return Check(kind, "the arms' buffers are equal", finding, merged(kind, results, findings))


def _was_full(full: list[Cell]) -> str:
    names = listed([cell.arm for cell in full])
    return f"that of {names} was" if len(full) == 1 else f"those of {names} were"


def _cases(results: Results) -> Iterator[list[Cell]]:
    """Yield the cells with runs of each case, which differ in their arm only."""
    cases: dict[Any, list[Cell]] = {}
    for cell in results.cells:
        if cell.arm != results.reference and results.runs_of(cell):
            cases.setdefault(cell.settings, []).append(cell)
    yield from cases.values()


def _judged(results: Results, cell: Cell) -> Link | None:
    """Return the link of the queue under study; ``None`` if that queue is inside another."""
    return results.runs_of(cell)[0].plan.link(results.queue_of(cell))


def _packets(link: Link) -> float | None:
    """Return the limit of a queue in packets of mean size; ``None`` if it has none."""
    if (packets := link.settings.get("limit_packets")) is not None:
        return float(packets)
    size = link.settings.get("limit_bytes")
    return None if size is None or not link.mean_packet_bytes else float(size) / link.mean_packet_bytes


def _overflows(results: Results, cell: Cell) -> bool:
    name = results.queue_of(cell)
    totals = (run.queues.get((name, EVERY_CLASS)) for run in results.measured(cell))
    return any(of is not None and of["dropped_overflow_packets"] for of in totals)


def classes_differ_as_meant(results: Results) -> Check:
    """Check that greedy classes that differ in congestion control or ECN differ in nothing else of TCP.

    The same applies to a class of two arms.
    """
    kind, findings = "tcp", []
    for cell in results.cells:
        for run in results.runs_of(cell)[:1]:
            for one, other in combinations(run.plan.greedy, 2):
                text = _differs(_tcp(one), _tcp(other))
                if text:
                    sentence = f"`{one.name}` and `{other.name}` {text}"
                    findings.append(CellDoubt(cell, "note", sentence, _ALIKE, len(text)))
    for cells in _cases(results):
        for one_cell, other_cell in combinations(cells, 2):
            ours, theirs = (results.runs_of(cell)[0].plan.greedy for cell in (one_cell, other_cell))
            by_name = {entry.name: entry for entry in theirs}
            for entry in ours:
                text = _differs(_tcp(entry), _tcp(by_name.get(entry.name, entry)))
                if text:
                    sentence = f"the flows of `{entry.name}` in {one_cell.arm} and in {other_cell.arm} {text}"
                    findings.append(CellDoubt(one_cell, "note", sentence, _ALIKE, len(text)))
    finding = "they differ in nothing else, or in neither"
    question = "flows that differ in congestion control or ECN differ in nothing else of TCP"
    return Check(kind, question, finding, merged(kind, results, findings))


_ALIKE = "give both the same `profile` and the same other settings, unless this is part of what is compared"


def _tcp(entry: TrafficClass) -> Mapping[str, Any]:
    return entry.tcp or {}


def _differs(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return a clause that names the obvious difference and the others; empty without one of them."""
    controls = {str(tcp.get("congestion")) for tcp in (one, other)}
    # The parameters of a congestion control apply to it alone, and DCTCP requires ECN.
    own = tuple(f"{name}_" for name in ("cubic", "dctcp", "prague"))
    differing = [
        key
        for key in dict.fromkeys((*one, *other))
        if one.get(key) != other.get(key)
        and not key.startswith(own)
        and not (key.startswith("ecn") and "dctcp" in controls and len(controls) > 1)
    ]
    obvious = next((key for key in _OBVIOUS if key in differing), None)
    others = [key for key in differing if key != obvious]
    if obvious is None or not others:
        return ""
    shown = [f"{key} ({one.get(key)} and {other.get(key)})" for key in others[:_NAMED]]
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return (
        f"differ in {obvious} ({one.get(obvious)} and {other.get(obvious)}) and in"
        f" {counted(len(others), 'other parameter')} of TCP: {', '.join(shown)}{more}"
    )
