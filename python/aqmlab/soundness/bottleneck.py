"""Checks that packets wait in the queue under study, and that its discipline has decisions to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqmlab.metrics import EVERY_CLASS
from aqmlab.recordings.plan import Link, Plan, quantity_text
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.metrics import Measured
    from aqmlab.results.cells import Cell
    from aqmlab.results.results import Results

BUSY_PERCENT = 90.0
"""Links busy for less than this share of the time are reported, because they do not limit greedy flows.

The threshold is our choice.
"""


@dataclass(frozen=True)
class _Queue:
    """The activity of one queue in all runs of a cell."""

    busy_percent: float
    most_waiting: int
    interventions: int
    overflows: int


def is_the_bottleneck(results: Results) -> Check:
    """Check that the queue makes decisions; otherwise, arms that differ only in it give the same results."""
    kind, findings, idlest, names = "bottleneck", [], 100.0, set()
    for cell in _with_runs(results):
        name = results.queue_of(cell)
        names.add(name)
        runs = results.measured(cell)
        queues = {queue: found for queue in _names(runs) if (found := _totals(runs, queue)) is not None}
        if name in queues:
            idlest = min(idlest, queues[name].busy_percent)
            finding = _doubted(cell, name, queues, runs)
            if finding is not None:
                findings.append(finding)
    text = f"busy {idlest:.1f} % of the time or more, and it drops or marks"
    which = f"`{names.pop()}`" if len(names) == 1 else "the queue of each cell"
    return Check(kind, f"{which} is the bottleneck", text, merged(kind, results, findings))


def _doubted(
    cell: Cell, name: str, queues: Mapping[str, _Queue], runs: Sequence[Measured]
) -> CellDoubt | None:
    queue = queues[name]
    busy = f"busy {queue.busy_percent:.1f} % of the time"
    idle = 100.0 - queue.busy_percent
    greedy = any(run.run.plan.greedy for run in runs)
    limit = _limit_elsewhere(runs[0].run.plan, name, queues) if greedy else None
    if queue.most_waiting <= 1 and queue.interventions == 0:
        sentence = f"`{name}` never had more than one packet waiting ({busy}): its discipline has no effect"
        return CellDoubt(cell, "serious", sentence, limit or _elsewhere(name, queues), idle)
    if queue.interventions == 0:
        sentence = f"`{name}` neither dropped nor marked a packet ({busy})"
        return CellDoubt(
            cell, "warning" if greedy else "note", sentence, limit or _elsewhere(name, queues), idle
        )
    if queue.busy_percent < BUSY_PERCENT and greedy:
        sentence = f"`{name}` was {busy}, although some flows always have data to send"
        return CellDoubt(cell, "warning", sentence, limit or _WHY_IDLE, idle)
    if queue.busy_percent < BUSY_PERCENT:
        sentence = f"`{name}` was {busy}: the load does not fill it"
        return CellDoubt(cell, "note", sentence, _MORE_LOAD, idle)
    return None


_WHY_IDLE = (
    "check whether the discipline drops too much, the buffer is too small or the flows are limited elsewhere"
)
_MORE_LOAD = "raise the load or lower the rate to study this queue"


def _limit_elsewhere(plan: Plan, name: str, queues: Mapping[str, _Queue]) -> str | None:
    """Return the remedy if the greedy flows that cross a queue are limited by another part of their path.

    These parts are their own access links, and a busy link on the way of their acknowledgments.
    """
    link = plan.link(name)
    across = [entry for entry in plan.greedy if name in entry.path]
    if link is None or not across:
        return None
    own = sum(entry.count * entry.access.rate_bps for entry in across if entry.access)
    if all(entry.access for entry in across) and own < link.rate_bps:
        return (
            f"raise `access_rate`: the access links of all flows that cross `{name}` carry"
            f" {quantity_text(own, 'bps')} together, less than its {link.rate}"
        )
    back = {queue for entry in across for queue in entry.return_path if queue in queues}
    busy = [queue for queue in sorted(back) if queues[queue].busy_percent >= BUSY_PERCENT]
    if not busy:
        return None
    return (
        f"raise the rate of `{busy[0]}`, which is busy {queues[busy[0]].busy_percent:.1f} % of the time and"
        " delays or drops the acknowledgments of these flows"
    )


def _elsewhere(name: str, queues: Mapping[str, _Queue]) -> str:
    """Return the remedy, which names the actual bottleneck if there is one."""
    others = {queue: found for queue, found in queues.items() if queue != name and found.interventions}
    if not others:
        return "raise the load or lower the rate of its link"
    busiest = max(others, key=lambda queue: others[queue].busy_percent)
    return (
        f"report on `{busiest}` instead (busy {others[busiest].busy_percent:.1f} %, and it drops or marks)"
        f" or lower the rate of `{name}`"
    )


def buffer_is_reached(results: Results) -> Check:
    """Check that the buffer is full at times, if its size is under study."""
    kind, findings, question = "buffer", [], "where buffer sizes are compared, the buffer fills"
    if not _asks_for_the_buffer(results):
        return Check(kind, question, "buffer size is not compared")
    settings = _settings_by_arm(results)
    for cell in _with_runs(results):
        name = results.queue_of(cell)
        runs = results.measured(cell)
        queue = _totals(runs, name)
        if queue is not None and queue.overflows == 0:
            full = (
                f"no packet found the buffer of `{name}` full ({_limit(runs[0], name)}, at most"
                f" {queue.most_waiting} packets waited)"
            )
            if len(settings[cell.arm]) == 1:
                sentence = f"{full}: its size has no effect"
                remedy = "a larger buffer changes nothing; compare smaller buffers or raise the load"
            else:
                sentence = f"{full}: its size matters only where other parameters of the queue follow from it"
                remedy = "write these parameters, to compare buffers alone"
            findings.append(CellDoubt(cell, "note", sentence, remedy, -queue.most_waiting))
    return Check(kind, question, "it was full at times in every cell", merged(kind, results, findings))


def _settings_by_arm(results: Results) -> dict[str, set[str]]:
    """Return the settings of the queue under study, except its limit, that each arm has in its cells."""
    found: dict[str, set[str]] = {}
    for cell in _with_runs(results):
        link = _link(results.measured(cell)[0], results.queue_of(cell))
        found.setdefault(cell.arm, set()).add(_other_settings(link))
    return found


def _other_settings(link: Link) -> str:
    rest = {name: value for name, value in link.settings.items() if not name.startswith("limit_")}
    return f"{link.queue} {rest}"


def _asks_for_the_buffer(results: Results) -> bool:
    """Whether queue limits are swept, or the queues of some arms differ only in their limits."""
    if any(key.rsplit(".", 1)[-1] == "limit" for axis in results.axes for key in axis.keys):
        return True
    if results.axes:
        return False
    limits: dict[str, set[str]] = {}
    for cell in _with_runs(results):
        link = _link(results.measured(cell)[0], results.queue_of(cell))
        limits.setdefault(_other_settings(link), set()).add(link.limit or "")
    return any(len(different) > 1 for different in limits.values())


def _with_runs(results: Results) -> Iterator[Cell]:
    # The reference is meant to have no bottleneck.
    others = [cell for cell in results.cells if cell.arm != results.reference] or results.cells
    return (cell for cell in others if results.runs_of(cell))


def _names(runs: Sequence[Measured]) -> list[str]:
    return sorted({queue for run in runs for (queue, _), totals in run.queues.items() if totals.has_link})


def _totals(runs: Sequence[Measured], name: str) -> _Queue | None:
    parts = [run.queues[name, EVERY_CLASS] for run in runs if (name, EVERY_CLASS) in run.queues]
    measured_ns = sum(run.interval_ns for run in runs if (name, EVERY_CLASS) in run.queues)
    if not parts or not measured_ns:
        return None
    return _Queue(
        busy_percent=100.0 * sum(part["busy_ns"] for part in parts) / measured_ns,
        most_waiting=max(part["backlog_packets_max"] for part in parts),
        interventions=sum(
            part.sum_over_reasons("dropped") + part.sum_over_reasons("marked") for part in parts
        ),
        overflows=sum(part["dropped_overflow_packets"] for part in parts),
    )


def _link(run: Measured, name: str) -> Link:
    return next(link for link in run.run.plan.links if link.name == name)


def _limit(run: Measured, name: str) -> str:
    limit = _link(run, name).limit
    return "no limit" if limit is None else f"limit {limit}"
