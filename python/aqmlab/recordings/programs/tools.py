"""What iperf3, curl and netperf print, and the JSON object that any program may write, as values with names.

Names of values end in their unit, like those of metrics. A value that the tool did not print is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import fmean

from aqmlab.recordings.programs.files import Place, ResultsError, parsed

Values = Mapping[str, float]
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The names of values."""
_MOST_NAMES = 1000
_MOST_LINES = 100_000


def _present(found: Mapping[str, tuple[Place | None, float]]) -> dict[str, float]:
    """Return the values that are there, each times its factor."""
    return {name: factor * place.number() for name, (place, factor) in found.items() if place is not None}


def named(file: Path, data: bytes) -> Values:
    """An object of numbers by name: ``{"startup_s": 0.81, "stalls": 2}``.

    Raises
    ------
    ResultsError
        If it is anything else.
    """
    whole = parsed(file, data, once=True)
    if not isinstance(whole.value, dict):
        raise whole.wrong('write one object with a number for each name, as in {"startup_s": 0.81}')
    if len(whole.value) > _MOST_NAMES:
        raise whole.wrong(f"it has {len(whole.value)} names; at most {_MOST_NAMES} are read")
    for name in whole.value:
        if not NAME.fullmatch(name):
            raise whole.wrong(
                f"the name `{name[:80]}` must consist of at most 64 small letters, digits and `_`, and begin"
                " with a letter"
            )
    return {name: place.number() for name in whole.value if (place := whole.get(name)) is not None}


def iperf3(file: Path, data: bytes) -> Values:
    """The summary of ``iperf3 --json``: TCP in both directions, or UDP.

    Raises
    ------
    ResultsError
        If it is anything else, or reports an error.
    """
    whole = parsed(file, data)
    if (error := whole.get("error")) is not None:
        raise error.wrong(f"iperf3 reports: {str(error.value)[:200]}")
    end = whole.get("end")
    if end is None:
        raise whole.wrong("`end` is missing; is this the output of `iperf3 --json`?")
    sent, received, both = end.get("sum_sent"), end.get("sum_received"), end.get("sum")
    found: dict[str, tuple[Place | None, float]] = {}
    # With UDP, `sum` has the counts of the receiver, and older versions have nothing else.
    of_udp = both is not None and both.get("jitter_ms") is not None
    for name, place in (("sent", sent or (both if of_udp else None)), ("received", received)):
        if place is not None:
            found[f"{name}_bps"] = (place.get("bits_per_second"), 1.0)
            found[f"{name}_bytes"] = (place.get("bytes"), 1.0)
    if sent is not None:
        found["retransmits"] = (sent.get("retransmits"), 1.0)
    if of_udp and both is not None:
        found["jitter_s"] = (both.get("jitter_ms"), 1e-3)
        found["lost_percent"] = (both.get("lost_percent"), 1.0)
        found["datagrams"] = (both.get("packets"), 1.0)
    values = _present(found)
    streams = end.get("streams")
    rtts = [
        rtt.number() / 1e6
        for stream in (streams.items() if streams is not None else ())
        if (rtt := stream.at("sender", "mean_rtt")) is not None
    ]
    return {**values, "rtt_mean_s": fmean(rtts)} if any(rtts) else values


_CURL_TIMES = {
    "time_total": "total_s",
    "time_namelookup": "name_lookup_s",
    "time_connect": "connect_s",
    "time_appconnect": "tls_s",
    "time_starttransfer": "first_byte_s",
}


def curl(file: Path, data: bytes) -> Values:
    """The means over the transfers of ``curl --write-out``, with an object ``%{json}`` per line.

    Lines that do not begin with ``{`` are skipped, because curl may print content as well.

    Raises
    ------
    ResultsError
        If there is no such line, or one of them is malformed.
    """
    transfers = [
        parsed(file, line, f"line {number}")
        for number, line in enumerate(_lines(file, data), start=1)
        if line.startswith("{")
    ]
    if not transfers:
        raise ResultsError(f"`{file}`: there is no line of `curl --write-out '%{{json}}\\n'`")
    for one in transfers:
        if one.get("time_total") is None:
            raise one.wrong("`time_total` is missing; write the object with `curl --write-out '%{json}\\n'`")
    values = [
        _present(
            {
                **{name: (one.get(key), 1.0) for key, name in _CURL_TIMES.items()},
                "download_bps": (one.get("speed_download"), 8.0),
                "upload_bps": (one.get("speed_upload"), 8.0),
                "downloaded_bytes": (one.get("size_download"), 1.0),
                "uploaded_bytes": (one.get("size_upload"), 1.0),
            }
        )
        for one in transfers
    ]
    failed = sum(_failed(one) for one in transfers)
    return {**means(values), "transfers": float(len(transfers)), "failed_transfers": float(failed)}


def _failed(transfer: Place) -> bool:
    code, exit_code = transfer.get("http_code"), transfer.get("exitcode")
    refused = code is not None and code.number() >= 400
    return refused or (exit_code is not None and exit_code.number() != 0)


_NETPERF_RATES = {"10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9}
_NETPERF_TIMES = {
    "MIN_LATENCY": "latency_min_s",
    "MEAN_LATENCY": "latency_mean_s",
    "P50_LATENCY": "latency_p50_s",
    "P90_LATENCY": "latency_p90_s",
    "P99_LATENCY": "latency_p99_s",
    "MAX_LATENCY": "latency_max_s",
}


def netperf(file: Path, data: bytes) -> Values:
    """What ``netperf ... -- -k`` prints: a line ``NAME=VALUE`` per output selector; latencies are in us.

    Raises
    ------
    ResultsError
        If there is no throughput, or a value is not a number.
    """
    found: dict[str, Place] = {}
    for number, line in enumerate(_lines(file, data), start=1):
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Z0-9_]+", key):
            found[key] = Place(file, f"line {number}, {key}", value.strip())
    if "THROUGHPUT" not in found:
        raise ResultsError(
            f"`{file}`: there is no line `THROUGHPUT=`; is this the output of `netperf ... -- -k`?"
        )
    values = {name: 1e-6 * _float(found[key]) for key, name in _NETPERF_TIMES.items() if key in found}
    units = found.get("THROUGHPUT_UNITS")
    unit = "10^6bits/s" if units is None else units.value
    throughput = _float(found["THROUGHPUT"])
    if unit == "Trans/s":
        values["transactions_per_s"] = throughput
    elif unit in _NETPERF_RATES:
        values["throughput_bps"] = _NETPERF_RATES[unit] * throughput
    elif units is not None:
        raise units.wrong(
            f"the unit `{str(unit)[:40]}` is unknown; choose one of bits with `-f k`, `-f m`, `-f g`"
        )
    if "TRANSACTION_RATE" in found:
        values["transactions_per_s"] = _float(found["TRANSACTION_RATE"])
    if "LOCAL_TRANSPORT_RETRANS" in found:
        values["retransmits"] = _float(found["LOCAL_TRANSPORT_RETRANS"])
    return values


def _float(place: Place) -> float:
    try:
        return Place(place.file, place.path, float(place.value)).number()
    except ValueError as error:
        raise place.wrong(f"`{place.value[:40]}` is not a number") from error


def _lines(file: Path, data: bytes) -> list[str]:
    lines = data.decode(errors="replace").splitlines()
    if len(lines) > _MOST_LINES:
        raise ResultsError(f"`{file}`: it has {len(lines)} lines; at most {_MOST_LINES} are read")
    return lines


def means(parts: Iterable[Values]) -> dict[str, float]:
    """The mean of each value over the parts that have it."""
    found: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, []).append(value)
    return {name: fmean(values) for name, values in found.items()}


PRINTED: Mapping[str, Callable[[Path, bytes], Values]] = {
    "json": named,
    "iperf3": iperf3,
    "curl": curl,
    "netperf": netperf,
}
"""The readers of what a client writes into one file, by the word in ``results``."""
