"""Record when packets leave Linux's CAKE while tc changes its bandwidth, as CSV.

    python3 cake_rate.py KERNEL DIRECTORY

This command boots KERNEL in virtual time and writes DIRECTORY/departures.csv: 150 frames of 1514 bytes are sent
at once, and the bandwidth changes at the instants in STEPS. A row is either a departure, or a change with its
rate; times count from the first departure.
"""

import os
import socket
import struct
import subprocess
import sys
import time

from single_flow import boot

STEPS = [(50, 4000), (120, 20_000), (121, 1000), (160, 8000)]  # ms after the last frame is sent, kbit/s
FRAMES, SIZE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 150, 1514, 33, 35


def run(*words: str) -> None:
    """Run a command."""
    subprocess.run(words, check=True)


def frame() -> bytes:
    """Return an Ethernet frame with a UDP packet."""
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    ip = struct.pack("!BBHHHBBH8s", 0x45, 0, SIZE - 14, 0, 0, 64, 17, 0, ends)
    udp = struct.pack("!HHHH", 1000, 2000, SIZE - 34, 0)
    return (b"\xff" * 6 + b"\x02\0\0\0\0\1\x08\0" + ip + udp).ljust(SIZE, b"\0")


def inside(directory: str) -> None:
    """Send, change and receive in the kernel that was booted for it."""
    run("ip", "link", "add", "name", "va", "type", "veth", "peer", "name", "vb")
    for end in ("va", "vb"):
        run("ip", "link", "set", end, "up")
    time.sleep(1)
    given = "besteffort flowblind rtt 1000000ms overhead 0".split()
    run("tc", "qdisc", "add", "dev", "va", "root", "cake", "bandwidth", "10mbit", *given)
    out, back = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, of) for of in (0, socket.htons(3)))
    out.bind(("va", 0))
    back.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    back.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 50_000_000)
    back.bind(("vb", 0))
    back.setblocking(False)
    for _ in range(FRAMES):
        out.send(frame())
    begun, rows = time.time_ns(), []
    for at_ms, rate in STEPS:
        time.sleep(max(begun + at_ms * 1_000_000 - time.time_ns(), 0) / 1e9)
        run("tc", "qdisc", "change", "dev", "va", "root", "cake", "bandwidth", f"{rate}kbit")
        rows.append((time.time_ns(), rate))
    time.sleep(3)
    while True:
        try:
            data, about, _, _ = back.recvmsg(2000, 200)
        except BlockingIOError:
            break
        if len(data) == SIZE and data[12:14] == b"\x08\0":
            seconds, rest = struct.unpack("qq", about[0][2][:16])
            rows.append((seconds * 10**9 + rest, 0))
    first = min(at for at, rate in rows if not rate)
    with open(os.path.join(directory, "departures.csv"), "w") as file:
        file.write("t_ns,changes_to_kbit\n")
        file.writelines(f"{at - first},{rate or ''}\n" for at, rate in sorted(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3])
    else:
        os.makedirs(sys.argv[2], exist_ok=True)
        sys.exit(boot(sys.argv[1], __file__, sys.argv[2], sys.argv[2], []))
