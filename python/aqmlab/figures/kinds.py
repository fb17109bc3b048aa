"""The kinds of figures, by their names on the command line.

Nothing is imported before a figure is made, because help texts and reports need this list, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aqmlab.figures.model import Figure
    from aqmlab.figures.view import View
    from aqmlab.results.answers import Answer
    from aqmlab.results.results import Results


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    Attributes
    ----------
    module
        The module of this package in which its functions are.
    figure
        The function that makes it.
    numbers
        The function that yields its numbers as rows, the first of which names the columns; empty if there is
        none.
    page
        The function that makes the figure that reports show of an answer, or ``None``; empty if reports do
        not show it.
    of
        What it is about, in help texts; empty for whole runs.
    waits
        What its users wait for: ``"response"`` or ``"page"``.
    """

    module: str
    figure: str
    numbers: str = ""
    page: str = ""
    of: str = ""
    waits: str = ""

    def make(self, results: Results, view: View, queue: str | None) -> Figure:
        """The figure.

        ``queue`` is the queue's name, or, with several cases, ``None`` for that by which each cell is judged.
        """
        made: Figure = self._function(self.figure)(results, view, queue)
        return made

    def rows(self, results: Results, view: View, queue: str | None) -> Iterator[tuple[Any, ...]]:
        """Its numbers."""
        found: Iterator[tuple[Any, ...]] = self._function(self.numbers)(results, view, queue)
        return found

    def of_answer(self, answer: Answer) -> Figure | None:
        """The figure that a report shows."""
        made: Figure | None = self._function(self.page)(answer) if self.page else None
        return made

    def _function(self, name: str) -> Callable[..., Any]:
        module, _, other = name.rpartition(".")
        found = getattr(import_module(f"aqmlab.figures.{module or self.module}"), other)
        if not self.waits:
            return found  # type: ignore[no-any-return]
        from aqmlab.metrics.waits import ALL_WAITS

        (waits,) = (waits for waits in ALL_WAITS if waits.key == self.waits)
        return partial(found, waits=waits)


_VALUES = "value_rows.value_rows"
_FLOWS = "flows"
_SHAPERS = "shapers that are adjusted"
_INNER = "queues inside a queue"
_FRAMES = "frames of media and games"
_TRACED, _PACKETS = "single flows that `trace` records", "single flows whose `packets` are recorded"
_REQUESTS = {"response": "requests", "page": "web pages"}

_CURVES = {
    f"{key}-{name}": FigureKind("response_curves", f"{name}_figure", "curve_rows", of=of, waits=key)
    for key, of in _REQUESTS.items()
    for name in ("cdf", "ccdf")
}
_BY_SIZE = {
    f"{key}-{name}": FigureKind("response_sizes", f"{name}_figure", rows, of=of, waits=key)
    for key, of in _REQUESTS.items()
    for name, rows in (("scatter", "scatter_rows"), ("quantiles", "quantile_rows"))
}
WAIT_CURVES: Mapping[str, FigureKind] = _CURVES
WAIT_KINDS: Mapping[str, FigureKind] = {**_CURVES, **_BY_SIZE}
"""The figures of requests and of pages, in experiments and in sweeps."""

PART_KINDS: Mapping[str, FigureKind] = {
    f"{part}-delay": FigureKind(
        "delay_by_part", f"{part}_delay", f"{part}_delay_rows", f"{part}_delay_of_answer", of
    )
    for part, of in (("inner", _INNER), ("class", "several classes"))
}
"""Figures of parts of the packets, which not every recording distinguishes."""

_COMMON = {
    "series": FigureKind("over_time", "series"),
    "goodput-delay": FigureKind("goodput_delay", "trade_off"),
    "delay-cdf": FigureKind("delay_cdf", "cdfs"),
    "frame-delay-cdf": FigureKind("media", "frame_delay_cdf", "frame_delay_rows", of=_FRAMES),
    **PART_KINDS,
    "box": FigureKind("boxes_and_bars", "box", _VALUES),
    "bar": FigureKind("boxes_and_bars", "bar", _VALUES),
    **WAIT_KINDS,
}

SWEEP_KINDS: Mapping[str, FigureKind] = {
    "lines": FigureKind("lines", "lines", _VALUES),
    "heat": FigureKind("maps", "heat", _VALUES),
    "differences": FigureKind("maps", "difference_maps", _VALUES),
    **_COMMON,
}
"""The figures of a sweep."""

KINDS: Mapping[str, FigureKind] = {
    "autorate": FigureKind("autorate", "autorate", "autorate_rows", of=_SHAPERS),
    "flow-delay": FigureKind("delay_by_flow", "flow_delay", "flow_delay_rows", of=_PACKETS),
    "inner-series": FigureKind("inner_series", "inner_series", "inner_series_rows", "of_answer", _INNER),
    "delay-capacity": FigureKind(
        "delay_by_capacity", "delay_capacity", "delay_capacity_rows", "of_answer", "links whose rate changes"
    ),
    "variance-time": FigureKind("variance_time", "variance_time"),
    "goodput-rtt": FigureKind("goodput_rtt", "goodput_rtt", "goodput_rtt_rows", "of_answer", _FLOWS),
    "cumulative-ack": FigureKind("cumulative", "cumulative_ack", "cumulative_rows", of=_FLOWS),
    "media-rate": FigureKind("media", "media_rate", "media_rate_rows", of=_FRAMES),
    "cwnd": FigureKind("senders", "cwnd", "trace_rows", of=_TRACED),
    "srtt": FigureKind("senders", "srtt", "trace_rows", of=_TRACED),
    "time-sequence": FigureKind("sequence", "time_sequence", "sequence_rows", of=_PACKETS),
    "ladder": FigureKind("ladder", "ladder", "ladder_rows", of=_PACKETS),
    **_COMMON,
}
"""The figures of an experiment."""


def kinds_text() -> str:
    """The names of all kinds in a sentence for help texts, by what they are about."""

    def named(kinds: Mapping[str, FigureKind]) -> str:
        about: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            about.setdefault(kind.of, []).append(name)
        return "; ".join(f"{f'for {of}: ' if of else ''}{', '.join(names)}" for of, names in about.items())

    of_runs, of_sweeps = (
        named({name: kind for name, kind in kinds.items() if name not in WAIT_KINDS})
        for kinds in (KINDS, SWEEP_KINDS)
    )
    return f"{of_runs}. For a sweep: {of_sweeps}. For a recording or a sweep, {named(WAIT_KINDS)}."
