"""Record what Linux's CAKE does under chosen loads: departures, drops and marks, tins and their parameters.

    python3 cake.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, and writes OUT/CASE.csv for all cases, or
only for the named ones (`vectors/linux-cake/README.md` explains the columns). The loads, the trace points and
the network are those of `decisions.py`. CAKE paces the link itself, unless it is `unlimited`; htb then paces it.
"""

import json
import os
import random
import socket
import time

from decisions import POINTS, events, history
from recorder import PACED, RATE_KBIT, listening, main, network, payload, received, save, sending, traced
from single_flow import batch

SINGLE = "besteffort flowblind"
# The cases, by name: CAKE's options, the function below that generates the load, and the seed of this load.
CASES = {
    "cobalt_constant": (f"unlimited {SINGLE}", "constant", 1),
    "cobalt_bursts": (f"unlimited {SINGLE}", "bursts", 2),
    "cobalt_short": (f"unlimited {SINGLE} rtt 20ms", "bursts", 3),
    "shaper": (f"bandwidth 10mbit {SINGLE}", "bursts", 4),
    "shaper_overhead": (f"bandwidth 7mbit {SINGLE} overhead 38 mpu 84 noatm", "bursts", 5),
    "shaper_atm": (f"bandwidth 5mbit {SINGLE} overhead 32 atm", "bursts", 6),
    "shaper_ptm": (f"bandwidth 33333kbit {SINGLE} overhead 30 ptm", "bursts", 7),
    "shaper_slow": (f"bandwidth 600kbit {SINGLE} rtt 30ms", "slow", 8),
    "shaper_long": (f"bandwidth 600kbit {SINGLE} rtt 10s", "long", 18),
    "ingress": (f"bandwidth 8mbit {SINGLE} ingress rtt 20ms", "bursts", 9),
    "flows": ("bandwidth 10mbit besteffort flows", "flows", 10),
    "tins3": ("bandwidth 10mbit diffserv3 flowblind", "tins", 11),
    "tins4": ("bandwidth 10mbit diffserv4 flowblind", "tins", 12),
    "tins8": ("bandwidth 10mbit diffserv8 flowblind", "tins", 13),
    "precedence": ("bandwidth 10mbit precedence flowblind", "tins", 14),
    "tins4_unlimited": ("unlimited diffserv4 flowblind", "tins", 15),
    "hosts_flowblind": ("bandwidth 10mbit besteffort flowblind", "hosts", 20),
    "hosts_flows": ("bandwidth 10mbit besteffort flows", "hosts", 20),
    "hosts_srchost": ("bandwidth 10mbit besteffort srchost", "hosts", 20),
    "hosts_dsthost": ("bandwidth 10mbit besteffort dsthost", "hosts", 20),
    "hosts_hosts": ("bandwidth 10mbit besteffort hosts", "hosts", 20),
    "hosts_dual_srchost": ("bandwidth 10mbit besteffort dual-srchost", "hosts", 20),
    "hosts_dual_dsthost": ("bandwidth 10mbit besteffort dual-dsthost", "hosts", 20),
    "hosts_triple": ("bandwidth 10mbit besteffort triple-isolate", "hosts", 20),
    "memory": ("bandwidth 10mbit besteffort flows memlimit 150000", "hosts", 21),
}
MODES = ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
SOURCES, DESTINATIONS = ("10.9.0.1", "10.9.0.4"), ("10.9.0.2", "10.9.0.3")


def packet(wait, size, draws, tos=0, flow=0, hosts=(0, 0)):
    """Return a packet: seconds until the next one, bytes, TOS octet, flow, and the numbers of its hosts."""
    return wait, size, tos | draws.choice((0, 2)), flow, *hosts


def constant(draws: random.Random):
    """Yield packets at rates that vary from half to twice the link's rate."""
    for factor in (1.5, 0.8, 1.1, 0.5, 2.0, 0.9):
        for _ in range(400):
            yield packet(1514 * 8e-3 / RATE_KBIT / factor, 1514, draws)


def bursts(draws: random.Random, rate_kbit: int = RATE_KBIT):
    """Yield bursts of different lengths at half to four times the rate, with pauses between them."""
    for _ in range(15):
        factor, few = draws.uniform(0.5, 4.0), draws.random() < 0.2
        for _ in range(draws.randrange(5, 30) if few else draws.randrange(50, 200)):
            size = draws.choice((1514, 1514, 1514, 600, 300, 90))
            yield packet(size * 8e-3 / rate_kbit / factor * draws.uniform(0.3, 1.7), size, draws)
        yield packet(draws.choice((0.002, 0.02, 0.1, 0.4, 2.0)), 90, draws)


def slow(draws: random.Random):
    """Yield the bursts of a slow link."""
    return bursts(draws, 600)


def long(draws: random.Random):
    """Yield packets at one and a half times the rate of a slow link, for half a minute, and once more after a rest."""
    for count in (2000, 600):
        for _ in range(count):
            yield packet(1514 * 8e-3 / 600 / 1.5 * draws.uniform(0.3, 1.7), 1514, draws)
        yield packet(30, 90, draws)


def flows(draws: random.Random):
    """Yield bursts of eight flows of different sizes and rates, two of them sparse."""
    for _ in range(15):
        factor = draws.uniform(0.5, 3.0)
        for _ in range(draws.randrange(50, 200)):
            flow = draws.choices(range(8), (8, 8, 5, 5, 3, 2, 0.5, 0.5))[0]
            size = draws.choice((1514, 1514, 600, 300, 90)) if flow < 6 else 90
            yield packet(size * 8e-3 / RATE_KBIT / factor, size, draws, 0, flow)
        yield packet(draws.choice((0.002, 0.02, 0.1, 0.4, 2.0)), 90, draws)


def tins(draws: random.Random):
    """Yield packets of all code points; each eighth of the load uses only some of them."""
    for _ in range(8):
        some = draws.sample(range(64), 6)
        factor = draws.uniform(0.8, 3.0)
        for _ in range(300):
            size = draws.choice((1514, 1514, 600, 90))
            wait = size * 8e-3 / RATE_KBIT / factor * draws.uniform(0.3, 1.7)
            yield packet(wait, size, draws, draws.choice(some) << 2)
        yield packet(draws.choice((0.002, 0.05, 0.5)), 90, draws)


def hosts(draws: random.Random):
    """Yield five flows, of which each sends more than its share: four from one host to another, and one
    between two other hosts."""
    for number in range(6000):
        flow = number % 5
        there = (0, 0) if flow < 4 else (1, 1)
        yield packet(1514 * 8e-3 / RATE_KBIT / 3.5 * draws.uniform(0.5, 1.5), 1514, draws, 0, flow, there)


def shaped(spec: str) -> tuple[int, int, int]:
    """Create the network with CAKE, behind another shaper if CAKE itself is unlimited."""
    lines = [f"qdisc add dev va root handle 2: cake {spec}"]
    if spec.startswith("unlimited"):
        lines = [*PACED, f"qdisc add dev va parent 1:1 handle 2: cake {spec}"]
    return network(*lines, sender=SOURCES, receiver=DESTINATIONS)


def send(load) -> list[tuple[int, ...]]:
    """Offer the load; return the size, the TOS octet, the flow and the hosts of each packet."""
    sockets, packets, due = {}, [], time.monotonic() + 0.01
    for wait, *values in load:
        size, tos, flow, source, destination = values
        key = tos, flow, source
        if key not in sockets:
            sockets[key] = sending(tos, SOURCES[source], 7000 + flow)
        sockets[key].sendto(payload(len(packets), size), (DESTINATIONS[destination], 9))
        packets.append(tuple(values))
        due += wait
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
    time.sleep(10)
    for made in sockets.values():
        made.close()
    return packets


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    spec, load, seed = CASES[name]
    sender, other, ifindex = shaped(spec)
    receiver = listening(other, sender)
    packets, raw = traced(lambda: send(globals()[load](random.Random(seed))))
    came = received(receiver)
    rows = history(events(raw, ifindex), packets, [], came)
    save(directory, name, rows)
    batch("ip", "link del va")
    receiver.close()
    marked = sum(row[1] == "marked" for row in rows)
    return {"case": name, "options": spec, "packets": len(packets), "dropped": len(packets) - len(came), "marked": marked}


def shown() -> dict:
    """Return what tc reports about CAKE."""
    (found,) = json.loads(os.popen("tc -s -j qdisc show dev va").read())
    return found


def parameters(directory: str) -> None:
    """Write the parameters of all tins at several rates and round-trip times."""
    with open(os.path.join(directory, "parameters.csv"), "w") as file:
        columns = "threshold_rate", "target_us", "interval_us", "flow_quantum"
        file.write("mode,bandwidth,rtt,memory_limit,tin," + ",".join(columns) + "\n")
        for mode in MODES:
            for rate in ("64kbit", "600kbit", "3mbit", "10mbit", "100mbit", "1gbit", "unlimited"):
                for rtt in ("1ms", "30ms", "100ms", "300ms"):
                    shaped(f"{rate if rate == 'unlimited' else f'bandwidth {rate}'} {mode} rtt {rtt}")
                    found = shown()
                    for tin, values in enumerate(found["tins"]):
                        row = mode, rate, rtt, found["memory_limit"], tin, *(values[c] for c in columns)
                        file.write(",".join(map(str, row)) + "\n")
                    batch("ip", "link del va")


def code_points(directory: str) -> None:
    """Write the tin of each code point in each mode."""
    with open(os.path.join(directory, "code_points.csv"), "w") as file:
        file.write("mode," + ",".join(map(str, range(64))) + "\n")
        for mode in MODES:
            shaped(f"bandwidth 10mbit {mode}")
            sender, row, before = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), [], None
            for dscp in range(64):
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
                before = [tin["sent_packets"] for tin in shown()["tins"]]
                sender.sendto(bytes(100), (DESTINATIONS[0], 9))
                time.sleep(0.1)
                after = [tin["sent_packets"] for tin in shown()["tins"]]
                (tin,) = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if b != a]
                row.append(tin)
            file.write(f"{mode}," + ",".join(map(str, row)) + "\n")
            sender.close()
            batch("ip", "link del va")


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run, (parameters, code_points))
