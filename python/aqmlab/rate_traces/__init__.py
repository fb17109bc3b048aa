"""Rates of links from files of other programs, for ``rate = { kind = "file", .. }`` in a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.rate_traces import fcc, iperf3, mahimahi, mobile, ucc
from aqmlab.rate_traces.model import Level, RateTrace

FORMATS = {
    "mahimahi": "mm-link's: one line per chance to send 1500 bytes, its millisecond",
    "mobile": "six columns with bytes and milliseconds per row: Ghent's 4G logs, HSDPA logs",
    "ucc": "G-NetTrack's CSV: 4G and 5G datasets of University College Cork",
    "fcc": "speed tests of Measuring Broadband America: curr_httpgetmt, curr_httppostmt",
    "iperf3": "what `iperf3 --json` prints",
}
"""The formats, with what they are."""


@typed
def trace_import(
    path: str | Path,
    format: str | None = None,
    *,
    direction: str = "down",
    bin_s: float = 0.1,
    unit: str | None = None,
) -> RateTrace:
    """Return the rate over time that a file of another program has.

    Parameters
    ----------
    path
        The file.
    format
        One of :data:`FORMATS`; found from the contents by default.
    direction
        ``down`` or ``up``, for formats with both.
    bin_s
        For chances to send, the interval over which the rate is a mean, in seconds.
    unit
        For speed tests of several homes, the number of one; the first by default.

    Raises
    ------
    UsageError
        If the file is not of this format; the message names the row.
    """
    path = Path(path)
    _check("direction", direction, ("down", "up"))
    if format is not None:
        _check("format", format, FORMATS)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is not text") from None
    lines = text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise UsageError(f"`{path}` is empty")
    if bin_s < 0.001:
        raise UsageError(f"`bin_s` must be at least 0.001 s, not {bin_s:g}")
    match format or _format(path, text, lines):
        case "mahimahi":
            return mahimahi.read(path, lines, bin_s)
        case "mobile":
            return mobile.read(path, lines)
        case "ucc":
            return ucc.read(path, lines, direction)
        case "fcc":
            return fcc.read(path, lines, unit)
        case _:
            return iperf3.read(path, text, direction)


def _check(name: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} `{value}` is none of {', '.join(f'`{one}`' for one in allowed)}")


def _format(path: Path, text: str, lines: list[str]) -> str:
    first = lines[:20]
    found = {
        "mahimahi": mahimahi.fits(first),
        "mobile": mobile.fits(first),
        "ucc": ucc.fits(first),
        "fcc": fcc.fits(first),
        "iperf3": iperf3.fits(text),
    }
    for name, fits in found.items():
        if fits:
            return name
    columns = {name.strip() for name in lines[0].split(",")}
    if columns & {"time_s", "time_ns"} and columns & {"rate_bps", "rate_kbps", "rate_mbps"}:
        written = f'rate = {{ kind = "file", file = "{path.name}" }}'
        raise UsageError(f"`{path}` is what scenarios read already: write `{written}`")
    raise UsageError(f"`{path}` has none of the formats {', '.join(f'`{name}`' for name in FORMATS)}")


__all__ = ["FORMATS", "Level", "RateTrace", "trace_import"]
