"""Checks that disciplines suit their traffic: that marks can be carried, and packets are not too large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.disciplines.catalogue import aqm_list
from aqmlab.recordings.plan import quantity_text
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.recordings.plan import Link, Plan, TrafficClass
    from aqmlab.results.results import Results

_UNMARKED = frozenset({"droptail", "policer", "classes", "spare", "tbf", "htb"})
"""Disciplines that never mark packets themselves."""


class _Queue(NamedTuple):
    """A discipline at a link, which may be inside another one, and the classes whose data enter it."""

    link: Link
    kind: str
    settings: Mapping[str, Any]
    classes: Sequence[TrafficClass]

    @property
    def marks(self) -> bool | None:
        """Whether the discipline marks packets; ``None`` if that is unknown."""
        ecn = self.settings.get("ecn")
        return False if ecn is None and self.kind in _UNMARKED else ecn


def marks_are_carried(results: Results) -> Check:
    """Check that a queue that marks has flows that are ECN-capable; it drops the packets of all others."""
    kind, findings, marking = "ecn", [], False
    for cell, plan in plans(results):
        for queue in queues(plan):
            if queue.marks is not True or not queue.classes:
                continue
            marking = True
            if not any(_ecn_capable(entry) is not False for entry in queue.classes):
                names = ", ".join(f"`{entry.name}`" for entry in queue.classes)
                sentence = (
                    f"`{queue.link.name}` has {queue.kind} with ECN, but the data of {names} is not"
                    " ECN-capable: it can only be dropped"
                )
                remedy = "write `tcp = { ecn = true }` in the classes, or leave `ecn` of the queue out"
                findings.append(CellDoubt(cell, "warning", sentence, remedy))
    finding = "some of their flows are ECN-capable" if marking else "no queue marks"
    return Check(
        kind, "queues that mark have flows that can be marked", finding, merged(kind, results, findings)
    )


# Controls whose signal is the share of marks.
_SCALABLE = {"dctcp": "DCTCP", "prague": "Prague"}


def dctcp_is_marked(results: Results) -> Check:
    """Check that a queue on the path of each DCTCP or Prague flow marks; without marks, each is Reno."""
    kind, findings, count = "dctcp", [], 0
    for cell, plan in plans(results):
        across = list(queues(plan))
        for entry in plan.classes:
            control = _SCALABLE.get((entry.tcp or {}).get("congestion", ""))
            if control is None:
                continue
            count += 1
            if all(queue.marks is False for queue in across if entry in queue.classes):
                sentence = (
                    f"the flows of `{entry.name}` use {control}, but no queue that their data cross marks"
                    " packets: they react to losses only, as Reno does"
                )
                remedy = f"choose a queue that marks: `ecn = true`, with a threshold for {control}"
                findings.append(CellDoubt(cell, "warning", sentence, remedy))
    finding = "their packets can be marked" if count else "no flow uses DCTCP or Prague"
    return Check(kind, "scalable controls have a queue that marks", finding, merged(kind, results, findings))


def coupled_queues_are_used(results: Results) -> Check:
    """Check that coupled queues, of which one is for ECN-capable packets, get such packets."""
    kind, findings, found = "coupled", [], 0
    for cell, plan in plans(results):
        for queue in queues(plan):
            if not {"coupling", "classifier"} <= queue.settings.keys() or not queue.classes:
                continue
            found += 1
            if any(_ecn_capable(entry) is not False for entry in queue.classes):
                continue
            sentence = (
                f"no flow that enters `{queue.link.name}` is ECN-capable: the L queue of {_title(queue)}"
                " stays empty, and all traffic is in the other one"
            )
            remedy = "write `tcp = { ecn = true }` in some classes, or choose a discipline with one queue"
            findings.append(CellDoubt(cell, "warning", sentence, remedy))
    finding = "some of their flows are ECN-capable" if found else "no queues are coupled"
    return Check(kind, "coupled queues have flows for both", finding, merged(kind, results, findings))


def hosts_are_shared(results: Results) -> Check:
    """Check that fairness between hosts meets several hosts: the flows of a class share theirs."""
    kind, findings, found = "hosts", [], 0
    for cell, plan in plans(results):
        for queue in queues(plan):
            isolation = queue.settings.get("isolation")
            if isolation in (None, "flowblind", "flows"):
                continue
            found += 1
            if len(queue.classes) > 1:
                continue
            sentence = (
                f"`{queue.link.name}` isolates hosts (`{isolation}`), but the flows of a class run between"
                " the same two hosts, and only one class crosses it: there is nothing to share between hosts"
            )
            remedy = 'write `isolation = "flows"`, or a class for each host'
            findings.append(CellDoubt(cell, "note", sentence, remedy))
    finding = "several classes, so several hosts, share it" if found else "no queue isolates hosts"
    return Check(kind, "there are several hosts to isolate", finding, merged(kind, results, findings))


def packets_suit_codel(results: Results) -> Check:
    """Check the largest packet against the target of CoDel's law, in which it must leave, and its ``mtu``."""
    kind, findings, found = "codel", [], 0
    for cell, plan in plans(results):
        for queue in queues(plan):
            # Disciplines that act once packets have waited longer than a target for an interval.
            if not {"target_ns", "interval_ns"} <= queue.settings.keys():
                continue
            found += 1
            largest = max((_largest_data(entry) or 0 for entry in queue.classes), default=0)
            name, title = queue.link.name, _title(queue)
            sending_ns, target_ns = _sending_ns(queue, largest), _target_ns(queue)
            if sending_ns > target_ns:
                sentence = (
                    f"`{name}` sends a packet of {largest} B in {sending_ns / 1e6:.3g} ms, longer than"
                    f" {title}'s target of {quantity_text(target_ns, 'ns')}: a packet that waits for just one"
                    " other exceeds it"
                )
                remedy = "raise `target` to the time of a packet or more, and `interval` with it"
                findings.append(CellDoubt(cell, "warning", sentence, remedy, sending_ns / target_ns))
            # The `mtu` of disciplines with tins spares no packets.
            mtu = None if "tins" in queue.settings else queue.settings.get("mtu_bytes")
            if mtu is not None and largest > mtu:
                sentence = (
                    f"packets at `{name}` have up to {largest} B, but {title}'s `mtu` is {mtu} B: it also"
                    " drops while just one packet waits"
                )
                remedy = "set `mtu` to the size of the largest packet"
                findings.append(CellDoubt(cell, "warning", sentence, remedy, largest / mtu))
    finding = (
        "the largest fits its `mtu` and is sent within its target" if found else "no queue has CoDel's law"
    )
    return Check(kind, "packets suit CoDel", finding, merged(kind, results, findings))


def _sending_ns(queue: _Queue, size: int) -> float:
    """Return the time in which a packet leaves, of the link or of the queue's own shaper."""
    rate = min(queue.link.rate_bps, queue.settings.get("bandwidth_bps") or queue.link.rate_bps)
    return 8e9 * (size + queue.link.overhead_bytes) / rate


def _target_ns(queue: _Queue) -> int:
    """Return the target; with tins and a shaper, it is at least the time of one and a half ``mtu``."""
    target_ns = int(queue.settings["target_ns"])
    rate = queue.settings.get("bandwidth_bps")
    if "tins" not in queue.settings or rate is None:
        return target_ns
    return max(target_ns, 12 * 10**9 * int(queue.settings["mtu_bytes"]) // int(rate))


def _title(queue: _Queue) -> str:
    return next((str(entry["title"]) for entry in aqm_list() if entry["name"] == queue.kind), queue.kind)


def plans(results: Results) -> Iterator[tuple[Any, Plan]]:
    """Yield each cell that has runs, with its plan."""
    for cell in results.cells:
        for run in results.runs_of(cell)[:1]:
            yield cell, run.plan


def queues(plan: Plan) -> Iterator[_Queue]:
    """Yield the disciplines of all links, including those inside others."""
    for link in plan.links:
        across = [entry for entry in plan.classes if any(link.name in way for way in entry.ways)]
        yield from _inside(_Queue(link, link.queue, link.settings, across))


def _inside(queue: _Queue) -> Iterator[_Queue]:
    yield queue
    rest = list(queue.classes)
    # A class of the discipline gets the traffic that it names, and one without names what is left.
    for inner in queue.settings.get("class") or ():
        by_mark = any(inner.get(key) is not None for key in ("dscp", "port"))
        names = inner.get("traffic")
        mine = [entry for entry in queue.classes if entry.name in names] if names is not None else rest
        if not by_mark:
            rest = [entry for entry in rest if entry not in mine]
        if isinstance(within := inner.get("queue"), Mapping):
            yield from _inside(_Queue(queue.link, within["kind"], within["settings"], mine))
    if isinstance(within := queue.settings.get("queue"), Mapping):
        yield from _inside(queue._replace(kind=within["kind"], settings=within["settings"]))


def _ecn_capable(entry: TrafficClass) -> bool | None:
    """Whether the data packets of a class can be marked; ``None`` if that is unknown."""
    if entry.tcp is not None:
        return bool(entry.tcp.get("ecn"))
    if entry.kind == "schedule":
        return None
    return bool(entry.workload.get("ecn", "not-ect") != "not-ect")


def _largest_data(entry: TrafficClass) -> int | None:
    """Return the size of a class's largest data packets in bytes, headers included; ``None`` if unknown."""
    if entry.tcp is not None:
        return int(entry.tcp["mss_bytes"]) + int(entry.tcp.get("header_bytes", 0))
    size = entry.workload.get("size_bytes")
    if isinstance(size, Mapping):
        listed = size.get("uniform") or size.get("list")
        return int(max(listed)) if listed else None
    return None if size is None else int(size)
