"""Record how Linux's TCP reports marks with AccECN (RFC 9768), through a small network with chosen marks.

    python3 accurate_ecn.py KERNEL CASES DIRECTORY [CASE ...]

KERNEL is a Linux from 7.0 on; otherwise, this is used as `single_flow.py`, whose network it shares.
`vectors/linux-accurate-ecn/README.md` explains the columns of CASES and of the recordings.
"""

import struct

from single_flow import HEADER, SYSCTLS, Packet, Run, main

AE, CWR, ECE = 0x100, 0x80, 0x40
# Kinds of the option, and the order of its three fields as columns: EE0B, ECEB, EE1B.
KINDS = {172: (0, 1, 2), 174: (2, 1, 0)}
CODE_POINTS = ("not-ect", "ect1", "ect0", "ce")
del SYSCTLS["rack"]  # newer kernels have no such setting
SYSCTLS["option"] = "tcp_ecn_option"


class Header(Packet):
    """The fields of a TCP header, with ACE and the AccECN option."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        (bits,) = struct.unpack_from(">H", raw, HEADER + 12)
        self.ace = (bits & AE > 0) * 4 + (bits & CWR > 0) * 2 + (bits & ECE > 0)
        self.letters = "".join(letter for letter in self.flags if letter not in "EC")
        self.fields = ["", "", ""]
        options, place = raw[HEADER + 20 : HEADER + (bits >> 12) * 4], 0
        while place < len(options) and options[place]:
            kind, length = options[place], 1 if options[place] == 1 else options[place + 1]
            for number, column in enumerate(KINDS.get(kind, ())):
                field = options[place + 2 + 3 * number : place + min(length, 5 + 3 * number)]
                if len(field) == 3:
                    self.fields[column] = str(int.from_bytes(field, "big"))
            place += length


class AccurateRun(Run):
    """One case, recorded at the receiver: what arrives there, and what it sends."""

    def __init__(self, case: dict[str, str]) -> None:
        super().__init__(case)
        # Time stamps and the option, which each segment has, take twelve bytes each.
        mss = 1460 - 12 * self.timestamps - 12 * (case["option"] != "0")
        self.mss = self.drop.mss = self.mark.mss = mss

    def note(self, now: int, event: str, way: int, raw: bytes) -> None:
        packet = Header(raw)
        if self.first[way] is None:
            self.first[way] = packet.seq
        seq = (packet.seq - self.first[way]) & 0xFFFF_FFFF
        ack = (packet.ack - (self.first[1 - way] or 0)) & 0xFFFF_FFFF if "A" in packet.letters else 0
        ecn = CODE_POINTS[packet.ecn]
        self.noted.append((now, event, seq, packet.len, ack, packet.letters, packet.ace, ecn, *packet.fields))

    def run(self) -> None:
        self.noted: list[tuple] = []
        super().run()

    def record(self, now: int, way: int, raw: bytes) -> bool:
        packet = Packet(raw)
        if self.first[way] is None:
            self.first[way] = packet.seq
        if way == 1:
            self.note(now, "sent", way, raw)
        offset = (packet.seq - self.first[way] - 1) & 0xFFFF_FFFF
        self.rows.append((now, "sr"[way], offset, packet.len))
        if way == 0:
            return packet.len > 0 and self.drop.hits(offset)
        return False

    def deliver(self, now: int, to: int, raw: bytes) -> None:
        if to == 1:
            self.note(now, "arrived", 0, raw)
        super().deliver(now, to, raw)

    def save(self, path: str) -> None:
        begin = self.noted[0][0]
        with open(path, "w") as file:
            file.write("time_ns,event,sequence,length,ack,flags,ace,ecn,ee0b,eceb,ee1b\n")
            for at, *rest in self.noted:
                file.write(",".join(map(str, (at - begin, *rest))) + "\n")


if __name__ == "__main__":
    main(__file__, AccurateRun)
