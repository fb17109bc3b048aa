"""The 1-sigma covariance ellipse of points in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CovarianceEllipse:
    """Axes along the eigenvectors of the sample covariance, half-lengths the roots of its eigenvalues.

    Attributes
    ----------
    centre
        The means.
    half_axes
        The longer one first.
    angle_degrees
        Of the longer axis against the x axis, in (-90, 90].
    """

    centre: tuple[float, float]
    half_axes: tuple[float, float]
    angle_degrees: float


def covariance_ellipse(x: Sequence[float], y: Sequence[float]) -> CovarianceEllipse | None:
    """Ellipse that holds 39.3 % of a two-dimensional normal distribution with the points' moments.

    Returns
    -------
    CovarianceEllipse or None
        ``None`` for fewer than three points: two have no spread across their line.
    """
    if len(x) < 3:
        return None
    covariance = np.cov(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return from_covariance((float(np.mean(x)), float(np.mean(y))), covariance.tolist())


def from_covariance(centre: tuple[float, float], covariance: Sequence[Sequence[float]]) -> CovarianceEllipse:
    """Ellipse of a centre and a symmetric 2 x 2 covariance."""
    values, vectors = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    along = vectors[:, 1]
    angle = math.degrees(math.atan2(along[1], along[0]))
    # An axis has no direction: fold the angle into half a turn.
    folded = angle - 180 if angle > 90 else angle + 180 if angle <= -90 else angle
    long, short = (math.sqrt(max(float(value), 0.0)) for value in (values[1], values[0]))
    return CovarianceEllipse(centre, (long, short), folded)
