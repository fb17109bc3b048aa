"""Record the drops and marks of Linux's queue disciplines: each decision under chosen loads, as CSV.

    python3 decisions.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, runs all cases, or only the named cases,
and writes OUT/CASE.csv (`vectors/linux-decisions/README.md` explains the columns) and OUT/cases.csv.

UDP datagrams of chosen sizes, ECN-capable or not, go from one network namespace to another through htb, which
paces them, and the discipline behind it. htb polls a discipline only while packets are waiting. Trace points
give the instants at which packets arrive, are queued and leave; the receiver records the packets that reach
it, with their ECN fields. The state of CoDel and PIE is read from their statistics; the average of RED is read
from the statistics of `gred`, which computes the same average and reports it. For PIE, another trace point
gives the instants of its updates, and its state is read once after each of them.
"""

import os
import random
import re
import struct
import sys
import time

from netlink import TCA_OPTIONS, TCA_STATS2, TCA_STATS_APP, Netlink, attributes
from recorder import (
    PACED,
    PAGE,
    RATE_KBIT,
    listening,
    main,
    network,
    payload,
    received,
    save,
    sending,
    traced,
)
from red_idle import fields, records
from single_flow import batch

TCA_GRED_PARMS = 1
POINTS = ARRIVED, QUEUED, SENT, TIMER = (
    "net/net_dev_queue",
    "qdisc/qdisc_enqueue",
    "qdisc/qdisc_dequeue",
    "timer/timer_expire_entry",
)
RED = "limit 400000 min 15000 max 45000 avpkt 1000 burst 25 bandwidth 10Mbit"
# The cases, by name: the discipline; the function below that generates its load; the seed of this load; the
# number of packets between readings of the discipline's state (0: it is never read). PIE's state is also read
# every few milliseconds in between.
CASES = {
    "codel_constant": ("codel limit 1000", "constant", 1, 8),
    "codel_bursts": ("codel limit 1000", "bursts", 2, 8),
    "codel_ecn": ("codel limit 1000 ecn", "constant", 3, 8),
    "codel_short": ("codel limit 1000 target 1ms interval 20ms ecn", "bursts", 4, 8),
    "codel_limit": ("codel limit 40 target 20ms interval 100ms", "bursts", 5, 8),
    "red_constant": (f"red {RED} probability 0.1", "constant", 6, 0),
    "red_bursts": (f"red {RED} probability 0.02", "bursts", 7, 0),
    "red_ecn": (f"red {RED} probability 0.1 ecn", "bursts", 8, 0),
    "red_harddrop": (f"red {RED} probability 0.1 ecn harddrop", "bursts", 9, 0),
    "red_limit": (f"red {RED} probability 0.0001 ecn".replace("400000", "40000"), "bursts", 10, 0),
    "gred_average": (f"gred {RED} probability 0.02", "bursts", 11, 1),
    "pfifo": ("pfifo limit 20", "bursts", 12, 0),
    "bfifo": ("bfifo limit 20000", "bursts", 13, 0),
    "pie_timestamps": ("pie limit 1000", "phases", 14, 1),
    "pie_rate_estimator": ("pie limit 1000 dq_rate_estimator", "phases", 15, 1),
    "pie_ecn": ("pie limit 1000 ecn", "gentle", 16, 1),
    "pie_bytemode": ("pie limit 1000 target 10ms tupdate 5ms alpha 1 beta 10 bytemode", "gentle", 17, 1),
    "pie_limit": ("pie limit 60 target 50ms ecn", "phases", 18, 1),
    "pie_flood": ("pie limit 1000 alpha 32 beta 32 ecn", "floods", 19, 1),
}
# Cases with several flows: the load yields a flow's number and an ECN field with each packet, and each flow
# has its own destination port. The kernel must not have put two flows into one queue.
FLOW_CASES = {
    "fq_codel_rounds": ("fq_codel", "mixed_flows", 21, 0),
    "fq_codel_sparse": ("fq_codel target 1ms interval 20ms quantum 600", "sparse_flows", 22, 0),
    "fq_codel_noecn": ("fq_codel noecn target 2ms interval 30ms", "mixed_flows", 23, 0),
    "fq_codel_limit": ("fq_codel limit 60 target 2ms interval 30ms", "mixed_flows", 24, 0),
    "fq_codel_batch": ("fq_codel limit 300", "fat_flow", 25, 0),
    "fq_codel_small_batch": ("fq_codel limit 100 drop_batch 7 target 1ms interval 10ms", "fat_flow", 26, 0),
    "fq_codel_memory": ("fq_codel memory_limit 100000", "mixed_flows", 27, 0),
    "fq_codel_ce": ("fq_codel ce_threshold 3ms noecn", "mixed_flows", 28, 0),
    "fq_codel_ce_ect1": ("fq_codel ce_threshold 1ms ce_threshold_selector 1/3", "mixed_flows", 29, 0),
    "codel_ce": ("codel limit 1000 ce_threshold 2ms", "mixed_flows", 30, 0),
    "fq_pie_noecn": ("fq_pie", "phased_flows", 31, 0),
    "fq_pie_ecn": ("fq_pie ecn ecn_prob 40 target 5ms", "phased_flows", 32, 0),
    "fq_pie_rate": ("fq_pie dq_rate_estimator target 10ms quantum 600", "phased_flows", 33, 0),
    "fq_pie_bytemode": ("fq_pie target 10ms tupdate 5ms alpha 1 beta 10 bytemode", "phased_flows", 34, 0),
    "fq_pie_limit": ("fq_pie limit 60 target 200ms ecn", "mixed_flows", 35, 0),
    "fq_pie_memory": ("fq_pie memory_limit 30000 target 500ms", "mixed_flows", 36, 0),
    "fq_pie_flood": ("fq_pie limit 3000 alpha 32 beta 32 ecn", "flooding_flows", 37, 0),
}
CASES |= FLOW_CASES
SIZES = (1514, 1514, 1514, 600, 300, 90)


def constant(draws: random.Random):
    """Yield packets as (seconds until the next packet, bytes, ECN-capable), at rates that vary from half to
    twice the link's rate."""
    for factor in (1.5, 0.8, 1.1, 0.5, 2.0, 0.9):
        for _ in range(400):
            yield 1514 * 8e-3 / RATE_KBIT / factor, 1514, draws.random() < 0.5


def bursts(draws: random.Random):
    """Yield bursts of different lengths at half to four times the link's rate, with pauses between them."""
    for _ in range(15):
        factor, few = draws.uniform(0.5, 4.0), draws.random() < 0.2
        for _ in range(draws.randrange(5, 30) if few else draws.randrange(50, 200)):
            size = draws.choice((1514, 1514, 1514, 600, 300, 90))
            yield size * 8e-3 / RATE_KBIT / factor * draws.uniform(0.3, 1.7), size, draws.random() < 0.5
        yield draws.choice((0.002, 0.02, 0.1, 0.4, 2.0)), 90, False


def mixed_flows(draws: random.Random):
    """Yield bursts of eight flows of different sizes and rates, at half to four times the link's rate."""
    for _ in range(15):
        factor = draws.uniform(0.5, 4.0)
        for _ in range(draws.randrange(50, 200)):
            flow = draws.choices(range(8), (8, 8, 5, 5, 3, 2, 1, 1))[0]
            size = draws.choice((1514, 1514, 600, 300, 90)) - flow
            wait = size * 8e-3 / RATE_KBIT / factor * draws.uniform(0.3, 1.7)
            yield wait, size, draws.choice((0, 1, 2)), flow
        yield draws.choice((0.002, 0.02, 0.1, 0.4, 2.0)), 90, 0, 0


def sparse_flows(draws: random.Random):
    """Yield three flows that exceed the link's rate together, and three that send a small packet now and then."""
    for number in range(2400):
        flow = draws.randrange(3) if number % 9 else 3 + number // 9 % 3
        size = 1514 - flow if flow < 3 else 90 + flow
        yield size * 8e-3 / RATE_KBIT / 1.4 * draws.uniform(0.5, 1.5), size, draws.choice((0, 2)), flow


def phased_flows(draws: random.Random):
    """Yield packets of three bulk flows and two that send little, in phases at half to twice the link's rate."""
    for factor, count, pause in (
        (1.3, 1200, 0),
        (1.0, 300, 0),
        (0.8, 300, 0.4),
        (2.0, 700, 0),
        (0.5, 300, 2.0),
        (1.5, 600, 0),
    ):
        for _ in range(count):
            wait = sum(SIZES) / len(SIZES) * 8e-3 / RATE_KBIT / factor * draws.uniform(0.5, 1.5)
            flow = draws.choices(range(5), (8, 6, 4, 1, 1))[0]
            yield wait, draws.choice(SIZES), draws.choice((0, 1, 2, 2)), flow
        if pause:
            yield pause, 90, 0, 0


def flooding_flows(draws: random.Random):
    """Yield two flows at three to six times the link's rate, so that PIE's probability reaches 1, and a third one."""
    for factor, count in ((3.0, 900), (6.0, 900), (4.0, 600)):
        for _ in range(count):
            wait = 1514 * 8e-3 / RATE_KBIT / factor * draws.uniform(0.5, 1.5)
            yield wait, 1514, draws.choice((0, 2, 2)), draws.choices(range(3), (10, 8, 1))[0]
        yield 1.0, 90, 0, 0


def fat_flow(draws: random.Random):
    """Yield a flow that floods the queue in bursts, beside four moderate ones."""
    for burst in range(12):
        for _ in range(200):
            flow = 0 if draws.random() < 0.8 else draws.randrange(1, 5)
            size = draws.choice((1514, 900, 300)) - flow
            yield size * 8e-3 / RATE_KBIT / 6 * draws.uniform(0.3, 1.7), size, draws.choice((0, 2)), flow
        yield (0.01, 0.05, 0.5)[burst % 3], 90, 0, 1


def send_flows(load) -> list[tuple[int, int, int]]:
    """Offer the load; return the size, the ECN field and the flow of each packet."""
    sockets = {}
    packets, due = [], time.monotonic() + 0.01
    for wait, size, ecn, flow in load:
        if (flow, ecn) not in sockets:
            sockets[flow, ecn] = sending(ecn, "10.9.0.1", 7000 + flow)
        sockets[flow, ecn].sendto(payload(len(packets), size), ("10.9.0.2", 9))
        packets.append((size, ecn, flow))
        due += wait
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
    time.sleep(3)
    return packets


def flow_queues(spec: str, flows: int) -> int:
    """Send a packet of each flow at once, and return how many queues of the discipline took them."""
    if not spec.startswith("fq_"):
        return flows
    for flow in range(flows):
        sending(0, "10.9.0.1", 7000 + flow).sendto(bytes(1400), ("10.9.0.2", 10))
    time.sleep(1)
    (count,) = re.findall(r"new_flow_count (\d+)", os.popen("tc -s qdisc show dev va").read())
    return int(count)


def mixed(draws: random.Random, plan):
    """Yield packets of mixed sizes as `plan` says: factors of the link's rate, numbers of packets, and the pause
    after them."""
    for factor, count, pause in plan:
        for _ in range(count):
            wait = sum(SIZES) / len(SIZES) * 8e-3 / RATE_KBIT / factor * draws.uniform(0.5, 1.5)
            yield wait, draws.choice(SIZES), draws.random() < 0.5
        if pause:
            yield pause, 90, False


def phases(draws: random.Random):
    """Yield packets at half to twice the link's rate, with two pauses: PIE's probability passes through all its
    decades."""
    yield from mixed(draws, ((1.2, 900, 0), (1.0, 300, 0), (0.8, 300, 0.4), (2.0, 600, 0), (1.1, 400, 0)))
    yield from mixed(draws, ((0.5, 300, 2.0), (1.5, 500, 0)))


def gentle(draws: random.Random):
    """Yield packets at rates near that of the link: PIE's probability stays below about 0.2."""
    yield from mixed(draws, ((1.05, 1100, 0), (0.95, 200, 0), (1.1, 800, 1.0), (1.15, 700, 0), (0.9, 200, 0)))


def floods(draws: random.Random):
    """Yield packets at three to six times the link's rate, so that they wait for longer than 250 ms and PIE's
    probability reaches 1, with pauses."""
    for factor, count in ((3.0, 700), (6.0, 900), (4.0, 500)):
        for _ in range(count):
            wait = 1514 * 8e-3 / RATE_KBIT / factor * draws.uniform(0.5, 1.5)
            yield wait, 1514, draws.random() < 0.7
        yield 1.0, 90, False


class State:
    """A reader of the state that the discipline reports in its statistics."""

    def __init__(self, kind: str) -> None:
        self.kind, self.netlink = kind, Netlink()

    def read(self) -> tuple[int, ...]:
        """Return the state: for CoDel, count, lastcount, whether it is dropping, and the microseconds until
        drop_next; for PIE, the probability in units of 2^-64, the delay in microseconds, and the average
        departure rate in bytes per second; for gred, the average in bytes."""
        return self.values(self.netlink.described(self.kind))

    def values(self, attrs: dict[int, bytes]) -> tuple[int, ...]:
        if self.kind.startswith("gred"):
            return struct.unpack_from("=6I", attributes(attrs[TCA_OPTIONS])[TCA_GRED_PARMS])[5:]
        app = attributes(attrs[TCA_STATS2])[TCA_STATS_APP]
        if self.kind.startswith("pie"):
            return struct.unpack_from("=QII", app)
        _, count, last, _, until, _, _, dropping = struct.unpack_from("=4Ii3I", app)
        return count, last, dropping, until


def below(spec: str) -> list[str]:
    """Return tc's lines for the discipline behind a shaper."""
    if not spec.startswith("gred"):
        return [*PACED, f"qdisc add dev va parent 1:1 handle 2: {spec}"]
    return [
        *PACED,
        "qdisc add dev va parent 1:1 handle 2: gred setup DPs 1 default 0",
        f"qdisc change dev va parent 1:1 handle 2: {spec} DP 0",
    ]


def send(
    load, state: State | None, every: int
) -> tuple[list[tuple[int, bool]], list[tuple[int, tuple[int, ...]]]]:
    """Offer the load; return the sizes and ECN capability of the packets, and the states that were read."""
    timed = state is not None and state.kind.startswith("pie")
    sockets = {ect: sending(2 if ect else 0) for ect in (False, True)}
    packets, states, due = [], [], time.monotonic() + 0.01
    if timed:
        # PIE's first update is due half a second after its attachment.
        due += 0.6
        time.sleep(0.61)
    for wait, size, ect in load:
        sockets[ect].sendto(payload(len(packets), size), ("10.9.0.2", 9))
        packets.append((size, ect))
        if state and len(packets) % every == 0:
            note(state, states)
        due += wait
        while timed and due - time.monotonic() > 0.004:
            time.sleep(0.004)
            note(state, states)
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
    time.sleep(3)
    return packets, states


def note(state: State, states: list[tuple[int, tuple[int, ...]]]) -> None:
    """Read the discipline's state, unless something else happened meanwhile."""
    begin = time.monotonic_ns()
    values = state.read()
    now = time.monotonic_ns()
    if now - begin < 20_000:
        states.append((now, values))


def events(raw: bytes, ifindex: int) -> list[tuple[int, str]]:
    """Return the events at the queue, in order, as (nanoseconds, trace point)."""
    points = {number: (point, at) for point in POINTS for number, at, _ in [fields(point)]}
    with open("/proc/kallsyms") as file:
        timers = {
            int(line.split()[0], 16) for line in file if line.split()[2] in ("pie_timer", "fq_pie_timer")
        }
    rows = []
    for at, record in records(raw, PAGE):
        point, places = points.get(int.from_bytes(record[:2], sys.byteorder), (None, {}))
        if point == ARRIVED:
            offset, size = places["name"]
            start = int.from_bytes(record[offset : offset + 2], sys.byteorder)
            if record[start : start + 3] == b"va\0":
                rows.append((at, ARRIVED))
        elif point == TIMER:
            offset, size = places["function"]
            if int.from_bytes(record[offset : offset + size], sys.byteorder) in timers:
                rows.append((at, TIMER))
        elif point:
            value = {k: int.from_bytes(record[o : o + s], sys.byteorder) for k, (o, s) in places.items()}
            if value["ifindex"] == ifindex and (point == QUEUED or value["packets"]):
                rows.append((at, point))
    return rows


def history(rows, packets, states, came) -> list[tuple[int, str, str]]:
    """Return each arrival (`queued` or `refused`), each departure and each state, in order of time."""
    found, number, left = [], 0, iter(came.items())
    for index, (at, point) in enumerate(rows):
        if point == ARRIVED:
            size, *more = packets[number]
            there = index + 1 < len(rows) and rows[index + 1][1] == QUEUED
            # A queue per flow accepts every packet and may then drop others.
            event = "arrived" if len(more) > 1 else "queued" if there else "refused"
            found.append((at, event, " ".join(map(str, map(int, (size, *more))))))
            number += 1
        elif point == SENT:
            who, ecn = next(left)
            found.append((at, "marked" if ecn == 3 else "sent", str(who)))
        elif point == TIMER:
            found.append((at, "update", ""))
    assert number == len(packets) and next(left, None) is None, (number, len(packets))
    found += [(at, "state", " ".join(map(str, values))) for at, values in states]
    found.sort(key=lambda row: row[0])
    if not any(event == "update" for _, event, _ in found):
        return found
    # One state after each update is enough; reading it takes a few microseconds, in which no update may be due.
    kept, new, update = [], False, 0
    for row in found:
        if row[1] != "state" or (new and row[0] - update > 20_000):
            kept.append(row)
            new = new and row[1] != "state"
        if row[1] == "update":
            new, update = True, row[0]
    return kept


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    spec, load, seed, every = CASES[name]
    sender, other, ifindex = network(*below(spec))
    receiver = listening(other, sender)
    if name in FLOW_CASES:
        assert flow_queues(spec, 8) == 8, "two flows share a queue"
    offered = globals()[load](random.Random(seed))
    if name in FLOW_CASES:
        (packets, states), raw = traced(lambda: (send_flows(offered), []))
    else:
        (packets, states), raw = traced(lambda: send(offered, State(spec.split()[0]) if every else None, every))
    came = received(receiver)
    rows = history(events(raw, ifindex), packets, states, came)
    save(directory, name, rows)
    batch("ip", "link del va")
    receiver.close()
    counts = {what: sum(row[1] == what for row in rows) for what in ("refused", "marked", "state")}
    dropped = len(packets) - len(came) - counts["refused"]
    return {"case": name, "discipline": spec, "packets": len(packets), "dropped_later": dropped} | counts


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run)
