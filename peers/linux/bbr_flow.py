"""Record the model, the state and the pacing rate of one BBR flow of Linux over time.

    python3 bbr_flow.py KERNEL CASES DIRECTORY [CASE ...]

This command boots KERNEL in virtual time and runs the cases of the table CASES (CSV;
`vectors/linux-bbr/README.md` explains its columns). The network is a FIFO of `depth` packets in front of a link,
and a fast link back; everything else is as in `single_flow.py`.
"""

import socket
import struct
import sys

from single_flow import SO_SNDBUFFORCE, Link, Run, main, setting

BACK = 100_000_000
# A row is written whenever the state changes, and otherwise at most once in this time.
PERIOD = 20_000_000
TCP_CC_INFO = 26
COLUMNS = "time_ns,delivered,sent,retransmitted,unacked,lost,cwnd,pacing_rate,bw,min_rtt_us,pacing_gain,cwnd_gain"


class Fifo(Link):
    """A link behind a queue that holds a number of packets, besides the packet in transmission."""

    def __init__(self, rate: int, delay: int, depth: int) -> None:
        super().__init__(rate, delay)
        self.depth, self.leaves = depth, []

    def overflows(self, now: int) -> bool:
        """Return whether a packet that arrives now finds no room."""
        self.leaves = [at for at in self.leaves if at > now]
        return len(self.leaves) > self.depth

    def carry(self, now: int, size: int) -> int:
        arrives = super().carry(now, size)
        self.leaves.append(self.free)
        return arrives


class Flow(Run):
    """One case."""

    def __init__(self, case: dict[str, str]) -> None:
        super().__init__({"late": "", "nagle": "1", "rack": "1", "tlp": "3", "frto": "2", "sack": "1", "dsack": "1"} | case)
        rate, delay = int(case["rate_kbit"]) * 1000, int(case["delay_ms"]) * 1_000_000
        self.fifo = Fifo(rate, delay, int(case["depth"]))
        self.links = ([self.fifo], [Link(BACK, delay)])
        self.states, self.state, self.last = [], None, 0

    def prepare(self) -> None:
        super().prepare()
        self.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)

    def carry(self, now: int, way: int, raw: bytes) -> None:
        if way == 0 and self.fifo.overflows(now):
            self.record(now, way, raw)
            return
        super().carry(now, way, raw)

    def deliver(self, now: int, to: int, raw: bytes) -> None:
        super().deliver(now, to, raw)
        if to == 0 and self.rows:
            self.look(now)

    def look(self, now: int) -> None:
        info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        model = self.sender.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 20)

        def word(at: int) -> int:
            return struct.unpack_from("=I", info, at)[0]

        low, high, min_rtt, pacing_gain, cwnd_gain = struct.unpack("=5I", model)
        state = (pacing_gain, cwnd_gain)
        if state == self.state and now - self.last < PERIOD:
            return
        (rate,) = struct.unpack_from("=Q", info, 104)
        self.state, self.last = state, now
        known = (word(192), word(156), word(100), word(24), word(32), word(80), rate, high << 32 | low, min_rtt)
        self.states.append((now, *known, *state))

    def save(self, path: str) -> None:
        begin = next(row[0] for row in self.rows if row[3])
        with open(path, "w") as file:
            file.write(COLUMNS + "\n")
            for at, *rest in self.states:
                if at >= begin:
                    file.write(",".join(map(str, (at - begin, *rest))) + "\n")
        with open(path.removesuffix(".csv") + ".segments.csv", "w") as file:
            file.write("time_us,segment\n")
            for at, way, sequence, length, *_ in self.rows:
                if way == "s" and length:
                    file.write(f"{(at - begin) // 1000},{sequence // self.mss}\n")


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        setting("tcp_mem", "100000 200000 300000")
    main(__file__, Flow)
