"""Whether a live run shows what the disciplines do, or what this machine was too slow for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab.figures import counted
from aqmlab.recording import Run

FAITHFUL = "faithful"
NOT_FAITHFUL = "NOT FAITHFUL"


@dataclass(frozen=True)
class Check:
    """One condition of a faithful run.

    Attributes
    ----------
    name
        A word for programs: ``"lateness"``.
    passed
        Whether it held.
    sentence
        The figure and its limit.
    """

    name: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What the router said of itself, from the manifest of one run.

    Attributes
    ----------
    arm, seed
        Of which run.
    checks
        All conditions, those that held among them.
    reasons
        Why the run is not faithful, a phrase each with its figure and limit; empty if it is.
    live
        Everything that the manifest has of it.
    """

    arm: str
    seed: int
    checks: tuple[Check, ...]
    reasons: tuple[str, ...]
    live: Mapping[str, Any]

    @property
    def faithful(self) -> bool:
        """Whether all conditions held."""
        return not self.reasons

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended the run before its time; what there is of it may be faithful."""
        return bool(self.live["interrupted"])

    @property
    def text(self) -> str:
        """``faithful``, or ``NOT FAITHFUL: `` and the reasons."""
        said = FAITHFUL if self.faithful else f"{NOT_FAITHFUL}: {'; '.join(self.reasons)}"
        return f"{said} (interrupted)" if self.interrupted else said

    def lateness_s(self, quantile: str) -> float:
        """How late packets were written: ``"p50"``, ``"p99"``, ``"p999"`` or ``"max"``, in seconds."""
        return int(self.live["lateness"][f"{quantile}_ns"]) / 1e9

    @property
    def lost_unseen(self) -> int:
        """Packets that were lost and are on no queue's books.

        Within the hosts, refused by them when they were written, too long, or without room in the
        router. What is no IP packet is none of them, nor what is still on its way.
        """
        drops = self.live["drops"]
        hidden = next(check["value"] for check in self.live["checks"] if check["name"] == "hidden_drops")
        return int(hidden) + sum(int(drops[cause]) for cause in ("write_error", "no_slot", "oversize"))

    @property
    def wait(self) -> str:
        """``epoll``, ``hybrid``, or ``hybrid, 12.5 % without spinning`` if it was too busy for that long."""
        without = float(self.live["without_spin_percent"])
        return f"{self.live['wait']}, {without:.1f} % without spinning" if without else str(self.live["wait"])

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "arm": self.arm,
            "seed": self.seed,
            "faithful": self.faithful,
            "interrupted": self.interrupted,
            "reasons": list(self.reasons),
            "checks": list(self.live["checks"]),
            "lateness": {k: v for k, v in self.live["lateness"].items() if k != "bins"},
            "stalls": list(self.live["stalls"]),
            "stall_count": self.live["stall_count"],
            "longest_stall_ns": self.live["longest_stall_ns"],
            "lost_unseen": self.lost_unseen,
            "without_spin_percent": self.live["without_spin_percent"],
            "duty_percent": self.live["duty_percent"],
            "drops": dict(self.live["drops"]),
            "remarks": list(self.live["remarks"]),
        }


def verdict_of(run: Run) -> Verdict | None:
    """The verdict on a run; ``None`` if it was simulated."""
    live = run.manifest.get("live")
    if live is None:
        return None
    checks = tuple(Check(c["name"], bool(c["passed"]), str(c["sentence"])) for c in live["checks"])
    return Verdict(run.arm, run.seed, checks, tuple(map(str, live["reasons"])), live)


def verdicts(runs: Iterable[Run]) -> tuple[Verdict, ...]:
    """The verdicts on the live ones among some runs."""
    return tuple(verdict for run in runs if (verdict := verdict_of(run)) is not None)


def together(found: Iterable[Verdict]) -> str:
    """One line for several runs: ``faithful: 8 of 8 runs``, or what is wrong with the first that is not."""
    found = tuple(found)
    bad = [verdict for verdict in found if not verdict.faithful]
    if not bad:
        cut = any(verdict.interrupted for verdict in found)
        said = f"{FAITHFUL} (interrupted)" if cut else FAITHFUL
        return f"{said}: {len(found)} of {counted(len(found), 'run')}"
    first = bad[0]
    of = f"of {first.arm}, seed {first.seed}; {len(bad)} of {counted(len(found), 'run')}"
    return first.text if len(found) == 1 else f"{first.text} ({of})"


__all__ = ["FAITHFUL", "NOT_FAITHFUL", "Check", "Verdict", "together", "verdict_of", "verdicts"]
