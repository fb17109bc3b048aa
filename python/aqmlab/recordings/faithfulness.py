"""The verdict on a live run: whether it shows the disciplines, or the limits of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import RecordingError
from aqmlab.recordings.recording import Run
from aqmlab.text.numbers import counted

FAITHFUL = "faithful"
NOT_FAITHFUL = "NOT FAITHFUL"

PACKETS_FILE = "`packets.pcapng`"
"""The name of the file of captured packets, as it appears in remarks."""

_LOST_UNSEEN = ("write_error", "no_slot", "oversize")
"""Causes in ``drops`` that no queue's books contain; losses within hosts have a separate check."""


@dataclass(frozen=True)
class FaithfulnessCheck:
    """One condition of a faithful run.

    Attributes
    ----------
    name
        Its name for programs, such as ``"lateness"``.
    passed
        Whether the condition holds.
    sentence
        The measured value and its limit, in words.
    """

    name: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Faithfulness:
    """The router's report on one run, from its manifest.

    Values that an earlier version of aqmlab did not write are ``None``.

    Attributes
    ----------
    arm, seed
        Arm and seed of the run.
    checks
        All conditions, including those that hold.
    reasons
        Why the run is not faithful, one phrase per reason, with the value and its limit; empty if it is
        faithful.
    live
        The whole report in the manifest.
    """

    arm: str
    seed: int
    checks: tuple[FaithfulnessCheck, ...]
    reasons: tuple[str, ...]
    live: Mapping[str, Any]

    @property
    def faithful(self) -> bool:
        """Whether all conditions hold."""
        return not self.reasons

    @property
    def interrupted(self) -> bool:
        """Whether the user ended the run early; its first part may be faithful."""
        return bool(self.live.get("interrupted"))

    @property
    def text(self) -> str:
        """``faithful``, or ``NOT FAITHFUL: `` and the reasons."""
        said = FAITHFUL if self.faithful else f"{NOT_FAITHFUL}: {'; '.join(self.reasons)}"
        return f"{said} (interrupted)" if self.interrupted else said

    def lateness_s(self, quantile: str) -> float | None:
        """Return a quantile of the lateness of packets [s]: ``"p50"``, ``"p99"``, ``"p999"`` or ``"max"``."""
        return _seconds(self.part("lateness").get(f"{quantile}_ns"))

    def ping_s(self, quantile: str) -> float | None:
        """Return a quantile of the round-trip times without a router, measured before the run, in seconds."""
        return _seconds(self.part("ping").get(f"{quantile}_ns"))

    @property
    def stalls(self) -> Sequence[Mapping[str, Any]]:
        """The listed stalls: ``at_ns``, ``length_ns``."""
        return tuple(
            stall for stall in self.live.get("stalls") or () if {"at_ns", "length_ns"} <= stall.keys()
        )

    @property
    def stalls_s(self) -> tuple[tuple[float, float], ...]:
        """Start and end times of the listed stalls, in seconds since the start of the run."""
        times = ((int(stall["at_ns"]), int(stall["length_ns"])) for stall in self.stalls)
        return tuple((at / 1e9, (at + length) / 1e9) for at, length in times)

    @property
    def stall_count(self) -> int | None:
        """The number of all stalls, listed or not."""
        listed = len(self.stalls) if "stalls" in self.live else None
        count: int | None = self.live.get("stall_count", listed)
        return count

    @property
    def longest_stall_s(self) -> float | None:
        """The longest of all stalls, in seconds."""
        listed = max((int(stall["length_ns"]) for stall in self.stalls), default=None)
        return _seconds(self.live.get("longest_stall_ns", listed))

    @property
    def duty_percent(self) -> float | None:
        """Share of the time for which the router's thread had a processor, in percent."""
        return self.live.get("duty_percent")

    @property
    def lost_unseen(self) -> int | None:
        """Number of lost packets that no queue's books contain.

        They were lost within the hosts or refused by them, were too long, or found no room in the router.
        Packets of protocols other than IP, and packets in flight, are not included.
        """
        hidden = [check.get("value") for check in self.live["checks"] if check["name"] == "hidden_drops"]
        counts = [*hidden, *(self.part("drops").get(cause) for cause in _LOST_UNSEEN)]
        if not hidden or any(count is None for count in counts):
            return None
        return sum(map(int, counts))

    @property
    def virtual_time(self) -> bool:
        """Whether the kernel ran in virtual time, in which its clock stands still during any computation."""
        return bool(self.live.get("virtual_time"))

    @property
    def wait(self) -> str | None:
        """How the router waited: ``epoll`` or ``hybrid``, or ``hybrid, 12.5 % without spinning``.

        The percentage is the share of the measured interval in which the router was too busy to spin. In
        virtual time, the router does not spin, and the text is ``epoll, in virtual time``.
        """
        without = self.live.get("without_spin_percent")
        waited = self.live.get("wait")
        if waited and self.virtual_time:
            return f"{waited}, in virtual time"
        return f"{waited}, {without:.1f} % without spinning" if waited and without else waited

    @property
    def remarks(self) -> tuple[str, ...]:
        """Further remarks, on the stacks and on the capture."""
        return tuple(map(str, self.live.get("remarks") or ()))

    @property
    def stack_remarks(self) -> tuple[str, ...]:
        """The remarks on the stacks: settings of the scenario that the kernel does not follow."""
        return tuple(remark for remark in self.remarks if PACKETS_FILE not in remark)

    @property
    def capture_remarks(self) -> tuple[str, ...]:
        """The remarks on packets that are missing from the file of captured packets."""
        return tuple(remark for remark in self.remarks if PACKETS_FILE in remark)

    @property
    def capture_failure(self) -> str:
        """Why a requested file of packets is missing; empty otherwise."""
        failure = self.live.get("capture_failure")
        if failure is None:
            return ""
        at_s = _seconds(failure.get("at_ns"))
        beyond = "" if at_s is None else f" beyond {at_s:.1f} s"
        return (
            f"{PACKETS_FILE} could not be written{beyond}: {failure.get('reason', 'no reason was recorded')}"
        )

    def part(self, name: str) -> Mapping[str, Any]:
        """Return an object in the manifest's ``live``; empty if an earlier version did not write it."""
        return self.live.get(name) or {}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data; values that an earlier version did not write are null or empty."""
        return {
            "arm": self.arm,
            "seed": self.seed,
            "faithful": self.faithful,
            "interrupted": self.interrupted,
            "reasons": list(self.reasons),
            "checks": list(self.live["checks"]),
            "lateness": _without_bins(self.part("lateness")),
            "stalls": list(self.stalls),
            "stall_count": self.stall_count,
            "longest_stall_ns": self.live.get("longest_stall_ns"),
            "lost_unseen": self.lost_unseen,
            "virtual_time": self.virtual_time,
            "without_spin_percent": self.live.get("without_spin_percent"),
            "duty_percent": self.duty_percent,
            "drops": dict(self.part("drops")),
            "remarks": list(self.remarks),
            "ping": _without_bins(self.part("ping")),
            "capacity": dict(self.part("capacity")),
            "capture": self.live.get("capture"),
            "capture_failure": self.live.get("capture_failure"),
        }


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else int(ns) / 1e9


def _without_bins(distribution: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in distribution.items() if key != "bins"}


def faithfulness_of(run: Run) -> Faithfulness | None:
    """Return the verdict on a run, or ``None`` if it was simulated.

    Raises
    ------
    RecordingError
        If the manifest marks it as live without a verdict.
    """
    live = run.manifest.live
    if live is None:
        return None
    file = run.path / "manifest.json"
    try:
        checks = tuple(
            FaithfulnessCheck(c["name"], bool(c["passed"]), str(c["sentence"])) for c in live["checks"]
        )
        return Faithfulness(run.arm, run.seed, checks, tuple(map(str, live["reasons"])), live)
    except KeyError as error:
        raise RecordingError(f"`{file}` is incomplete: `{error.args[0]}` of `live` is missing") from error
    except (TypeError, AttributeError) as error:
        raise RecordingError(f"`{file}` is corrupt in `live`: {error}") from error


_OF_A_CLASS = re.compile(r"class `([^`]*)`: (.*)", re.DOTALL)


def grouped(remarks: Iterable[str]) -> list[str]:
    """Return remarks without repetition: each appears once, with the names of the classes it is about."""
    classes: dict[str, list[str]] = {}
    for remark in remarks:
        found = _OF_A_CLASS.fullmatch(remark)
        of = classes.setdefault(found[2] if found else remark, [])
        if found and found[1] not in of:
            of.append(found[1])
    return [
        f"{'class' if len(of) == 1 else 'classes'} {', '.join(f'`{name}`' for name in of)}: {what}"
        if of
        else what
        for what, of in classes.items()
    ]


@typed
def verdicts(runs: Iterable[Run]) -> tuple[Faithfulness, ...]:
    """Return the verdicts on the runs that are live."""
    return tuple(verdict for run in runs if (verdict := faithfulness_of(run)) is not None)


def combined(found: Iterable[Faithfulness]) -> str:
    """Return one line for several runs: ``faithful: 8 of 8 runs``, or the first unfaithful run's reasons."""
    found = tuple(found)
    bad = [verdict for verdict in found if not verdict.faithful]
    if not bad:
        cut = any(verdict.interrupted for verdict in found)
        said = f"{FAITHFUL} (interrupted)" if cut else FAITHFUL
        return f"{said}: {len(found)} of {counted(len(found), 'run')}"
    first = bad[0]
    of = f"of {first.arm}, seed {first.seed}; {len(bad)} of {counted(len(found), 'run')}"
    return first.text if len(found) == 1 else f"{first.text} ({of})"
