"""What an AQM costs to run and to set: sections 11 and 12 of RFC 7928, from tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from aqmlab.characterization.queues import REQUIRED, Aqm
from aqmlab.papers.toml_tables import read_toml
from aqmlab.text.numbers import counted

_AUTOMATIC = "auto"
_SWITCHES = {"preset", "limit", "limit_rule", "memory_limit", "ecn"}
"""Parameters that are not the law's: the buffer and whether packets are marked."""
_MEASURED = ("instructions", "packet_bytes", "flow_bytes")
COSTS_NOTE = (
    "Instructions in user space per packet that arrives and leaves, with 100 packets of one flow waiting;"
    " laws that draw mark 5 % of them. Bytes are those of the queue's memory in this program, of which a"
    " packet itself takes 32."
)
"""How the numbers of complexity.toml were measured."""


class Cost(NamedTuple):
    """One AQM.

    Attributes
    ----------
    aqm
        Its name.
    instructions, packet_bytes, flow_bytes
        Instructions per packet, bytes per packet that waits, and further bytes per flow; a phrase where they
        were not measured.
    set_by_hand
        What its author set, and what has no default.
    """

    aqm: str
    instructions: str
    packet_bytes: str
    flow_bytes: str
    set_by_hand: str


def costs(aqms: Sequence[Aqm]) -> tuple[Cost, ...]:
    """The rows of sections 11 and 12."""
    file = Path(str(resources.files("aqmlab.characterization") / "complexity.toml"))
    measured = read_toml(file).content
    found = []
    for aqm in aqms:
        of = measured.get(aqm.kind, {})
        instructions, packet, flow = (str(of.get(key, "not measured")) for key in _MEASURED)
        found.append(Cost(aqm.name, instructions, packet, flow, _by_hand(aqm)))
    return tuple(found)


def _by_hand(aqm: Aqm) -> str:
    """Count the law's parameters by where their values come from."""
    rows = {name: row for name, row in aqm.parameters.items() if name not in _SWITCHES}
    required = [name for name, row in rows.items() if row["default"] == REQUIRED]
    automatic = [name for name, row in rows.items() if str(row["default"]).startswith(_AUTOMATIC)]
    given = [name for name in aqm.queue if name in rows]
    said = [f"{counted(len(required), 'parameter')} of {len(rows)} must be set"]
    said.append(f"{len(automatic)} follow from others, from the rate or from the round trip")
    said.append(f"set here: {', '.join(given)}" if given else "none is set here")
    return "; ".join(said)
