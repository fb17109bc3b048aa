"""Record the segments of short connections between two Linux hosts, from the SYN on, with chosen losses and delays.

    python3 short_flows.py KERNEL CASES DIRECTORY [CASE ...]

The arguments are those of `single_flow.py`, which explains the kernel; `vectors/linux-short-flows/README.md` explains
the columns of CASES (CSV). `draw_short_cases.py` prints such a table.
"""

import heapq
import os
import select
import socket
import time

from single_flow import (
    PORT,
    RECEIVER,
    SENDER,
    SO_RCVBUFFORCE,
    SO_SNDBUFFORCE,
    SYSCTLS,
    Link,
    Packet,
    Timer,
    enter,
    main,
    namespace,
    setting,
    without_push,
)

RATES = (100_000_000, 10_000_000)  # of the client's and of the server's link, in bit/s
ESTABLISHED = 1
RECEIVE_BUFFER = 1 << 20


class Faults:
    """Packets that one direction loses or delays, named by what they are and which copy of it they are.

    `S` is the SYN or SYN-ACK, a number is the data segment that begins at this multiple of the segment size, `A3` is
    the fourth pure acknowledgment. `S:2` is its second copy. A delay follows as `=300`, in milliseconds.
    """

    def __init__(self, drop: str, late: str, mss: int) -> None:
        self.drop = set(drop.split())
        self.late = {name: int(ms) * 1_000_000 for name, _, ms in (word.partition("=") for word in late.split())}
        self.mss, self.acks, self.seen = mss, 0, {}

    def fate(self, packet: Packet, offset: int) -> tuple[bool, int]:
        """Return whether a packet is lost, and by how many nanoseconds it is late."""
        if "S" in packet.flags:
            name = "S"
        elif packet.len:
            name = str(offset // self.mss)
        else:
            name = f"A{self.acks}"
            self.acks += 1
        copy = self.seen[name] = self.seen.get(name, 0) + 1
        if copy > 1:
            name += f":{copy}"
        return name in self.drop, self.late.get(name, 0)


class Run:
    """One connection, with two hosts and the network between them."""

    def __init__(self, case: dict[str, str]) -> None:
        self.case = case
        self.mss = 1448 if case["timestamps"] == "1" else 1460
        delay = int(case["delay_ms"]) * 1_000_000
        there = [Link(rate, delay // 2) for rate in RATES]
        back = [Link(rate, delay // 2) for rate in reversed(RATES)]
        self.links = (there, back)
        self.faults = [Faults(case[f"drop_{side}"], case[f"late_{side}"], self.mss) for side in ("client", "server")]
        self.exchanges = [
            [int(n) * self.mss - int(case["short_of_full"]) for n in word.split("/")]
            for word in case["exchanges"].split()
        ]
        self.on_way: list[tuple[int, int, int, bytes]] = []
        self.serial, self.first, self.rows = 0, [None, None], []
        self.received = [0, 0]

    def prepare(self) -> None:
        ends = (namespace("ta", SENDER, RECEIVER), namespace("tb", RECEIVER, SENDER))
        self.spaces, self.tuns = zip(*ends, strict=True)
        for space in self.spaces:
            enter(space)
            for column, name in SYSCTLS.items():
                if column in self.case:
                    setting(name, self.case[column])
            setting("tcp_no_metrics_save", "1")
        self.listener, self.client, self.server = socket.socket(), None, None
        self.limit(self.listener)
        self.listener.bind((RECEIVER, PORT))
        self.listener.listen()

    def limit(self, end: socket.socket) -> None:
        end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 23)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.case["congestion"].encode())
        end.setblocking(False)

    def connect(self) -> None:
        enter(self.spaces[0])
        self.client = socket.socket()
        self.limit(self.client)
        try:
            self.client.connect((RECEIVER, PORT))
        except BlockingIOError:
            pass

    def carry(self, now: int, way: int, raw: bytes) -> None:
        """Record a packet when it is sent, and move it through the network."""
        packet = Packet(raw)
        if self.first[way] is None:
            self.first[way] = packet.seq + 1
        offset = (packet.seq - self.first[way]) & 0xFFFF_FFFF
        other = self.first[1 - way] or 0
        ack = (packet.ack - other) & 0xFFFF_FFFF if "A" in packet.flags else ""
        blocks = " ".join(f"{(x - other) & 0xFFFFFFFF}-{(y - other) & 0xFFFFFFFF}" for x, y in packet.sack)
        self.rows.append((now, "cs"[way], packet.flags, offset if packet.len else "", packet.len, ack, blocks))
        lost, late = self.faults[way].fate(packet, offset)
        if lost:
            return
        raw = without_push(raw)
        for link in self.links[way]:
            now = link.carry(now, len(raw))
        heapq.heappush(self.on_way, (now + late, self.serial, 1 - way, raw))
        self.serial += 1

    def applications(self, now: int) -> None:
        """Let both applications read, and write what they owe: the client a request, the server a response."""
        if self.server is None and self.client is not None:
            try:
                self.server, _ = self.listener.accept()
                self.server.setblocking(False)
                self.poll.register(self.server, select.POLLIN)
            except BlockingIOError:
                pass
        for number, end in enumerate((self.client, self.server)):
            try:
                while end is not None and (data := end.recv(1 << 20)):
                    self.received[number] += len(data)
            except (BlockingIOError, ConnectionError, OSError):
                pass
        asked = sum(request for request, _ in self.exchanges[: self.answered + 1])
        if self.server and self.answered < len(self.exchanges) and self.received[1] >= asked:
            response = self.exchanges[self.answered][1]
            self.answered += 1
            assert self.server.send(bytes(response)) == response
        if self.asked == len(self.exchanges):
            return
        if self.asked == 0:
            opened = self.client and self.client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED
            self.ask_at = now if opened else None
        elif self.ask_at is None and self.received[0] >= sum(answer for _, answer in self.exchanges[: self.asked]):
            self.ask_at = now + int(self.case["think_ms"]) * 1_000_000
        if self.ask_at is not None and self.ask_at <= now:
            request = self.exchanges[self.asked][0]
            self.asked, self.ask_at = self.asked + 1, None
            assert self.client.send(bytes(request)) == request

    def read_devices(self) -> None:
        """Let the network take over what the hosts have sent."""
        for way, tun in enumerate(self.tuns):
            while True:
                try:
                    raw = os.read(tun, 2000)
                except BlockingIOError:
                    break
                if raw[0] >> 4 == 4 and raw[9] == 6:
                    self.carry(time.monotonic_ns(), way, raw)

    def run(self) -> None:
        self.prepare()
        self.poll, timer = select.poll(), Timer()
        for readable in (*self.tuns, self.listener, timer.fd):
            self.poll.register(readable, select.POLLIN)
        self.asked, self.answered, self.ask_at = 0, 0, None
        now = time.monotonic_ns()
        begin = (now // 512_000_000 + 1) * 512_000_000 + int(self.case["start_us"]) * 1000
        end = begin + int(float(self.case["end_s"]) * 1e9)
        while (now := time.monotonic_ns()) < end:
            if self.client is None and now >= begin:
                self.connect()
            self.read_devices()
            if self.on_way and self.on_way[0][0] <= now:
                _, _, to, raw = heapq.heappop(self.on_way)
                os.write(self.tuns[to], raw)
                self.read_devices()  # what the kernel sends before the application runs
                self.applications(now)
                continue
            self.applications(now)
            if select.select(self.tuns, [], [], 0)[0]:
                continue
            wakes = [begin] if self.client is None else []
            wakes += [self.ask_at] if self.ask_at else []
            wakes += [at for at, *_ in self.on_way[:1]]
            timer.set(min([*wakes, end]))
            self.poll.poll()
        for file in filter(None, (self.client, self.server, self.listener)):
            file.close()
        for number in (*self.tuns, *self.spaces, timer.fd):
            os.close(number)

    def save(self, path: str) -> None:
        with open(path, "w") as file:
            file.write("time_ns,from,flags,sequence,length,ack,sack\n")
            for row in self.rows:
                file.write(",".join(map(str, row)) + "\n")


if __name__ == "__main__":
    main(__file__, Run)
