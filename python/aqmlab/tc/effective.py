"""The effective parameters of queues on a link of a given rate, without a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aqmlab.errors import ScenarioError, UsageError
from aqmlab.language.scenario import read
from aqmlab.laws import wrong_parameter
from aqmlab.recordings.plan import Plan

Queue = Mapping[str, Any]
"""A queue in the notation of scenarios."""
LEAST_RATE_BPS = 1000
"""The slowest link of a scenario."""
LEAST_DATAGRAM = 29
"""The smallest datagram of a scenario, in bytes."""


class NoCounterpartError(UsageError):
    """tc and Linux accept the words, and aqmlab has no equivalent discipline or parameter."""


def effective(queue: Queue, rate_bps: int) -> Mapping[str, Any]:
    """Return a queue's effective parameters, keyed by name and unit, such as ``min_th_bytes``.

    The packets of the link are the smallest possible, so they fit every buffer; sizes in packets and
    automatic sizes would depend on them.

    Raises
    ------
    NoCounterpartError
        If the discipline refuses a parameter.
    """
    from aqmlab import _core

    kind = str(queue["kind"])
    datagrams = {"kind": "cbr", "rate": "1kbit", "size": f"{LEAST_DATAGRAM}B"}
    link = {"kind": "dumbbell", "rate": f"{max(LEAST_RATE_BPS, rate_bps)}bit", "delay": "1ms"}
    scenario = {
        "title": "One queue",
        "duration": "1s",
        "topology": {**link, "access_rate": "none", "queue": queue},
        "traffic": [{"name": "datagrams", **datagrams}],
    }
    try:
        about = json.loads(_core.plan(*read(scenario)))
    except ScenarioError as error:
        raise NoCounterpartError(str(wrong_parameter(kind, error))) from error
    return Plan.of(about["arms"][0]["plan"]).links[0].settings
