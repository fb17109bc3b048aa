"""The list of metrics: each is defined once, with its unit and its source.

A metric declares what it accepts in addition to run, queue and class: a part of the run
(``windowed``), and numbers such as thresholds that replace its defaults (``parameters``)::

    @metric("avg_in_band_percent", ..., windowed=True,
            parameters=(Parameter("low", "packets", "...", 5.0),))
    def avg_in_band(run: Measured, queue: str, class_name: str, window: Window,
                    *, low: float | None) -> ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from aqmlab.errors import UsageError, unknown
from aqmlab.metrics.braces import with_settings
from aqmlab.metrics.formulas import FORMULAS, Formula
from aqmlab.metrics.measured import EVERY_QUEUE, Measured, Window
from aqmlab.metrics.packet_kinds import EVERY_KIND, KINDS
from aqmlab.text.numbers import time_text

if TYPE_CHECKING:
    from aqmlab.metrics.response_times import CdfUntil

Definition = Callable[..., float | None]
"""Returns the value in the metric's unit, or ``None`` where it is not defined.

The arguments are ``(run, queue, class)`` or, for a windowed metric, ``(run, queue, class, window)``;
parameters are passed as keywords."""

F = TypeVar("F", bound=Definition)

NO_PARAMETERS: Mapping[str, float | None] = MappingProxyType({})
EVERY_ROUTER = "*"
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
    windowed
        Whether it can be computed over a part of the run. It is then computed from samples; over the measured
        interval, it is exact.
    parameters
        Its parameters.
    from_samples
        Whether it is computed from samples rather than counts. Such a metric needs a query per run and takes
        longer than all metrics that come from counts together.
    on_the_way
        Whether it can count packets over their whole path (queue ``*``). Metrics of flows always can.
    by_kind
        Whether it can be restricted to one kind of packet, in the measured interval.
    by_router
        Whether it can be restricted to data that reach the hosts at one router, in the measured interval.
    cdf
        For a metric that is the value of a distribution function at some point: returns the function up to
        that point. The arguments are ``(run, class)`` and the parameters as keywords; the first keyword is
        the point.
    base, bound
        For a metric with settings in braces: the name without them, and the settings as keywords of
        :meth:`aqmlab.Results.values`, which take precedence over those given there.
    """

    name: str
    label: str
    unit: str
    definition: str
    source: str
    better: str
    code: Definition
    windowed: bool = False
    parameters: tuple[Parameter, ...] = ()
    from_samples: bool = False
    on_the_way: bool = False
    by_kind: bool = False
    by_router: bool = False
    cdf: Callable[..., CdfUntil] | None = None
    base: str = ""
    bound: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def compute(  # noqa: PLR0913 (the subject of the metric, and options)
        self,
        run: Measured,
        queue: str,
        class_name: str,
        window: Window | None = None,
        parameters: Mapping[str, float | None] = NO_PARAMETERS,
        *,
        kind: str = EVERY_KIND,
        router: str = EVERY_ROUTER,
    ) -> float | None:
        """The value of one run, in the metric's unit; ``None`` where it is not defined.

        Parameters
        ----------
        run, queue, class_name
            What is measured; class ``*`` means all traffic. Flows whose data do not cross the queue are
            ignored. Queue ``*`` means the whole network, for which metrics of single queues are
            undefined.
        window
            The part of the run; by default the measured interval. If its start or end is infinite, the
            start or end of the measured interval is used instead. No metric is defined in a window
            that ends after the run.
        parameters
            Values by name, in their units; parameters that are not given have their defaults.
        kind
            The kind of packets: one of :data:`KINDS`.
        router
            The router whose hosts receive the data.

        Raises
        ------
        UsageError
            For a window that the metric does not accept or that is invalid, for an unknown
            parameter or kind, and for a kind or router that the metric does not accept.
        """
        told = self._told(parameters)
        self._check_parts(kind, router, window)
        if window is not None and not self.windowed:
            raise UsageError(f"metric `{self.name}` covers the measured interval; it accepts no window")
        if window is not None and not (
            window.from_s < window.until_s and (window.from_s >= 0 or window.from_s == -math.inf)
        ):
            raise UsageError(
                f"from {time_text(window.from_s)} until {time_text(window.until_s)} is not a window of a run:"
                " it must not begin before 0 s, and must end after its beginning"
            )
        # If a stop condition ended the run at its beginning, nothing was measured, so no metric is defined.
        if not run.interval_ns:
            return None
        if queue == EVERY_QUEUE and not (self.of_flows or self.on_the_way):
            return None
        part = _part(run.at(queue), kind, router)
        if part is None:
            return None
        run = part
        if not self.windowed:
            return self.code(run, queue, class_name, **told)
        asked = run.window if window is None else _with_ends(window, run.window)
        if asked.from_s >= asked.until_s or asked.until_s > run.window.until_s + EDGE_S:
            return None
        return self.code(run, queue, class_name, asked, **told)

    def distribution(
        self, run: Measured, queue: str, class_name: str, parameters: Mapping[str, float | None]
    ) -> CdfUntil | None:
        """The distribution function to which a metric's value belongs; arguments as in :meth:`compute`.

        Raises
        ------
        UsageError
            If the metric is not a value of a distribution function, and for an unknown parameter.
        """
        told = self._told(parameters)
        if self.cdf is None:
            raise UsageError(f"metric `{self.name}` is not a value of a distribution function")
        return self.cdf(run.at(queue), class_name, **told) if run.interval_ns else None

    def _check_parts(self, kind: str, router: str, window: Window | None) -> None:
        for asked, takes, what in (
            (kind, self.by_kind, "a kind of packet"),
            (router, self.by_router, "a router"),
        ):
            if asked != "*" and not takes:
                raise UsageError(f"metric `{self.name}` cannot be computed for {what}")
            if asked != "*" and window is not None:
                raise UsageError(
                    f"metric `{self.name}` of {what} covers the measured interval; leave out the window"
                )
        if kind not in (*KINDS, EVERY_KIND):
            raise unknown("kind of packet", kind, KINDS)

    @property
    def of_flows(self) -> bool:
        """Whether the queue serves only to select flows; the code's parameter is then named ``_queue``."""
        return "_queue" in signature(self.code).parameters

    @property
    def of_class(self) -> bool:
        """Whether the value depends on the class; if not, the code's parameter is named ``_class_name``."""
        return "_class_name" not in signature(self.code).parameters

    @property
    def asked_of(self) -> tuple[str, ...]:
        """The options on which the value depends: ``"queue"``, ``"class"``, ``"kind"``, ..."""
        depends = (
            ("queue", True),
            ("class", self.of_class),
            ("kind", self.by_kind),
            ("router", self.by_router),
            ("window", self.windowed),
        )
        return tuple(name for name, so in depends if so)

    @property
    def formula(self) -> Formula:
        """The formula of the value in terms of the recorded tables."""
        return FORMULAS[self.base or self.name]

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


def _part(run: Measured, kind: str, router: str) -> Measured | None:
    found: Measured | None = run
    if kind != EVERY_KIND:
        found = run.of_kind(kind)
    if found is not None and router != EVERY_ROUTER:
        found = found.towards(router)
    return found


_METRICS: dict[str, Metric] = {}


def metric(  # noqa: PLR0913 (keyword arguments)
    name: str,
    *,
    label: str,
    unit: str,
    definition: str,
    source: str,
    better: str = "",
    windowed: bool = False,
    parameters: tuple[Parameter, ...] = (),
    from_samples: bool = False,
    on_the_way: bool = False,
    by_kind: bool = False,
    by_router: bool = False,
    cdf: Callable[..., CdfUntil] | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as a metric."""

    def register(code: F) -> F:
        if name in _METRICS:
            raise ValueError(f"metric `{name}` is defined twice")
        _METRICS[name] = Metric(
            name,
            label,
            unit,
            definition,
            source,
            better,
            code,
            windowed,
            parameters,
            from_samples,
            on_the_way,
            by_kind,
            by_router,
            cdf,
        )
        return code

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
    if plain.strip() not in _METRICS:
        raise unknown("metric", plain.strip(), _METRICS)
    return with_settings(_METRICS[plain.strip()], settings) if brace else _METRICS[plain.strip()]


def all_metrics() -> list[Metric]:
    """Every metric, in the order of definition."""
    return list(_METRICS.values())
