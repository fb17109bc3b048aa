"""Metrics of frames and updates: which arrive in time, after how long, and how often a picture freezes.

They are undefined for classes without frames. A frame counts if it was captured in the measured interval; one
whose deadline had not passed by the end of the run counts nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.metrics.frame_totals import FrameTotals
from aqmlab.metrics.histograms import Histogram
from aqmlab.metrics.measured import Measured
from aqmlab.metrics.registry import metric
from aqmlab.metrics.scope import CLASS, FLOWS


def _sum(parts: Sequence[FrameTotals], *columns: str) -> int:
    return sum(part.counts[column] for part in parts for column in columns)


def _decided(parts: Sequence[FrameTotals]) -> int:
    return _sum(parts, "captured_frames") - _sum(parts, "open_frames")


def _share(run: Measured, class_name: str, *columns: str) -> float | None:
    parts = run.frames_of(class_name)
    decided = _decided(parts)
    return 100.0 * _sum(parts, *columns) / decided if decided else None


def delays_of(run: Measured, class_name: str) -> Histogram:
    """Return the distribution of the delays, in ns, of a class's complete frames."""
    return Histogram.merged([part.delay() for part in run.frames_of(class_name)])


def _quantile(name: str, label: str, share: float) -> None:
    @metric(
        f"frame_delay_{name}_s",
        label=f"frame delay {label}",
        unit="s",
        definition=f"{'median' if name == 'median' else f'{100 * share:g}th percentile'} of the time from the"
        " capture of a frame or update to the arrival of its last packet, over those that arrived completely;"
        " the time at the sender counts",
        source="RFC 8867, section 3.1 (end-to-end delay of media), per frame",
        better="less",
        takes=FLOWS | CLASS,
    )
    def compute(run: Measured, class_name: str) -> float | None:
        delay_ns = delays_of(run, class_name).quantile(share)
        return None if delay_ns is None else delay_ns / 1e9


_quantile("median", "median", 0.5)
_quantile("p95", "p95", 0.95)
_quantile("p99", "p99", 0.99)


@metric(
    "frame_delay_mean_s",
    label="frame delay, mean",
    unit="s",
    definition="mean time from the capture of a frame or update to the arrival of its last packet, over those"
    " that arrived completely",
    source="RFC 8867, section 3.1 (end-to-end delay of media), per frame",
    better="less",
    takes=FLOWS | CLASS,
)
def frame_delay_mean(run: Measured, class_name: str) -> float | None:
    """Mean delay; the sum of the delays is recorded exactly."""
    parts = run.frames_of(class_name)
    complete = _sum(parts, "on_time_frames", "late_frames")
    return _sum(parts, "frame_delay_sum_ns") / complete / 1e9 if complete else None


@metric(
    "frames_in_time_percent",
    label="frames in time",
    unit="%",
    definition="share of the frames or updates that arrived completely by their deadline, among those whose"
    " deadline passed before the end of the run or that arrived before it",
    source="`deadline` of the class; ITU-T G.114 gives 150 ms for conversations",
    better="more",
    takes=FLOWS | CLASS,
)
def frames_in_time(run: Measured, class_name: str) -> float | None:
    """Frames that arrived in time."""
    return _share(run, class_name, "on_time_frames")


@metric(
    "frames_late_percent",
    label="frames late",
    unit="%",
    definition="share of the frames or updates that arrived completely, but after their deadline",
    source="as `frames_in_time_percent`",
    better="less",
    takes=FLOWS | CLASS,
)
def frames_late(run: Measured, class_name: str) -> float | None:
    """Frames that arrived late."""
    return _share(run, class_name, "late_frames")


@metric(
    "frames_lost_percent",
    label="frames lost",
    unit="%",
    definition="share of the frames or updates of which a packet was lost, or which their sender discarded"
    " because they had waited for too long",
    source="as `frames_in_time_percent`",
    better="less",
    takes=FLOWS | CLASS,
)
def frames_lost(run: Measured, class_name: str) -> float | None:
    """Frames that never arrived completely."""
    return _share(run, class_name, "lost_frames", "discarded_frames")


@metric(
    "late_packets",
    label="late packets",
    unit="",
    definition="packets that arrived after the deadline of their frame",
    source="`late_packets` of `frame_summary` in the recording",
    better="less",
    takes=FLOWS | CLASS,
)
def late_packets(run: Measured, class_name: str) -> float | None:
    """Packets that arrived late."""
    parts = run.frames_of(class_name)
    return float(_sum(parts, "late_packets")) if parts else None


@metric(
    "encoded_rate_bps",
    label="encoded rate",
    unit="bit/s",
    definition="bits of all frames or updates captured in the measured interval, headers included, divided by"
    " its length; what a sender discards counts",
    source="RFC 8867, section 3.1 (sending rate)",
    better="more",
    takes=FLOWS | CLASS,
)
def encoded_rate(run: Measured, class_name: str) -> float | None:
    """Rate of the encoders."""
    parts = run.frames_of(class_name)
    return 8 * _sum(parts, "captured_bytes") / run.interval_s if parts else None


@metric(
    "freezes_per_minute",
    label="freezes",
    unit="1/min",
    definition="freezes per minute and flow: a freeze is a time between two shown frames of at least three"
    " times the mean of the last 30, and at least `freeze_after` longer than that mean; a complete frame is"
    " shown when it arrives, unless a later one was shown before; games do not freeze",
    source="W3C, Identifiers for WebRTC's Statistics API, `freezeCount`",
    better="less",
    takes=FLOWS | CLASS,
)
def freezes_per_minute(run: Measured, class_name: str) -> float | None:
    """Freezes of a flow per minute."""
    parts = run.frames_of(class_name)
    flows = len(run.flows_of(class_name).of_classes({part.class_name for part in parts}.__contains__))
    return _sum(parts, "freezes") / flows / (run.interval_s / 60.0) if flows else None


@metric(
    "frozen_percent",
    label="time frozen",
    unit="%",
    definition="share of the measured interval in which the picture of a flow was frozen, as in"
    " `freezes_per_minute`",
    source="W3C, Identifiers for WebRTC's Statistics API, `totalFreezesDuration`",
    better="less",
    takes=FLOWS | CLASS,
)
def frozen_percent(run: Measured, class_name: str) -> float | None:
    """Share of the time in freezes."""
    parts = run.frames_of(class_name)
    flows = len(run.flows_of(class_name).of_classes({part.class_name for part in parts}.__contains__))
    return 100.0 * _sum(parts, "frozen_ns") / flows / run.interval_ns if flows else None
