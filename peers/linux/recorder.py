"""What the programs have in common that record a queue discipline: two hosts, the tracer, and the loop over cases.

The discipline is behind a shaper at the sending end of a link between two network namespaces. Trace points give
the instants at which packets pass it; the receiver tells which of them arrived, and with which ECN field.
"""

import csv
import os
import re
import socket
import struct
import sys

from red_idle import TRACE, write
from single_flow import CLONE_NEWNET, SO_RCVBUFFORCE, SO_SNDBUFFORCE, batch, boot, enter, libc, precise

HEADERS = 42  # Ethernet, IP, UDP; the links' rates include all these headers
RATE_KBIT = 10_000
PACED = (
    "qdisc add dev va root handle 1: htb default 1",
    f"class add dev va parent 1: classid 1:1 htb rate {RATE_KBIT}kbit burst 15 cburst 15",
)
"""tc's lines for a link of this rate; a discipline below class 1:1 is polled only while packets are waiting."""
PAGE = os.sysconf("SC_PAGE_SIZE")
SENDER, RECEIVER, PORT = ("10.9.0.1",), ("10.9.0.2",), 9


def network(*lines: str, sender=SENDER, receiver=RECEIVER) -> tuple[int, int, int]:
    """Create two namespaces, joined by a link to whose sending end `lines` of tc apply, and return both namespaces
    and the index of the sender's interface."""
    spaces = []
    for name in ("va", "vb"):
        assert libc.unshare(CLONE_NEWNET) == 0
        if os.path.exists("/proc/sys/net/ipv6"):
            write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        spaces.append(os.open("/proc/self/ns/net", os.O_RDONLY))
        if name == "vb":
            batch("ip", f"link add vb type veth peer name va netns /proc/{os.getpid()}/fd/{spaces[0]}")
            join("vb", receiver)
    enter(spaces[0])
    join("va", sender)
    batch("tc", *lines)
    return spaces[0], spaces[1], socket.if_nametoindex("va")


def join(device: str, addresses) -> None:
    """Give a device its addresses, and one link-layer address that both ends have."""
    batch("ip", *(f"addr add {address}/24 dev {device}" for address in addresses))
    batch("ip", f"link set {device} up arp off address 02:00:00:00:00:01")


def listening(space: int, back: int) -> socket.socket:
    """Return a socket in a namespace that keeps all packets with their TOS octets; then enter `back`."""
    enter(space)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    receiver.bind(("", PORT))
    receiver.setblocking(False)
    enter(back)
    return receiver


def sending(tos: int, address: str = "", port: int = 0) -> socket.socket:
    """Return a socket that sends packets with this TOS octet, from this address and port if they are given."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 25)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    if port:
        # The sockets of a flow share a port, so that the TOS octet does not divide the flow.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((address, port))
    return made


def payload(number: int, size: int) -> bytes:
    """Return the data of a packet of this size on the link, which begin with its number."""
    return struct.pack("=I", number) + bytes(size - HEADERS - 4)


def received(receiver: socket.socket) -> dict[int, int]:
    """Return the ECN field of each packet that arrived, keyed by packet number, in the order of arrival."""
    found = {}
    while True:
        try:
            data, extra, _, _ = receiver.recvmsg(2048, 64)
        except BlockingIOError:
            return found
        (tos,) = [value[0] for level, kind, value in extra if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)]
        found[struct.unpack_from("=I", data)[0]] = tos & 3


def traced(offer):
    """Return what `offer` returns, and the ring buffer of the tracer, which runs meanwhile."""
    write(f"{TRACE}/trace", "")
    write(f"{TRACE}/tracing_on", "1")
    found = offer()
    write(f"{TRACE}/tracing_on", "0")
    raw = b""
    with open(f"{TRACE}/per_cpu/cpu0/trace_pipe_raw", "rb", buffering=0) as file:
        os.set_blocking(file.fileno(), False)
        while part := file.read(PAGE):
            raw += part.ljust(PAGE, b"\0")
    return found, raw


def save(directory: str, name: str, rows) -> None:
    """Write the events of a case."""
    with open(os.path.join(directory, name + ".csv"), "w") as file:
        file.write("time_ns,event,values\n")
        file.writelines(f"{at},{event},{values}\n" for at, event, values in rows)


def inside(directory: str, names: list[str], points, cases, run, tables) -> None:
    """Run the cases in the kernel that was booted for them."""
    precise()
    if not os.path.exists(f"{TRACE}/trace"):
        os.system(f"mount -t tracefs none {TRACE}")
    write(f"{TRACE}/trace_clock", "mono")
    write(f"{TRACE}/buffer_size_kb", "32768")
    for point in points:
        write(f"{TRACE}/events/{point}/enable", "1")
    for table in tables:
        if not names or table.__name__ in names:
            table(directory)
    with open(os.path.join(directory, "cases.csv"), "w") as file:
        rows = None
        for name in names or cases:
            if name in [table.__name__ for table in tables]:
                continue
            row = run(name, directory)
            print(row, flush=True)
            if rows is None:
                rows = csv.DictWriter(file, row)
                rows.writeheader()
            rows.writerow(row)
    print(os.uname().release, re.sub(r"\s+", " ", os.popen("tc -V").read()))


def main(program: str, points, cases, run, tables=()) -> None:
    """Run `program` as it was called: KERNEL OUT [CASE ...], or --inside, in the kernel that it has booted.

    `run` makes a case's file in a directory and returns its row of cases.csv; each of `tables` makes a file.
    """
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3], sys.argv[4:], points, cases, run, tables)
    else:
        sys.exit(boot(sys.argv[1], program, "/dev/null", sys.argv[2], sys.argv[3:]))
