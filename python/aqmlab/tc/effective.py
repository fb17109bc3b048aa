"""The effective parameters of queues on a link of a given rate, without a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aqmlab.errors import ScenarioError
from aqmlab.laws import Bench, bench_scenario, wrong_parameter

Queue = Mapping[str, Any]
"""A queue in the notation of scenarios."""


def effective(queue: Queue, rate_bps: int) -> Mapping[str, Any]:
    """Return a queue's effective parameters, keyed by name and unit, such as ``min_th_bytes``.

    Raises
    ------
    UsageError
        If the discipline refuses a parameter.
    """
    from aqmlab import _core

    kind = str(queue["kind"])
    bench = Bench(rate=f"{rate_bps}bit")
    try:
        plan = json.loads(_core.plan(*bench_scenario(kind, {kind: queue}, bench)))
    except ScenarioError as error:
        raise wrong_parameter(kind, error) from error
    settings: Mapping[str, Any] = plan["arms"][0]["plan"]["links"][0]["queue"]["settings"]
    return settings


__all__ = ["Queue", "effective"]
