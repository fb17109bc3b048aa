"""What ``iperf3 --json`` prints: the rate of each interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.rate_traces.model import Level, RateTrace, trace

SUMS = {"down": "sum", "up": "sum_bidir_reverse"}
"""The sum over the streams: of the only direction or, with ``--bidir``, of the other one."""


def fits(text: str) -> bool:
    """Whether the text is JSON with intervals."""
    return text.lstrip().startswith("{") and '"intervals"' in text


def read(path: Path, text: str, direction: str) -> RateTrace:
    """Return the sum over all streams."""
    try:
        intervals: list[dict[str, Any]] = json.loads(text)["intervals"]
        sums = [interval[SUMS[direction]] for interval in intervals]
        levels = [
            Level(float(one["seconds"]), float(one["bits_per_second"])) for one in sums if not one["omitted"]
        ]
    except ValueError as error:
        raise UsageError(f"`{path}` is not JSON: {error}") from None
    except (KeyError, TypeError) as error:
        raise UsageError(f"`{path}`: an interval has no {error} as `iperf3 --json` prints it") from None
    if not levels:
        raise UsageError(f"`{path}` has no intervals; did the test fail?")
    assumed = ["the test used the whole rate; rates are those of the application, without headers"]
    if left_out := len(sums) - len(levels):
        assumed.append(f"{left_out} intervals that iperf3 omitted from its own sums are left out")
    return trace(levels, assumed, path)
