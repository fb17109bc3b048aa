"""A query of a cell: a metric, with the part of the run and the traffic to which it refers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

from aqmlab.metrics.measured import EVERY_CLASS, Window
from aqmlab.metrics.packet_kinds import EVERY_KIND
from aqmlab.metrics.registry import EVERY_ROUTER


class Part(TypedDict, total=False):
    """The keywords of :meth:`aqmlab.Results.values`, which explains them."""

    queue: str | None
    class_name: str
    window: Window | tuple[float, float] | None
    parameters: Mapping[str, float | None]
    kind: str
    router: str


class Asked(NamedTuple):
    """A metric with all its arguments; equal to others with the same arguments."""

    metric: str
    queue: str | None = None
    class_name: str = EVERY_CLASS
    window: Window | None = None
    parameters: tuple[tuple[str, float | None], ...] = ()
    kind: str = EVERY_KIND
    router: str = EVERY_ROUTER

    @staticmethod
    def of(metric: str, **part: Unpack[Part]) -> Asked:
        """Create a query that does not depend on the order of the parameters."""
        window = part.get("window")
        given: dict[str, Any] = {**part, "window": window and Window(*window)}
        return Asked(metric, **{**given, "parameters": tuple(sorted(part.get("parameters", {}).items()))})

    @property
    def part(self) -> Part:
        """Everything except the metric."""
        return {
            "queue": self.queue,
            "class_name": self.class_name,
            "window": self.window,
            "parameters": dict(self.parameters),
            "kind": self.kind,
            "router": self.router,
        }

    @property
    def key(self) -> str:
        """The whole query as a string that is identical in every process."""
        ends = self.window and [end if math.isfinite(end) else str(end) for end in self.window]
        return json.dumps(
            [self.metric, self.queue, self.class_name, ends, self.parameters, self.kind, self.router]
        )


__all__ = ["Asked", "Part"]
