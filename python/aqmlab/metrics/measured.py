"""The input of metrics: the exact counts, integrals and distributions of one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.metrics.flow_totals import FLOW_COLUMNS, Flows
from aqmlab.metrics.frame_totals import FrameTotals, read_frames
from aqmlab.metrics.histograms import EMPTY_HISTOGRAM, Histogram, Histograms, quoted
from aqmlab.metrics.packet_kinds import EVERY_KIND, KindCounts
from aqmlab.text.numbers import counted

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from aqmlab.recordings.plan import TrafficClass
    from aqmlab.recordings.recording import Run, Tables

REASONS = ("early", "forced", "overflow", "injected")
EVERY_CLASS = "*"
EVERY_QUEUE = "*"
"""The name that stands for the whole network: all flows and, for packets, their whole path."""


def named_classes(text: str) -> tuple[str, ...]:
    """The traffic classes in a string: ``"web"``, or several with commas, ``"web1,web2"``."""
    return tuple(part.strip() for part in text.split(","))


def is_of(name: str, asked: str) -> bool:
    """Whether the traffic class with this name is among the requested ones; ``*`` requests all."""
    return asked in (EVERY_CLASS, name) or ("," in asked and name in named_classes(asked))


def no_distribution(_kind: str) -> Histogram:
    """Return the empty distribution, for rows that have no distribution."""
    return EMPTY_HISTOGRAM


@dataclass(frozen=True)
class QueueTotals:
    """A row of ``summary``: one queue and one class (``*`` for all classes), in the measured interval.

    Attributes
    ----------
    counts
        The columns of the row; those that exist only for class ``*`` are ``None`` elsewhere.
    distribution
        Reads the row's distribution of a kind: ``"sojourn_ns"`` or ``"backlog_packets"``.
    sojourn_sums
        The number of packets in the row's distribution of queueing delay, and the sum over these packets of
        the low end plus the high end of each packet's bin, in ns.
    """

    queue: str
    class_name: str
    counts: Mapping[str, int | None]
    distribution: Callable[[str], Histogram] = field(default=no_distribution, compare=False)
    sojourn_sums: tuple[int, int] = (0, 0)

    @property
    def sojourn(self) -> Histogram:
        """Return the distribution of queueing delay in ns, one value per packet."""
        return self.distribution("sojourn_ns")

    @property
    def sojourn_mean_ns(self) -> float | None:
        """Mean queueing delay in ns, taking the middle of each packet's bin; ``None`` without packets."""
        packets, ends_ns = self.sojourn_sums
        return ends_ns / (2 * packets) if packets else None

    @property
    def backlog(self) -> Histogram:
        """Distribution of the backlog in packets, weighted by time in ns; empty except for class ``*``."""
        return self.distribution("backlog_packets")

    def __getitem__(self, column: str) -> int:
        """Return a count or an integral. The caller must not ask for a column that has no value."""
        value = self.counts[column]
        if value is None:
            raise KeyError(f"{column} is recorded only for all classes together")
        return value

    @property
    def has_link(self) -> bool:
        """Whether the queue has a link; a queue inside another (``link/class``) has none."""
        return self.counts.get("busy_ns") is not None

    def sum_over_reasons(self, fate: str, unit: str = "packets") -> int:
        """Sum over all reasons of ``"dropped"`` or ``"marked"``, in ``"packets"`` or ``"bytes"``."""
        return sum(self[f"{fate}_{reason}_{unit}"] for reason in REASONS)


@dataclass(frozen=True)
class RequestTotals:
    """A row of ``request_summary``: requests of one class whose responses are in one size band.

    Pages are recorded in the same way, in a row of ``page_summary``: a page counts as one request,
    and its weight as the size of the response.

    Attributes
    ----------
    response_low_bytes, response_high_bytes
        The band, both ends included; the last band has no upper end: ``None``.
    completed, failed, censored
        Numbers of requests that were completed or failed in the measured interval, and of those that had not
        ended by the end of that interval.
    response_time_sum_ns
        Sum of the response times of completed requests.
    distribution
        Reads the row's distribution of a kind: ``"response_time_ns"`` or ``"page_time_ns"``, ``"waited_ns"``,
        ``"failed_ns"``, ``"entered_ns"``.
    what
        The kind of times: ``"response"`` or ``"page"``.
    """

    class_name: str
    response_low_bytes: int
    response_high_bytes: int | None
    completed: int
    failed: int
    censored: int
    response_time_sum_ns: int = 0
    distribution: Callable[[str], Histogram] = field(default=no_distribution, compare=False)
    what: str = "response"

    @property
    def response_time(self) -> Histogram:
        """Distribution of the response times of completed requests, in ns."""
        return self.distribution(f"{self.what}_time_ns")

    @property
    def waited(self) -> Histogram:
        """Distribution of the times that censored requests had waited, in ns."""
        return self.distribution("waited_ns")

    @property
    def failed_after(self) -> Histogram:
        """Distribution of the times after which requests failed, in ns."""
        return self.distribution("failed_ns")

    @property
    def entered(self) -> Histogram:
        """Distribution of the ages, at the beginning of the measured interval, of requests begun before."""
        return self.distribution("entered_ns")


@dataclass(frozen=True)
class Samples:
    """Values by time.

    Attributes
    ----------
    t_s
        Seconds since the start of the run, ascending.
    values
        The values, one per time.
    """

    t_s: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]

    def within(self, window: Window) -> Samples:
        """Return the samples after the beginning of a window, up to and including its end.

        A sample covers the time up to it, so adjacent windows share no sample.
        """
        # Times are whole nanoseconds divided by 1e9, so rounding errors below half a nanosecond are ignored.
        chosen = (self.t_s > window.from_s + 5e-10) & (self.t_s <= window.until_s + 5e-10)
        return Samples(self.t_s[chosen], self.values[chosen])

    def mean(self) -> float | None:
        """The mean of the values; ``None`` if there are none."""
        return float(self.values.mean()) if len(self.values) else None

    def sd(self) -> float | None:
        """Return the standard deviation of the values, or ``None`` if there are none."""
        return float(self.values.std()) if len(self.values) else None


class Window(NamedTuple):
    """A part of a run, in seconds since its start."""

    from_s: float
    until_s: float

    @property
    def length_s(self) -> float:
        """Length of the window."""
        return self.until_s - self.from_s


@dataclass(frozen=True, repr=False)
class Measured:
    """One run's measured interval.

    Attributes
    ----------
    run
        Identity of the run.
    queues
        The totals by queue and class.
    flows
        The flows in the order of their numbers.
    responsive
        Names of the classes whose flows react to congestion.
    tables
        The source of its samples; ``None`` if there are none.
    left_out
        Names of the classes whose flows are excluded.
    requests
        Totals of classes that make requests, by class and size band.
    kinds
        Counts of queues by kind of packet; ``None`` if there are none.
    kind
        The kind of packets selected.
    pages
        Totals of classes that fetch pages, by class and band of their weights.
    frames
        Totals of classes with frames or updates, by class and receiving end.
    """

    run: Run
    queues: Mapping[tuple[str, str], QueueTotals]
    flows: Flows
    responsive: frozenset[str] = field(default_factory=frozenset)
    tables: Tables | None = field(default=None, repr=False)
    left_out: frozenset[str] = frozenset()
    requests: Sequence[RequestTotals] = ()
    kinds: KindCounts | None = field(default=None, repr=False)
    kind: str = EVERY_KIND
    pages: Sequence[RequestTotals] = ()
    frames: Sequence[FrameTotals] = ()

    def __repr__(self) -> str:
        places = ", ".join(dict.fromkeys(queue for queue, _ in self.queues))
        return f"<Measured of {self.run!r}: {counted(len(self.flows), 'flow')}, queues {places}>"

    def at(self, queue: str) -> Measured:
        """The same run as a queue sees it: without the flows whose data do not cross it."""
        left_out = frozenset() if queue == EVERY_QUEUE else self.run.plan.elsewhere(queue)
        return self if left_out == self.left_out else replace(self, left_out=left_out)

    def of_kind(self, kind: str) -> Measured | None:
        """The same run as if its queues had counted only packets of one kind; ``None`` if that is not known.

        The result has only counts of packets: arrivals, drops and marks.
        """
        return None if self.kinds is None else replace(self, kind=kind)

    def _row(self, queue: str, class_name: str) -> QueueTotals | None:
        """Return the counts of a queue and class for the selected kind of packets."""
        found = self.queues.get((queue, class_name))
        if found is None or self.kinds is None or self.kind == EVERY_KIND:
            return found
        counts = self.kinds.of(self.run, self.kind)
        return QueueTotals(queue, class_name, counts.get((queue, class_name), dict.fromkeys(_BY_KIND, 0)))

    def towards(self, router: str) -> Measured | None:
        """Return the run restricted to the flows with data for hosts at a router, and to that data.

        ``None`` if it is not known how many bytes each endpoint of a flow received.
        """
        flows = []
        ends = {entry.name: entry for entry in self.run.plan.classes}
        for flow in self.flows:
            entry = ends[flow.class_name]
            at_client, at_server = (end == router for end in self.run.plan.ends(entry))
            by_client = flow.measured_received_by_client_bytes if entry.answered else 0
            if not at_server and not (at_client and entry.answered):
                continue
            if by_client is None and not (at_client and at_server):
                return None
            by_client = by_client or 0
            lacking = (0 if at_client else by_client) + (
                0 if at_server else flow.measured_received_bytes - by_client
            )
            flows.append(flow._replace(measured_received_bytes=flow.measured_received_bytes - lacking))
        return replace(self, flows=Flows(flows))

    @property
    def interval_ns(self) -> int:
        """Length of the measured interval."""
        return self.run.t1_ns - self.run.t0_ns

    @property
    def interval_s(self) -> float:
        """Length of the measured interval in seconds."""
        return self.interval_ns / 1e9

    @property
    def window(self) -> Window:
        """The measured interval as a window."""
        return Window(self.run.t0_ns / 1e9, self.run.t1_ns / 1e9)

    def flows_of(self, class_name: str) -> Flows:
        """Return the selected flows of a class, or of all classes for ``*``."""
        return self.flows.of_classes(lambda name: is_of(name, class_name) and name not in self.left_out)

    def inner_queues(self, queue: str, *, nested: bool = False) -> list[str]:
        """Return the names of the queues inside a queue, in order; ``nested`` adds those inside them."""
        inside = [name for name, of in self.queues if of == EVERY_CLASS and name.startswith(f"{queue}/")]
        return [name for name in inside if nested or "/" not in name[len(queue) + 1 :]]

    def requests_of(self, class_name: str) -> list[RequestTotals]:
        """Return the requests of a selected class by size band; for ``*``, of all selected classes."""
        return self._of(self.requests, class_name)

    def frames_of(self, class_name: str) -> list[FrameTotals]:
        """Return the frames of a selected class by receiving end; for ``*``, of all selected classes."""
        return [
            totals
            for totals in self.frames
            if is_of(totals.class_name, class_name) and totals.class_name not in self.left_out
        ]

    def pages_of(self, class_name: str) -> list[RequestTotals]:
        """Return the pages of a selected class by weight band; for ``*``, of all selected classes."""
        return self._of(self.pages, class_name)

    def _of(self, parts: Sequence[RequestTotals], class_name: str) -> list[RequestTotals]:
        return [
            totals
            for totals in parts
            if is_of(totals.class_name, class_name) and totals.class_name not in self.left_out
        ]

    def at_queue(self, queue: str, class_name: str) -> QueueTotals | None:
        """Return the counts of one or more classes at a queue; for queue ``*``, over the whole path."""
        if queue == EVERY_QUEUE:
            return self.on_the_way(class_name)
        if "," not in class_name:
            return self._row(queue, class_name)
        parts = [self._row(queue, name) for name in named_classes(class_name)]
        return _together(queue, class_name, [part for part in parts if part is not None])

    def on_the_way(self, class_name: str) -> QueueTotals | None:
        """Return the counts of a class over all queues that its data cross; ``None`` if they cross none.

        Arrivals are those at the first queue of the path, departures those from the last one, drops
        and marks those of all queues. The result has no other counts. For ``*``, the result is the sum over
        the classes. Where servers respond, the counts of the two directions are added.
        """
        return self.over(class_name, lambda entry: entry.ways)

    def over(
        self, class_name: str, ways: Callable[[TrafficClass], tuple[tuple[str, ...], ...]]
    ) -> QueueTotals | None:
        """Return the counts of :meth:`on_the_way` for a class over given paths through the network.

        Parameters
        ----------
        class_name
            Name of the class; ``*`` for all classes.
        ways
            The queues of each path of a class, in their order.
        """
        counts: defaultdict[str, int] = defaultdict(int)
        for entry in self.run.plan.classes:
            if is_of(entry.name, class_name) and entry.name not in self.left_out:
                for way in ways(entry):
                    _add_way(counts, [self._row(queue, entry.name) for queue in way])
        return QueueTotals(EVERY_QUEUE, class_name, dict(counts)) if counts else None

    def samples(self, table: str, name: str, queue: str) -> Samples:
        """Return samples over the whole run, read on demand because few metrics need any.

        Parameters
        ----------
        table, name
            ``"queues"`` or ``"capacity"`` and one of its columns, or ``"law"`` and the name of one of
            the law's values.
        queue
            Name of the queue.
        """
        import numpy as np

        if self.tables is None:
            return Samples(np.zeros(0), np.zeros(0))
        column, chosen = ("value", f" AND name = '{name}'") if table == "law" else (name, "")
        found = self.tables.arrays(
            table,
            f"t_ns / 1e9 AS t_s, {column}::DOUBLE AS value",
            f"WHERE queue = {quoted(queue)}{chosen} AND t_ns > 0 ORDER BY t_ns",
            [self.run],
        )
        return Samples(np.asarray(found["t_s"]), np.asarray(found["value"]))

    def flow_samples(self, column: str) -> dict[int, Samples]:
        """Return, by flow number, the samples of ``flow_series`` over the whole run, for flows that have any.

        Parameters
        ----------
        column
            ``"cwnd_segments"``, ``"acked_bytes"``, ``"received_bytes"``, ... If
            ``"received_bytes"`` were not sampled (in live runs), the
            bytes delivered in order, ``"delivered_bytes"``, are returned instead.
        """
        import numpy as np

        if self.tables is None:
            return {}
        sampled = "coalesce(received_bytes, delivered_bytes)" if column == "received_bytes" else column
        found = self.tables.arrays(
            "flow_series",
            f"flow, t_ns / 1e9 AS t_s, {sampled}::DOUBLE AS value",
            "ORDER BY flow, t_ns",
            [self.run],
        )
        flows, begins = np.unique(found["flow"], return_index=True)
        ends = np.append(begins, len(found["flow"]))[1:]  # none without flows
        return {
            int(flow): Samples(np.asarray(found["t_s"][begin:end]), np.asarray(found["value"][begin:end]))
            for flow, begin, end in zip(flows, begins, ends, strict=True)
        }

    def losses(self, queue: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]] | None:
        """Times (in s) and flows of the drops and marks at a queue in the measured interval, sorted by time.

        ``None`` if the packets of the queue were not recorded, or if some of their drops or marks
        were not.
        """
        import numpy as np

        if self.tables is None or not _records(self.run, queue, {"drop", "mark"}, self.window):
            return None
        found = self.tables.arrays(
            "packets",
            "t_ns / 1e9 AS t_s, flow",
            f"WHERE place = {quoted(queue)} AND event IN ('drop', 'mark') AND t_ns > {self.run.t0_ns}"
            " ORDER BY t_ns, flow",
            [self.run],
        )
        return np.asarray(found["t_s"]), np.asarray(found["flow"], dtype=np.int64)

    def marks_of_arrivals(self, queue: str, window: Window) -> npt.NDArray[np.bool_] | None:
        """Return, in order, whether each of the packets admitted to a queue in a part of the run was marked.

        ``None`` if the packets of the queue were not recorded, or some of their arrivals or fates
        were not.
        """
        import numpy as np

        needed = {"enqueue", "drop", "mark"}
        if self.tables is None or not _records(self.run, queue, needed, window):
            return None
        found = self.tables.arrays(
            "packets",
            "t_ns, CASE event WHEN 'enqueue' THEN 0 WHEN 'mark' THEN 1 ELSE 2 END::INTEGER AS fate,"
            " flow, (toward = 'sender')::UBIGINT AS to_sender, number",
            f"WHERE place = {quoted(queue)} AND event IN ('enqueue', 'drop', 'mark')"
            f" AND t_ns > {round(window.from_s * 1e9)}",
            [self.run],
        )
        fates = np.asarray(found["fate"])
        identities = np.stack([np.asarray(found[part]) for part in ("flow", "to_sender", "number")])
        packets = np.unique(identities, axis=1, return_inverse=True)[1].reshape(-1)
        until_ns = round(window.until_s * 1e9)
        arrivals = packets[(fates == 0) & (np.asarray(found["t_ns"]) <= until_ns)]
        admitted = arrivals[~np.isin(arrivals, packets[fates == 2])]
        marked: npt.NDArray[np.bool_] = np.isin(admitted, packets[fates == 1])
        return marked


def _add_way(counts: defaultdict[str, int], parts: Sequence[QueueTotals | None]) -> None:
    known = [part for part in parts if part is not None]
    for i, part in enumerate(known):
        for column, value in part.counts.items():
            fate = column.split("_", 1)[0]
            ends = {"arrivals": i == 0, "ect": i == 0, "departures": i == len(known) - 1}
            if value is not None and ends.get(fate, fate in ("dropped", "marked")):
                counts[column] += value


def _together(queue: str, class_name: str, parts: Sequence[QueueTotals]) -> QueueTotals | None:
    """Return one row for several classes at one queue; values not recorded per class remain unknown."""
    if not parts:
        return None
    columns = {name: [part.counts[name] for part in parts] for name in parts[0].counts}
    counts = {name: None if None in of else sum(n or 0 for n in of) for name, of in columns.items()}
    packets, ends_ns = (sum(column) for column in zip(*(part.sojourn_sums for part in parts), strict=True))
    return QueueTotals(
        queue,
        class_name,
        counts,
        # The backlog is that of all classes.
        lambda kind: (
            EMPTY_HISTOGRAM
            if kind == "backlog_packets"
            else Histogram.merged([part.distribution(kind) for part in parts])
        ),
        (packets, ends_ns),
    )


def _records(run: Run, queue: str, events: set[str], window: Window) -> bool:
    """Return whether the ``packets`` of the run contain all these events at a queue in a part of the run."""
    chosen = run.plan.packets
    if chosen is None or queue not in chosen.links or not chosen.of_all_flows:
        return False
    whole = chosen.from_ns / 1e9 <= window.from_s and (
        chosen.until_ns is None or chosen.until_ns / 1e9 >= window.until_s
    )
    return whole and events <= chosen.events


def measure(tables: Tables) -> tuple[Measured, ...]:
    """Read what metrics need to know about each run, in the order of the runs."""
    histograms = Histograms(tables, "histograms", ("queue", "class", "kind"))
    queues: list[dict[tuple[str, str], QueueTotals]] = [{} for _ in tables.runs]
    names, rows = _summary(tables)
    for row in rows:
        index, queue, class_name = int(row[0]), str(row[1]), str(row[2])
        run = tables.runs[index]
        counts = {
            name: None if value is None else int(value) for name, value in zip(names, row[3:], strict=True)
        }
        queues[index][queue, class_name] = QueueTotals(
            queue,
            class_name,
            counts,
            partial(histograms.of, run, queue, class_name),
            histograms.sums.get((run.path, queue, class_name, "sojourn_ns"), (0, 0)),
        )
    flows: list[list[Sequence[Any]]] = [[] for _ in tables.runs]
    for index, *values in tables.rows("flows", f"run, {FLOW_COLUMNS}", "ORDER BY run, flow"):
        flows[index].append(values)
    kinds = KindCounts(tables, _BY_KIND)
    requests, pages = _waits(tables, "request", "response"), _waits(tables, "page", "page")
    frames = read_frames(tables)
    return tuple(
        Measured(
            run,
            queues[i],
            Flows(flows[i]),
            run.plan.responsive,
            tables,
            requests=requests.get(run.path, ()),
            kinds=kinds,
            pages=pages.get(run.path, ()),
            frames=frames.get(run.path, ()),
        )
        for i, run in enumerate(tables.runs)
    )


_COUNTS = ("arrivals", "ect_arrivals", *(f"{fate}_{of}" for fate in ("dropped", "marked") for of in REASONS))
_BY_KIND = tuple(f"{count}_{unit}" for count in _COUNTS for unit in ("packets", "bytes"))
_TOTALS = (
    "backlog_packets_integral_ns",
    "backlog_packets_sq_integral_ns",
    "backlog_packets_min",
    "backlog_packets_max",
    "busy_ns",
    "sojourn_sum_ns",
    "sojourn_count",
    "initial_in_system_packets",
    "final_in_system_packets",
)


def _summary(tables: Tables) -> tuple[list[str], list[Any]]:
    names = [*_BY_KIND, "departures_packets", "departures_bytes", "sent_bytes", *_TOTALS]
    return names, tables.rows("summary", f"run, queue, class, {', '.join(names)}")


def _waits(tables: Tables, what: str, size: str) -> dict[Path, list[RequestTotals]]:
    """Return the totals by run folder; ``what`` is the prefix of the tables of requests or pages."""
    runs = [run for run in tables.runs if f"{what}_summary" in run.manifest.tables]
    if not runs:
        return {}
    histograms = Histograms(tables, f"{what}_histograms", ("class",), (f"{size}_low_bytes", "kind"))
    found: dict[Path, list[RequestTotals]] = {}
    columns = f"{size}_low_bytes, {size}_high_bytes, completed, failed, censored, {size}_time_sum_ns"
    for index, class_name, low, high, completed, failed, censored, sum_ns in tables.rows(
        f"{what}_summary", f"run, class, {columns}", f"ORDER BY run, class, {size}_low_bytes", runs
    ):
        run = runs[int(index)]
        distribution = partial(histograms.of, run, class_name, low)
        totals = RequestTotals(
            class_name, low, high, completed, failed, censored, int(sum_ns), distribution, size
        )
        found.setdefault(run.path, []).append(totals)
    return found
