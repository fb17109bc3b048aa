"""pfifo and bfifo in tc's words, both ways: FIFOs with a limit in packets or in bytes."""

from __future__ import annotations

from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.effective import NoCounterpartError, Queue
from aqmlab.tc.grammar import (
    HEADERS,
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    no_room,
    packets_shown,
    rounded,
    size_shown,
    value,
)


def _read(given: Given, unit: str) -> Reading:
    if "limit" not in given:
        message = f"{unit[0]}fifo without `limit` takes the device's txqueuelen as its limit; write a limit"

        def without_limit() -> Queue:
            raise NoCounterpartError(message)

        return Reading(without_limit, "", [])
    limit = value(given, "limit")
    remarks = changes(given, {"limit": unit}) if limit else []
    if unit == "bytes":
        remarks += [*no_room(limit), HEADERS]
    queue = {"kind": "droptail", "limit": quantity_text(limit, unit)}

    shown = f"{unit[0]}fifo limit {linux.size_text(limit) if unit == 'bytes' else f'{limit}p'}"
    return Reading(checked(queue), shown, remarks)


def _read_shown(given: Given) -> Reading:
    reading = _read(given, "bytes")
    reading.remarks += rounded(given, ("limit",))
    return reading


def write(link: Link) -> Written:
    """Return the words for a FIFO."""
    settings, remarks = link.settings, []
    less = 1 if settings["limit_rule"] == "below" else 0
    if settings["limit_rule"] == "reached":
        remarks.append("`limit_rule`: in aqmlab, the last packet may exceed the limit; bfifo refuses it")
    if (packets := settings.get("limit_packets")) is not None:
        return f"pfifo limit {packets - less}", []
    return f"bfifo limit {settings['limit_bytes'] - less}", remarks


PACKETS = Vocabulary(
    given=Grammar({"limit": numbers.size}, {}, {}, lambda given: _read(given, "packets")),
    shown=Grammar({"limit": packets_shown}, {}, {}, lambda given: _read(given, "packets")),
)
BYTES = Vocabulary(
    given=Grammar({"limit": numbers.size}, {}, {}, lambda given: _read(given, "bytes")),
    shown=Grammar({"limit": size_shown}, {}, {}, _read_shown),
)
