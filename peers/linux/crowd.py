"""Record the behaviour of Linux TCP flows at a bottleneck: goodput, queue, drops, marks and timeouts, as CSV.

    python3 crowd.py KERNEL CASES DIRECTORY [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, runs the cases of the table CASES
(`vectors/linux-crowd/README.md` explains it), or only the named cases, and writes DIRECTORY/runs.csv.

The network has three namespaces: senders, router and receivers. The router sends to the receivers through cbs (or, for
the queue `htb_red`, htb), which paces the packets, with the case's queue behind it; in the reverse direction, netem delays each flow's acknowledgments
by its round-trip time.
"""

import ctypes
import fcntl
import math
import os
import random
import select
import socket
import struct
import sys
import time

import dualpi2
from netlink import TCA_STATS_APP, TCA_STATS_QUEUE, Netlink, attribute, attributes
from single_flow import SO_RCVBUFFORCE, SO_SNDBUFFORCE, batch, boot, chosen, enter, libc, precise, setting

PORT, FRAME, SEGMENT = 5001, 1514, 1448  # bytes of a full frame, as links count them, and of its payload
BUCKET = 1600  # bytes in the bucket of htb
STEP_S = 0.02
WINDOW = 1 << 20  # a quarter of the buffer, so that unread data never delay an acknowledgment
CLONE_NEWNET = 0x4000_0000
TCA_RED_PARMS, TCA_RED_STAB, TC_RED_ECN = 1, 2, 1
# The place of the number of marked packets among the 32-bit words of a queue's own statistics (linux/pkt_sched.h).
MARKS_AT = {"red": 3, "codel": 6, "pie": 9, "fq_codel": 3, "dualpi2": 6}
# cake has them by tin.
TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS = 10, 8
SIOCETHTOOL, ETHTOOL_STSO = 0x8946, 0x1F
SIOCOUTQNSD = 0x894B  # ioctl that returns the number of bytes not sent yet


def scene(flows: int, seed: int) -> list[tuple[float, float]]:
    """Return the round-trip time and start of each flow, in seconds rounded to microseconds."""
    draws = random.Random(seed)
    return [(round(draws.uniform(0.04, 0.1), 6), round(draws.uniform(0.0, 5.0), 6)) for _ in range(flows)]


class Queue:
    """The bottleneck's statistics."""

    def __init__(self, discipline: str) -> None:
        self.discipline, self.netlink = discipline, Netlink()

    def marked(self, raw: bytes) -> int:
        """Return the number of marked packets in the discipline's own statistics."""
        if self.discipline in MARKS_AT:
            return struct.unpack_from("=I", raw, 4 * MARKS_AT[self.discipline])[0]
        tins = attributes(attributes(raw)[TCA_CAKE_STATS_TIN_STATS]).values()
        return sum(struct.unpack("=I", attributes(tin)[TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS])[0] for tin in tins)

    def read(self) -> tuple[int, int, int]:
        """Return how many packets are waiting, and how many have been dropped and marked so far."""
        stats = self.netlink.statistics(self.discipline)
        waiting, _, drops = struct.unpack_from("=III", stats[TCA_STATS_QUEUE])
        return waiting, drops, self.marked(stats[TCA_STATS_APP]) if TCA_STATS_APP in stats else 0


def add_step(device: str, limit: int, threshold: int) -> None:
    """Add a RED that marks each packet that finds `threshold` bytes in the queue, as DCTCP requires; tc cannot
    configure an average that always equals the queue.
    """
    params = struct.pack("=IIIBBBB", limit, threshold, threshold, 0, 0, 0, TC_RED_ECN)
    # The number of bits by which RED shifts the average after an idle period, for each length of that period.
    empty_when_idle = bytes([31] * 256)
    options = attribute(TCA_RED_PARMS, params) + attribute(TCA_RED_STAB, empty_when_idle)
    netlink = Netlink()
    netlink.add(socket.if_nametoindex(device), "red", options)
    netlink.close()


def without_tso(device: str) -> None:
    """Do what `ethtool -K DEVICE tso off` does."""
    value = ctypes.create_string_buffer(struct.pack("=II", ETHTOOL_STSO, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sQ16x", device.encode(), ctypes.addressof(value)))


def timeouts() -> int:
    """Return the number of retransmission timeouts in this namespace so far, except those of SYNs."""
    with open("/proc/self/net/netstat") as file:
        names, values = (line.split() for line in file if line.startswith("TcpExt:"))
    return int(values[names.index("TCPTimeouts")]) - int(values[names.index("TCPSynRetrans")])


class Run:
    """One run of a case."""

    isolation = "flows"  # CAKE's

    def __init__(self, case: dict[str, str], seed: int) -> None:
        self.case, self.flows = case, int(case["flows"])
        self.offload = case.get("offload") == "1"
        self.scene = scene(self.flows, seed)
        self.spaces = {}

    def host(self, number: int) -> int:
        """Return the last octet of the addresses of a flow."""
        return 1

    def congestion(self, number: int) -> bytes:
        """Return the congestion control of a flow: with several (`bbr+cubic`), flows take them in turn."""
        kinds = self.case["congestion"].split("+")
        return kinds[number % len(kinds)].encode()

    def space(self, name: str) -> None:
        assert libc.unshare(CLONE_NEWNET) == 0
        self.spaces[name] = os.open("/proc/self/ns/net", os.O_RDONLY)

    def network(self) -> None:
        """Create namespaces, links, addresses and queues."""
        self.space("r")
        setting("ip_forward", "1")
        router = f"/proc/{os.getpid()}/fd/{self.spaces['r']}"
        # With `offload`, TCP hands several segments down at once, and the device splits them, like a network card.
        groups = "" if self.offload else " gso_max_segs 1"
        for name, net in {"s": "10.9.1", "d": "10.9.2"}.items():
            self.space(name)
            batch(
                "ip",
                f"link add {name}0 type veth peer name r{name}",
                f"link set {name}0 address 02:00:00:00:00:01 arp off up{groups}",
                *(f"addr add {net}.{host}/24 dev {name}0" for host in sorted({self.host(0), self.host(1)})),
                f"link set r{name} netns {router}",
                f"route add default via {net}.2",
            )
            if self.offload:
                without_tso(f"{name}0")
            setting("tcp_ecn", self.case["ecn"])
            # Otherwise, flows whose SYN is lost would not use ECN, and the number of such flows would be
            # random.
            setting("tcp_ecn_fallback", "0")
            setting("tcp_no_metrics_save", "1")
        enter(self.spaces["r"])
        ends = {"rs": "10.9.1", "rd": "10.9.2"}.items()
        batch("ip", *(f"addr add {net}.2/24 dev {device}" for device, net in ends))
        batch("ip", *(f"link set {device} address 02:00:00:00:00:01 arp off up" for device, _ in ends))
        self.queues()

    def queues(self) -> None:
        rate = int(self.case["rate_kbit"]) * FRAME // (FRAME - 14)
        limit, least, most = (int(self.case[key] or 0) for key in ("limit", "min", "max"))
        kind = self.case["queue"].removeprefix("htb_")
        if self.case["queue"] != kind:
            lines = [
                "qdisc add dev rd root handle 1: htb default 1",
                f"class add dev rd parent 1: classid 1:1 htb rate {rate}kbit burst {BUCKET} cburst {BUCKET}",
            ]
        else:
            lines = [
                f"qdisc add dev rd root handle 1: cbs idleslope {rate} sendslope {rate - 10_000_000} "
                "hicredit 30 locredit -3000"
            ]
        if kind == "red" and self.case["burst"]:
            ecn = "ecn" if self.case["ecn"] == "1" else ""
            lines.append(
                f"qdisc add dev rd parent 1:1 handle 2: red limit {limit * FRAME} min {least * FRAME} "
                f"max {most * FRAME} avpkt {FRAME} burst {self.case['burst']} bandwidth {rate}kbit "
                f"probability {self.case['probability']} {ecn}"
            )
        elif kind == "pfifo":
            lines.append(f"qdisc add dev rd parent 1:1 handle 2: pfifo limit {limit}")
        elif kind in ("codel", "pie", "fq_codel"):
            ecn = "ecn" if self.case["ecn"] == "1" else "noecn"
            lines.append(f"qdisc add dev rd parent 1:1 handle 2: {kind} limit {limit} {ecn}")
        elif kind == "cake":
            lines.append(f"qdisc add dev rd parent 1:1 handle 2: cake unlimited besteffort {self.isolation}")
        lines.append(f"qdisc add dev rs root handle 1: prio bands 16 priomap {'0 ' * 16}")
        for number, (rtt, _) in enumerate(self.scene):
            lines.append(f"qdisc add dev rs parent 1:{number + 1:x} netem delay {round(rtt * 1e6)}us limit 100000")
            lines.append(
                f"filter add dev rs parent 1: protocol ip prio 1 u32 match ip sport {PORT + number} 0xffff "
                f"flowid 1:{number + 1:x}"
            )
        batch("tc", *lines)
        if kind == "red" and not self.case["burst"]:
            add_step("rd", limit * FRAME, least * FRAME)
        elif kind == "dualpi2":  # tc does not know it before iproute2 6.16
            dualpi2.Discipline(socket.if_nametoindex("rd"), f"limit={limit}").close()

    def listen(self) -> list[socket.socket]:
        enter(self.spaces["d"])
        listeners = []
        for number in range(self.flows):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 * WINDOW)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, WINDOW)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion(number))
            listener.bind((f"10.9.2.{self.host(number)}", PORT + number))
            listener.listen()
            listener.setblocking(False)
            listeners.append(listener)
        enter(self.spaces["s"])
        return listeners

    def connect(self, number: int) -> socket.socket:
        sender = socket.socket()
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 * WINDOW)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion(number))
        sender.setblocking(False)
        if self.host(number) != 1:
            sender.bind((f"10.9.1.{self.host(number)}", 0))
        try:
            sender.connect((f"10.9.2.{self.host(number)}", PORT + number))
        except BlockingIOError:
            pass
        return sender

    def write(self) -> None:
        """Write enough at each sender for full segments, but never fill a buffer: a full one makes TCP set
        PSH.
        """
        for sender in self.senders:
            try:
                while struct.unpack("i", fcntl.ioctl(sender, SIOCOUTQNSD, bytes(4)))[0] < WINDOW // 2:
                    sender.send(self.data, socket.MSG_MORE)
            except (BlockingIOError, BrokenPipeError):
                pass

    def read(self) -> None:
        """Accept connections at the receivers, and read the data that have arrived."""
        for number, listener in enumerate(self.listeners):
            try:
                if self.peers[number] is None:
                    self.peers[number], _ = listener.accept()
                    self.peers[number].setblocking(False)
                while more := self.peers[number].recv_into(self.waste, len(self.waste), socket.MSG_TRUNC):
                    self.received[number] += more
            except BlockingIOError:
                pass

    def run(self) -> dict[str, float]:
        """Run the case, and return the figures for the measured interval."""
        self.network()
        enter(self.spaces["r"])
        queue = Queue(self.case["queue"].removeprefix("htb_"))
        self.listeners = self.listen()
        self.peers, self.received, self.senders = [None] * self.flows, [0] * self.flows, []
        self.waste, self.data = bytearray(1 << 20), bytes(64 * SEGMENT)
        due = sorted((start, number) for number, (_, start) in enumerate(self.scene))
        begin, warmup = time.monotonic(), float(self.case["warmup_s"])
        end, before, waiting, looks = warmup + float(self.case["measured_s"]), None, 0, 0
        while (now := time.monotonic() - begin) < end:
            while due and due[0][0] <= now:
                self.senders.append(self.connect(due.pop(0)[1]))
            self.step(now)
            self.read()
            self.write()
            state = queue.read()
            if now >= warmup:
                before = before or (state, list(self.received), timeouts(), now)
                waiting, looks = waiting + state[0], looks + 1
            self.wait(begin + now + STEP_S)
        spent = time.monotonic() - begin - before[3]
        after = (queue.read(), list(self.received), timeouts())
        share = [new - old for new, old in zip(after[1], before[1], strict=True)]
        figures = {
            "goodput_mbit": sum(share) * 8e-6 / spent,
            "mean_queue": waiting / looks,
            "dropped": after[0][1] - before[0][1],
            "marked": after[0][2] - before[0][2],
            "timeouts": after[2] - before[2],
            **self.shares(share),
        }
        self.close(queue)
        return figures

    def wait(self, until: float) -> None:
        """Wait until this time, and read meanwhile whatever arrives. Otherwise, Linux 7.3 would acknowledge data only when
        the application reads it, and all kernels would do so with segments that have PSH.
        """
        while (left := until - time.monotonic()) > 0:
            if select.select([*self.listeners, *filter(None, self.peers)], [], [], left)[0]:
                self.read()

    def step(self, now: float) -> None:
        """Do what is due at this time of the run, in seconds, in the namespace of the senders."""

    def shares(self, share: list[int]) -> dict[str, float]:
        """Return figures about the bytes of each flow."""
        return {"least_share": min(share) * self.flows / sum(share) if sum(share) else math.nan}

    def close(self, queue: Queue) -> None:
        for file in (*self.senders, *self.listeners, *filter(None, self.peers), queue.netlink):
            file.close()
        enter(self.spaces["r"])
        batch("ip", "link del rs", "link del rd")
        for space in self.spaces.values():
            os.close(space)


def inside(cases: str, directory: str, names: list[str], run_of=Run) -> None:
    """Run the cases in the kernel that was booted for them."""
    precise()
    # The limits are in pages. With the default limits and many flows, the windows shrink to four segments.
    setting("tcp_mem", "100000 200000 300000")
    table = chosen(cases, names)
    with open(os.path.join(directory, "runs.csv"), "a") as file:
        for seed in range(1, max(int(case["runs"]) for case in table) + 1):
            for case in (case for case in table if seed <= int(case["runs"])):
                figures = run_of(case, seed).run()
                values = ",".join(f"{value:.6g}" for value in figures.values())
                file.write(f"{case['case']},{seed},{values}\n")
                file.flush()
                print(case["case"], seed, values, flush=True)
    print(os.uname().release)


def main(program: str, shares: str, run_of=Run) -> None:
    """Run `program` as it was called: KERNEL CASES DIRECTORY [CASE ...], or --inside, in the kernel that it has
    booted; `run_of` makes the run of a case, whose own figures are in the columns `shares`."""
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3], sys.argv[4:], run_of)
    else:
        os.makedirs(sys.argv[3], exist_ok=True)
        with open(os.path.join(sys.argv[3], "runs.csv"), "w") as file:
            file.write(f"case,seed,goodput_mbit,mean_queue,dropped,marked,timeouts,{shares}\n")
        sys.exit(boot(sys.argv[1], program, sys.argv[2], sys.argv[3], sys.argv[4:]))


if __name__ == "__main__":
    main(__file__, "least_share")
