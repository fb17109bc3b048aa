"""Checks of a result: reasons to distrust it.

Each check asks one question of every cell. A problem is a :class:`Doubt`, which is merged over
cells and reported with every answer: after the table of ``run`` and ``sweep``, in their JSON, and
in the report.

A doubt is *serious* if the figures are misleading, a *warning* if they may be, and a *note* if they are
correct but need an explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqmlab.soundness import (
    books,
    bottleneck,
    carried,
    changing,
    compared,
    disciplines,
    flows,
    left_out,
    live,
    programs,
    seeds,
    settled,
    shapers,
    unfinished,
)
from aqmlab.soundness.doubt import SEVERITIES, Check, Doubt, Severity

if TYPE_CHECKING:
    from aqmlab.results.results import Results

_CHECKS = (
    seeds.finished,
    books.balanced,
    books.distributions,
    carried.no_more_than_carried,
    changing.capacity_is_as_planned,
    bottleneck.is_the_bottleneck,
    bottleneck.buffer_is_reached,
    compared.buffers_are_equal,
    compared.classes_differ_as_meant,
    disciplines.marks_are_carried,
    disciplines.dctcp_is_marked,
    disciplines.coupled_queues_are_used,
    disciplines.hosts_are_shared,
    disciplines.packets_suit_codel,
    shapers.shapers_matter,
    left_out.traces_are_whole,
    flows.limited_by_windows,
    flows.out_of_step,
    flows.many_packets,
    settled.flows_have_started,
    settled.warm_up_is_long_enough,
    unfinished.waits_have_ended,
    seeds.differ,
    seeds.enough,
)


_LIVE_CHECKS = (
    live.kept_time,
    live.to_its_end,
    live.stack_as_asked,
    live.packets_kept,
    live.headers_are_equal,
)


_PROGRAM_CHECKS = (
    programs.ended_well,
    programs.fragments_are_few,
    programs.results_are_readable,
)


def examine(results: Results) -> tuple[Check, ...]:
    """Run all checks on the results, and return their outcomes in a fixed order.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    """
    of_programs = _PROGRAM_CHECKS if programs.any_programs(results) else ()
    checks = (*_LIVE_CHECKS, *of_programs, *_CHECKS) if live.any_live(results) else _CHECKS
    return tuple(check(results) for check in checks)


def doubts(results: Results) -> tuple[Doubt, ...]:
    """Return the findings of :func:`examine`, the most serious first."""
    return ranked(examine(results))


def ranked(checks: Sequence[Check]) -> tuple[Doubt, ...]:
    """The doubts found by the checks, the most serious first."""
    found = [doubt for check in checks for doubt in check.doubts]
    return tuple(sorted(found, key=lambda doubt: SEVERITIES.index(doubt.severity)))


__all__ = ["Check", "Doubt", "Severity", "doubts", "examine", "ranked"]
