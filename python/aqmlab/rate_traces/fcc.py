"""Speed tests of the FCC's Measuring Broadband America: ``curr_httpgetmt`` and ``curr_httppostmt``.

A test has a row for each of its intervals, numbered by ``sequence``: ``fetch_time`` in microseconds since its
beginning, and ``bytes_sec_interval``, bytes per second in the interval.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from aqmlab.errors import UsageError
from aqmlab.rate_traces.model import Level, RateTrace, number, trace

NAMES = (
    *(
        "unit_id",
        "dtime",
        "target",
        "address",
        "fetch_time",
        "bytes_total",
        "bytes_sec",
        "bytes_sec_interval",
    ),
    *("warmup_time", "warmup_bytes", "sequence", "threads", "successes", "failures", "location_id"),
)
"""The columns, in their order; files of some years have no line with their names, and no ``location_id``."""
_NEEDED = ("unit_id", "dtime", "fetch_time", "bytes_sec_interval", "sequence")


def fits(lines: Sequence[str]) -> bool:
    """Whether the first line names the columns, or has as many values."""
    words = [word.strip().strip('"') for word in lines[0].split(",")] if lines else []
    return set(_NEEDED) <= set(words) or (len(words) in (len(NAMES), len(NAMES) - 1) and words[0].isdecimal())


def read(path: Path, lines: Sequence[str], unit: str | None) -> RateTrace:
    """Return the tests of one unit, one after another."""
    named = "unit_id" in lines[0]
    reader = csv.DictReader(lines) if named else csv.DictReader(lines, NAMES)
    rows = [(row, values) for row, values in enumerate(reader, start=2 if named else 1)]
    units = list(dict.fromkeys(values["unit_id"] for _, values in rows))
    chosen = unit if unit is not None else units[0]
    if chosen not in units:
        raise UsageError(f"`{path}`: there is no unit `{chosen}`; the first ones are {', '.join(units[:5])}")
    mine = [(row, values) for row, values in rows if values["unit_id"] == chosen]
    tests = [list(rows) for _, rows in groupby(mine, key=lambda one: one[1]["dtime"])]
    levels = [level for test in tests for level in _levels(path, test)]
    assumed = [
        f"the {len(tests)} tests of unit {chosen} follow one another without the hours between them",
        "a test used the whole rate",
    ]
    if unit is None and len(units) > 1:
        assumed.append(f"of {len(units)} units the first; another one can be chosen by its number")
    return trace(levels, assumed, path)


def _levels(path: Path, test: Sequence[tuple[int, Mapping[str, str]]]) -> Iterator[Level]:
    before_us = 0.0
    for row, values in sorted(test, key=lambda one: number(one[1]["sequence"], "sequence", path, one[0])):
        at_us = number(values["fetch_time"], "fetch_time", path, row)
        rate = 8 * number(values["bytes_sec_interval"], "bytes_sec_interval", path, row)
        if at_us <= before_us:
            message = f"fetch_time {at_us:g} is not after {before_us:g} us of the interval before"
            raise UsageError(f"`{path}`, row {row}: {message}")
        yield Level((at_us - before_us) / 1e6, rate)
        before_us = at_us
