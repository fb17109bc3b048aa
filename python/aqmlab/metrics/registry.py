"""The list of metrics: each is defined once, with its unit and its source.

A metric declares the parts of a scope on which it depends (``takes``), and numbers such as thresholds that
replace its defaults (``parameters``). Its code receives only these::

    @metric("avg_in_band_percent", ..., takes=QUEUE | WINDOW,
            parameters=(Parameter("low", "packets", "...", 5.0),))
    def avg_in_band(run: Measured, queue: str, window: Window, *, low: float | None) -> ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from aqmlab.errors import UsageError, unknown
from aqmlab.metrics.braces import with_settings
from aqmlab.metrics.formulas import FORMULAS, Formula
from aqmlab.metrics.measured import EVERY_QUEUE, Measured, Window
from aqmlab.metrics.packet_kinds import EVERY_KIND, KINDS
from aqmlab.metrics.scope import (
    CLASS,
    EVERY_ROUTER,
    FLOWS,
    KIND,
    PATH,
    QUEUE,
    ROUTER,
    WINDOW,
    Scope,
    Takes,
)
from aqmlab.text.numbers import time_text

if TYPE_CHECKING:
    from aqmlab.metrics.response_times import CdfUntil

Definition = Callable[..., float | None]
"""Returns the value in the metric's unit, or ``None`` where it is not defined.

The arguments are the run and those of queue, class and window, in this order, that the metric takes;
parameters are passed as keywords."""

F = TypeVar("F", bound=Definition)

EDGE_S = 1e-6
"""Tolerance for rounding when a window's edges are compared with those of the run."""


@dataclass(frozen=True)
class Parameter:
    """A numeric parameter of a metric.

    Attributes
    ----------
    name
        A word in lower case: ``low``.
    unit
        As for a metric.
    definition
        Its meaning; if ``default`` is ``None``, also what is used if no value is given.
    default
        The value used if none is given; ``None`` if ``definition`` states what is used instead.
    """

    name: str
    unit: str
    definition: str
    default: float | None = None


@dataclass(frozen=True)
class Metric:
    """A number that describes a run.

    Attributes
    ----------
    name
        ``queueing_delay_p99_s``; ends in the unit unless the value is a pure number.
    label
        Name in tables and on axes: "queueing delay p99".
    unit
        Unit of the value: ``"s"``, ``"bit/s"``, ``"%"``, ``"packets"``; empty for a pure number.
    definition
        The definition in one sentence.
    source
        The source of the definition.
    better
        ``"less"``, ``"more"`` or empty.
    code
        The definition as code; called by :meth:`compute`.
    takes
        The parts of a scope on which it depends.
    parameters
        Its parameters.
    from_samples
        Whether it is computed from samples rather than counts. Such a metric needs a query per run and takes
        longer than all metrics that come from counts together.
    cdf
        For a metric that is the value of a distribution function at some point: returns the function up to
        that point. The arguments are ``(run, class)`` and the parameters as keywords; the first keyword is
        the point.
    base, bound
        For a metric with settings in braces: the name without them, and the settings as parts of a
        :class:`Scope`, which take precedence over those given elsewhere.
    told
        Its formula if the list of formulas has none, as for a metric of a family.
    """

    name: str
    label: str
    unit: str
    definition: str
    source: str
    better: str
    code: Definition
    takes: Takes
    parameters: tuple[Parameter, ...] = ()
    from_samples: bool = False
    cdf: Callable[..., CdfUntil] | None = None
    base: str = ""
    bound: Mapping[str, Any] = field(default_factory=dict, hash=False)
    told: Formula | None = None

    def within(self, scope: Scope) -> Scope:
        """The scope with the metric's settings in braces."""
        return replace(scope, **self.bound) if self.bound else scope

    def compute(self, run: Measured, scope: Scope) -> float | None:
        """The value of one run, in the metric's unit; ``None`` where it is not defined.

        Parameters
        ----------
        run
            What is measured. Flows whose data do not cross the queue are ignored.
        scope
            It must name the queue. Queue ``*`` means the whole network, for which metrics of single queues
            are undefined. If the start or end of the window is infinite, the start or end of the measured
            interval is used instead. No metric is defined in a window that ends after the run.

        Raises
        ------
        UsageError
            For a window that the metric does not accept or that is invalid, for an unknown
            parameter or kind, and for a kind or router that the metric does not accept.
        """
        told = self._told(scope.parameters)
        window = None if scope.window is None else Window(*scope.window)
        self._check(scope, window)
        queue = _queue(scope)
        # If a stop condition ended the run at its beginning, nothing was measured, so no metric is defined.
        if not run.interval_ns:
            return None
        if queue == EVERY_QUEUE and self.of_one_queue:
            return None
        part = _part(run.at(queue), scope)
        if part is None:
            return None
        asked = part.window if window is None else _with_ends(window, part.window)
        if asked.from_s >= asked.until_s or asked.until_s > part.window.until_s + EDGE_S:
            return None
        given = {QUEUE: queue, CLASS: scope.class_name, WINDOW: asked}
        return self.code(part, *(value for each, value in given.items() if each in self.takes), **told)

    def distribution(self, run: Measured, scope: Scope) -> CdfUntil | None:
        """The distribution function to which a metric's value belongs; arguments as in :meth:`compute`.

        Raises
        ------
        UsageError
            If the metric is not a value of a distribution function, and for an unknown parameter.
        """
        told = self._told(scope.parameters)
        if self.cdf is None:
            raise UsageError(f"metric `{self.name}` is not a value of a distribution function")
        return self.cdf(run.at(_queue(scope)), scope.class_name, **told) if run.interval_ns else None

    def _check(self, scope: Scope, window: Window | None) -> None:
        for asked, part, what in ((scope.kind, KIND, "a kind of packet"), (scope.router, ROUTER, "a router")):
            if asked != "*" and part not in self.takes:
                raise UsageError(f"metric `{self.name}` cannot be computed for {what}")
            if asked != "*" and window is not None:
                raise UsageError(
                    f"metric `{self.name}` of {what} covers the measured interval; leave out the window"
                )
        if scope.kind not in (*KINDS, EVERY_KIND):
            raise unknown("kind of packet", scope.kind, KINDS)
        if window is not None and WINDOW not in self.takes:
            raise UsageError(f"metric `{self.name}` covers the measured interval; it accepts no window")
        if window is not None and not (
            window.from_s < window.until_s and (window.from_s >= 0 or window.from_s == -math.inf)
        ):
            raise UsageError(
                f"from {time_text(window.from_s)} until {time_text(window.until_s)} is not a window of a run:"
                " it must not begin before 0 s, and must end after its beginning"
            )

    @property
    def of_one_queue(self) -> bool:
        """Whether it is defined only for single queues."""
        return not self.takes & (FLOWS | PATH)

    @property
    def asked_of(self) -> tuple[str, ...]:
        """The options on which the value depends: ``"queue"``, ``"class"``, ``"kind"``, ..."""
        options = {"queue": QUEUE | FLOWS, "class": CLASS, "kind": KIND, "router": ROUTER, "window": WINDOW}
        return tuple(name for name, parts in options.items() if parts & self.takes)

    @property
    def formula(self) -> Formula:
        """The formula of the value in terms of the recorded tables."""
        return self.told or FORMULAS[self.base or self.name]

    def to_json(self) -> dict[str, Any]:
        """The metric as plain data."""
        return {
            "name": self.name,
            "label": self.label,
            "unit": self.unit,
            "definition": self.definition,
            "formula": self.formula.text,
            "over": self.formula.over,
            "source": self.source,
            "better": self.better,
            "asked_of": list(self.asked_of),
            "from_samples": self.from_samples,
            "parameters": [asdict(parameter) for parameter in self.parameters],
        }

    def parameter(self, name: str) -> Parameter:
        """A parameter by name.

        Raises
        ------
        UsageError
            If no parameter has this name; the message gives the nearest name.
        """
        for known in self.parameters:
            if known.name == name:
                return known
        raise unknown(f"parameter of `{self.name}`", name, [known.name for known in self.parameters])

    def _told(self, parameters: Mapping[str, float | None]) -> dict[str, float | None]:
        defaults = {known.name: known.default for known in self.parameters}
        return {**defaults, **{self.parameter(name).name: value for name, value in parameters.items()}}


def _with_ends(window: Window, measured: Window) -> Window:
    begin = measured.from_s if window.from_s == -math.inf else window.from_s
    return Window(begin, measured.until_s if window.until_s == math.inf else window.until_s)


def _queue(scope: Scope) -> str:
    if scope.queue is None:
        raise ValueError("the scope names no queue, and a single run has no default")
    return scope.queue


def _part(run: Measured, scope: Scope) -> Measured | None:
    found: Measured | None = run
    if scope.kind != EVERY_KIND:
        found = run.of_kind(scope.kind)
    if found is not None and scope.router != EVERY_ROUTER:
        found = found.towards(scope.router)
    return found


_METRICS: dict[str, Metric] = {}
_FAMILIES: dict[str, Callable[[str], Metric]] = {}


def metric(  # noqa: PLR0913 (keyword arguments)
    name: str,
    *,
    label: str,
    unit: str,
    definition: str,
    source: str,
    takes: Takes,
    better: str = "",
    parameters: tuple[Parameter, ...] = (),
    from_samples: bool = False,
    cdf: Callable[..., CdfUntil] | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as a metric."""

    def register(code: F) -> F:
        if name in _METRICS:
            raise ValueError(f"metric `{name}` is defined twice")
        _METRICS[name] = Metric(
            name, label, unit, definition, source, better, code, takes, parameters, from_samples, cdf
        )
        return code

    return register


Maker = TypeVar("Maker", bound=Callable[[str], Metric])


def family(prefix: str) -> Callable[[Maker], Maker]:
    """Register the decorated function as the maker of all metrics whose names begin with ``prefix``.

    The names of such metrics are not known in advance, so they are not listed.
    """

    def register(make: Maker) -> Maker:
        _FAMILIES[prefix] = make
        return make

    return register


def find(name: str) -> Metric:
    """Look a metric up by name, which may have settings in braces: ``drop_percent{class=web}``.

    Raises
    ------
    UsageError
        If no metric has this name, with the nearest name, or if the settings are invalid.
    """
    if name in _METRICS:
        return _METRICS[name]
    plain, brace, settings = name.partition("{")
    plain = plain.strip()
    make = next((make for prefix, make in _FAMILIES.items() if plain.startswith(prefix)), None)
    if plain not in _METRICS and make is None:
        raise unknown("metric", plain, _METRICS)
    found = _METRICS[plain] if make is None else make(plain)
    return with_settings(found, settings) if brace else found


def all_metrics() -> list[Metric]:
    """Every metric, in the order of definition."""
    return list(_METRICS.values())
