"""What a value of a metric is about: the queue, the traffic and the part of the run.

:class:`Scope` is what a caller asks for; :class:`Takes` is what a metric declares that it depends on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Flag, auto
from typing import NamedTuple

from aqmlab.arguments import check_type
from aqmlab.metrics.measured import EVERY_CLASS, Window
from aqmlab.metrics.packet_kinds import EVERY_KIND

EVERY_ROUTER = "*"


class Takes(Flag):
    """The parts of a scope on which a metric depends."""

    FLOWS = auto()
    """A queue that only selects flows, those whose data cross it; queue ``*`` selects all."""
    QUEUE = auto()
    """A queue that is itself measured."""
    PATH = auto()
    """Queue ``*``: packets are counted over their whole path. Metrics of flows always take it."""
    CLASS = auto()
    KIND = auto()
    """A kind of packet, in the measured interval."""
    ROUTER = auto()
    """The router whose hosts receive the data, in the measured interval."""
    WINDOW = auto()
    """A part of the run. The metric is then computed from samples; in the measured interval, it is exact."""


FLOWS, QUEUE, PATH, CLASS = Takes.FLOWS, Takes.QUEUE, Takes.PATH, Takes.CLASS
KIND, ROUTER, WINDOW = Takes.KIND, Takes.ROUTER, Takes.WINDOW


@dataclass(frozen=True)
class Scope:
    """What a value is about.

    Attributes
    ----------
    queue
        The queue; flows count if their data cross it. ``*`` is the whole network; by default what
        :meth:`aqmlab.Results.queue_of` returns for the cell and the class.
    class_name
        A traffic class, or several, separated by commas; by default all traffic.
    window
        Beginning and end in seconds since the start of the run, for a metric that accepts a window; by
        default the measured interval.
    parameters
        Parameters of the metric, by name, in their units.
    kind
        Kind of packets, for a metric that accepts one: ``"syn"``, ``"data"``, ``"ack"``, ``"fin"``,
        ``"other"``; by default all.
    router
        Router of the hosts whose data count, for a metric that accepts one; by default all.

    Raises
    ------
    UsageError
        For a value of a wrong type.
    """

    queue: str | None = None
    class_name: str = EVERY_CLASS
    window: Window | tuple[float, float] | None = None
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    kind: str = EVERY_KIND
    router: str = EVERY_ROUTER

    def __post_init__(self) -> None:
        for part in fields(self):
            check_type(part.name, getattr(self, part.name), str(part.type))

    def __hash__(self) -> int:
        parameters = frozenset(self.parameters.items())
        window = self.window and tuple(self.window)
        return hash((self.queue, self.class_name, window, parameters, self.kind, self.router))


EVERYTHING = Scope()
"""All traffic, in the measured interval, at the queue by which the cell is judged."""


class Asked(NamedTuple):
    """A metric of a scope; equal to others with the same metric and an equal scope."""

    metric: str
    scope: Scope = EVERYTHING

    @property
    def key(self) -> str:
        """The query as a string that is identical in every process."""
        of = self.scope
        ends = of.window and [end if math.isfinite(end) else str(end) for end in of.window]
        parameters = sorted(of.parameters.items())
        return json.dumps([self.metric, of.queue, of.class_name, ends, parameters, of.kind, of.router])
