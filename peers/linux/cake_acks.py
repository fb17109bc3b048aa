"""Record which acknowledgments Linux's CAKE drops with its filter, under crafted trains of TCP segments.

    python3 cake_acks.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, and writes OUT/CASE.csv for all cases, or
only for the named ones (`vectors/linux-cake/README.md` explains the columns). The network is that of `cake.py`.
The identification in the IP header is the number of the packet, plus one.
"""

import csv
import json
import os
import random
import socket
import struct
import sys
import time

from cake import SOURCES, DESTINATIONS, network
from decisions import POINTS, RATE_KBIT, history, traced
from red_idle import TRACE, write
from single_flow import SO_RCVBUFFORCE, SO_SNDBUFFORCE, batch, boot, enter, libc

ONE = "besteffort flowblind"
# The cases, by name: CAKE's options and the seed of the load.
CASES = {
    "acks": (f"bandwidth 1mbit {ONE} rtt 1s ack-filter", 31),
    "acks_aggressive": (f"bandwidth 1mbit {ONE} rtt 1s ack-filter-aggressive", 32),
    "acks_ingress": (f"bandwidth 1mbit {ONE} ingress ack-filter-aggressive", 33),
    "acks_unlimited": (f"unlimited {ONE} rtt 1s ack-filter", 34),
}
RATE = 1_000_000
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
ETH_P_IP, PACKET_OUTGOING = 0x0800, 4
MASK = 0xFFFF_FFFF


class Connection:
    """One direction of a connection, whose segments mostly acknowledge."""

    def __init__(self, number: int, draws: random.Random) -> None:
        self.number, self.draws = number, draws
        # The numbers of the first one wrap soon.
        self.ack = MASK - 20_000 if number == 0 else draws.getrandbits(32)
        self.seq, self.stamped = draws.getrandbits(32), number < 2
        self.stamps, self.flags, self.blocks = [draws.getrandbits(31), draws.getrandbits(31)], ACK, []

    def proceed(self) -> None:
        """Receive something: in order, after a gap, or nothing."""
        draws = self.draws
        if draws.random() < 0.5:
            self.stamps[0] += draws.choice((0, 1, 7))
            self.stamps[1] += draws.choice((0, 0, 5))
        if self.blocks:
            act = draws.random()
            if act < 0.5:
                start, end = self.blocks.pop(draws.randrange(len(self.blocks)))
                self.blocks.insert(0, (start, end + 1460 & MASK))
            elif act < 0.65:
                last = max((end - self.ack & MASK for _, end in self.blocks), default=0)
                start = self.ack + last + 1460 & MASK
                self.blocks.insert(0, (start, start + 1460 & MASK))
            elif act < 0.75:
                self.blocks.pop()
            elif act < 0.85:
                self.ack, self.blocks = max(e - self.ack & MASK for _, e in self.blocks) + self.ack & MASK, []
        elif draws.random() < 0.12:
            start = self.ack + 1460 & MASK
            self.blocks = [(start, start + 1460 & MASK)]
        else:
            self.ack = self.ack + draws.choice((0, 1460, 2920, 2920)) & MASK
        if draws.random() < 0.05:
            self.flags ^= ECE

    def options(self) -> bytes:
        """Return the options of a segment; a few are unusual or malformed."""
        draws, parts = self.draws, []
        most = 3 if self.stamped else 4
        if self.stamped:
            values = list(self.stamps)
            if draws.random() < 0.04:
                values[draws.randrange(2)] -= draws.choice((1, 1000))
            parts.append(b"\1\1\x08\x0a" + struct.pack(">II", *values))
        if self.blocks:
            blocks = list(self.blocks[:most])
            if draws.random() < 0.08:
                blocks.insert(0, (self.ack - 1460 & MASK, self.ack))
            blocks = blocks[:most]
            parts.append(b"\1\1\x05" + bytes([2 + 8 * len(blocks)]))
            parts += [struct.pack(">II", *block) for block in blocks]
        if draws.random() < 0.05:
            unusual = draws.choice(
                (b"\2\4\5\xb4", b"\1\3\3\7", b"\1\1\4\2", b"\xfd\4\1\2", b"\1\1\x22\2", b"\x05\2\1\1")
                + (b"\1\1\x05\3", b"\xfd\0\1\1", b"\xfd\1\1\1", b"\1\1\xfd\x28", b"\0\xfd\4\2", b"\x08\4\0\0")
                + (b"\x13\x12" + bytes(16) + b"\1\1", b"\1\1\1\x05", b"\x05\x0b" + bytes(9) + b"\1")
            )
            parts.insert(draws.choice((0, len(parts))), unusual)
        joined = b"".join(parts)
        return joined if len(joined) <= 40 else b"".join(parts[: 1 + 2 * self.stamped])[:40]

    def segment(self) -> tuple[bytes, int]:
        """Return the header of the next segment, and the length of its payload."""
        draws = self.draws
        self.proceed()
        flags, payload, ack = self.flags, 0, self.ack
        for flag, often in ((PSH, 0.03), (FIN, 0.01), (SYN, 0.01), (RST, 0.01), (URG, 0.01), (CWR, 0.02), (0x100, 0.01)):
            flags |= flag * (draws.random() < often)
        flags ^= ACK * (draws.random() < 0.01) | 0x800 * (draws.random() < 0.01)
        if draws.random() < 0.08:
            payload = draws.choice((100, 1000))
        if draws.random() < 0.04:
            ack = ack + draws.choice((-1460, -1, 1)) & MASK
        options = self.options()
        options += bytes(-len(options) % 4) if draws.random() < 0.2 else b"\1" * (-len(options) % 4)
        words = 5 + len(options) // 4
        ports = 7000 + self.number, 80
        header = struct.pack(">HHIIHHHH", *ports, self.seq, ack, words << 12 | flags, 8192, 0, 0) + options
        self.seq = self.seq + payload & MASK
        return header, payload


def trains(draws: random.Random, rate: int):
    """Yield bursts of segments of four connections: seconds until the next one, TOS octet, connection, header,
    length of the payload. Some packets are datagrams, which have no header here."""
    connections = [Connection(number, draws) for number in range(4)]
    for _ in range(24):
        factor = draws.uniform(0.7, 3.0)
        weights = draws.choice(((1, 0, 0, 0), (0, 0, 1, 0), (4, 4, 1, 1), (1, 1, 4, 4), (1, 1, 1, 1)))
        for _ in range(draws.randrange(30, 140)):
            number = draws.choices(range(4), weights)[0]
            header, payload = connections[number].segment()
            if draws.random() < 0.02:
                header, payload = b"", 60
            size = 34 + len(header) + payload
            yield size * 8 / rate / factor * draws.uniform(0.3, 1.7), draws.choice((0, 2)), number, header, payload
        yield draws.choice((0.002, 0.02, 0.1, 0.4)), 0, 0, b"", 60


def send(load) -> tuple[list[tuple[int, ...]], list[str]]:
    """Offer the load; return the size, the TOS octet, the flow and the hosts of each packet, and the headers."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    raw.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 25)
    packets, headers, due = [], [], time.monotonic() + 0.01
    source, destination = (socket.inet_aton(hosts[0]) for hosts in (SOURCES, DESTINATIONS))
    for wait, tos, flow, header, payload in load:
        protocol, what = (6, header) if header else (17, struct.pack(">HHHH", 7000 + flow, 80, 8 + payload, 0))
        total = 20 + len(what) + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, tos, total, len(packets) + 1, 0, 64, protocol, 0, source, destination)
        raw.sendto(ip + what + bytes(payload), (DESTINATIONS[0], 0))
        packets.append((total + 14, tos, flow, 0, 0))
        headers.append(header.hex() or "-")
        due += wait
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
    time.sleep(10)
    raw.close()
    return packets, headers


def received(receiver: socket.socket) -> dict[int, int]:
    """Return the ECN field of each packet that arrived, keyed by its number, in the order of arrival."""
    found = {}
    while True:
        try:
            data, address = receiver.recvfrom(2048)
        except BlockingIOError:
            return found
        if address[2] != PACKET_OUTGOING and data[12:16] == socket.inet_aton(SOURCES[0]):
            found[struct.unpack_from(">H", data, 4)[0] - 1] = data[1] & 3


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of acks_cases.csv."""
    spec, seed = CASES[name]
    sender, other, ifindex = network(spec)
    enter(other)
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    receiver.bind(("vb", ETH_P_IP))
    receiver.setblocking(False)
    enter(sender)
    write(f"{TRACE}/trace", "")
    write(f"{TRACE}/tracing_on", "1")
    rate = 1000 * RATE_KBIT if spec.startswith("unlimited") else RATE
    packets, headers = send(trains(random.Random(seed), rate))
    write(f"{TRACE}/tracing_on", "0")
    page, raw = os.sysconf("SC_PAGE_SIZE"), b""
    with open(f"{TRACE}/per_cpu/cpu0/trace_pipe_raw", "rb", buffering=0) as file:
        os.set_blocking(file.fileno(), False)
        while part := file.read(page):
            raw += part.ljust(page, b"\0")
    came = received(receiver)
    rows, of = history(traced(raw, page, ifindex), packets, [], came), iter(headers)
    with open(os.path.join(directory, name + ".csv"), "w") as file:
        file.write("time_ns,event,values\n")
        for at, event, values in rows:
            more = f" {next(of)}" if event == "arrived" else ""
            file.write(f"{at},{event},{values}{more}\n")
    shown = json.loads(os.popen("tc -s -j qdisc show dev va").read())
    batch("ip", "link del va")
    receiver.close()
    filtered = sum(tin["ack_drops"] for queue in shown if queue["kind"] == "cake" for tin in queue["tins"])
    row = {"case": name, "options": spec, "packets": len(packets), "dropped": len(packets) - len(came)}
    return row | {"marked": sum(row[1] == "marked" for row in rows), "filtered": filtered}


def inside(directory: str, names: list[str]) -> None:
    """Run the cases in the kernel that was booted for them."""
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: a nanosecond
    if not os.path.exists(f"{TRACE}/trace"):
        os.system(f"mount -t tracefs none {TRACE}")
    write(f"{TRACE}/trace_clock", "mono")
    write(f"{TRACE}/buffer_size_kb", "32768")
    for point in POINTS:
        write(f"{TRACE}/events/{point}/enable", "1")
    with open(os.path.join(directory, "acks_cases.csv"), "w") as file:
        for number, name in enumerate(names or CASES):
            row = run(name, directory)
            print(row, flush=True)
            if number == 0:
                rows = csv.DictWriter(file, row)
                rows.writeheader()
            rows.writerow(row)
    print(os.uname().release, os.popen("tc -V").read().strip())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3], sys.argv[4:])
    else:
        sys.exit(boot(sys.argv[1], __file__, "/dev/null", sys.argv[2], sys.argv[3:]))
