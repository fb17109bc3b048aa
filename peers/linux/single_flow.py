"""Record the segments that Linux's TCP sends through a small network with chosen losses and marks.

    python3 single_flow.py KERNEL CASES DIRECTORY [CASE ...]

This command boots KERNEL, a Linux built as an ordinary process (User Mode Linux, `ARCH=um`). In it, the
command runs the cases of the table CASES (CSV; `vectors/linux-single-flow/README.md` explains its columns),
either all of them or only the named ones, and writes DIRECTORY/CASE.csv. With CONFIG_UML_TIME_TRAVEL_SUPPORT,
the kernel runs in virtual time: nothing is late, and a case without randomness repeats exactly. Debian's
package `user-mode-linux` has a kernel without that option; its times are coarser. The root file system of the
kernel is that of this machine, read-only. This program needs root, iproute2, and python3 in /usr/bin.

One connection runs between two network namespaces, each with a TUN device. This program is the network between the
devices: two links in series in each direction, with losses at the entrance.
"""

import csv
import ctypes
import heapq
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

# Each link's rate in bit/s and delay in ns; the reverse direction has the links in the opposite order.
LINKS = ((100_000_000, 10_000_000), (10_000_000, 20_000_000))
PORT, HEADER = 5001, 20
SENDER, RECEIVER = "10.9.0.1", "10.9.0.2"
FLAGS = ((0x01, "F"), (0x02, "S"), (0x04, "R"), (0x08, "P"), (0x10, "A"), (0x40, "E"), (0x80, "C"))
CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x4000_0000, 0x4004_54CA, 1, 0x1000
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
SYSCTLS = {"sack": "tcp_sack", "timestamps": "tcp_timestamps", "rack": "tcp_recovery", "tlp": "tcp_early_retrans"}
SYSCTLS |= {"frto": "tcp_frto", "ecn": "tcp_ecn", "dsack": "tcp_dsack", "ack_compression": "tcp_comp_sack_nr"}
libc = ctypes.CDLL(None, use_errno=True)


def boot(kernel: str, program: str, cases: str, directory: str, names: list[str]) -> int:
    """Boot the kernel and run `program` in it, with the arguments `--inside CASES DIRECTORY NAME ...`."""
    work = tempfile.mkdtemp(prefix="linux-")
    os.makedirs(directory, exist_ok=True)
    init = os.path.join(work, "init")
    inside = [os.path.abspath(program), "--inside", os.path.abspath(cases), "/run/out", *names]
    with open(init, "w") as file:
        file.write(
            "#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C\n"
            "mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /run; mkdir /run/out /run/netns\n"
            f"mount -t hostfs -o {os.path.abspath(directory)} o /run/out\n"
            f"mount -t hostfs -o {work} w /mnt\n"
            f"/usr/bin/python3 {' '.join(inside)} > /mnt/log 2>&1; echo rc=$? >> /mnt/log\n"
            "sync; echo o > /proc/sysrq-trigger; sleep 9\n"
        )
    os.chmod(init, 0o755)
    command = [os.path.abspath(kernel), "mem=256M", "time-travel=inf-cpu", "rootfstype=hostfs", "rootflags=/", "ro"]
    command += [f"init={init}", "con=null", "con0=null,fd:1", "loglevel=4"]
    environment = os.environ | {"TMPDIR": "/dev/shm"}
    with open(os.path.join(work, "console"), "w") as console:
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console, check=False)
    try:
        with open(os.path.join(work, "log")) as file:
            log = file.read()
    except OSError:
        log = "the kernel did not run this program:\n"
        with open(os.path.join(work, "console")) as file:
            log += file.read()
    print(log)
    shutil.rmtree(work)
    return 0 if log.rstrip().endswith("rc=0") else 1


class Link:
    """A FIFO queue, a rate and a delay."""

    def __init__(self, rate: int, delay: int) -> None:
        self.rate, self.delay, self.free = rate, delay, 0

    def carry(self, now: int, size: int) -> int:
        self.free = max(self.free, now) + size * 8_000_000_000 // self.rate
        return self.free + self.delay


class Faults:
    """The packets to lose or mark in one direction, from a list of `segment` or `segment:copy` entries."""

    def __init__(self, text: str, mss: int) -> None:
        pairs = (word.partition(":") for word in text.split())
        self.listed = {(int(number), int(nth or 1)) for number, _, nth in pairs}
        self.mss, self.seen = mss, {}

    def hits(self, offset: int) -> bool:
        nth = self.seen[offset] = self.seen.get(offset, 0) + 1
        return (offset // self.mss, nth) in self.listed


class Timer:
    """A timer for absolute times, with a descriptor for `poll`."""

    def __init__(self) -> None:
        self.fd = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK)

    def set(self, at: int) -> None:
        value = struct.pack("=qqqq", 0, 0, *divmod(at, 1_000_000_000))
        assert libc.timerfd_settime(self.fd, 1, value, None) == 0


def namespace(name: str, address: str, peer: str, offload: bool = False) -> tuple[int, int]:
    """Create a network namespace with a TUN device, and return both as file descriptors. With `offload`, TCP hands
    several segments down at once."""
    assert libc.unshare(CLONE_NEWNET) == 0
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    import fcntl

    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    groups = "" if offload else " gso_max_segs 1"
    for command in (f"addr add {address} peer {peer} dev {name}", f"link set {name} up txqueuelen 10000{groups}"):
        subprocess.run(["ip", *command.split()], check=True)
    return os.open("/proc/self/ns/net", os.O_RDONLY), tun


def enter(space: int) -> None:
    assert libc.setns(space, CLONE_NEWNET) == 0


def batch(program: str, *lines: str) -> None:
    """Run all lines in one call of `ip` or `tc`, because this kernel starts programs slowly; if one fails,
    raise an error."""
    subprocess.run([program, "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


def setting(name: str, value: str) -> None:
    """Set a value of `net.ipv4`; later kernels have no switch for RACK."""
    path = f"/proc/sys/net/ipv4/{name}"
    if name == "tcp_recovery" and not os.path.exists(path):
        return
    with open(path, "w") as file:
        file.write(value)


def mark(packet: bytes) -> bytes:
    """Return the packet with CE set and the header's checksum recomputed, or unchanged if it is not ECN-capable."""
    if packet[1] & 3 == 0:
        return packet
    head = bytearray(packet[:HEADER])
    head[1] |= 3
    head[10:12] = b"\0\0"
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head[10:12] = struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF)
    return bytes(head) + packet[HEADER:]


def without_push(packet: bytes) -> bytes:
    """Return the packet with PSH cleared: if PSH were set, a receiver whose application reads immediately
    would not delay the acknowledgment."""
    at = HEADER + 13
    if not packet[at] & 8:
        return packet
    (total,) = struct.unpack_from(">H", packet, HEADER + 16)
    total = total + 8
    total = struct.pack(">H", (total & 0xFFFF) + (total >> 16))
    return packet[:at] + bytes([packet[at] & ~8]) + packet[at + 1 : HEADER + 16] + total + packet[HEADER + 18 :]


class Packet:
    """The fields of a TCP header."""

    def __init__(self, raw: bytes) -> None:
        self.seq, self.ack, offset, flags, self.window = struct.unpack_from(">IIBBH", raw, HEADER + 4)
        data = HEADER + (offset >> 4) * 4
        self.len = len(raw) - data
        self.flags = "".join(letter for bit, letter in FLAGS if flags & bit)
        self.ecn = raw[1] & 3
        self.sack = []
        options, place = raw[HEADER + 20 : data], 0
        while place < len(options) and options[place]:
            if options[place] == 1:
                place += 1
                continue
            if options[place] == 5:
                numbers = struct.unpack_from(f">{(options[place + 1] - 2) // 4}I", options, place + 2)
                self.sack = list(zip(numbers[::2], numbers[1::2], strict=True))
            place += options[place + 1]


class Run:
    """One case."""

    def __init__(self, case: dict[str, str]) -> None:
        self.case = case
        self.timestamps = int(case["timestamps"])
        self.offload = case.get("offload") == "1"
        self.mss = 1448 if self.timestamps else 1460
        self.drop, self.mark = Faults(case["drop"], self.mss), Faults(case["mark"], self.mss)
        pairs = (word.split(":") for word in case["late"].split())
        self.late = {int(number) * self.mss: int(ms) * 1_000_000 for number, ms in pairs}
        self.drop_ack = {int(n) for n in case["drop_ack"].split()}
        there = [Link(*link) for link in LINKS]
        back = [Link(*link) for link in reversed(LINKS)]
        self.links, self.acks, self.rows = (there, back), 0, []
        self.on_way: list[tuple[int, int, int, bytes]] = []
        self.serial, self.first = 0, [None, None]

    def prepare(self) -> None:
        (self.a, tun_a), (self.b, tun_b) = (
            namespace("ta", SENDER, RECEIVER, self.offload),
            namespace("tb", RECEIVER, SENDER, self.offload),
        )
        self.tuns = (tun_a, tun_b)
        for space in (self.a, self.b):
            enter(space)
            for column, name in SYSCTLS.items():
                setting(name, self.case[column])
            setting("tcp_no_metrics_save", "1")
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, int(self.case["receive_buffer"]))
        self.listener.bind((RECEIVER, PORT))
        self.listener.listen()
        self.listener.setblocking(False)
        enter(self.a)
        self.sender = socket.socket()
        self.sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 23)
        if self.case["nagle"] == "0":
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for side in (self.sender, self.listener):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.case["congestion"].encode())
        self.sender.setblocking(False)
        self.peer = None

    def writes(self) -> list[tuple[int, int]]:
        """Return the application's writes as (nanoseconds since the connection opened, bytes); the case states their
        sizes in segments or, with a `B`, in bytes."""
        found = []
        for word in self.case["writes"].split():
            at, _, much = word.partition(":")
            size = int(much[:-1]) if much.endswith("B") else int(much) * self.mss
            found.append((int(float(at) * 1e9), size))
        return found

    def record(self, now: int, way: int, raw: bytes) -> bool:
        """Record a segment when it is sent; return whether the network loses it."""
        packet = Packet(raw)
        if self.first[way] is None:
            self.first[way] = packet.seq + ("S" in packet.flags)
        seq = (packet.seq - self.first[way]) & 0xFFFF_FFFF
        other = self.first[1 - way] or 0
        ack = (packet.ack - other) & 0xFFFF_FFFF if "A" in packet.flags else 0
        blocks = " ".join(f"{(x - other) & 0xFFFFFFFF}-{(y - other) & 0xFFFFFFFF}" for x, y in packet.sack)
        flags = packet.flags if self.offload else packet.flags.replace("P", "")
        row = (now, "sr"[way], seq if packet.len else "", packet.len, ack, flags, packet.ecn, blocks)
        if "S" not in packet.flags:
            self.rows.append(row)
        if way == 0:
            return packet.len > 0 and self.drop.hits(seq)
        if "S" in packet.flags:
            return False
        self.acks += 1
        return self.acks - 1 in self.drop_ack

    def carry(self, now: int, way: int, raw: bytes) -> None:
        lost = self.record(now, way, raw)
        if way == 0 and self.rows and self.rows[-1][3] and self.mark.hits(self.rows[-1][2]):
            raw = mark(raw)
        if not self.offload:
            raw = without_push(raw)
        if not lost:
            for link in self.links[way]:
                now = link.carry(now, len(raw))
            if way == 0 and self.rows and self.rows[-1][3]:
                now += self.late.pop(self.rows[-1][2], 0)
            heapq.heappush(self.on_way, (now, self.serial, 1 - way, raw))
            self.serial += 1

    def deliver(self, now: int, to: int, raw: bytes) -> None:
        """Deliver a packet to a host at the time `now`."""
        os.write(self.tuns[to], raw)

    def receive(self) -> None:
        if self.peer is None:
            try:
                self.peer, _ = self.listener.accept()
            except BlockingIOError:
                return
            self.peer.setblocking(False)
            self.poll.register(self.peer, select.POLLIN)
        try:
            while self.peer.recv(1 << 20):
                pass
        except BlockingIOError:
            pass

    def run(self) -> None:
        self.prepare()
        self.poll, timer = select.poll(), Timer()
        for readable in (*self.tuns, self.listener, timer.fd):
            self.poll.register(readable, select.POLLIN)
        begin = time.monotonic_ns()
        writes = [(begin + at, size) for at, size in self.writes()]
        end = begin + int(float(self.case["end_s"]) * 1e9)
        opened = False
        try:
            self.sender.connect((RECEIVER, PORT))
        except BlockingIOError:
            pass
        while (now := time.monotonic_ns()) < end:
            for way, tun in enumerate(self.tuns):
                while True:
                    try:
                        raw = os.read(tun, 2000)
                    except BlockingIOError:
                        break
                    if raw[0] >> 4 == 4 and raw[9] == 6:
                        self.carry(now, way, raw)
            self.receive()
            due = [self.on_way[0][0]] if self.on_way else []
            if due and due[0] <= now:
                _, _, to, raw = heapq.heappop(self.on_way)
                self.deliver(now, to, raw)
                continue
            if not opened and self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1:
                opened = True
                writes = [(now + at - begin, size) for at, size in writes]
            if opened and writes and writes[0][0] <= now:
                size = writes.pop(0)[1]
                assert self.sender.send(bytes(size)) == size
                continue
            timer.set(min(due + [at for at, _ in writes[:1]] + [end]) if opened else min(due + [end]))
            self.poll.poll()
        for file in (self.sender, self.listener, self.peer):
            file.close()
        for number in (*self.tuns, self.a, self.b, timer.fd):
            os.close(number)

    def save(self, path: str) -> None:
        begin = next(row[0] for row in self.rows if row[3])
        with open(path, "w") as file:
            file.write("time_ns,from,sequence,length,ack,flags,ecn,sack\n")
            for at, *rest in self.rows:
                file.write(",".join(map(str, (at - begin, *rest))) + "\n")


def chosen(cases: str, names: list[str]) -> list[dict[str, str]]:
    """Return the rows of a table of cases, or only those with these names."""
    with open(cases) as file:
        return [case for case in csv.DictReader(file) if not names or case["case"] in names]


def precise() -> None:
    """Make timers precise."""
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: a nanosecond


def inside(cases: str, directory: str, names: list[str], run_of) -> None:
    """Run the cases in the kernel that was booted for them."""
    precise()
    for case in chosen(cases, names):
        run = run_of(case)
        run.run()
        run.save(os.path.join(directory, case["case"] + ".csv"))
        print(case["case"], len(run.rows), flush=True)
    print(os.uname().release)


def main(program: str, run_of) -> None:
    """Run `program` as it was called: KERNEL CASES DIRECTORY [CASE ...], or --inside, in the kernel that it has
    booted; `run_of` makes the run of a case."""
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3], sys.argv[4:], run_of)
    else:
        sys.exit(boot(sys.argv[1], program, sys.argv[2], sys.argv[3], sys.argv[4:]))


if __name__ == "__main__":
    main(__file__, Run)
