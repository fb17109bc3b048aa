"""Time series: the lines that each chart shows, and the numbers of each run in packed form."""

from __future__ import annotations

import base64
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aqmlab.errors import RecordingError
from aqmlab.figures.looks import PALETTE
from aqmlab.figures.over_time import queue_columns
from aqmlab.recordings.recording import Run, Tables
from aqmlab.recordings.time_series import MOST_BINS, MOST_FLOWS, RunSeries, run_series
from aqmlab.results.answers import Answer
from aqmlab.text.numbers import time_text

_BLUE, _ORANGE, _GREEN, _RED, _SKY = PALETTE[:5]
_NAN = float("nan")


def _line(of: str, y: str, label: str, look: tuple[str, Sequence[int]], width: float = 1.3) -> dict[str, Any]:
    return {"of": of, "y": y, "label": label, "color": look[0], "dash": look[1], "width": width}


# Lines of a chart differ by colour and by dashes.
CHARTS: tuple[dict[str, Any], ...] = (
    {
        "title": "Arrivals and departures [Mbit/s]",
        "lines": [
            _line("queue", "arrivals", "arrivals", (_ORANGE, (4, 2))),
            _line("queue", "departures", "departures", (_BLUE, ())),
        ],
    },
    {
        "title": "Backlog and the law's average [packets]",
        "lines": [
            _line("queue", "backlog", "backlog", (_BLUE, ())),
            _line("law", "avg", "avg", (_RED, (6, 2)), 2.0),
        ],
    },
    {
        "title": "Probability of the law",
        "lines": [
            _line("law", "max_p", "max_p", (_ORANGE, (6, 3))),
            _line("law", "p", "p", (_BLUE, ())),
        ],
    },
    {
        "title": "Drops and marks [packets/s]",
        "lines": [
            _line("queue", "marked", "marks", (_GREEN, (2, 2))),
            _line("queue", "not_by_law", "other drops", (_RED, (6, 2))),
            _line("queue", "by_law", "drops by the law", (_ORANGE, ())),
        ],
    },
    {
        "title": "Congestion windows [segments]",
        "lines": [
            {**_line("flows", "cwnd", "a flow", (_SKY, ()), 1.0), "faint": True},
            _line("mean", "cwnd", "mean of all flows", (_RED, ()), 2.0),
        ],
    },
)
"""Each line names a table and a column of a run; a line whose column has no values is not drawn."""


_MOST_CELLS = 40
"""Largest number of cells; with more, the page would open slowly."""
_MOST_POINTS = 6000
"""Largest number of points per line, summed over all cells."""


def courses_context(answer: Answer, first_arm: str) -> dict[str, Any]:
    """Return the template's context, with the script's data under ``data``; ``None`` if nothing is drawn.

    The first run of each cell is drawn.

    Parameters
    ----------
    answer
        The answer whose cells are shown.
    first_arm
        The arm that the charts show first; of its cells, they show the first one that is drawn.
    """
    results = answer.results
    firsts = {i: its[0] for i, row in enumerate(answer.rows) if (its := results.runs_of(row.cell))}
    runs = {i: run for i, run in firsts.items() if "queues" in run.manifest.tables}
    if not 0 < len(runs) <= _MOST_CELLS:
        return {"data": None}
    series, lacking = _series(answer, runs)
    packed = _Packed()
    drawn: list[dict[str, Any]] = []
    for i, of_run in series.items():
        tables = {name: list(map(packed.table, of)) for name, of in _tables(of_run).items()}
        if any(tables.values()):
            stalls = [list(stall) for stall in of_run.stalls]
            drawn.append({"cell": i, "seed": of_run.run.seed, "tables": tables, "stalls": stalls})
    if not drawn and not lacking:
        return {"data": None}
    cells = [row.cell for row in answer.rows]
    shown = [run["cell"] for run in drawn]
    first = next((i for i in shown if cells[i].arm == first_arm), next(iter(runs)))
    data = {
        "charts": CHARTS,
        "runs": drawn,
        "first": first,
        "warmup": runs[first].t0_ns / 1e9,
        "end": max(run.t1_ns for run in runs.values()) / 1e9 or 1.0,  # a run may have ended at time 0
        "packed": packed.text(),
    }
    return {
        "data": data if drawn else None,
        "bin_text": _bin_text(list(series.values())),
        "flows_text": _flows_text([runs[i] for i, of_run in series.items() if of_run.cwnd]),
        "stalls": any(of_run.stalls for of_run in series.values()),
        "lacking": lacking,
    }


def _series(answer: Answer, runs: Mapping[int, Run]) -> tuple[dict[int, RunSeries], list[str]]:
    """Return the series of each run by the number of its cell, and a sentence about each unreadable run."""
    cells = [row.cell for row in answer.rows]
    source = Tables(tuple(runs.values()), answer.results.reader.remedy)
    bins = min(MOST_BINS, _MOST_POINTS // len(runs))
    if not answer.results.axes:
        return dict(zip(runs, run_series(source, list(runs.values()), answer.queue, bins), strict=True)), []
    series, lacking = {}, []
    for i, run in runs.items():
        queue = answer.asked_queue or answer.results.queue_of(cells[i])
        try:
            (series[i],) = run_series(source, [run], queue, bins)
        except RecordingError as error:
            lacking.append(str(error))
    return series, lacking


def _flows_text(runs: Sequence[Run]) -> str:
    """Return a remark if windows are drawn for only some of the flows."""
    most = max((run.flow_count for run in runs), default=0)
    return f"; windows are drawn for the first {MOST_FLOWS} of {most} flows" if most > MOST_FLOWS else ""


def _bin_text(series: Sequence[RunSeries]) -> str:
    for of_run in series:
        if len(of_run.queue.t_s) > 1:
            return time_text(of_run.queue.t_s[1] - of_run.queue.t_s[0])
    return "the sampling interval"


class _Packed:
    """Columns of numbers, one after the other in binary form: half the size of text, and faster to read."""

    def __init__(self) -> None:
        # Seven digits are more than a screen can show.
        self._numbers = array("f")

    def table(self, columns: Mapping[str, Iterable[float]]) -> dict[str, list[int]]:
        """Return where each column begins, and how many numbers it has."""
        return {name: self._column(values) for name, values in columns.items()}

    def _column(self, values: Iterable[float]) -> list[int]:
        begin = len(self._numbers)
        self._numbers.extend(_NAN if value is None else value for value in values)
        return [begin, len(self._numbers) - begin]

    def text(self) -> str:
        if sys.byteorder == "big":
            self._numbers.byteswap()
        return base64.b64encode(zlib.compress(self._numbers.tobytes(), wbits=31)).decode("ascii")


def _tables(series: RunSeries) -> dict[str, list[Mapping[str, Iterable[float]]]]:
    """Return lists of tables by name; ``flows`` has a table per flow, or none if flows were not recorded."""
    flows: list[Mapping[str, Iterable[float]]]
    flows = [{"t": t, "cwnd": y} for name, (t, y) in series.cwnd.items() if name != "mean"]
    means: list[Mapping[str, Iterable[float]]]
    means = [{"t": t, "cwnd": y} for name, (t, y) in series.cwnd.items() if name == "mean"]
    return {
        "queue": [{"t": series.queue.t_s, **queue_columns(series)}] if len(series.queue.t_s) else [],
        "law": [_law(series)] if series.law else [],
        "flows": flows,
        "mean": means,
    }


def _law(series: RunSeries) -> Mapping[str, Iterable[float]]:
    t = next(times for times, _ in series.law.values())
    lines = {name: series.law[name][1] for name in ("avg", "p", "max_p") if name in series.law}
    # At each sample, a law records all of its values.
    return {"t": t} | {name: y for name, y in lines.items() if len(y) == len(t)}
