"""Screening designs, which need few readings to find which of many settings matter.

The designs are Plackett and Burman's (Biometrika 33, 1946), from Paley's Hadamard matrices (Journal of
Mathematics and Physics 12, 1933): every setting is at its first level in half of the rows, and every pair of
settings has all four combinations equally often. In a design that is *folded over* (each row is repeated with
all levels changed: Box and Wilson, Journal of the Royal Statistical Society B 13, 1951), the effect of one
setting is not confounded with the joint effect of two others. If a setting has more than two candidates, all
but the first take turns in the rows in which the setting is not at its first level.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aqmlab.stats.student import quantile

Floats = npt.NDArray[np.float64]
Row = tuple[int, ...]
"""For each setting, the index of a candidate; 0 is the setting's first candidate."""


def hadamard(least: int) -> npt.NDArray[np.int64]:
    """Return the smallest available matrix of +1 and -1 with orthogonal rows of at least ``least`` entries.

    Its first row and its first column are +1.
    """
    order = next(n for n in range(max(4, least), 4 * max(4, least)) if _base(n))
    base = _base(order)
    matrix = np.array([[1]]) if base == 1 else _paley(base)
    while len(matrix) < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _base(order: int) -> int:
    """The order that, repeatedly doubled, gives ``order``: 1, or 1 + a prime 4 k + 3; 0 if there is none."""
    while order >= 4:
        if order % 4 == 0 and _is_prime(order - 1):
            return order
        if order % 2:
            return 0
        order //= 2
    return 1 if order in (1, 2) else 0


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def _paley(order: int) -> npt.NDArray[np.int64]:
    """Return the Hadamard matrix of Paley's first construction, with only +1 in its first row and column."""
    q = order - 1
    squares = {i * i % q for i in range(1, q)}
    matrix = np.ones((order, order), dtype=np.int64)
    for i in range(q):
        for j in range(q):
            matrix[i + 1, j + 1] = 1 if i != j and (j - i) % q in squares else -1
    return matrix


def screening_rows(levels: Sequence[int], *, folded: bool, seed: int) -> tuple[Row, ...]:
    """The rows of a design; the first has every setting at its first level.

    Parameters
    ----------
    levels
        Number of candidates of each setting, at least two.
    folded
        Whether every row is repeated with all levels changed; the design then has enough rows to separate
        the candidates of a setting. Otherwise, it has at most half as many rows.
    seed
        Seed of the assignment of columns to settings, and of the order of candidates.
    """
    draw = random.Random(seed)
    # The rows outnumber the effects: the surplus shows how well the sum of effects describes the readings.
    candidates = 1 + sum(count - 1 for count in levels)
    matrix = hadamard(max(len(levels) + 1, math.ceil((candidates + 2) / 2)) if folded else len(levels) + 1)
    columns = draw.sample(range(1, len(matrix)), len(levels))
    signs = np.vstack([matrix, -matrix]) if folded else matrix
    rows = np.zeros((len(signs), len(levels)), dtype=int)
    for j, (column, count) in enumerate(zip(columns, levels, strict=True)):
        dealt = draw.randrange(count - 1)
        for i in np.flatnonzero(signs[:, column] < 0):
            rows[i, j] = 1 + dealt % (count - 1)
            dealt += 1
    return tuple(dict.fromkeys(tuple(int(level) for level in row) for row in rows))


@dataclass(frozen=True)
class Effect:
    """The change in the measured value due to one candidate, relative to the first candidate of its setting.

    Attributes
    ----------
    value
        The mean change over the readings of the design.
    half_width
        Half-width of its interval; ``None`` if the noise is unknown.
    """

    value: float
    half_width: float | None

    @property
    def matters(self) -> bool:
        """Whether the interval excludes zero."""
        return self.half_width is not None and abs(self.value) > self.half_width


def effects(
    rows: Sequence[Row], values: Floats, levels: Sequence[int], confidence: float = 0.95
) -> tuple[tuple[Effect, ...], ...]:
    """Return, by least squares, the effect of each candidate except the first of each setting.

    If there are too few rows to separate the candidates of a setting, their joint effect is returned.
    The interval covers the variation over seeds and the interactions of settings: it uses the larger of the
    variances due to these two. Within a setting, the confidence applies to all candidates jointly
    (Bonferroni).

    Parameters
    ----------
    rows
        The readings.
    values
        Values with one row per reading and one column per seed.
    levels
        As in :func:`screening_rows`.
    """
    model, owners = _model(rows, levels)
    together = int(np.linalg.matrix_rank(model)) < model.shape[1]
    if together:
        model, owners = _model([tuple(min(level, 1) for level in row) for row in rows], [2] * len(levels))
    inverse = np.linalg.pinv(model)
    means = values.mean(axis=1)
    found = inverse @ means
    variance, degrees = _variance(model, means - model @ found, values)
    known = int(np.linalg.matrix_rank(model)) == model.shape[1]
    spread = (inverse**2).sum(axis=1)
    every: list[tuple[Effect, ...]] = []
    for j, count in enumerate(levels):
        half_widths: list[float | None] = [None] * len(found)
        if degrees and known:
            t = quantile(1.0 - (1.0 - confidence) / (count - 1), degrees)
            half_widths = [t * math.sqrt(variance * float(of)) for of in spread]
        own = [Effect(float(found[i]), half_widths[i]) for i, owner in enumerate(owners) if owner == j]
        every.append(tuple(own * (count - 1) if together else own))
    return tuple(every)


def _model(rows: Sequence[Row], levels: Sequence[int]) -> tuple[Floats, list[int]]:
    """Return the model matrix, and the setting to which each of its columns belongs.

    The first column consists of ones, and its setting is given as -1. Each further column stands for one
    candidate; the first candidate of a setting has no column.
    """
    columns, owners = [np.ones(len(rows))], [-1]
    for j, count in enumerate(levels):
        for level in range(1, count):
            columns.append(np.array([float(row[j] == level) for row in rows]))
            owners.append(j)
    return np.stack(columns, axis=1), owners


def _variance(model: Floats, residuals: Floats, values: Floats) -> tuple[float, int]:
    """Return the variance of a reading's mean over its seeds, with the degrees of freedom."""
    noise, degrees = seed_variance(values)
    noise /= values.shape[1]
    rest = len(model) - int(np.linalg.matrix_rank(model))
    lack = float(residuals @ residuals) / rest if rest else 0.0
    return (lack, rest) if lack > noise else (noise, degrees)


def seed_variance(values: Floats) -> tuple[float, int]:
    """Return the variance of a single value between seeds, estimated by a two-way analysis of variance.

    If readings with the same seeds are compared, an effect of a seed that is common to all readings is not
    noise.

    Returns
    -------
    tuple[float, int]
        The variance and its degrees of freedom, which are 0 for a single reading or a single seed.
    """
    degrees = (values.shape[0] - 1) * (values.shape[1] - 1)
    if degrees <= 0:
        return 0.0, 0
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0, keepdims=True) + values.mean()
    return float((rest**2).sum()) / degrees, degrees
