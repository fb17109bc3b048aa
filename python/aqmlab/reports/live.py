"""Live runs in a report: the verdict on them, and what it is based on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab.figures.looks import dash_lengths
from aqmlab.figures.model import Axis, Entry, Figure, Line, Look, Panel
from aqmlab.metrics import Histogram
from aqmlab.recordings.faithfulness import Faithfulness, combined, grouped
from aqmlab.text.numbers import NO_VALUE, shown

_MOST_POINTS = 300
_QUANTILES = ("p50", "p99", "p999", "max")


def live_context(verdicts: Sequence[Faithfulness], arms: Sequence[str]) -> dict[str, Any] | None:
    """The verdict and the section "Faithfulness"; ``None`` if no run was live."""
    if not verdicts:
        return None
    return {
        "verdict": combined(verdicts),
        "faithful": all(verdict.faithful for verdict in verdicts),
        "runs": [_row(verdict) for verdict in verdicts],
        "causes": list(dict.fromkeys(cause for verdict in verdicts for cause in verdict.part("drops"))),
        "checks": [{"run": _name(verdict), "checks": verdict.checks} for verdict in verdicts],
        "floor": [
            _floor(verdict) for verdict in verdicts if verdict.part("ping") or verdict.part("capacity")
        ],
        "stalls": _stalls(verdicts),
        "remarks": _remarks(verdicts, arms),
        "stack": _stack(verdicts),
        "machine": _facts(verdicts[-1].part("machine")),
    }


def _name(verdict: Faithfulness) -> str:
    return f"{verdict.arm}, seed {verdict.seed}"


def _row(verdict: Faithfulness) -> dict[str, Any]:
    marks = verdict.part("marks")
    return {
        "run": _name(verdict),
        "faithful": verdict.faithful,
        "lateness_us": [shown(verdict.lateness_s(quantile), 1, 1e6) for quantile in _QUANTILES],
        "stalls": shown(verdict.stall_count),
        "duty": shown(verdict.duty_percent, 1),
        "policy": f"{verdict.live.get('policy', NO_VALUE)}, {verdict.wait or NO_VALUE}",
        "marks": " / ".join(shown(marks.get(name)) for name in ("ce_delivered", "ce_received")),
        "lost_unseen": shown(verdict.lost_unseen),
        "drops": verdict.part("drops"),
    }


def _floor(verdict: Faithfulness) -> dict[str, Any]:
    """Return the limits of the machine, measured just before a run, and the demand of the run."""
    capacity = verdict.part("capacity")
    rates = ("limit_packets_per_s", "demand_packets_per_s")
    return {
        "run": _name(verdict),
        "ping_us": [shown(verdict.ping_s(quantile), 1, 1e6) for quantile in ("p50", "p99")],
        "packets_per_s": [shown(capacity.get(rate)) for rate in rates],
    }


def _stalls(verdicts: Sequence[Faithfulness]) -> list[str]:
    return [line for verdict in verdicts for line in _stalls_of(verdict)]


def _stalls_of(verdict: Faithfulness) -> list[str]:
    """Return a line for each listed stall, and one that counts the others."""
    name = _name(verdict)
    lines = [f"{name}: {s['length_ns'] / 1e6:.1f} ms at {s['at_ns'] / 1e9:.3f} s" for s in verdict.stalls]
    if more := (verdict.stall_count or 0) - len(lines):
        longest = shown(verdict.longest_stall_s, 1, 1e3)
        lines.append(f"{name}: and {more} more; the longest of all took {longest} ms")
    return lines


def _remarks(verdicts: Sequence[Faithfulness], arms: Sequence[str]) -> list[str]:
    """Return each remark once, preceded by the arms to which it applies unless it applies to all."""
    of: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        for remark in grouped(verdict.stack_remarks):
            of.setdefault(remark, {})[verdict.arm] = None
    return [remark if len(its) == len(arms) else f"{', '.join(its)}: {remark}" for remark, its in of.items()]


def _stack(verdicts: Sequence[Faithfulness]) -> list[tuple[str, str, str]]:
    """Return the settings of each class's namespaces as rows of class, name and value, without duplicates."""
    rows = dict.fromkeys(
        (str(name), str(key).replace("_", " ") if told == "routes" else str(key), str(value))
        for verdict in verdicts
        for told in ("routes", "stack")
        for name, settings in verdict.part(told).items()
        for key, value in settings.items()
        if value is not None
    )
    return list(rows)


def _facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _fact(value)) for name, value in machine.items()]


def _fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not known" if value is None else str(value)


def lateness_chart(verdicts: Sequence[Faithfulness], arms: Sequence[str]) -> Figure:
    """Draw the share of packets with at least a given lateness, per arm, with all seeds combined."""
    title = "Packets that left at least this late"
    looks = {arm: Look(i, dash_lengths(i)) for i, arm in enumerate(arms)}
    lines = []
    for arm, look in looks.items():
        merged = Histogram.merged([lateness(verdict) for verdict in verdicts if verdict.arm == arm])
        if merged.total:
            lines.append(Line(arm, *exceedance(merged), look))
    panel = Panel(title, Axis("lateness [us]", log=True), Axis("share of packets", log=True), tuple(lines))
    return Figure(title, ((panel,),), tuple(Entry(line.name, line.look) for line in lines))


def lateness(verdict: Faithfulness) -> Histogram:
    """Return the lateness of the packets of a run, in ns."""
    bins = verdict.part("lateness").get("bins")
    low, high, weight = zip(*bins, strict=True) if bins else ((), (), ())
    return Histogram(tuple(low), tuple(high), tuple(weight))


def exceedance(histogram: Histogram) -> tuple[list[float], list[float]]:
    """Return upper bin edges of the lateness in us and, for each, the share of packets at least that late.

    If there are too many points, a subset evenly spaced on a logarithmic axis is returned.
    """
    ends, share = histogram.cdf()
    # A logarithmic axis has no zero, and values below a tenth of a microsecond are irrelevant.
    points = [(max(low / 1e3, 0.1), 1.0) for low in histogram.low[:1]]
    points += [(max(end / 1e3, 0.1), 1.0 - below) for end, below in zip(ends, share, strict=True)]
    points = [(x, y) for x, y in points if y > 0]
    if len(points) > _MOST_POINTS:
        x = [x for x, _ in points]
        steps = (x[-1] / x[0]) ** (1 / (_MOST_POINTS - 1))
        kept = {bisect_left(x, x[0] * steps**i) for i in range(_MOST_POINTS)}
        points = [points[i] for i in sorted(min(i, len(points) - 1) for i in kept)]
    return [x for x, _ in points], [y for _, y in points]
