"""Self-checks: reasons to distrust a result, looked for before anybody believes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.metrics import EVERY_CLASS, Measured, QueueTotals
from aqmlab.recording import Experiment

BUSY_PERCENT = 90.0
"""A bottleneck that is busy less than this is named, for its queue may not have mattered."""
SETTLING_RTTS = 10
"""Round trips that a flow is granted after its start before it should be measured (ours)."""


@dataclass(frozen=True)
class Check:
    """What was looked at and what was found."""

    name: str
    ok: bool
    finding: str


def check(experiment: Experiment, runs: Sequence[Measured], queue: str) -> list[Check]:
    """All checks of an experiment, the failed ones not first: the order is that of the questions."""
    return [
        _complete(experiment),
        _books(runs),
        _bottleneck(runs, queue),
        _warm_up(runs),
        _distributions(runs, queue),
        _seeds(experiment),
    ]


def _complete(experiment: Experiment) -> Check:
    missing = experiment.missing
    total = len(experiment.arms) * len(experiment.seeds)
    if not missing:
        return Check("all runs finished", True, f"{total} of {total}")
    arm, seed = missing[0]
    return Check(
        "all runs finished", False, f"{len(missing)} of {total} are missing, the first: {arm}, seed {seed}"
    )


def _books(runs: Sequence[Measured]) -> Check:
    """Every queue: what was there and what arrived is what left, what was dropped and what is there."""
    name = "books balance"
    for run in runs:
        for (queue, class_name), totals in run.queues.items():
            if class_name == EVERY_CLASS and not _balances(totals):
                return Check(name, False, f"not at `{queue}` in {run.run.arm}, seed {run.run.seed}")
    packets = sum(
        t["arrivals_packets"] for run in runs for (_, c), t in run.queues.items() if c == EVERY_CLASS
    )
    return Check(name, True, f"each of {packets:,} arrivals has one fate".replace(",", " "))


def _balances(totals: QueueTotals) -> bool:
    came = totals["initial_backlog_packets"] + totals["arrivals_packets"]
    went = totals["departures_packets"] + totals.sum_over_reasons("dropped")
    return came == went + totals["final_backlog_packets"]


def _bottleneck(runs: Sequence[Measured], queue: str) -> Check:
    """The queue under study must be where packets wait."""
    name = f"`{queue}` is the bottleneck"
    shares: dict[str, list[float]] = {}
    for run in runs:
        totals = run.queues.get((queue, EVERY_CLASS))
        if totals is not None and run.interval_ns:
            shares.setdefault(run.run.arm, []).append(100 * totals["busy_ns"] / run.interval_ns)
    means = {arm: sum(values) / len(values) for arm, values in shares.items()}
    if not means:
        return Check(name, False, "it is in no recording")
    idlest = min(means, key=lambda arm: means[arm])
    finding = f"busy {means[idlest]:.1f} % of the time or more"
    if means[idlest] >= BUSY_PERCENT:
        return Check(name, True, finding)
    return Check(
        name, False, f"busy only {means[idlest]:.1f} % of the time with {idlest}: its queue may not matter"
    )


def _warm_up(runs: Sequence[Measured]) -> Check:
    """Measurement should begin when the flows that start with the run have found their rate."""
    name = "warm-up is over before measurement"
    latest, late, settled = 0.0, 0, 0.0
    for run in runs:
        for flow in run.flows:
            # Flows that arrive during the whole run are a workload, not a beginning.
            if flow.class_name in run.responsive and flow.end_ns is None:
                ready = (flow.start_ns + SETTLING_RTTS * flow.base_rtt_ns) / 1e9
                latest, settled = max(latest, flow.start_ns / 1e9), max(settled, ready)
                late += ready > run.run.t0_ns / 1e9
    t0 = min((run.run.t0_ns for run in runs), default=0) / 1e9
    if latest == 0.0 and settled == 0.0:
        return Check(name, True, f"measured from {t0:g} s; no long-lived responsive flow")
    finding = f"the last flow starts at {latest:.2f} s, measured from {t0:g} s"
    if late:
        return Check(
            name, False, f"{finding}: {late} flows have less than {SETTLING_RTTS} round trips to settle"
        )
    return Check(name, True, finding)


def _distributions(runs: Sequence[Measured], queue: str) -> Check:
    """Histograms and sums are kept apart: they must tell the same number of packets."""
    name = "delay distribution is whole"
    for run in runs:
        totals = run.queues.get((queue, EVERY_CLASS))
        if totals is not None and totals.sojourn.total != totals["sojourn_count"]:
            return Check(name, False, f"not in {run.run.arm}, seed {run.run.seed}")
    return Check(name, True, "every departure is in it; percentiles are exact to 1 %")


def _seeds(experiment: Experiment) -> Check:
    n = len(experiment.finished_seeds)
    if n == 1:
        return Check("several seeds", False, "one run: no interval")
    return Check("several seeds", True, f"{n}: intervals are 95 % Student t")
