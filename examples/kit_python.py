"""Judges a congestion controller that is written in Python: NewReno as RFC 9002, appendix B, writes it.

python examples/kit_python.py [SITUATION ...]
"""

import sys

import aqmlab
from aqmlab.kit import Controller, RoundTrips


class NewReno(Controller):
    """A window in bytes; each instance serves one connection."""

    def __init__(self, opened: float, datagram: int) -> None:
        del opened  # s; NewReno has no use for the time
        self.datagram = datagram
        self.bytes = 10.0 * datagram
        self.ssthresh = float("inf")
        self.recovery_began = None

    def window(self) -> int:
        return int(self.bytes)

    def on_ack(self, now: float, sent: float, size: int, app_limited: bool, rtt: RoundTrips) -> None:
        if app_limited or (self.recovery_began is not None and sent <= self.recovery_began):
            return
        if self.bytes < self.ssthresh:
            self.bytes += size
        else:
            self.bytes += self.datagram * size / self.bytes

    def on_congestion_event(self, now: float, sent: float, persistent: bool, lost: int) -> None:
        if self.recovery_began is None or sent > self.recovery_began:
            self.recovery_began = now
            self.ssthresh = self.bytes = max(self.bytes / 2, 2 * self.datagram)
        if persistent:
            self.bytes, self.recovery_began = 2.0 * self.datagram, None


if __name__ == "__main__":
    print(aqmlab.judge(NewReno, situations=sys.argv[1:]))
