"""Tasks: runs as plain data, so that any process on any machine can execute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aqmlab.arguments import names, whole
from aqmlab.errors import UsageError

DEFAULT_PCAP_BYTES = 128
LEAST_PCAP_BYTES = 20
MOST_PCAP_BYTES = 65_535

SIMULATOR = "sim"
LIVE = "live"
"""The names of the hosts in manifests."""


class Capture(NamedTuple):
    """The packets to keep.

    Attributes
    ----------
    ports
        Names of links; ``("all",)`` for all.
    bytes
        Number of bytes that are kept from each packet.
    """

    ports: tuple[str, ...] = ()
    bytes: int = DEFAULT_PCAP_BYTES

    @staticmethod
    def chosen(ports: str | Sequence[str], kept_bytes: int | None) -> Capture:
        """Return a capture with a checked number of bytes; by default, the usual number.

        Raises
        ------
        UsageError
            If the number of bytes is out of range.
        """
        return Capture(names(ports) or (), _pcap_bytes(kept_bytes))


NO_CAPTURE = Capture()


def _pcap_bytes(count: int | None) -> int:
    """Return how many bytes to keep of each captured packet: at least an IP header."""
    if count is None:
        return DEFAULT_PCAP_BYTES
    count = whole(count, "`pcap_bytes`")
    if not LEAST_PCAP_BYTES <= count <= MOST_PCAP_BYTES:
        raise UsageError(
            f"`{count}` bytes of each packet cannot be captured; give {LEAST_PCAP_BYTES} to {MOST_PCAP_BYTES}"
        )
    return count


@dataclass(frozen=True)
class Task:
    """One run: everything that a worker needs, on any machine.

    Attributes
    ----------
    digest
        Digest of the run: of its plan, its seed and the versions of the parts that determine its
        result, including its host.
    name
        The run's name in the place where its recording goes; in a store, this is the digest.
    arm, seed
        Which run of the scenario in ``toml`` this is.
    toml
        The scenario of one case.
    file_name
        The file of the scenario, for messages; the files that it names are next to it.
    memory_bytes
        The minimum memory that the run needs.
    parts
        The parts of the program that determine the result, each with the version that is needed.
    replace
        Whether the new recording replaces an existing one, such as a damaged one.
    host
        ``"sim"`` or ``"live"``.
    pcap, pcap_bytes
        Ports whose packets are kept, and how much of each packet.
    """

    digest: str
    name: str
    arm: str
    seed: int
    toml: str
    file_name: str
    memory_bytes: int
    parts: Mapping[str, int]
    replace: bool = False
    host: str = SIMULATOR
    pcap: tuple[str, ...] = ()
    pcap_bytes: int = DEFAULT_PCAP_BYTES

    def to_json(self) -> dict[str, Any]:
        """The task as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Task:
        """The task from the output of :meth:`to_json`."""
        return Task(**{**content, "pcap": tuple(content["pcap"])})
