"""A run as a flent data file, which flent plots as its test ``tcp_ndown``: N TCP downloads and a ping.

The file is in version 4 of flent's data format (doc/data-format.rst in flent). The ping is the round-trip
time of a small packet sent at the instant of a sample: the mean base round-trip time of the downloads, plus
the time that the link needs for the backlog of the queue, including the bytes that it adds to each packet.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.exports.chosen import Chosen, lacks
from aqmlab.metrics import jain_index
from aqmlab.metrics.histograms import quoted
from aqmlab.recordings.draining import draining_times
from aqmlab.results.results import Results
from aqmlab.system.files import json_text

if TYPE_CHECKING:
    import numpy.typing as npt

FORMAT_VERSION = 4
TEST = "tcp_ndown"
PING = "Ping (ms) ICMP"
DOWNLOAD = "TCP download"
_UNKNOWN_TIME = "1970-01-01T00:00:00.000000Z"
"""The fixed time in every file: a run has no time of day, and the same run must always give the same file."""


def flent_file(results: Results, chosen: Chosen) -> bytes:
    """Return the compressed data file of a run.

    Raises
    ------
    UsageError
        If flows or queues were not sampled, or no flow is a TCP flow that crosses the queue.
    """
    times, rates = _goodputs(results, chosen)
    ping = _ping(results, chosen, times)
    series: dict[str, Sequence[float | None]] = {
        f"{DOWNLOAD}::{i}": rate.tolist() for i, rate in enumerate(rates, start=1)
    }
    together = np.array(list(rates))
    series[f"{DOWNLOAD} avg"] = together.mean(axis=0).tolist()
    series[f"{DOWNLOAD} sum"] = together.sum(axis=0).tolist()
    series[f"{DOWNLOAD} fairness"] = [jain_index(column) for column in together.T.tolist()]
    series[PING] = ping.tolist()
    raw = {
        name: [{"t": t, "val": value} for t, value in zip(times.tolist(), values, strict=True)]
        for name, values in series.items()
        if "::" in name or name == PING
    }
    content = {
        "version": FORMAT_VERSION,
        "x_values": times.tolist(),
        "results": series,
        "metadata": _metadata(results, chosen, times, len(rates)),
        "raw_values": raw,
    }
    return gzip.compress(json_text(content).encode(), mtime=0)


def _metadata(results: Results, chosen: Chosen, times: npt.NDArray[np.float64], flows: int) -> dict[str, Any]:
    run = chosen.run
    return {
        "NAME": TEST,
        "TITLE": f"{results.title}: {chosen.cell}, seed {run.seed}",
        "NOTE": f"aqmlab {run.manifest.aqmlab_version}; the ping series is the mean base RTT of the downloads"
        f" plus the time that the link of `{chosen.queue}` needs for its backlog",
        "TIME": _UNKNOWN_TIME,
        "T0": _UNKNOWN_TIME,
        "LENGTH": round(run.t1_ns / 1e9),
        "TOTAL_LENGTH": round(run.t1_ns / 1e9),
        "STEP_SIZE": float(times[1] - times[0]),
        "HOST": "aqmlab",
        "HOSTS": ["aqmlab"],
        "LOCAL_HOST": "aqmlab",
        "IP_VERSION": 4,
        "DATA_FILENAME": f"{chosen.stem}.flent.gz",
        "TEST_PARAMETERS": {"download_streams": str(flows)},
    }


def _goodputs(
    results: Results, chosen: Chosen
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]]]:
    """Return the times of samples in s, and the goodput of each TCP flow across the queue in Mbit/s."""
    run = chosen.run
    classes = _downloading(chosen)
    if not classes or "flow_series" not in run.manifest.tables:
        raise lacks(run, f"samples of TCP flows across `{chosen.queue}`", 'flows = "100ms"')
    found = results.tables.arrays(
        "flow_series",
        "flow, t_ns, coalesce(received_bytes, delivered_bytes)::DOUBLE AS received",
        f"WHERE flow IN (SELECT flow FROM read_parquet({quoted(run.file('flows'))})"
        f" WHERE class IN ({classes})) ORDER BY flow, t_ns",
        [run],
    )
    instants = np.unique(np.asarray(found["t_ns"]))
    if len(instants) < 2:
        raise lacks(run, f"samples of TCP flows across `{chosen.queue}`", 'flows = "100ms"')
    rates = []
    for flow in np.unique(found["flow"]):
        own = found["flow"] == flow
        # We assume that a flow received nothing before its first sample, and nothing more after its last one.
        received = np.interp(instants, found["t_ns"][own], found["received"][own], left=0.0)
        rates.append(np.diff(received) * 8e3 / np.diff(instants))
    return instants[1:] / 1e9, rates


def _ping(results: Results, chosen: Chosen, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    run = chosen.run
    key = 'queues = "100ms"'
    if "queues" not in run.manifest.tables:
        raise lacks(run, "samples of queues", key)
    backlog = results.tables.arrays(
        "queues",
        "t_ns / 1e9 AS t_s, backlog_packets, backlog_bytes",
        f"WHERE queue = {quoted(chosen.queue)} ORDER BY t_ns",
        [run],
    )
    if not len(backlog["t_s"]):
        raise lacks(run, f"samples of `{chosen.queue}`", key)
    ((base_ns,),) = results.tables.rows(
        "flows", "avg(base_rtt_ns)::DOUBLE", f"WHERE class IN ({_downloading(chosen)})", [run]
    )
    # The sample at a given time, or the last one before it.
    at = np.maximum(np.searchsorted(backlog["t_s"], times + 1e-9, side="right") - 1, 0)
    link = run.plan.link(chosen.queue)
    added = 0 if link is None else link.overhead_bytes
    sent_bytes = np.asarray(backlog["backlog_bytes"])[at] + added * np.asarray(backlog["backlog_packets"])[at]
    if run.changes(chosen.queue):
        waits_ms = _waits_ms(results, chosen, np.asarray(backlog["t_s"])[at], sent_bytes)
    else:
        waits_ms = sent_bytes * 8e3 / run.rate_bps(chosen.queue)
    ping: npt.NDArray[np.float64] = base_ns / 1e6 + waits_ms
    return ping


def _waits_ms(
    results: Results, chosen: Chosen, since: npt.NDArray[np.float64], sent_bytes: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return how long the link needs for these bytes from these times on, by the samples of its capacity.

    After the last sample, the link is assumed to have its mean rate.
    """
    own = results.tables.arrays(
        "capacity",
        "t_ns / 1e9 AS t_s, capacity_bytes::DOUBLE AS bytes",
        f"WHERE queue = {quoted(chosen.queue)} ORDER BY t_ns",
        [chosen.run],
    )
    rest_bps = chosen.run.rate_bps(chosen.queue)
    waits_s = draining_times(own["t_s"], own["bytes"], since.tolist(), sent_bytes.tolist(), rest_bps)
    return 1e3 * np.asarray(waits_s, dtype=np.float64)


def _downloading(chosen: Chosen) -> str:
    """Return the classes of TCP flows whose data cross the queue, as a list in SQL; it may be empty."""
    plan = chosen.run.plan
    return ", ".join(map(quoted, sorted(plan.responsive - plan.elsewhere(chosen.queue))))
