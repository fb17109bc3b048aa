"""Checks that flows received no more than their queues carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.metrics import EVERY_CLASS, flow_goodput
from aqmlab.recordings.plan import ANSWERED, MEDIA, TrafficClass
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.metrics import FlowTotals, Measured
    from aqmlab.recordings.manifest import LinkInfo
    from aqmlab.results.results import Results

_REMEDY = (
    "do not use this goodput: it includes data from before the measured interval; repeat"
    " the run, or use the throughput of the queue instead"
)


class _Account(NamedTuple):
    """Bytes at one queue in one run, headers included."""

    queue: str
    got: float
    carried: int
    before: float
    """Bytes that may have left the queue before the measured interval and reached receivers in it."""

    @property
    def share(self) -> float:
        """The goodput of flows as a share of its upper bound."""
        most = self.carried + self.before
        return self.got / most if most else (inf if self.got else 0.0)


def no_more_than_carried(results: Results) -> Check:
    """Check that goodput does not exceed what the queue carried; if it does, it includes other data."""
    kind, findings, highest = "carried", [], 0.0
    for cell in results.cells:
        accounts = [(run, account) for run in results.measured(cell) for account in _accounts(run)]
        if not accounts:
            continue
        run, worst = max(accounts, key=lambda entry: entry[1].share)
        highest = max(highest, worst.share)
        if worst.share > 1:
            got, carried, before = (
                f"{8e-6 * amount / run.interval_s:.3f} Mbit/s"
                for amount in (worst.got, worst.carried, worst.before)
            )
            sentence = (
                f"the flows that cross `{worst.queue}` received {got}, headers included, but the queue"
                f" carried {carried} for them, and at most {before} was in flight already"
                f" (seed {run.run.seed})"
            )
            findings.append(CellDoubt(cell, "serious", sentence, _REMEDY, worst.share))
    found = merged(kind, results, findings)
    finding = f"at most {100 * highest:.1f} % of it, headers included"
    return Check(kind, "flows received only what their queues carried", finding, found)


def _accounts(run: Measured) -> list[_Account]:
    """Return one account per queue, over the classes whose data in flight can be bounded."""
    if not run.interval_ns:
        return []
    links = {link.name: link for link in run.run.links}
    classes = [entry for entry in run.run.plan.classes if _largest_packet(entry) is not None]
    flows = {entry.name: [flow for flow in run.flows if flow.class_name == entry.name] for entry in classes}
    accounts = []
    for queue, link in links.items():
        across = [
            entry
            for entry in classes
            if queue in entry.path and not _slower_behind(run, entry, link.rate_bps)
        ]
        totals = [run.queues.get((queue, entry.name)) for entry in across]
        if not across or None in totals:
            continue
        got = sum(_got(run, entry, flows[entry.name]) for entry in across)
        carried = sum(of_class["departures_bytes"] for of_class in totals if of_class is not None)
        before = max(_before(run, entry, flows[entry.name], queue, links) for entry in across)
        accounts.append(_Account(queue, got, carried, before))
    return accounts


def _largest_packet(entry: TrafficClass) -> float | None:
    """Return a class's largest packet in bytes; ``None`` if sizes are drawn or listed, or servers respond."""
    if entry.kind == "schedule" or entry.kind in ANSWERED:
        return None
    if entry.over_tcp:
        return sum(_segment(entry))
    size = entry.workload["packet_bytes" if entry.kind == MEDIA else "size_bytes"]
    return None if isinstance(size, Mapping) else float(size)


def _segment(entry: TrafficClass) -> tuple[int, int]:
    """Bytes of a full segment: its payload, and its header, which is 0 unless the plan states its size."""
    tcp = entry.tcp or {}
    return int(tcp["mss_bytes"]), int(tcp.get("header_bytes", 0))


def _got(run: Measured, entry: TrafficClass, flows: Sequence[FlowTotals]) -> float:
    """Return the bytes that the flows of a class received, with the smallest possible headers."""
    payload = sum(flow_goodput(run, flow) for flow in flows) * run.interval_s / 8
    # Kernels choose the size of their segments themselves.
    if not entry.over_tcp or run.run.manifest.live is not None:
        return payload
    mss, header = _segment(entry)
    return payload * (mss + header) / mss


def _slower_behind(run: Measured, entry: TrafficClass, rate_bps: int) -> bool:
    """Whether packets may wait uncounted after the queue: at a slower access link, or under a delay rule."""
    if entry.access and entry.access.rate_bps < rate_bps:
        return True
    rules = (rule for rule in run.run.plan.delays if rule.class_name in (None, entry.name))
    return any(rule.limits_rate for rule in rules)


def _before(
    run: Measured,
    entry: TrafficClass,
    flows: Sequence[FlowTotals],
    queue: str,
    links: Mapping[str, LinkInfo],
) -> float:
    """Return the largest amount of data that can be between a queue and the receivers of a class.

    It consists of the data that the queue's link sends during the delay of the longest path to a
    receiver, the contents of the queues on that path, and a packet on each link and at its end.
    """
    path = list(entry.path)
    rest = path[path.index(queue) :]
    propagation = sum(links[name].delay_ns for name in (*path, *entry.return_path))
    own = max((flow.base_rtt_ns - propagation for flow in flows), default=0)
    # A quarter of the round-trip time outside the links is spent between the last router and the receiver; if
    # the scenario has delay rules, it may be all of it.
    behind = own if run.run.plan.delays else own / 4
    way_ns = sum(links[name].delay_ns for name in rest) + behind
    waiting = sum(run.queues[name, EVERY_CLASS]["initial_in_system_packets"] for name in rest[1:])
    packet = _largest_packet(entry) or 0.0
    return _sent_before(run, links[queue], way_ns) + packet * (waiting + len(rest) + 1)


def _sent_before(run: Measured, link: LinkInfo, way_ns: float) -> float:
    """Return how many bytes a link can have sent during this time before the measured interval."""
    if not run.run.changes(link.name):
        return link.rate_bps * way_ns / 8e9
    capacity = run.samples("capacity", "capacity_bytes", link.name)
    begin, end = (run.run.t0_ns - way_ns) / 1e9, run.run.t0_ns / 1e9
    # A sample covers the time up to it.
    first, last = capacity.t_s.searchsorted(begin, "right"), capacity.t_s.searchsorted(end, "left")
    return float(capacity.values[first : last + 1].sum()) if len(capacity.t_s) else inf
