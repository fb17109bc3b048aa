"""The list of metrics: each is defined once, with its unit and its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from aqmlab.errors import UsageError
from aqmlab.metrics.measured import Measured

Compute = Callable[[Measured, str, str], float | None]
"""``(run, queue, class)`` to the value in the metric's unit; ``None`` where it is not defined."""


@dataclass(frozen=True)
class Metric:
    """A figure that describes a run.

    Attributes
    ----------
    name
        Ends in the unit unless it is a pure number: ``queueing_delay_p99_s``.
    label
        For tables and axes: "queueing delay p99".
    unit
        Of the value: ``"s"``, ``"bit/s"``, ``"%"``, ``"packets"``; empty for a pure number.
    definition
        One sentence.
    source
        Where the definition comes from.
    better
        ``"less"``, ``"more"`` or empty.
    compute
        The definition as code.
    """

    name: str
    label: str
    unit: str
    definition: str
    source: str
    better: str
    compute: Compute


_METRICS: dict[str, Metric] = {}


def metric(  # noqa: PLR0913 (keyword arguments)
    name: str, *, label: str, unit: str, definition: str, source: str, better: str = ""
) -> Callable[[Compute], Compute]:
    """Register the decorated function as a metric."""

    def register(compute: Compute) -> Compute:
        if name in _METRICS:
            raise ValueError(f"metric `{name}` is defined twice")

        @wraps(compute)
        def defined(run: Measured, queue: str, class_name: str) -> float | None:
            # A run that a stop condition ended at its very begin measured nothing: no figure is defined.
            return compute(run, queue, class_name) if run.interval_ns else None

        _METRICS[name] = Metric(name, label, unit, definition, source, better, defined)
        return defined

    return register


def find(name: str) -> Metric:
    """Look a metric up by name.

    Raises
    ------
    UsageError
        If there is none, with the nearest name.
    """
    if name in _METRICS:
        return _METRICS[name]
    import difflib

    near = difflib.get_close_matches(name, _METRICS, n=1, cutoff=0.5)
    listed = ", ".join(f"`{known}`" for known in _METRICS)
    hint = f"; did you mean `{near[0]}`?" if near else f"; there are {listed}"
    raise UsageError(f"there is no metric `{name}`{hint}")


def all_metrics() -> list[Metric]:
    """Every metric, in the order of definition."""
    return list(_METRICS.values())
