"""Record what Linux's CHOKe, SFB and SFQ do with the packets of several flows, as CSV.

    python3 flow_decisions.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, runs all cases, or only the named cases,
and writes OUT/CASE.csv (`vectors/linux-flow-decisions/README.md` explains the columns) and OUT/cases.csv.

The link and the places of the trace points are those of `decisions.py`: UDP datagrams go through htb, which paces
them, and the discipline behind it. Here, each flow has a source port of its own, and a trace point identifies each
packet that is lost, so the fate of packets that leave or are lost out of order is known.
"""

import os
import random
import re
import struct
import sys
import time

from decisions import ARRIVED, QUEUED, SENT, State, below, note
from netlink import TCA_STATS2, TCA_STATS_APP, attributes
from recorder import PAGE, RATE_KBIT, listening, main, network, payload, received, save, sending, traced
from red_idle import fields, records
from single_flow import batch

LOST = "skb/kfree_skb"
POINTS = (ARRIVED, QUEUED, SENT, LOST)
CHOKE = "choke limit 200 min 10 max 40 bandwidth 10Mbit burst 20"
# `perturb 0` and many buckets: the flows do not collide.
SFQ = "sfq perturb 0 divisor 16384"
RED = "redflowlimit 60000 min 4000 max 12000 avpkt 1000 burst 6"
SFB = "sfb rehash 0 db 0 limit 300"
# The cases, by name: the discipline; the function below that generates its load; the seed of this load; the
# number of packets between readings of the discipline's state (0: it is never read).
CASES = {
    "choke_drop": (f"{CHOKE} probability 0.1", "unequal", 1, 0),
    "choke_ecn": (f"{CHOKE} probability 0.05 ecn", "unequal", 2, 0),
    "choke_single": (f"{CHOKE} probability 0.02", "single", 3, 0),
    "choke_limit": ("choke limit 40 min 35 max 39 burst 40 bandwidth 10Mbit", "scattered", 4, 0),
    "sfb_single": (f"{SFB} max 40 target 30 increment 0.01 decrement 0.004", "single", 11, 4),
    "sfb_flood": (f"{SFB} max 60 target 20 increment 0.02 decrement 0.002 penalty_rate 50 penalty_burst 10", "flood", 12, 4),
    "sfb_flows": (f"{SFB} max 60 target 20 increment 0.01 decrement 0.001 penalty_rate 50 penalty_burst 10", "unequal", 13, 4),
    "sfq_default": ("sfq perturb 0", "unequal", 21, 0),
    "sfq_quantum": (f"{SFQ} limit 60 quantum 1514 depth 127", "unequal", 22, 0),
    "sfq_large_quantum": (f"{SFQ} limit 200 quantum 4000 depth 127", "unequal", 23, 0),
    "sfq_depth": (f"{SFQ} limit 120 depth 12 flows 60", "unequal", 24, 0),
    "sfq_flows": (f"{SFQ} limit 120 flows 4", "scattered", 25, 0),
    "sfq_headdrop": (f"{SFQ} limit 60 depth 20 headdrop", "unequal", 26, 0),
    "sfq_many": (f"{SFQ} limit 20", "scattered", 27, 0),
    "sfq_red": (f"{SFQ} limit 400 depth 100 {RED} probability 0.1", "unequal", 28, 0),
    "sfq_red_ecn": (f"{SFQ} limit 400 depth 100 {RED} probability 0.1 ecn", "unequal", 29, 0),
    "sfq_red_head": (f"{SFQ} limit 400 depth 100 headdrop {RED} probability 0.1 ecn", "unequal", 30, 0),
    "sfq_red_hard": (f"{SFQ} limit 400 depth 100 {RED} probability 0.1 ecn harddrop", "unequal", 31, 0),
}
SIZES = (1514, 1514, 1514, 1514, 600, 300, 90)


def load(draws: random.Random, weights: dict[int, float], plan):
    """Yield packets as (seconds until the next packet, flow, bytes, ECN-capable). The flows send shares of the load in
    proportion to `weights`; `plan` lists factors of the link's rate, numbers of packets and pauses in seconds."""
    mean = sum(SIZES) / len(SIZES)
    flows, shares = list(weights), list(weights.values())
    for factor, count, pause in plan:
        for _ in range(count):
            wait = mean * 8e-3 / RATE_KBIT / factor * draws.uniform(0.2, 1.8)
            (flow,) = draws.choices(flows, shares)
            yield wait, flow, draws.choice(SIZES), draws.random() < 0.5
        if pause:
            yield pause, flows[0], 90, False


PLAN = ((1.3, 500, 0), (0.8, 200, 0.3), (2.5, 600, 1.0), (1.1, 500, 0), (4.0, 300, 0.002), (0.6, 150, 2.0), (1.6, 500, 0))


def unequal(draws: random.Random):
    """Yield packets of six flows: one sends half of them, and each other one fewer than the one before."""
    yield from load(draws, {1: 0.5, 2: 0.2, 3: 0.12, 4: 0.08, 5: 0.06, 6: 0.04}, PLAN)


def single(draws: random.Random):
    """Yield packets of one flow."""
    yield from load(draws, {1: 1.0}, PLAN)


def flood(draws: random.Random):
    """Yield packets of one flow that exceeds the link's rate for seconds, pauses and returns."""
    yield from load(draws, {1: 1.0}, ((3.0, 1500, 3.0), (2.0, 800, 0), (0.5, 200, 0.5), (5.0, 800, 0)))


def scattered(draws: random.Random):
    """Yield packets of thirty flows, all alike."""
    yield from load(draws, {flow: 1.0 for flow in range(1, 31)}, PLAN)


class FlowState(State):
    """A reader of the state of SFB."""

    def values(self, attrs: dict[int, bytes]) -> tuple[int, ...]:
        """Return SFB's counts of early drops, drops in the penalty box, drops of full buckets, drops of the full
        queue and marks, and the largest queue and probability of its buckets."""
        early, penalty, bucket, full, _, marked, qlen, prob, _ = struct.unpack_from(
            "=9I", attributes(attrs[TCA_STATS2])[TCA_STATS_APP]
        )
        return early, penalty, bucket, full, marked, qlen, prob


def send(packets_of, state: State | None, every: int, rest_s: float = 3):
    """Offer the load, and wait until all packets have left; return the flows, sizes and ECN capability of the packets, and the states that were read."""
    sockets = {}
    packets, states, due = [], [], time.monotonic() + 0.01
    for wait, flow, size, ect in packets_of:
        if (flow, ect) not in sockets:
            sockets[flow, ect] = sending(2 if ect else 0, "10.9.0.1", 1000 + flow)
        sockets[flow, ect].sendto(payload(len(packets), size), ("10.9.0.2", 9))
        packets.append((flow, size, ect))
        if state and len(packets) % every == 0:
            note(state, states)
        due += wait
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
    time.sleep(rest_s)
    for made in sockets.values():
        made.close()
    return packets, states


def history(raw: bytes, ifindex: int, packets, states, came) -> list[tuple[int, str, str]]:
    """Return each arrival, loss and departure and each state, in order of time."""
    points = {number: (point, at) for point in POINTS for number, at, _ in [fields(point)]}
    found, number, waiting = [], 0, {}
    place, arrived = 0, 0  # of the latest arrival, at which all these disciplines drop
    for at, record in records(raw, PAGE):
        point, places = points.get(int.from_bytes(record[:2], sys.byteorder), (None, {}))
        if point is None:
            continue
        value = {k: int.from_bytes(record[o : o + s], sys.byteorder) for k, (o, s) in places.items()}
        buffer = value.get("skbaddr")
        if point == ARRIVED:
            start = value["name"] & 0xFFFF
            if record[start : start + 3] == b"va\0":
                flow, size, ect = packets[number]
                assert value["len"] == size, (value, size)
                waiting[buffer] = number
                place, arrived = len(found), at
                found.append((at, "arrived", f"{number} {flow} {size} {int(ect)}"))
                number += 1
        elif point == LOST and buffer in waiting:
            # In the same call, the kernel first runs the queue and then frees the packets that were dropped.
            place += 1
            found.insert(place, (arrived, "dropped", str(waiting.pop(buffer))))
        elif point == SENT and value["ifindex"] == ifindex and value["packets"]:
            assert value["packets"] == 1
            who = waiting.pop(buffer)
            found.append((at, "marked" if came[who] == 3 else "sent", str(who)))
    assert number == len(packets) and not waiting, (number, len(packets), waiting)
    found += [(at, "state", " ".join(map(str, values))) for at, values in states]
    return sorted(found, key=lambda row: row[0])


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    spec, generator, seed, every = CASES[name]
    sender, other, ifindex = network(*below(spec))
    receiver = listening(other, sender)
    shown = os.popen("tc -d qdisc show dev va parent 1:1").read()
    state = FlowState(spec.split()[0]) if every else None
    (packets, states), raw = traced(lambda: send(globals()[generator](random.Random(seed)), state, every))
    rows = history(raw, ifindex, packets, states, received(receiver))
    save(directory, name, rows)
    print(re.sub(r"\s+", " ", os.popen("tc -s qdisc show dev va parent 1:1").read()))
    batch("ip", "link del va")
    receiver.close()
    counts = {what: sum(row[1] == what for row in rows) for what in ("dropped", "marked", "state")}
    return {"case": name, "discipline": spec, "packets": len(packets)} | counts | {"shown": re.sub(r"\s+", " ", shown).strip()}


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run)
