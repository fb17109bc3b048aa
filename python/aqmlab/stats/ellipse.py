"""The 1-sigma covariance ellipse of points in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CovarianceEllipse:
    """The 1-sigma ellipse of a centre and a covariance.

    Its axes lie along the eigenvectors of the covariance; the half-axes are the square roots of the
    eigenvalues.

    Attributes
    ----------
    centre
        The means.
    half_axes
        The two half-axes, the longer one first.
    angle_degrees
        Angle from the x axis to the longer axis, in degrees in (-90, 90].
    """

    centre: tuple[float, float]
    half_axes: tuple[float, float]
    angle_degrees: float


def covariance_ellipse(x: Sequence[float], y: Sequence[float]) -> CovarianceEllipse | None:
    """Return the 1-sigma ellipse of points.

    It contains 39.3 % of the two-dimensional normal distribution that has the points' means and covariance.

    Returns
    -------
    CovarianceEllipse or None
        ``None`` for fewer than three points, because two points have no spread across the line through them.
    """
    if len(x) < 3:
        return None
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    xs, ys = [value - mean_x for value in x], [value - mean_y for value in y]
    xy = _covariance(xs, ys)
    covariance = ((_covariance(xs, xs), xy), (xy, _covariance(ys, ys)))
    return from_covariance((mean_x, mean_y), covariance)


def _covariance(x: Sequence[float], y: Sequence[float]) -> float:
    """The covariance of two series, given as deviations from their means."""
    return math.fsum(a * b for a, b in zip(x, y, strict=True)) / (len(x) - 1)


def from_covariance(centre: tuple[float, float], covariance: Sequence[Sequence[float]]) -> CovarianceEllipse:
    """Ellipse of a centre and a symmetric 2 x 2 covariance."""
    (xx, xy), (_, yy) = covariance
    reach = math.hypot((xx - yy) / 2, xy)
    long = (xx + yy) / 2 + reach
    short = (xx * yy - xy * xy) / long if long > 0 else 0.0
    angle = math.degrees(math.atan2(2 * xy, xx - yy)) / 2
    half_axes = (math.sqrt(max(long, 0.0)), math.sqrt(max(short, 0.0)))
    # An axis has no direction, so -90 and 90 degrees are the same.
    return CovarianceEllipse(centre, half_axes, 90.0 if angle == -90.0 else angle)
