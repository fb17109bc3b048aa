"""What this machine has and lacks for live runs, each with what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aqmlab.live import supervisor

Severity = Literal["ok", "warning", "fail"]


@dataclass(frozen=True)
class Diagnostic:
    """One thing that was looked at.

    Attributes
    ----------
    name
        What: ``"user namespaces"``.
    severity
        ``"ok"``; ``"warning"``, with which live runs work but may not be faithful; ``"fail"``, with which
        none works.
    finding
        What was seen.
    remedy
        What to do, in one line; empty where nothing is to be done.
    """

    name: str
    severity: Severity
    finding: str
    remedy: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings.

    Attributes
    ----------
    findings
        In the order of the questions.
    machine
        Kernel, processors, clock and so on: what the manifest of a live run has too.
    """

    findings: tuple[Diagnostic, ...]
    machine: Mapping[str, Any]

    @property
    def can_run(self) -> bool:
        """Whether a live run works here at all."""
        return all(finding.severity != "fail" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """As plain data: what ``--json`` prints."""
        return {
            "format_version": 1,
            "can_run": self.can_run,
            "findings": [vars(finding) for finding in self.findings],
            "machine": dict(self.machine),
        }


def doctor() -> Diagnosis:
    """Look at this machine: what live runs need is tried, in a process of its own that leaves nothing behind.

    Raises
    ------
    HostError
        If this is no Linux.
    RunError
        If the process that looks died.
    """
    answer = supervisor.ask({"do": "doctor"})
    findings = tuple(Diagnostic(**finding) for finding in answer["findings"])
    return Diagnosis(findings, answer["machine"])


__all__ = ["Diagnosis", "Diagnostic", "doctor"]
