"""Losses and marks by kind of packet: numbers of SYNs, data, pure ACKs and FINs, by queue and class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.metrics import EVERY_CLASS, KINDS, Measured, Metric, Scope, find
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.stats import Estimate, estimate
from aqmlab.text.numbers import estimate_parts, with_unit
from aqmlab.text.tables import Column, Grid

METRICS = ("drop_percent", "mark_percent", "notification_percent")


@dataclass(frozen=True)
class KindRow:
    """The fates of the packets of one kind and class at one queue.

    Attributes
    ----------
    cell, queue, class_name, kind
        What the row refers to.
    packets
        Mean over the seeds of the number of arrivals in the measured interval.
    values
        Mean of each of :data:`METRICS` over the seeds in which it is defined.
    """

    cell: Cell
    queue: str
    class_name: str
    kind: str
    packets: Estimate
    values: tuple[Estimate | None, ...]

    def texts(self) -> list[tuple[str, str]]:
        """Mean and half-width of each value, the number of packets first."""
        shown = [(self.packets, ""), *zip(self.values, (metric.unit for metric in metrics()), strict=True)]
        return [estimate_parts(found, unit) for found, unit in shown]


def metrics() -> list[Metric]:
    """The metrics of a row."""
    return [find(name) for name in METRICS]


def losses_by_kind(results: Results) -> Iterator[KindRow]:
    """Return one row per kind of packet, for each class and queue with a dropped or marked packet.

    The order is by cell, then by queue as in the plan, then by class. Kinds without losses are
    included; kinds without packets are not.
    """
    return (row for cell in results.cells if results.runs_of(cell) for row in _of_cell(results, cell))


def kinds_with_losses(rows: Sequence[KindRow]) -> list[str]:
    """Return the kinds of packets that were dropped or marked."""
    lossy = {row.kind for row in rows if row.values[-1] is not None and row.values[-1].mean > 0}
    return [kind for kind in KINDS if kind in lossy]


def _of_cell(results: Results, cell: Cell) -> Iterator[KindRow]:
    places = dict.fromkeys(at for run in results.measured(cell) for at in run.queues)
    for queue, class_name in places:
        if class_name == EVERY_CLASS:
            continue
        notified = results.values(METRICS[-1], cell, Scope(queue, class_name)).values()
        if not any(notified):
            continue
        for kind in KINDS:
            packets = estimate(_arrived(run, queue, class_name, kind) for run in results.measured(cell))
            if packets is None or not packets.mean:
                continue
            found = (results.values(name, cell, Scope(queue, class_name, kind=kind)) for name in METRICS)
            values = (estimate(of_seed.values()) for of_seed in found)
            yield KindRow(cell, queue, class_name, kind, packets, tuple(values))


def _arrived(run: Measured, queue: str, class_name: str, kind: str) -> float | None:
    of_kind = run.of_kind(kind)
    totals = None if of_kind is None else of_kind.at_queue(queue, class_name)
    return None if totals is None else float(totals["arrivals_packets"])


def losses_grid(results: Results, rows: Sequence[KindRow]) -> Grid:
    """The rows as text."""
    axes = [axis.short for axis in results.axes]
    heads = [*axes, "arm", "queue", "class", "kind"]
    columns = ["packets", *(with_unit(metric.label, metric.unit) for metric in metrics())]
    grid = Grid(*heads, *(Column(head, right=True) for head in columns), keys=len(heads))
    for row in rows:
        labels = (label for _, label in row.cell.settings)
        texts = (f"{mean} ±{half}" if half else mean for mean, half in row.texts())
        grid.add(*labels, row.cell.arm, row.queue, row.class_name, row.kind, *texts)
    return grid


def losses_json(rows: Sequence[KindRow]) -> list[dict[str, Any]]:
    """The rows as plain data."""

    def plain(found: Estimate | None) -> dict[str, Any]:
        return {
            "mean": found and found.mean,
            "half_width": found and found.half_width,
            "n": found.n if found else 0,
        }

    return [
        {
            "settings": dict(row.cell.settings),
            "arm": row.cell.arm,
            "queue": row.queue,
            "class": row.class_name,
            "kind": row.kind,
            "packets": plain(row.packets),
            **{name: plain(found) for name, found in zip(METRICS, row.values, strict=True)},
        }
        for row in rows
    ]
