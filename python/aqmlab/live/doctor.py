"""The requirements of live runs: which ones this machine meets, and remedies for those that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aqmlab.live import supervisor

Severity = Literal["ok", "warning", "fail"]


@dataclass(frozen=True)
class Diagnostic:
    """One checked property.

    Attributes
    ----------
    name
        Name of the property, such as ``"user namespaces"``.
    severity
        ``"ok"``; ``"warning"``: live runs work but may not be faithful; ``"fail"``: no live run works.
    finding
        The observation.
    remedy
        The remedy, in one line; empty where none is needed.
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
        The findings, in the order of the checks.
    machine
        Kernel, processors, clock and so on, as in the manifest of a live run.
    """

    findings: tuple[Diagnostic, ...]
    machine: Mapping[str, Any]

    @property
    def can_run(self) -> bool:
        """Whether a live run works here at all."""
        return all(finding.severity != "fail" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the findings as plain data, as printed by ``--json``."""
        return {
            "format_version": 1,
            "can_run": self.can_run,
            "findings": [vars(finding) for finding in self.findings],
            "machine": dict(self.machine),
        }


def doctor() -> Diagnosis:
    """Examine this machine by trying everything that live runs need, without leaving anything behind.

    Raises
    ------
    HostError
        If this is not Linux.
    RunError
        If the process of the checks died.
    """
    answer = supervisor.ask({"do": "doctor"})
    findings = tuple(Diagnostic(**finding) for finding in answer["findings"])
    return Diagnosis(findings, answer["machine"])
