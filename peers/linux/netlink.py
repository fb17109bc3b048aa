"""Queue disciplines through netlink: those and their options that tc does not know, and statistics without starting
a program.
"""

import os
import socket
import struct

RTM_NEWQDISC, RTM_GETQDISC, NETLINK_ROUTE = 36, 38, 0
NLM_F_REQUEST_DUMP, NLM_F_CREATE_EXCL_ACK = 0x301, 0x605
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_QUEUE, TCA_STATS_APP = 3, 4
NLA_F_NESTED = 0x8000
TCMSG = "=BxxxiIII"


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(raw: bytes) -> dict[int, bytes]:
    """Return netlink attributes, keyed by their types."""
    found, at = {}, 0
    while at + 4 <= len(raw):
        length, kind = struct.unpack_from("=HH", raw, at)
        found[kind & 0x3FFF] = raw[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


class Netlink:
    """A socket for questions about queue disciplines."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)

    def close(self) -> None:
        self.socket.close()

    def ask(self, kind: int, flags: int, body: bytes) -> list[bytes]:
        """Send a request, and return the bodies of the answers; raise OSError if the kernel refuses it."""
        self.socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        answers = []
        while True:
            raw, at = self.socket.recv(1 << 16), 0
            while at < len(raw):
                length, kind = struct.unpack_from("=IH", raw, at)
                if kind == NLMSG_ERROR:
                    (error,) = struct.unpack_from("=i", raw, at + 16)
                    if error:
                        raise OSError(-error, os.strerror(-error))
                if kind in (NLMSG_ERROR, NLMSG_DONE):
                    return answers
                answers.append(raw[at + 16 : at + length])
                at += (length + 3) & ~3

    def add(self, ifindex: int, discipline: str, options: bytes, flags: int = 0) -> None:
        """Add a queue discipline with handle 2: below class 1:1 of a device."""
        body = struct.pack(TCMSG, 0, ifindex, 2 << 16, 1 << 16 | 1, 0)
        body += attribute(TCA_KIND, discipline.encode() + b"\0") + attribute(TCA_OPTIONS | flags, options)
        self.ask(RTM_NEWQDISC, NLM_F_CREATE_EXCL_ACK, body)

    def disciplines(self):
        """Yield the index of its device and the attributes of each queue discipline."""
        for answer in self.ask(RTM_GETQDISC, NLM_F_REQUEST_DUMP, struct.pack(TCMSG, 0, 0, 0, 0, 0)):
            yield struct.unpack_from("=i", answer, 4)[0], attributes(answer[20:])

    def described(self, discipline: str) -> dict[int, bytes]:
        """Return the attributes of the queue discipline of this kind."""
        for _, found in self.disciplines():
            if found.get(TCA_KIND) == discipline.encode() + b"\0":
                return found
        raise LookupError(f"no {discipline}")

    def statistics(self, discipline: str) -> dict[int, bytes]:
        """Return the statistics of the queue discipline of this kind, by their types (TCA_STATS_...)."""
        return attributes(self.described(discipline)[TCA_STATS2])
