"""Synthetic results: values by cell and seed, without runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy import stats as scipy_stats

from aqmlab.claims import Claim, score
from aqmlab.claims.scan import SourceLocation
from aqmlab.metrics import EVERYTHING, Scope, find
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Results

BUFFER = Axis("topology.queue.limit", "limit", ("topology.queue.limit",), ("4p", "12p", "36p", "72p"))
COUNT = Axis("traffic.ftp.count", "count", ("traffic.ftp.count",), ("2", "6"))

Value = Callable[..., float | None]
"""Returns the value for ``(metric, cell, seed, scope=scope)``."""


class World(Results):
    """Results whose values a function returns."""

    def __init__(self, value: Value, *, axes=(), arms=("RED", "DropTail"), seeds=10, gone=(), claims=()):
        cells = [()]
        for axis in axes:
            cells = [(*cell, (axis.name, label)) for cell in cells for label in axis.labels]
        super().__init__(
            title="World",
            question="",
            path=Path("nowhere"),
            axes=axes,
            arms=arms,
            cells=tuple(Cell(settings, arm) for settings in cells for arm in arms),
            seeds=tuple(range(1, seeds + 1)),
            finished={},
            claims=claims,
        )
        self._value = value
        self._gone = set(gone)
        self.asked: list[tuple[str, Cell, Scope]] = []

    def values(self, metric, cell, scope=EVERYTHING) -> dict[int, float | None]:
        find(metric)
        self.asked.append((metric, cell, scope))
        return {
            seed: self._value(metric, cell, seed, scope=scope)
            for seed in self.seeds
            if (cell.arm, seed) not in self._gone
        }


def table(of: Mapping[str, Mapping[str, list[float | None]]], **options) -> World:
    """A world without axes: for each metric and arm, one value per seed."""
    arms = tuple(next(iter(of.values())))
    seeds = len(next(iter(next(iter(of.values())).values())))
    return World(
        lambda metric, cell, seed, **_: of[metric][cell.arm][seed - 1], arms=arms, seeds=seeds, **options
    )


A = [10.0, 12.0, 11.0, 13.0, 14.0]
B = [11.0, 14.0, 12.5, 13.5, 16.0]
DIFFERENCE = [a - b for a, b in zip(A, B, strict=True)]
WORLD = table({"jain_index": {"RED": A, "DropTail": B}})


def scored(text, world, **claim):
    (found,) = score(world, [Claim("c", text, origin=SourceLocation("c", "x.toml", 1, 1), **claim)])
    return found


def status(text, world, **claim):
    return scored(text, world, **claim).status


def t_interval(values, confidence=0.95):
    half = (
        scipy_stats.t.ppf(0.5 + confidence / 2, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    )
    return np.mean(values), np.mean(values) - half, np.mean(values) + half


def by_buffer(values, noise=0.0, seeds=10):
    """One value per buffer, with independent noise in each seed."""
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 1, (4, seeds))
    return World(
        lambda _, cell, seed, **__: (
            values[BUFFER.labels.index(cell.label("limit"))]
            + noise * drawn[BUFFER.labels.index(cell.label("limit")), seed - 1]
        ),
        axes=(BUFFER,),
        arms=("RED",),
        seeds=seeds,
    )
