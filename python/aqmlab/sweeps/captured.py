"""The contents of a file of captured packets, from its first blocks (pcapng: draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aqmlab.sweeps.task import Capture

CAPTURE_FILE = "packets.pcapng"

_SECTION, _INTERFACE = 0x0A0D0D0A, 1
_NAME = 2
"""The option that contains an interface's name."""


def has_packets(recording: Path, capture: Capture, ports: int) -> bool:
    """Whether a recording has the requested packets.

    Parameters
    ----------
    recording
        The directory of the recording.
    capture
        The requested capture.
    ports
        Number of ports of the run's network.
    """
    if not capture.ports:
        return True
    try:
        with (recording / CAPTURE_FILE).open("rb") as file:
            kept = dict(_interfaces(file))
    except (OSError, struct.error):
        return False
    wanted = kept.keys() if capture.ports == ("all",) else capture.ports
    whole = capture.ports != ("all",) or len(kept) == ports
    return whole and all(kept.get(port, 0) >= capture.bytes for port in wanted)


def _interfaces(file: BinaryIO) -> Iterator[tuple[str, int]]:
    """Return the name of each interface and the number of bytes that it keeps per packet."""
    while head := file.read(8):
        kind, length = struct.unpack("<II", head)
        if kind not in (_SECTION, _INTERFACE):
            return
        body = file.read(length - 8)
        if kind == _INTERFACE:
            (kept,) = struct.unpack_from("<I", body, 4)
            yield _name(body[8:-4]), kept


def _name(options: bytes) -> str:
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == _NAME:
            return options[at + 4 : at + 4 + length].decode(errors="replace")
        at += 4 + (length + 3) // 4 * 4
    return ""
