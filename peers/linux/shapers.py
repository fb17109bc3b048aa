"""Record the instants at which packets leave Linux's shapers, tbf and htb, under chosen loads.

    python3 shapers.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, and writes OUT/CASE.csv for all cases, or
only for the named ones (`vectors/linux-shapers/README.md` explains the columns). The trace points, the network
and the sizes are those of `decisions.py`. A socket's priority names the class of its packets.
"""

import json
import os
import random
import re
import socket
import time

from decisions import POINTS, events, history
from recorder import listening, main, network, payload, received, save, sending, traced
from single_flow import batch

SO_PRIORITY = 12
RED = "red limit 400000 min 9000 max 9001 avpkt 1000 burst 60 bandwidth 8Mbit probability 0.02"
TBF = "qdisc add dev va root handle 1: tbf"
ROOT = "class add dev va parent 1: classid 1:1 htb rate 10mbit burst 4000 cburst 4000"
BORROW = [
    "qdisc add dev va root handle 1: htb default 12",
    ROOT,
    "class add dev va parent 1:1 classid 1:10 htb rate 1mbit ceil 10mbit burst 3000 cburst 3000 quantum 3000",
    "class add dev va parent 1:1 classid 1:11 htb rate 3mbit ceil 10mbit burst 3000 cburst 3000 quantum 6000",
    "class add dev va parent 1:1 classid 1:12 htb rate 6mbit ceil 8mbit burst 3000 cburst 3000 quantum 1514",
]
DEEP = [
    "qdisc add dev va root handle 1: htb default 30",
    ROOT,
    "class add dev va parent 1:1 classid 1:2 htb rate 4mbit ceil 9mbit burst 5000 cburst 5000",
    "class add dev va parent 1:1 classid 1:3 htb rate 6mbit ceil 10mbit burst 5000 cburst 5000",
    "class add dev va parent 1:2 classid 1:20 htb rate 1mbit ceil 9mbit burst 2000 cburst 2000 quantum 1600 prio 1",
    "class add dev va parent 1:2 classid 1:21 htb rate 3mbit ceil 9mbit burst 2000 cburst 2000 quantum 4800 prio 1",
    "class add dev va parent 1:3 classid 1:30 htb rate 2mbit ceil 10mbit burst 2000 cburst 2000 quantum 3000 prio 0",
    "class add dev va parent 1:3 classid 1:31 htb rate 4mbit ceil 5mbit burst 9000 cburst 2000 quantum 3000 prio 2",
]


def fifos(lines: list[str], spec: str = "pfifo limit 50") -> list[str]:
    """Return the lines with a queue of this kind in each leaf."""
    ids = re.findall(r"classid (1:\d+)", "\n".join(lines))
    leaves = [one for one in ids if not any(f"parent {one} " in line for line in lines)]
    return lines + [f"qdisc add dev va parent {one} {spec}" for one in leaves]


# The cases, by name: the lines of tc; the class of each flow; the function below that generates the load, and
# its seed.
CASES = {
    "tbf": ([f"{TBF} rate 10mbit burst 5000 limit 60000"], [], "bursts", 1),
    "tbf_slow": ([f"{TBF} rate 333333bit burst 4444 latency 200ms"], [], "slow", 2),
    "tbf_packet": ([f"{TBF} rate 9999kbit burst 1514 limit 100000"], [], "bursts", 3),
    "tbf_large": ([f"{TBF} rate 8mbit burst 1000 limit 100000"], [], "bursts", 4),
    "tbf_peak": ([f"{TBF} rate 5mbit burst 30000 limit 80000 peakrate 12mbit mtu 2000"], [], "bursts", 5),
    "tbf_overhead": ([f"{TBF} rate 7mbit burst 9000 limit 80000 overhead 24 mpu 200"], [], "bursts", 6),
    "tbf_atm": ([f"{TBF} rate 8mbit burst 9000 limit 80000 overhead 18 linklayer atm"], [], "bursts", 7),
    "tbf_fast": ([f"{TBF} rate 933mbit burst 20000 limit 300000"], [], "fast", 8),
    "tbf_codel": (
        [
            f"{TBF} rate 8mbit burst 3000 limit 80000",
            "qdisc add dev va parent 1: codel limit 1000 target 3ms",
        ],
        [],
        "bursts",
        9,
    ),
    "tbf_red": (
        [f"{TBF} rate 8mbit burst 3000 limit 80000", f"qdisc add dev va parent 1: {RED}"],
        [],
        "bursts",
        10,
    ),
    "htb": (
        fifos(
            [
                "qdisc add dev va root handle 1: htb default 1",
                "class add dev va parent 1: classid 1:1 htb rate 10mbit burst 15 cburst 15",
            ]
        ),
        [],
        "bursts",
        11,
    ),
    "htb_defaults": (
        fifos(
            [
                "qdisc add dev va root handle 1: htb default 1",
                "class add dev va parent 1: classid 1:1 htb rate 7777kbit",
            ]
        ),
        [],
        "bursts",
        12,
    ),
    "htb_ceil": (
        fifos(
            [
                "qdisc add dev va root handle 1: htb default 1",
                "class add dev va parent 1: classid 1:1 htb rate 5mbit ceil 12mbit burst 20000 cburst 2500",
            ]
        ),
        [],
        "bursts",
        13,
    ),
    "htb_atm": (
        fifos(
            [
                "qdisc add dev va root handle 1: htb default 1",
                "class add dev va parent 1: classid 1:1 htb rate 8mbit burst 4000 cburst 4000 overhead 18 linklayer atm",
            ]
        ),
        [],
        "bursts",
        14,
    ),
    "htb_borrow": (fifos(BORROW), ["1:10", "1:11", "1:12"], "shares", 15),
    "htb_deep": (fifos(DEEP), ["1:20", "1:21", "1:30", "1:31"], "shares", 16),
    "htb_codel": (fifos(BORROW, "codel target 3ms"), ["1:10", "1:11", "1:12"], "shares", 17),
    "htb_red": (
        fifos(
            [
                "qdisc add dev va root handle 1: htb default 1",
                "class add dev va parent 1: classid 1:1 htb rate 8mbit burst 3000 cburst 3000",
            ],
            RED,
        ),
        [],
        "bursts",
        18,
    ),
}
# How the strict bands and the quanta of ets share a paced link.
ETS = [
    "qdisc add dev va root handle 1: htb default 1",
    "class add dev va parent 1: classid 1:1 htb rate 10mbit burst 15 cburst 15",
    "qdisc add dev va parent 1:1 handle 2: ets bands 4 strict 1 quanta 4500 3000 1514 "
    "priomap 1 0 1 2 3 3 3 3 3 3 3 3 3 3 3 3",
    *(f"qdisc add dev va parent 2:{band} pfifo limit 50" for band in (1, 2, 3, 4)),
]
CASES["ets"] = (ETS, ["0:1", "0:2", "0:3", "0:4"], "shares", 19)


def bursts(draws: random.Random, rate_kbit: int = 10_000):
    """Yield bursts of different lengths at half to four times the rate, with pauses between them, as (seconds
    until the next packet, bytes, TOS octet, flow)."""
    for _ in range(15):
        factor, few = draws.uniform(0.5, 4.0), draws.random() < 0.2
        for _ in range(draws.randrange(5, 30) if few else draws.randrange(50, 200)):
            size = draws.choice((1514, 1514, 1514, 600, 300, 90))
            yield size * 8e-3 / rate_kbit / factor * draws.uniform(0.3, 1.7), size, 0, 0
        yield draws.choice((0.002, 0.02, 0.1, 0.4, 2.0)), 90, 0, 0


def slow(draws: random.Random):
    """Yield the bursts of a slow link."""
    return bursts(draws, 333)


def fast(draws: random.Random):
    """Yield the bursts of a fast link."""
    return bursts(draws, 933_000)


def shares(draws: random.Random):
    """Yield packets of several flows; in each phase, some of them are active, and each offers a part of 10
    Mbit/s between a tenth and all of it."""
    for phase in range(24):
        active = [flow for flow in range(4) if draws.random() < 0.6] or [phase % 4]
        offered = [draws.choice((0.1, 0.3, 0.6, 1.0)) for _ in active]
        for _ in range(draws.randrange(60, 200)):
            flow = draws.choices(active, offered)[0]
            size = draws.choice((1514, 1514, 1200, 600, 90))
            yield size * 8e-4 / sum(offered) * draws.uniform(0.5, 1.5) / 1000, size, 0, flow
        yield draws.choice((0.0005, 0.005, 0.05, 0.3)), 90, 0, active[0]


def send(load, classes: list[str]) -> list[tuple[int, int, int]]:
    """Offer the load; return the size, the TOS octet and the flow of each packet."""
    sockets, packets, due = {}, [], time.monotonic() + 0.01
    for wait, size, tos, flow in load:
        if classes:
            flow %= len(classes)
        if (flow, tos) not in sockets:
            sockets[flow, tos] = made = sending(tos, "10.9.0.1", 7000 + flow)
            if classes:
                major, minor = (int(part, 16) for part in classes[flow].split(":"))
                made.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, major << 16 | minor)
        sockets[flow, tos].sendto(payload(len(packets), size), ("10.9.0.2", 9))
        packets.append((size, tos, flow))
        due += wait
        if (rest := due - time.monotonic()) > 0:
            time.sleep(rest)
    time.sleep(10)
    for made in sockets.values():
        made.close()
    return packets


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    lines, classes, load, seed = CASES[name]
    sender, other, ifindex = network(*lines)
    receiver = listening(other, sender)
    packets, raw = traced(lambda: send(globals()[load](random.Random(seed)), classes))
    came = received(receiver)
    rows = history(events(raw, ifindex), packets, [], came)
    first = rows[0][0]
    save(directory, name, [(at - first, event.replace("queued", "arrived"), values) for at, event, values in rows])
    batch("ip", "link del va")
    receiver.close()
    counts = {"packets": len(packets), "dropped": len(packets) - len(came)}
    return {"case": name} | counts | {"tc": json.dumps(lines)}


def written(directory: str) -> None:
    """Write what tc reports after each case's lines, and which lines it refuses."""
    with open(os.path.join(directory, "shown.txt"), "w") as file:
        for name, (lines, *_) in CASES.items():
            network(*lines)
            file.write(f"# {name}\n" + "".join(f"# {line}\n" for line in lines))
            for what in ("qdisc", "class"):
                file.write(os.popen(f"tc -s -d {what} show dev va").read())
            batch("ip", "link del va")


def depths(directory: str) -> None:
    """Write the tokens of fresh htb classes, in ticks of 64 ns, for chosen rates and bursts."""
    with open(os.path.join(directory, "depths.csv"), "w") as file:
        file.write("rate,burst,cburst,tokens,ctokens\n")
        for rate in ("100kbit", "333333bit", "1mbit", "7777kbit", "10mbit", "933mbit", "10gbit"):
            for burst in ("", "15", "1514", "1600", "3000", "20000", "1000000"):
                more = f" burst {burst} cburst {burst}" if burst else ""
                network(
                    "qdisc add dev va root handle 1: htb",
                    f"class add dev va parent 1: classid 1:1 htb rate {rate}{more}",
                )
                text = os.popen("tc -s -d class show dev va").read()
                (found,) = re.findall(r" tokens: (-?\d+) ctokens: (-?\d+)", text)
                file.write(f"{rate},{burst},{burst},{','.join(found)}\n")
                batch("ip", "link del va")


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run, (written, depths))
