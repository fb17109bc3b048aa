"""Record the decisions of Linux's RED after idle periods: the fate of several thousand datagrams, as CSV.

    sudo python3 red_idle.py DIRECTORY

This command needs root, iproute2, and Linux with sch_red, sch_cbs, veth, network namespaces and tracefs;
nothing outside its two namespaces is changed. It is best run where no packet or timer can be late: in User
Mode Linux (Debian's package `user-mode-linux`, or a kernel built with ARCH=um) booted with
`time-travel=inf-cpu`.

Bursts of UDP datagrams enter a RED queue whose thresholds are one byte apart, so that the average alone
decides, with no random draws. RED is behind cbs: unlike htb, it polls RED's empty queue when the link becomes
idle. Trace points in the kernel show when a packet was queued, dropped or sent, and when the empty queue was
polled.
"""

import os
import random
import re
import socket
import struct
import subprocess
import sys
import time

PACKET = 1000  # bytes, including 14 of Ethernet, 20 of IP and 8 of UDP
SCENES = {
    "slow": {"rate_kbit": 10_000, "min": 10_000, "burst": 30, "longest": 160, "at_once": 1, "seed": 1},
    "fast": {"rate_kbit": 50_000, "min": 20_000, "burst": 30, "longest": 240, "at_once": 4, "seed": 2},
    "coarse": {"rate_kbit": 2_000, "min": 5_000, "burst": 8, "longest": 80, "at_once": 1, "seed": 3},
}
GAPS_S = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0, 8.0, 12.0)
BURSTS = 32
TRACE = "/sys/kernel/tracing"
ENQUEUE, DEQUEUE, DROP = POINTS = ("qdisc/qdisc_enqueue", "qdisc/qdisc_dequeue", "skb/kfree_skb")


def sh(command: str) -> str:
    """Run `command` in a shell, and return its output."""
    return subprocess.run(command, shell=True, check=True, text=True, capture_output=True).stdout


def write(path: str, text: str) -> None:
    """Write a setting of the tracer to its file."""
    with open(path, "w") as file:
        file.write(text)


def send(scene: dict, draws: random.Random) -> None:
    """Offer bursts of datagrams at one and a half to three times the rate, with idle periods between them."""
    packet_s = PACKET * 8 / (scene["rate_kbit"] * 1000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        gaps = list(GAPS_S) * (BURSTS // len(GAPS_S))
        draws.shuffle(gaps)
        for gap in gaps:
            step = packet_s / draws.uniform(1.5, 3.0)
            for number in range(draws.randrange(scene["longest"] // 4, scene["longest"])):
                s.sendto(bytes(PACKET - 42), ("10.9.0.2", 9))
                if number % scene["at_once"] == 0:
                    time.sleep(scene["at_once"] * step * draws.uniform(0.5, 1.5))
            # Wait until the queue is empty, and then for the idle period.
            time.sleep(3 * scene["min"] / PACKET * packet_s + gap)


def fields(point: str) -> tuple[int, dict[str, tuple[int, int]], str]:
    """Return a trace point's number, the offsets and sizes of its fields, and the text of its format file."""
    with open(f"{TRACE}/events/{point}/format") as file:
        text = file.read()
    found = re.findall(r"field:[^;]*?(\w+);\toffset:(\d+);\tsize:(\d+);", text)
    number = int(re.search(r"ID: (\d+)", text).group(1))
    return number, {name: (int(offset), int(size)) for name, offset, size in found}, text


def records(raw: bytes, page: int):
    """Yield the records of a ring buffer as (nanoseconds, bytes); the times in the file `trace` are exact
    only to microseconds."""
    for at in range(0, len(raw), page):
        now, commit = struct.unpack_from("QQ", raw, at)
        place, end = at + 16, at + 16 + (commit & 0xFFFFF)
        while place < end:
            (head,) = struct.unpack_from("I", raw, place)
            kind, delta = head & 31, head >> 5
            (word,) = struct.unpack_from("I", raw, place + 4)
            if kind == 30:
                now += delta + (word << 27)
                place += 8
            elif kind == 31:
                now = (now & ~((1 << 59) - 1)) | (delta + (word << 27))
                place += 8
            elif kind == 29:
                if delta == 0:
                    break
                place += 4 + word
            else:
                now += delta
                begin, size = (place + 8, word - 4) if kind == 0 else (place + 4, 4 * kind)
                yield now, raw[begin : begin + size]
                place = begin + size


def events(raw: bytes, page: int, ifindex: int, packet_ns: float) -> list[tuple[int, str]]:
    """Return the queue's history as (nanoseconds, `queued`, `dropped`, `sent` or `idle`)."""
    points = {number: (point, at, text) for point in POINTS for number, at, text in [fields(point)]}

    def value(record: bytes, place: tuple[int, int]) -> int:
        return int.from_bytes(record[place[0] : place[0] + place[1]], sys.byteorder)

    rows, waiting, last_sent = [], 0, 0
    for at, record in records(raw, page):
        point, places, text = points.get(value(record, (0, 2)), (None, {}, ""))
        task = value(record, (4, 4))
        if point == DROP:
            if value(record, places["reason"]) == int(re.search(r'(\d+), "QDISC_DROP"', text).group(1)):
                # In the same call, the kernel first runs the queue and then frees the packets that RED
                # dropped.
                place = len(rows)
                while place and rows[place - 1][2] == task and rows[place - 1][1] in ("idle", "sent"):
                    if at - rows[place - 1][0] > 2000:
                        break
                    place -= 1
                rows.insert(place, (rows[place][0] if place < len(rows) else at, "dropped", task))
        elif point is None or value(record, places["ifindex"]) != ifindex:
            continue
        elif point == ENQUEUE:
            rows.append((at, "queued", task))
            waiting += 1
        elif value(record, places["packets"]):
            rows.append((at, "sent", task))
            waiting -= 1
            last_sent = at
        elif waiting == 0 and at - last_sent >= 0.99 * packet_ns:
            # For one packet time after a departure, cbs has negative credit and does not poll RED.
            rows.append((at, "idle", task))
    return [row[:2] for row in rows]


def run(name: str, scene: dict, directory: str) -> None:
    """Run one scene, and write its events to DIRECTORY/NAME.csv."""
    sh("ip netns add ra; ip netns add rb; ip link add va type veth peer name vb")
    sh("ip link set va netns ra; ip link set vb netns rb")
    for ns, dev, host in (("ra", "va", 1), ("rb", "vb", 2)):
        sh(f"ip netns exec {ns} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 || true")
        sh(f"ip -n {ns} addr add 10.9.0.{host}/24 dev {dev}; ip -n {ns} link set {dev} up arp off")
    rate = scene["rate_kbit"]
    sh(
        f"ip netns exec ra tc qdisc add dev va root handle 1: cbs idleslope {rate} sendslope {rate - 10_000_000} "
        "hicredit 30 locredit -3000"
    )
    sh(
        f"ip netns exec ra tc qdisc add dev va parent 1:1 handle 2: red limit 4000000 min {scene['min']} "
        f"max {scene['min'] + 1} avpkt {PACKET} burst {scene['burst']} bandwidth {rate}kbit probability 0.02"
    )
    print(name, sh("ip netns exec ra tc -d qdisc show dev va"), flush=True)
    ifindex = sh("ip -n ra -o link show va").split(":")[0]
    write(f"{TRACE}/trace", "")
    write(f"{TRACE}/tracing_on", "1")
    ns = os.open("/run/netns/ra", os.O_RDONLY)
    if os.fork() == 0:
        import ctypes

        ctypes.CDLL(None).setns(ns, 0)
        send(scene, random.Random(scene["seed"]))
        os._exit(0)
    os.wait()
    os.close(ns)
    time.sleep(1)
    write(f"{TRACE}/tracing_on", "0")
    page = os.sysconf("SC_PAGE_SIZE")
    with open(f"{TRACE}/per_cpu/cpu0/trace_pipe_raw", "rb", buffering=0) as file:
        os.set_blocking(file.fileno(), False)
        raw = b""
        while part := file.read(page):
            raw += part.ljust(page, b"\0")
    print(sh("ip netns exec ra tc -s qdisc show dev va"), flush=True)
    rows = events(raw, page, int(ifindex), PACKET * 8e6 / rate)
    begin = rows[0][0]
    with open(os.path.join(directory, name + ".csv"), "w") as file:
        file.write("time_ns,event\n")
        file.writelines(f"{at - begin},{event}\n" for at, event in rows)
    sh("ip netns del ra; ip netns del rb")


def main() -> None:
    """Run all scenes."""
    directory = sys.argv[1]
    if not os.path.exists(f"{TRACE}/trace"):
        sh(f"mount -t tracefs none {TRACE}")
    write(f"{TRACE}/trace_clock", "mono")
    write(f"{TRACE}/buffer_size_kb", "16384")
    for point in POINTS:
        write(f"{TRACE}/events/{point}/enable", "1")
    for name, scene in SCENES.items():
        run(name, scene, directory)
    print(sh("uname -r; tc -V"))


if __name__ == "__main__":
    main()
