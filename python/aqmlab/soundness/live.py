"""Checks of live runs: lateness of packets, interruptions, TCP stacks and captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.recordings.faithfulness import NOT_FAITHFUL, faithfulness_of, grouped, verdicts
from aqmlab.soundness.disciplines import plans, queues
from aqmlab.soundness.doubt import CellDoubt, Check, merged
from aqmlab.text.numbers import counted, listed

if TYPE_CHECKING:
    from aqmlab.results.results import Results

_REMEDY = "do not use these figures; `aqmlab doctor` reports what this machine lacks (see docs/live.md)"
_SMALLER_CAPTURE = "free disk space, or capture fewer ports or fewer bytes of each packet"
_OTHER_STACK = "compare with a simulation only where this difference does not matter"


def any_live(results: Results) -> bool:
    """Whether any of the runs was live; otherwise there is nothing to check."""
    return any(run.manifest.live is not None for run in results.runs)


def kept_time(results: Results) -> Check:
    """Check the lateness of packets, which is caused by the machine and not by a discipline."""
    kind, findings, count = "live", [], 0
    late_s: list[float] = []
    for cell in results.cells:
        found = verdicts(results.runs_of(cell))
        count += len(found)
        late_s += [late for verdict in found if (late := verdict.lateness_s("p99")) is not None]
        bad = [verdict for verdict in found if not verdict.faithful]
        if bad:
            worst = max(bad, key=lambda verdict: verdict.lateness_s("p99") or 0.0)
            sentence = f"{NOT_FAITHFUL}, seed {worst.seed}: {'; '.join(worst.reasons)}"
            findings.append(CellDoubt(cell, "serious", sentence, _REMEDY, len(bad)))
    finding = f"{counted(count, 'run')} faithful"
    if late_s:
        finding += f"; 99 % of the packets left within {1e6 * max(late_s):.0f} us of their ideal time"
    return Check(kind, "the live router kept time", finding, merged(kind, results, findings))


def to_its_end(results: Results) -> Check:
    """Check for runs that the user ended, which are shorter than the others."""
    kind, findings = "interrupted", []
    for cell in results.cells:
        for run in results.runs_of(cell):
            verdict = faithfulness_of(run)
            if verdict is not None and verdict.interrupted:
                sentence = f"the run with seed {run.seed} was interrupted at {run.t1_ns / 1e9:.1f} s"
                findings.append(CellDoubt(cell, "warning", sentence, "run it again", run.t1_ns / 1e9))
    return Check(kind, "live runs finished", "none was interrupted", merged(kind, results, findings))


def stack_as_asked(results: Results) -> Check:
    """Check for TCP settings in the scenario that the kernel does not follow."""
    kind, findings = "stack", []
    for cell in results.cells:
        remarks = grouped(
            remark for verdict in verdicts(results.runs_of(cell)) for remark in verdict.stack_remarks
        )
        if remarks:
            sentence = "; ".join(remarks)
            findings.append(CellDoubt(cell, "note", sentence, _OTHER_STACK, len(remarks)))
    finding = "the kernel's TCP follows the scenario to the extent that it can be configured"
    return Check(kind, "the TCP stacks match the scenario", finding, merged(kind, results, findings))


def packets_kept(results: Results) -> Check:
    """Check for packets that are missing from the capture because the disk could not store them."""
    kind, findings = "packets", []
    for cell in results.cells:
        remarks = [
            f"seed {verdict.seed}: {remark}"
            for verdict in verdicts(results.runs_of(cell))
            for remark in verdict.capture_remarks
        ]
        if remarks:
            findings.append(CellDoubt(cell, "note", "; ".join(remarks), _SMALLER_CAPTURE, len(remarks)))
    finding = "every requested packet was captured"
    return Check(kind, "captures are complete", finding, merged(kind, results, findings))


_OF_ETHERNET = {"quantum_bytes": 1514, "mean_packet_bytes": 1514, "overhead": 14, "header": 14}
"""The settings of disciplines that have the 14 bytes of an Ethernet header in Linux's presets."""


def headers_are_equal(results: Results) -> Check:
    """Check for queues that count an Ethernet header, whereas the same queue of the kernel has none here."""
    kind, findings = "headers", []
    found = [(cell, queue) for cell, plan in plans(results) for queue in queues(plan)]
    kernels = {
        (queue.link.name, words[0]): words
        for _, queue in found
        if queue.kind == "tc" and (words := str(queue.settings["spec"]).split())
    }
    for cell, queue in found:
        told = kernels.get((queue.link.name, queue.kind), ())
        names = [
            name.removesuffix("_bytes")
            for name, value in _OF_ETHERNET.items()
            if queue.settings.get(name) == value and name.removesuffix("_bytes") not in told
        ]
        if told and names:
            sentence = (
                f"`{queue.link.name}` counts the 14 bytes of an Ethernet header in"
                f" {listed([f'`{name}`' for name in names])}; the kernel's {queue.kind} counts none here,"
                " because a TUN device has none"
            )
            remedy = "write these values without the header, for the same queue (see docs/live.md)"
            findings.append(CellDoubt(cell, "warning", sentence, remedy, len(names)))
    finding = "no queue counts a header that the kernel's does not" if kernels else "no queue is the kernel's"
    return Check(kind, "the kernel's queues count the same headers", finding, merged(kind, results, findings))
