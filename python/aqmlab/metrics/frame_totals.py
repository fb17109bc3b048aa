"""The facts about the frames of one run that metrics use: one row per class and receiving end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from aqmlab.metrics.histograms import EMPTY_HISTOGRAM, Histogram, Histograms

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.recordings.recording import Tables

COUNTS = (
    "captured_frames",
    "on_time_frames",
    "late_frames",
    "discarded_frames",
    "lost_frames",
    "open_frames",
    "captured_bytes",
    "late_packets",
    "freezes",
    "frozen_ns",
    "frame_delay_sum_ns",
)


def _no_distribution() -> Histogram:
    return EMPTY_HISTOGRAM


@dataclass(frozen=True)
class FrameTotals:
    """A row of ``frame_summary``: the frames of a class to one end.

    Attributes
    ----------
    to
        The end that receives them: ``"client"`` or ``"server"``.
    counts
        The columns of the row.
    delay
        Reads the distribution of the delays in ns of complete frames.
    """

    class_name: str
    to: str
    counts: Mapping[str, int]
    delay: Callable[[], Histogram] = field(default=_no_distribution, compare=False)


def read_frames(tables: Tables) -> dict[Path, list[FrameTotals]]:
    """Return the totals by run folder, for runs with frames."""
    runs = [run for run in tables.runs if "frame_summary" in run.manifest.tables]
    if not runs:
        return {}
    histograms = Histograms(tables, "frame_histograms", ("class",), ("receiver", "kind"))
    found: dict[Path, list[FrameTotals]] = {}
    rows = tables.rows(
        "frame_summary", f"run, class, receiver, {', '.join(COUNTS)}", "ORDER BY run, class, receiver", runs
    )
    for index, class_name, to, *values in rows:
        run = runs[int(index)]
        counts = dict(zip(COUNTS, map(int, values), strict=True))
        delay = partial(histograms.of, run, class_name, to, "frame_delay_ns")
        found.setdefault(run.path, []).append(FrameTotals(class_name, to, counts, delay))
    return found
