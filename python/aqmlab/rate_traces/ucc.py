"""CSV files of G-NetTrack, as in the 4G and 5G datasets of University College Cork (Raca et al. 2018, 2020).

Columns ``Timestamp`` (``2019.12.14_10.16.30``), ``DL_bitrate`` and ``UL_bitrate`` in kbit/s, ``State`` (``D``
while downloading, ``I`` idle); a missing value is ``-``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from aqmlab.errors import UsageError
from aqmlab.rate_traces.model import Level, RateTrace, number, trace

COLUMNS = {"down": "DL_bitrate", "up": "UL_bitrate"}
LONGEST_S = 5.0
"""The longest time for which a value is taken to hold."""


def fits(lines: Sequence[str]) -> bool:
    """Whether the first line names the columns."""
    return bool(lines) and {"Timestamp", *COLUMNS.values()} <= set(lines[0].strip().split(","))


def read(path: Path, lines: Sequence[str], direction: str) -> RateTrace:
    """Return the rates of one direction."""
    column, idle, missing = COLUMNS[direction], 0, 0
    found: dict[datetime, list[float]] = {}
    for row, values in enumerate(csv.DictReader(lines), start=2):
        try:
            at = datetime.strptime(str(values["Timestamp"]), "%Y.%m.%d_%H.%M.%S")
        except ValueError:
            message = f"Timestamp `{values['Timestamp']}` is not of the form `2019.12.14_10.16.30`"
            raise UsageError(f"`{path}`, row {row}: {message}") from None
        if values.get("State") not in (None, "D", "U"):
            idle += 1
        elif (text := str(values[column]).strip()) in ("-", "", "None"):
            missing += 1
        else:
            found.setdefault(at, []).append(1000 * number(text, column, path, row))
    if not found:
        raise UsageError(f"`{path}`: no row has a value of {column} in a state of transfer")
    instants = list(found)
    if instants != sorted(instants):
        raise UsageError(f"`{path}`: times go back; sort the rows by Timestamp")
    gaps_s = [(after - at).total_seconds() for at, after in pairwise(instants)]
    cut = sum(gap_s > LONGEST_S for gap_s in gaps_s)
    lasts_s = [min(gap_s, LONGEST_S) for gap_s in gaps_s] + [1.0]
    levels = [
        Level(lasts, sum(rates) / len(rates)) for lasts, rates in zip(lasts_s, found.values(), strict=True)
    ]
    assumed = [f"{column} is in kbit/s, and a value holds until the next one; the last one for a second"]
    if idle:
        assumed.append(f"{idle} rows in which nothing was transferred say nothing about the rate: left out")
    if missing:
        assumed.append(f"{missing} rows have no value of {column}: left out")
    if cut:
        assumed.append(f"{cut} gaps of more than {LONGEST_S:g} s are shortened to that")
    if repeated := sum(len(rates) > 1 for rates in found.values()):
        assumed.append(f"{repeated} seconds have several values: their mean is taken")
    return trace(levels, assumed, path)
