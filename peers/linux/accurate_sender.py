"""Record what Linux's TCP sends, and hears, as a sender with AccECN (RFC 9768), with chosen marks and losses.

    python3 accurate_sender.py KERNEL CASES DIRECTORY [CASE ...]

KERNEL is a Linux from 7.0 on; otherwise, this is used as `single_flow.py`, whose network it shares.
`vectors/linux-accurate-sender/README.md` explains the columns of CASES and of the recordings.
"""

import socket
import struct

from accurate_ecn import AE, CODE_POINTS, CWR, ECE, KINDS, Header
from single_flow import HEADER, Packet, Run, main

# Places in `struct tcp_info`.
CWND, DELIVERED_CE = 80, 196


def summed(raw: bytes) -> bytes:
    """Return the packet with the checksum of its TCP header recomputed."""
    segment = bytearray(raw[HEADER:])
    segment[16:18] = b"\0\0"
    words = raw[12:20] + struct.pack(">HH", 6, len(segment)) + segment + b"\0" * (len(segment) % 2)
    total = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    segment[16:18] = struct.pack(">H", ~total & 0xFFFF)
    return raw[:HEADER] + bytes(segment)


def without_ace(raw: bytes) -> bytes:
    """Return the packet with AE, CWR and ECE cleared."""
    (bits,) = struct.unpack_from(">H", raw, HEADER + 12)
    bits &= ~(AE | CWR | ECE)
    return summed(raw[: HEADER + 12] + struct.pack(">H", bits) + raw[HEADER + 14 :])


def without_option(raw: bytes) -> bytes:
    """Return the packet with its AccECN option overwritten by options that mean nothing."""
    head = bytearray(raw)
    place, end = HEADER + 20, HEADER + (raw[HEADER + 12] >> 4) * 4
    while place < end and raw[place]:
        length = 1 if raw[place] == 1 else raw[place + 1]
        if raw[place] in KINDS:
            head[place : place + length] = b"\1" * length
        place += length
    return summed(bytes(head))


class SenderRun(Run):
    """One case, recorded at the sender: what it sends, what arrives there, and what it then knows."""

    def __init__(self, case: dict[str, str]) -> None:
        super().__init__(case)
        # The option, which each segment has once one has arrived, takes twelve bytes.
        mss = 1460 - 12 * (case["option"] != "0" and case["bleached"] != "option")
        self.mss = self.drop.mss = self.mark.mss = mss

    def run(self) -> None:
        self.noted: list[tuple] = []
        super().run()

    def note(self, now: int, event: str, way: int, raw: bytes, known: tuple[int, ...] = ("", "")) -> None:
        packet = Header(raw)
        first, other = self.first[way], self.first[1 - way] or 0
        seq, ack = (packet.seq - first) & 0xFFFF_FFFF, (packet.ack - other) & 0xFFFF_FFFF
        ack = ack if "A" in packet.letters else 0
        blocks = " ".join(f"{(x - other) & 0xFFFFFFFF}-{(y - other) & 0xFFFFFFFF}" for x, y in packet.sack)
        letters = packet.letters.replace("P", "")
        said = (packet.ace, CODE_POINTS[packet.ecn], *packet.fields, blocks)
        self.noted.append((now, event, seq, packet.len, ack, letters, *said, *known))

    def record(self, now: int, way: int, raw: bytes) -> bool:
        packet = Packet(raw)
        if self.first[way] is None:
            self.first[way] = packet.seq
        if way == 0:
            self.note(now, "sent", 0, raw)
        offset = (packet.seq - self.first[way] - 1) & 0xFFFF_FFFF
        self.rows.append((now, "sr"[way], offset, packet.len))
        if way == 0:
            return packet.len > 0 and self.drop.hits(offset)
        if "S" in packet.flags:
            return False
        self.acks += 1
        return self.acks - 1 in self.drop_ack

    def deliver(self, now: int, to: int, raw: bytes) -> None:
        if to == 0:
            syn = "S" in Packet(raw).flags
            if self.case["bleached"] == "ace" and not syn:
                raw = without_ace(raw)
            if self.case["bleached"] == "option":
                raw = without_option(raw)
            super().deliver(now, to, raw)
            info = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            known = tuple(struct.unpack_from("=I", info, place)[0] for place in (CWND, DELIVERED_CE))
            self.note(now, "arrived", 1, raw, known)
            return
        super().deliver(now, to, raw)

    def save(self, path: str) -> None:
        begin = self.noted[0][0]
        # The answer to a segment may leave in the same nanosecond; it must be listed after the segment.
        order = {"arrived": 0, "sent": 1}
        rows = sorted(self.noted, key=lambda row: (row[0], order[row[1]]))
        with open(path, "w") as file:
            file.write("time_ns,event,sequence,length,ack,flags,ace,ecn,ee0b,eceb,ee1b,sack,cwnd,delivered_ce\n")
            for at, *rest in rows:
                file.write(",".join(map(str, (at - begin, *rest))) + "\n")


if __name__ == "__main__":
    main(__file__, SenderRun)
