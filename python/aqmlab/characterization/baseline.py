"""Bands for continuous integration: the values of a characterization, and how far they may move.

A run is deterministic, so unchanged code gives equal values. A change that only reorders packets gives
another sample. The band of a mean is therefore the prediction interval for the mean of as many new seeds. Its
confidence leaves a probability of 5 % for one or more false alarms among all bands (Bonferroni).

Source of the interval: Hahn and Meeker, Statistical Intervals, section 4.8.2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.stats import CONFIDENCE, estimate
from aqmlab.system.files import json_text, save

FORMAT = 1
FLOOR = 0.01
"""Smallest half-width of a band relative to its mean (ours), for values that do not vary between seeds."""

Key = tuple[str, str, str]
"""Section, cell and metric."""
Values = Mapping[Key, tuple[float, ...]]


@dataclass(frozen=True)
class Departure:
    """A value outside its band.

    Attributes
    ----------
    key
        Section, cell and metric.
    low, high
        The band; ``None`` if the metric had no value.
    value
        The mean now; ``None`` without one.
    """

    key: Key
    low: float | None
    high: float | None
    value: float | None

    @property
    def text(self) -> str:
        """One line about the value."""
        section, cell, metric = self.key
        band = "no value" if self.low is None else f"{self.low:.6g} to {self.high:.6g}"
        now = "no value" if self.value is None else f"{self.value:.6g}"
        return f"{section}: {cell}: {metric} is {now}; its band is {band}"


def write_bands(file: Path, settings: Mapping[str, Any], values: Values) -> None:
    """Write the bands of all values.

    Raises
    ------
    UsageError
        With a single seed, which has no spread.
    HostError
        If the file cannot be written.
    """
    check_seeds(settings["seeds"])
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(len(values), 1)
    bands = [[*key, *(_band(of, confidence) or (None, None))] for key, of in values.items()]
    content = {"format_version": FORMAT, "settings": dict(settings), "bands": bands}
    save(file, json_text(content))


def check_seeds(seeds: int) -> None:
    """Refuse a baseline of a single seed."""
    if seeds < 2:
        raise UsageError("a baseline needs at least two seeds: with one, there is no spread")


def departures(file: Path, settings: Mapping[str, Any], values: Values) -> tuple[Departure, ...]:
    """Return the values that have left their bands, in the order of the file.

    Raises
    ------
    UsageError
        If the file is not a baseline, or has been written with other settings.
    """
    found = []
    for *key, low, high in read_bands(file, settings)["bands"]:
        section, cell, metric = key
        now = estimate(values.get((section, cell, metric), ()))
        mean = None if now is None else now.mean
        inside = mean is None if low is None else mean is not None and low <= mean <= high
        if not inside:
            found.append(Departure((section, cell, metric), low, high, mean))
    return tuple(found)


def read_bands(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file of bands, which must have been written with the same settings.

    Raises
    ------
    UsageError
        If the file is not a baseline, or has been written with other settings.
    """
    content = _read(file)
    differing = [key for key, value in settings.items() if content["settings"].get(key) != value]
    if differing:
        key = differing[0]
        raise UsageError(
            f"{file}: the baseline was written with `{key}` {content['settings'].get(key)!r}, not"
            f" {settings[key]!r}; use the same settings, or write a new one with --write-baseline"
        )
    return content


def _band(of: Iterable[float], confidence: float) -> tuple[float, float] | None:
    found = estimate(of, confidence)
    if found is None:
        return None
    half = max((found.half_width or 0.0) * math.sqrt(2.0), FLOOR * abs(found.mean))
    return found.mean - half, found.mean + half


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file}: this is not a baseline: {error}") from error
    if not isinstance(content, dict) or content.get("format_version") != FORMAT or "bands" not in content:
        raise UsageError(
            f"{file}: this is not a baseline of format {FORMAT}; write one with --write-baseline"
        )
    return content
