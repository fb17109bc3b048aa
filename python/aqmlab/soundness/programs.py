"""Checks of programs: how they ended, which of their packets no flow counts, and what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aqmlab.recordings.programs import written
from aqmlab.soundness.doubt import CellDoubt, Check, Severity, merged
from aqmlab.text.numbers import counted

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run
    from aqmlab.results.results import Results

_SEE = "`live.programs` of the manifest has the exit codes, the directory `programs` what was written"
_SMALLER = "let the program send packets that fit the MTU (UDP: at most 1472 bytes of data over IPv4)"
_READABLE = "correct the program's output or the word in `results`; the values are left out"


def any_programs(results: Results) -> bool:
    """Whether any of the runs had programs; otherwise there is nothing to check."""
    return any(next(_programs(run), None) is not None for run in results.runs)


def _programs(run: Run) -> Iterator[Mapping[str, Any]]:
    yield from (run.manifest.live or {}).get("programs") or ()


def ended_well(results: Results) -> Check:
    """Check for programs that failed, so that their figures may cover only a part of what was meant."""
    kind, findings = "program", []
    for cell in results.cells:
        for run in results.runs_of(cell):
            bad = [each for each in _programs(run) if not each["asked_to_end"] and _failed(each)]
            if bad:
                first = bad[0]
                how = (
                    f"exit code {first['exit_code']}"
                    if first["signal"] is None
                    else f"killed by signal {first['signal']}"
                )
                who = f"{first['role']} {first['index']} of `{first['class']}`, seed {run.seed}"
                more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
                findings.append(CellDoubt(cell, "warning", f"{who} failed: {how}{more}", _SEE, len(bad)))
    return Check(kind, "programs ended without an error", "all did", merged(kind, results, findings))


def _failed(program: Mapping[str, Any]) -> bool:
    return program["exit_code"] != 0 or program["signal"] is not None


def fragments_are_few(results: Results) -> Check:
    """Check for fragments, which belong to no flow because their ports are unknown."""
    kind, findings = "fragments", []
    for cell in results.cells:
        for run in results.runs_of(cell):
            if next(_programs(run), None) is None:
                continue
            frames = (run.manifest.live or {}).get("frames") or {}
            count, of = int(frames.get("fragments", 0)), int(frames.get("let_in", 0))
            if count:
                sentence = (
                    f"{count} of {counted(of, 'packet')} were fragments, which no flow counts: they crossed"
                    f" the queues with the mean delay of their class (seed {run.seed})"
                )
                severity: Severity = "warning" if count > 0.01 * of else "note"
                findings.append(CellDoubt(cell, severity, sentence, _SMALLER, count))
    finding = "no program sent fragments"
    return Check(kind, "the flows have all packets of programs", finding, merged(kind, results, findings))


def results_are_readable(results: Results) -> Check:
    """Check for results of programs that are not in the form that their class has."""
    kind, findings = "results", []
    for cell in results.cells:
        for run in results.runs_of(cell):
            faults = [fault for of in written(run) for fault in of.faults]
            if faults:
                more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                sentence = f"seed {run.seed}: {faults[0]}{more}"
                findings.append(CellDoubt(cell, "warning", sentence, _READABLE, len(faults)))
    finding = "everything that was written could be read"
    return Check(kind, "the results of programs are readable", finding, merged(kind, results, findings))
