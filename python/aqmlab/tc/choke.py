"""CHOKe in tc's words, both ways. Its sizes are in packets, and its average is that of RED."""

from __future__ import annotations

from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import numbers, red
from aqmlab.tc.grammar import (
    Given,
    Grammar,
    Reading,
    Vocabulary,
    Written,
    changes,
    checked,
    packets_shown,
    value,
)

_SIZES = {"limit": "limit", "min": "min_th", "max": "max_th"}
_UNITS = dict.fromkeys((*_SIZES, "burst"), "packets") | {"avpkt": "bytes", "bandwidth": "Bps"}


def _read(given: Given) -> Reading:
    if missing := [word for word in ("limit", "bandwidth") if not value(given, word)]:
        wanted = {"limit": "`limit` in packets", "bandwidth": "`bandwidth`, the rate of the link"}
        raise UsageError(f"choke: tc requires {' and '.join(wanted[word] for word in missing)}")
    kernel = red.in_kernel(given, "choke")
    rate_bps = int(8 * given["bandwidth"].written)
    remarks = [*changes(given, _UNITS), *red.averaging(given, kernel), red.bandwidth(rate_bps), red.IDLE]
    return Reading(lambda: red.queue_of(given, kernel, rate_bps), kernel.shown, remarks, rate_bps)


def _read_shown(given: Given) -> Reading:
    queue: dict[str, Any] = {"kind": "choke", "preset": "linux"}
    queue |= {
        name: quantity_text(value(given, word), "packets") for word, name in _SIZES.items() if word in given
    }
    if given.get("ecn"):
        queue["ecn"] = True
    more, remarks = red.shown_averaging(given)
    queue |= more
    return Reading(checked(queue), "", [*remarks, red.IDLE])


def write(link: Link) -> Written:
    """Return the words for a CHOKe."""
    settings, mean = link.settings, link.settings["mean_packet_bytes"]
    sizes = {
        name: settings.get(f"{name}_packets") or max(1, settings[f"{name}_bytes"] // mean)
        for name in _SIZES.values()
    }
    words, remarks = red.average_words(link, {name: size * mean for name, size in sizes.items()})
    ecn = " ecn" * settings["ecn"]
    limit, low, high = sizes.values()
    return f"choke limit {limit} min {low} max {high} {words}{ecn}", remarks


_FLAGS = {"ecn": ("ecn", True)}
VOCABULARY = Vocabulary(
    given=Grammar(
        values={
            **dict.fromkeys((*_SIZES, "burst"), numbers.count),
            "avpkt": numbers.size,
            "probability": numbers.chance,
            "bandwidth": numbers.rate,
        },
        flags=_FLAGS,
        refused={},
        queue=_read,
    ),
    shown=Grammar({**dict.fromkeys(_SIZES, packets_shown), **red.SHOWN_AVERAGE}, _FLAGS, {}, _read_shown),
)
