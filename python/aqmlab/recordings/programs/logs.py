"""Files that flent and QUIC stacks leave in a directory, as values with names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import fmean

from aqmlab.recordings.programs.files import Place, ResultsError, parsed
from aqmlab.recordings.programs.tools import Values

_UNITS = {"ms": ("_s", 1e-3), "s": ("_s", 1.0), "Mbits/s": ("_bps", 1e6), "bytes": ("_bytes", 1.0)}
"""The units of flent's series, with the ending and the factor of a value's name and unit."""
_VERSION = 4


def flent(file: Path, data: bytes) -> Values:
    """The mean of each series of a data file of flent: ``Ping (ms) ICMP`` becomes ``ping_icmp_mean_s``.

    Values that flent could not measure are null and do not count.

    Raises
    ------
    ResultsError
        If it is not a data file of version 4.
    """
    whole = parsed(file, data)
    version, results = whole.get("version"), whole.get("results")
    if version is None or version.value != _VERSION or results is None:
        raise whole.wrong(f"it is not a data file of flent in version {_VERSION}")
    if not isinstance(results.value, Mapping):
        raise results.wrong("an object with a list for each series is expected")
    values: dict[str, float] = {}
    for series in results.value:
        places = results.get(series)
        numbers = (
            [] if places is None else [place.number() for place in places.items() if place.value is not None]
        )
        if numbers:
            ending, factor = _UNITS.get(_unit(whole, series), ("", 1.0))
            plain = re.sub(r"\((ms|Mbits/s)\)", "", series).lower()
            slug = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
            values[f"{slug[:48]}_mean{ending}"] = factor * fmean(numbers)
    return values


def _unit(whole: Place, series: str) -> str:
    told = whole.at("metadata", "SERIES_META", series, "UNITS")
    if told is not None:
        return str(told.value)
    # Without metadata of the series, the name of a ping tells its unit, and data series are rates.
    return "ms" if "(ms)" in series else "Mbits/s" if re.match(r"(TCP|UDP|QUIC) .*load", series) else ""


_RECORD_SEPARATOR = b"\x1e"
_SENT, _RECEIVED, _LOST = "packet_sent", "packet_received", "packet_lost"
_RECOVERY = ("metrics_updated", "recovery_metrics_updated")


def qlog(file: Path, data: bytes) -> Values:
    """Counts and means of one qlog file of a connection (JSON, or a sequence of JSON texts by RFC 7464).

    Events are those of the qlog drafts for QUIC; their names may have a prefix (``transport:packet_sent``,
    ``quic:packet_sent``). Times are in ms.

    Raises
    ------
    ResultsError
        If it is malformed, or has no events of QUIC.
    """
    counts = dict.fromkeys((_SENT, _RECEIVED, _LOST), 0)
    rtts: list[float] = []
    least: list[float] = []
    windows: list[float] = []
    some = False
    for event in _events(file, data):
        name = event.get("name")
        if name is None:
            continue
        kind = str(name.value).rpartition(":")[2]
        some = True
        if kind in counts:
            counts[kind] += 1
        elif kind in _RECOVERY:
            for key, seen in (("smoothed_rtt", rtts), ("min_rtt", least), ("congestion_window", windows)):
                place = event.at("data", key)
                if place is not None:
                    seen.append(place.number())
    if not some:
        raise ResultsError(f"`{file}`: it has no events; is this a qlog file?")
    values = {kind.replace("packet", "packets"): float(count) for kind, count in counts.items()}
    if counts[_SENT]:
        values["lost_percent"] = 100.0 * counts[_LOST] / counts[_SENT]
    if rtts:
        values["rtt_mean_s"] = fmean(rtts) / 1e3
    if least:
        values["rtt_min_s"] = min(least) / 1e3
    if windows:
        values["cwnd_mean_bytes"] = fmean(windows)
    return values


def _events(file: Path, data: bytes) -> Iterator[Place]:
    if data.startswith(_RECORD_SEPARATOR):
        for number, record in enumerate(data.split(_RECORD_SEPARATOR)[1:], start=1):
            # By RFC 7464, section 2.4, a last record without its newline was cut off, as by a killed program.
            if record.endswith(b"\n") and record.strip():
                yield parsed(file, record.strip(), f"record {number}")
        return
    traces = parsed(file, data).get("traces")
    if traces is None:
        raise ResultsError(f"`{file}`: `traces` is missing; is this a qlog file?")
    for trace in traces.items():
        events = trace.get("events")
        if events is not None:
            yield from events.items()


LEFT: Mapping[str, tuple[tuple[str, ...], Callable[[Path, bytes], Values]]] = {
    "flent": ((".flent.gz", ".flent"), flent),
    "qlog": ((".qlog", ".sqlog"), qlog),
}
"""The readers of files that programs leave, by the word in ``results``, with the ends of the files' names."""
