"""Results of a sweep that was never simulated: hundreds of runs with known shapes.

Queueing delay is log-normal in each run. Its median falls with the rate and rises with the number of flows;
PI halves the median for more than 5 flows, at the cost of a little goodput in all cells. Part of the noise
depends only on the seed and is common to all arms, as arrivals are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from aqmlab.metrics import EVERY_CLASS, Flows, FlowTotals, Histogram, Measured, QueueTotals
from aqmlab.recordings.recording import Run
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Missing, Results
from manifests import manifest

QUEUE = "bottleneck"
DELAY = "queueing_delay_p95_s"
T0_NS, T1_NS = 10**10, 11 * 10**10
PACKET = 1000
RATES = ("5Mbit", "10Mbit", "20Mbit", "50Mbit")
COUNTS = ("5", "20", "80")
_DELAYS = {"DropTail": 2.0, "RED": 1.0, "PI": 0.5}
_FEW_FLOWS = 5
_TCP = {"mss_bytes": 960, "max_window": 1000, "receive_window_bytes": 10**9}
_GOODPUTS = {"DropTail": 0.97, "RED": 0.96, "PI": 0.955}
# Bins of 1 %, from a microsecond to ten seconds.
_EDGES = np.unique(np.geomspace(1e3, 1e10, int(math.log(1e7) / math.log(1.01))).astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Synthetic(Results):
    """Results whose runs are in memory."""

    measurements: Mapping[Path, Measured]

    def measured(self, cell: Cell | None = None) -> tuple[Measured, ...]:
        runs = self.runs if cell is None else self.runs_of(cell)
        return tuple(self.measurements[run.path] for run in runs)


def synthetic(
    *,
    arms: Sequence[str] = ("RED", "PI"),
    axes: Mapping[str, Sequence[str]] | None = None,
    seeds: int = 10,
    title: str = "PI against RED over rates and flows",
    question: str = "Where does PI wait less than RED, and what does it pay?",
    path: Path = Path("sweep"),
    flows: int | None = None,
    lost: Mapping[tuple[int, int], str] | None = None,
    **more: object,
) -> Synthetic:
    """A sweep of the given size: 2 arms x 4 rates x 3 numbers of flows x 10 seeds are 240 runs.

    Parameters
    ----------
    arms, axes, seeds, title, question, path
        The values of the sweep.
    flows
        Number of flows, if no axis sets it.
    lost
        Why a run is missing, by the number of its cell and its seed.
    more
        Further arguments of :class:`Results`.
    """
    axes = {"topology.rate": RATES, "traffic.ftp.count": COUNTS} if axes is None else axes
    dimensions = [Axis(name, name.split(".")[-1], (name,), tuple(labels)) for name, labels in axes.items()]
    cells = [
        Cell(tuple(zip(axes, labels, strict=True)), arm) for labels in product(*axes.values()) for arm in arms
    ]
    lost = lost or {}
    numbers = range(1, seeds + 1)
    runs = {
        (cell, seed): _run(cell, i, seed, flows)
        for i, cell in enumerate(cells)
        for seed in numbers
        if (i, seed) not in lost
    }
    return Synthetic(
        title=title,
        question=question,
        path=path,
        arms=tuple(arms),
        cells=tuple(cells),
        seeds=tuple(numbers),
        finished=runs,
        axes=tuple(dimensions),
        missing=tuple(Missing(cells[i], seed, reason) for (i, seed), reason in lost.items()),
        measurements={run.path: _measured(run, cell, seed, flows) for (cell, seed), run in runs.items()},
        **more,
    )


def _run(cell: Cell, number: int, seed: int, given: int | None) -> Run:
    flows = {
        "name": "ftp",
        "count": given or _flows(cell),
        "path": [QUEUE],
        "return_path": ["reverse"],
        "start_ns": 0,
        "stop_ns": None,
        "access": {"rate_bps": 10**8, "rtt_ns": 8 * 10**7},
        "workload": {"kind": "bulk", "bytes": None, "tcp": _TCP},
    }
    link = {
        "name": QUEUE,
        "from": "left",
        "to": "right",
        "rate_bps": int(_rate_bps(cell)),
        "delay_ns": 10**7,
        "overhead_bytes": 0,
        "queue": {"kind": cell.arm.lower(), "settings": {"limit_packets": 500}},
    }
    found = manifest(
        arm=cell.arm,
        seed=seed,
        t0_ns=T0_NS,
        t1_ns=T1_NS,
        links=[{"name": QUEUE, "rate_bps": int(_rate_bps(cell)), "delay_ns": 10**7}],
        plan_digest=f"{number:064x}",
        plan={"nodes": ["left", "right"], "links": [link], "classes": [flows]},
    )
    return Run(Path(f"{number}/{seed}"), found)


def _rate_bps(cell: Cell) -> float:
    return 1e6 * float(dict(cell.settings).get("topology.rate", "10Mbit").removesuffix("Mbit"))


def _flows(cell: Cell) -> int:
    return int(dict(cell.settings).get("traffic.ftp.count", "20"))


def _measured(run: Run, cell: Cell, seed: int, given: int | None) -> Measured:
    arrivals = np.random.default_rng(seed).standard_normal(3)
    own = np.random.default_rng([seed, *str(cell).encode()]).standard_normal(3)
    noise = 0.04 * arrivals + 0.03 * own
    rate, flows, span_s = _rate_bps(cell), given or _flows(cell), (T1_NS - T0_NS) / 1e9
    factor = 1.0 if cell.arm == "PI" and flows <= _FEW_FLOWS else _DELAYS.get(cell.arm, 1.0)
    median_s = 0.02 * factor * (1e7 / rate) * math.sqrt(flows / 20) * math.exp(noise[0])
    sent = int(rate * span_s / 8 / PACKET * (_GOODPUTS.get(cell.arm, 0.95) + 0.02 * noise[1]))
    sojourn = _histogram(median_s, 0.4, sent)
    dropped = int(sent * 0.004 * math.sqrt(flows) * math.exp(noise[2]))
    distribution = {"sojourn_ns": sojourn, "backlog_packets": Histogram()}.__getitem__
    totals = QueueTotals(QUEUE, EVERY_CLASS, _counts(sent, dropped, median_s, span_s), distribution)
    shares = np.random.default_rng([seed, flows]).uniform(0.8, 1.2, flows)
    delivered = (sent * (PACKET - 40) * shares / shares.sum()).astype(int)
    flow_rows = [_flow(i, int(octets)) for i, octets in enumerate(delivered)]
    return Measured(run, {(QUEUE, EVERY_CLASS): totals}, Flows(flow_rows), frozenset({"ftp"}))


def _histogram(median_s: float, sigma: float, packets: int) -> Histogram:
    below = ndtr((np.log(_EDGES / 1e9) - math.log(median_s)) / sigma)
    weights = np.diff(np.rint(packets * (below - below[0]) / (below[-1] - below[0])).astype(np.int64))
    kept = np.flatnonzero(weights)
    return Histogram(
        tuple(_EDGES[:-1][kept].tolist()),
        tuple((_EDGES[1:][kept] - 1).tolist()),
        tuple(weights[kept].tolist()),
    )


def _counts(sent: int, dropped: int, median_s: float, span_s: float) -> dict[str, int | None]:
    mean_s = median_s * math.exp(0.4**2 / 2)
    counts: dict[str, int | None] = {
        f"{fate}_{reason}_{unit}": 0
        for fate in ("dropped", "marked")
        for reason in ("early", "forced", "overflow", "injected")
        for unit in ("packets", "bytes")
    }
    counts |= {"dropped_early_packets": dropped, "dropped_early_bytes": PACKET * dropped}
    for name, packets in (("arrivals", sent + dropped), ("ect_arrivals", 0), ("departures", sent)):
        counts |= {f"{name}_packets": packets, f"{name}_bytes": PACKET * packets}
    backlog = sent * mean_s / span_s
    return counts | {
        "backlog_packets_integral_ns": int(backlog * span_s * 1e9),
        "backlog_packets_sq_integral_ns": int(1.2 * backlog**2 * span_s * 1e9),
        "backlog_packets_min": 0,
        "backlog_packets_max": int(4 * backlog),
        "busy_ns": int(0.99 * span_s * 1e9),
        "sent_bytes": PACKET * sent,
        "sojourn_sum_ns": int(sent * mean_s * 1e9),
        "sojourn_count": sent,
        "initial_in_system_packets": 0,
        "final_in_system_packets": 0,
    }


def _flow(number: int, delivered: int) -> FlowTotals:
    return FlowTotals(
        flow=number,
        class_name="ftp",
        base_rtt_ns=8 * 10**7,
        start_ns=0,
        end_ns=None,
        measured_received_bytes=delivered,
        measured_delivered_bytes=delivered,
        measured_sent_bytes=delivered,
        measured_timeouts=number % 2,
        measured_retransmitted_segments=0,
        measured_fast_retransmits=0,
        measured_ecn_reductions=0,
        measured_ce_received=0,
        measured_spurious_retransmissions=0,
        measured_multiple_loss_windows=0,
        measured_lost_outside_queues_packets=0,
    )
