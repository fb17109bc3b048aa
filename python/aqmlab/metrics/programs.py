"""Metrics that programs write themselves: ``program_NAME`` for the value NAME of a class of programs."""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean

from aqmlab.errors import UsageError
from aqmlab.metrics.formulas import Formula
from aqmlab.metrics.measured import Measured, is_of
from aqmlab.metrics.registry import Metric, family
from aqmlab.metrics.scope import CLASS, FLOWS
from aqmlab.recordings.programs import NAME, written

PREFIX = "program_"
_UNITS = {
    "_per_s": "1/s",
    "_s": "s",
    "_bps": "bit/s",
    "_percent": "%",
    "_packets": "packets",
    "_bytes": "B",
}
"""The units of values, by the end of their names, as for other metrics."""
_FORMULA = Formula("programs", "mean of the value over the clients or files that have it")


@family(PREFIX)
@lru_cache(maxsize=1024)
def metric_of(name: str) -> Metric:
    """Return the metric with this name.

    Raises
    ------
    UsageError
        If no program can write such a value.
    """
    value = name.removeprefix(PREFIX)
    if not NAME.fullmatch(value):
        raise UsageError(
            f"`{name}` is no metric of programs: after `{PREFIX}`, write the name of a value, which has at"
            " most 64 small letters, digits and `_`, and begins with a letter"
        )
    ending = next((end for end in _UNITS if value.endswith(end)), "")

    def mean(run: Measured, class_name: str) -> float | None:
        found = [
            part[value]
            for of in written(run.run)
            if is_of(of.class_name, class_name) and of.class_name not in run.left_out
            for part in of.parts
            if value in part
        ]
        return fmean(found) if found else None

    return Metric(
        name,
        f"program: {value.removesuffix(ending).replace('_', ' ')}",
        _UNITS.get(ending, ""),
        f"the value `{value}` that the clients of a class of programs have written (`results` of the class):"
        " mean over the clients or files that have it",
        "the program itself",
        "",
        mean,
        FLOWS | CLASS,
        told=_FORMULA,
    )
