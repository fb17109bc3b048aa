"""The actions of senders as qlog: one trace per flow, with windows, round-trip times and packets as events.

A file has the schema ``contained`` of draft-ietf-quic-qlog-main-schema, and its events are those of
draft-ietf-quic-qlog-quic-events. The endpoints use TCP, so segments stand in for QUIC packets. A packet's
number counts everything that its host has sent since the flow's start, including retransmissions;
``tcp_seq`` is the sequence number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aqmlab.exports.chosen import Chosen, lacks
from aqmlab.recordings.traces import FlowName
from aqmlab.results.results import Results
from aqmlab.system.files import json_text

FILE_SCHEMA = "urn:ietf:params:qlog:file:contained"
EVENT_SCHEMA = "urn:ietf:params:qlog:events:quic-07"
"""The version of the draft whose event names are used."""
_STATES = {
    "timeout": ("slow_start", "retransmission_timeout"),
    "fast_retransmit": ("recovery", "fast_retransmit"),
    "ecn_reduction": ("recovery", "ecn"),
}
_METRICS = "t_ns, cwnd_segments::DOUBLE, ssthresh_segments::DOUBLE, srtt_ns, flight_bytes"
_PACKETS = "t_ns, event, toward, number, wire_bytes, payload_bytes, seq, ack, flags, ecn"

Event = dict[str, Any]


def qlog_file(results: Results, chosen: Chosen) -> bytes:
    """Return the qlog of a run: one trace per TCP flow, from its recorded changes or else from samples.

    Raises
    ------
    UsageError
        If the run has neither changes nor samples of a TCP flow.
    """
    run = chosen.run
    table = next((name for name in ("trace", "flow_series") if name in run.manifest.tables), None)
    there = results.tables.rows(table, "DISTINCT flow", "ORDER BY flow", [run]) if table else []
    flows = {int(row[0]) for row in there}
    rows = results.tables.rows("flows", "flow, class, index", "ORDER BY flow", [run])
    of_tcp = run.plan.responsive
    names = [FlowName(int(f), str(c), int(i)) for f, c, i in rows if int(f) in flows and c in of_tcp]
    if table is None or not names:
        raise lacks(run, "change or sample of a TCP sender", f'trace = ["{_first_class(chosen)}"]')
    content = {
        "file_schema": FILE_SCHEMA,
        "serialization_format": "application/qlog+json",
        "title": f"{results.title}: {chosen.cell}, seed {run.seed}",
        "description": f"aqmlab {run.manifest.aqmlab_version}; TCP segments represent QUIC packets",
        "traces": [_trace(results, chosen, name, table) for name in names],
    }
    return (json_text(content) + "\n").encode()


def _first_class(chosen: Chosen) -> str:
    plan = chosen.run.plan
    return next((entry.name for entry in plan.classes if entry.over_tcp), plan.classes[0].name)


def _trace(results: Results, chosen: Chosen, name: FlowName, table: str) -> dict[str, Any]:
    run = chosen.run
    (entry,) = (entry for entry in run.plan.classes if entry.name == name.class_name)
    mss = int((entry.tcp or {})["mss_bytes"])
    event = ", event" if table == "trace" else ", 'change'"
    rows = results.tables.rows(table, _METRICS + event, f"WHERE flow = {name.flow}", [run])
    events = [*_metrics(rows, mss), *_packets(results, chosen, name)]
    # The stable sort keeps the order of simultaneous events.
    events.sort(key=lambda event: event["time"])
    return {
        "title": str(name),
        "common_fields": {
            "time_format": "relative_to_epoch",
            "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
            "group_id": str(name),
        },
        "vantage_point": {"name": "sender", "type": "client"},
        "event_schemas": [EVENT_SCHEMA],
        "events": events,
    }


def _metrics(rows: Sequence[Any], mss: int) -> Iterator[Event]:
    """Return the changes since the previous event, with the reason for a reaction to a loss or mark."""
    before: dict[str, Any] = {}
    for t_ns, cwnd, ssthresh, srtt_ns, flight, event in rows:
        now = {
            "smoothed_rtt": None if srtt_ns is None else srtt_ns / 1e6,
            "congestion_window": None if cwnd is None else round(cwnd * mss),
            "ssthresh": None if ssthresh is None else round(ssthresh * mss),
            "bytes_in_flight": flight,
        }
        changed = {key: value for key, value in now.items() if value is not None and value != before.get(key)}
        if event in _STATES:
            new, trigger = _STATES[event]
            yield _event(t_ns, "congestion_state_updated", {"new": new, "trigger": trigger})
        if changed:
            yield _event(t_ns, "recovery_metrics_updated", changed)
        before = now


def _packets(results: Results, chosen: Chosen, name: FlowName) -> Iterator[Event]:
    """Return the packets sent and received by the sender's host, where recorded."""
    if "packets" not in chosen.run.manifest.tables:
        return
    where = f"WHERE flow = {name.flow} AND event IN ('send', 'arrive')"
    for t_ns, event, toward, number, size, payload, seq, ack, flags, ecn in results.tables.rows(
        "packets", _PACKETS, where, [chosen.run]
    ):
        sent = event == "send" and toward == "receiver"
        if not sent and not (event == "arrive" and toward == "sender"):
            continue
        data = {
            "header": {"packet_type": "1RTT", "packet_number": number},
            "raw": {"length": size, "payload_length": payload or 0},
        }
        of_tcp = {"tcp_seq": seq, "tcp_ack": ack, "tcp_flags": flags, "ecn": ecn}
        yield _event(t_ns, "packet_sent" if sent else "packet_received", data) | of_tcp


def _event(t_ns: int, name: str, data: dict[str, Any]) -> Event:
    return {"time": t_ns / 1e6, "name": f"quic:{name}", "data": data}
