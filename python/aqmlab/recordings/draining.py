"""How long a link whose rate changes takes to send what waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def draining_times(
    ends_s: Sequence[float],
    capacities: Sequence[float],
    instants_s: Sequence[float],
    waiting: Sequence[float],
    then_bps: float | None = None,
) -> list[float]:
    """Return how long the link takes, from each instant on, to send what waits at that instant.

    Parameters
    ----------
    ends_s, capacities
        Ends of the samples of the link in s, ascending, the first of which begins at 0; and what it could
        send in each, in bytes. Within a sample, its rate counts as constant.
    instants_s, waiting
        The instants in s, ascending, and the bytes that wait at each.
    then_bps
        The rate after the last sample, in bit/s; if ``None``, the result ends before the first
        instant for which that rate would matter.

    Returns
    -------
    list of float
        Times in s.
    """
    begins = [0.0, *ends_s[:-1]]
    sent = [0.0, *accumulate(capacities)]
    found: list[float] = []
    # Both instants and what the link has sent ascend, so each search goes on where the one before it ended.
    here = 0
    for instant, waits in zip(instants_s, waiting, strict=True):
        while here < len(ends_s) and ends_s[here] < instant:
            here += 1
        by_then = sent[here]
        if here < len(ends_s):
            by_then += capacities[here] * (instant - begins[here]) / (ends_s[here] - begins[here])
        due = by_then + waits
        at = here
        while at < len(ends_s) and sent[at + 1] < due:
            at += 1
        if at < len(ends_s):
            share = (due - sent[at]) / capacities[at] if capacities[at] else 0.0
            until = begins[at] + share * (ends_s[at] - begins[at])
        elif then_bps is None:
            break
        else:
            until = max(instant, *ends_s[-1:]) + (due - sent[-1]) * 8 / then_bps
        found.append(max(until - instant, 0.0))
    return found
