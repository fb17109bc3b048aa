"""The drafts' rules for the parts of qlog that we write, as JSON Schema.

Written from the text of draft-ietf-quic-qlog-main-schema and draft-ietf-quic-qlog-quic-events, which
contain CDDL but no JSON Schema. Events may have additional fields; their data may not.
"""

from __future__ import annotations

from typing import Any


def table(required: dict[str, Any], optional: dict[str, Any] | None = None, *, more: bool = False) -> Any:
    """An object with these members and, unless ``more``, no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": more,
    }


TEXT = {"type": "string"}
UINT = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
UINT16 = {"type": "integer", "minimum": 0, "maximum": 2**16 - 1}
FLOAT = {"type": "number"}
HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
RAW_INFO = table({}, {"length": UINT, "payload_length": UINT, "data": HEX})
PACKET_TYPES = ["initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "stateless_reset"]
HEADER = table(
    {"packet_type": {"enum": [*PACKET_TYPES, "unknown"]}}, {"packet_number": UINT, "length": UINT16}
)
METRICS = table(
    {},
    {
        **dict.fromkeys(("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"), FLOAT),
        "pto_count": UINT16,
        **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh", "packets_in_flight"), UINT),
        "pacing_rate": UINT,
    },
)
STATE = table({"new": TEXT}, {"old": TEXT, "trigger": TEXT})
PACKET = table({"header": HEADER}, {"raw": RAW_INFO})
DATA = {
    "quic:recovery_metrics_updated": METRICS,
    "quic:congestion_state_updated": STATE,
    "quic:packet_sent": PACKET,
    "quic:packet_received": PACKET,
}
EVENT = {
    "oneOf": [
        table({"time": FLOAT, "name": {"const": name}, "data": data}, more=True)
        for name, data in DATA.items()
    ]
}
COMMON = table(
    {},
    {
        "tuple": TEXT,
        "time_format": {"enum": ["relative_to_epoch", "relative_to_previous_event"]},
        "reference_time": table({"clock_type": TEXT, "epoch": TEXT}, {"wall_clock_time": TEXT}),
        "group_id": TEXT,
    },
    more=True,
)
SIDES = ["client", "server", "network", "unknown"]
VANTAGE_POINT = table(
    {"type": {"enum": SIDES}}, {"name": TEXT, "flow": {"enum": ["client", "server", "unknown"]}}
)
TRACE = table(
    {
        "event_schemas": {"type": "array", "minItems": 1, "items": TEXT},
        "events": {"type": "array", "items": EVENT},
    },
    {"title": TEXT, "description": TEXT, "common_fields": COMMON, "vantage_point": VANTAGE_POINT},
)
FILE = table(
    {
        "file_schema": {"const": "urn:ietf:params:qlog:file:contained"},
        "serialization_format": {"const": "application/qlog+json"},
    },
    {"title": TEXT, "description": TEXT, "traces": {"type": "array", "minItems": 1, "items": TRACE}},
)
