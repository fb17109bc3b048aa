"""Judge a congestion control that is written in Python: see ``docs/kit.md``.

The sender is QUIC's (RFC 9002), and the situations and bands are those of the Rust kit. A controller
determines how many bytes may be in flight and, if it wants, how fast they leave. All bytes are those of UDP
datagrams; all times are seconds since the run began.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aqmlab import _core
from aqmlab.arguments import names, typed, whole
from aqmlab.errors import UsageError

__all__ = ["Comparison", "Controller", "Judgment", "RoundTrips", "Situation", "judge", "situations"]


class RoundTrips(NamedTuple):
    """Round-trip times as the sender knows them, in seconds (RFC 9002, section 5)."""

    latest: float
    least: float
    smoothed: float
    variance: float


class Controller(ABC):
    """A congestion controller of one connection; the methods are those of RFC 9002, appendix B.

    A controller must be a function of these calls: no clock, and no draws from a generator that is seeded
    outside. With each acknowledgment, the calls come in this order: ``on_ecn``, ``on_congestion_event``,
    ``on_ack`` for each packet, ``on_end_acks``. ``window`` is read after each of them.
    """

    def on_sent(self, now: float, size: int, number: int) -> None:  # noqa: B027 (a default)
        """Record that the packet ``number`` of ``size`` bytes has just left."""

    def on_ack(self, now: float, sent: float, size: int, app_limited: bool, rtt: RoundTrips) -> None:  # noqa: B027 (a default)
        """Record the acknowledgment of a packet of ``size`` bytes, which left at ``sent``.

        ``app_limited`` means that the application, not the window, has limited the sender.
        """

    def on_end_acks(self, now: float, in_flight: int, app_limited: bool, largest: int | None) -> None:  # noqa: B027 (a default)
        """Record that all packets of an acknowledgment have been reported; ``in_flight`` bytes are left.

        ``largest`` is the largest number acknowledged so far.
        """

    @abstractmethod
    def on_congestion_event(self, now: float, sent: float, persistent: bool, lost: int) -> None:
        """Record that ``lost`` bytes have been declared lost; the latest of these packets left at ``sent``.

        A controller reacts once per round trip by comparing ``sent`` with the time of its last reaction
        (RFC 9002, appendix B.6). ``persistent`` means persistent congestion (section 7.6).
        """

    def on_ecn(self, now: float, sent: float, marks: int) -> None:
        """Record ``marks`` more CE marks; the largest packet acknowledged left at ``sent``.

        Unless a subclass distinguishes marks from losses, this is a congestion event without lost bytes.
        """
        del marks
        self.on_congestion_event(now, sent, False, 0)

    def on_spurious(self, now: float, sent: float, size: int) -> None:  # noqa: B027 (a default)
        """Record that a packet that had been declared lost is acknowledged after all."""

    @abstractmethod
    def window(self) -> int:
        """Return the number of bytes that may be in flight."""

    def pacing_rate(self) -> int | None:
        """Return the pacing rate in bytes per second; without one, 1.25 windows leave per round trip."""
        return None


@dataclass(frozen=True, slots=True)
class Situation:
    """A scenario whose class ``judged`` gets the controller."""

    name: str
    sections: str
    """The sections of RFC 9743 to which it belongs."""
    criterion: str
    measures: tuple[str, ...]
    scenario: str
    """The text of the scenario, with NewReno in the place of the controller."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure in one situation."""

    situation: str
    sections: str
    """The sections of RFC 9743."""
    criterion: str
    measure: str
    """``goodput`` (Mbit/s), ``queueing_delay`` and ``response_time`` (ms), ``retransmissions`` and ``share``
    (%), or ``fairness`` (Jain's index); means over the runs."""
    own: float
    references: dict[str, float]
    """The values of NewReno, CUBIC and BBR in the place of the controller."""
    low: float
    high: float
    """The band: the least and the largest reference."""
    position: str
    """``below``, ``within`` or ``above`` the band."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """All comparisons of a controller; printed as a table."""

    name: str
    runs: int
    comparisons: tuple[Comparison, ...]
    table: str

    def __str__(self) -> str:
        return self.table


def situations() -> tuple[Situation, ...]:
    """Return the situations, in the order of RFC 9743."""
    rows = json.loads(_core.kit_situations())
    return tuple(Situation(**row | {"measures": tuple(row["measures"])}) for row in rows)


@typed
def judge(
    controller: Callable[[float, int], Controller],
    *,
    situations: str | Sequence[str] | None = None,
    runs: int = 1,
    name: str | None = None,
) -> Judgment:
    """Run a congestion control through the situations, and compare it with NewReno, CUBIC and BBR.

    ``controller`` is called for each connection, with the time in seconds at which it opens and the bytes of
    a full datagram; a subclass of ``Controller`` whose constructor takes these two is enough. Without
    ``situations``, all are run. Run n has seed n; values are means over the runs. The same controller gives
    the same judgment.

    An exception that the controller raises ends the runs and reaches the caller.
    """
    runs = whole(runs, "`runs`")
    if runs < 1:
        raise UsageError(f"`runs` is {runs}; it must be at least 1")

    def checked(now: float, datagram: int) -> Controller:
        made = controller(now, datagram)
        if not isinstance(made, Controller):
            raise UsageError(f"the factory must return an `aqmlab.kit.Controller`; it has returned {made!r}")
        return made

    title = name if name is not None else getattr(controller, "__name__", "controller")
    answer = json.loads(_core.kit_judge(checked, RoundTrips, title, list(names(situations) or ()), runs))
    report = answer["report"]
    comparisons = (
        Comparison(**row | {"references": dict(row["references"])}) for row in report["comparisons"]
    )
    return Judgment(report["name"], report["runs"], tuple(comparisons), answer["table"])
