"""Record crowds of Linux's BBR, alone and with CUBIC, at a bottleneck, as CSV.

    python3 bbr_crowd.py KERNEL CASES DIRECTORY [CASE ...]

This command boots KERNEL in virtual time, runs the cases of the table CASES (`vectors/linux-bbr-crowd/README.md`
explains it), or only the named cases, in the network of `crowd.py`, and writes DIRECTORY/runs.csv.
"""

from crowd import Run, main


def retransmitted() -> int:
    """Return the number of segments retransmitted in this namespace so far."""
    with open("/proc/self/net/snmp") as file:
        names, values = (line.split() for line in file if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


class Crowd(Run):
    """A run that also counts retransmissions, and the share of the first congestion control."""

    before = None

    def step(self, now: float) -> None:
        if self.before is None and now >= float(self.case["warmup_s"]):
            self.before = retransmitted()

    def shares(self, share: list[int]) -> dict[str, float]:
        kinds = self.case["congestion"].count("+") + 1
        return {
            "retransmitted": retransmitted() - self.before,
            "first_share": sum(share[::kinds]) / sum(share),
        }


if __name__ == "__main__":
    main(__file__, "retransmitted,first_share", Crowd)
