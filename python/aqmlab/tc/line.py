"""From the queues of a scenario to tc commands, with the values that Linux rounds or cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.language.scenario import Scenario, resolve
from aqmlab.recordings.plan import Link, Plan, quantity_text
from aqmlab.tc.disciplines import NONE_IN_LINUX, WRITTEN
from aqmlab.tc.effective import LEAST_DATAGRAM, NoCounterpartError, effective
from aqmlab.tc.spec import read_tc
from aqmlab.tc.tree_lines import TREES, tree_lines


@dataclass(frozen=True)
class TcLine:
    """A link's queue in tc's syntax, with remarks on the differences in Linux.

    Attributes
    ----------
    arms, link
        The arms and the link of the queue.
    rate_bps
        The link's rate, which the line does not set.
    kind
        The discipline's name in aqmlab.
    spec
        The words after ``tc qdisc add dev DEV root``; ``None`` if Linux has no such discipline, or tc or the
        kernel refuses these values.
    shown
        What ``tc -d qdisc show`` then prints, without handle and place.
    remarks
        Differences in Linux.
    inner
        For a queue of several lines, what each further one adds (``qdisc``, ``class``, ``filter``) or changes
        (``qdisc change``), with its words after the device.
    """

    arms: tuple[str, ...]
    link: str
    rate_bps: int
    kind: str
    spec: str | None
    shown: str | None
    remarks: tuple[str, ...]
    inner: tuple[tuple[str, str], ...] = ()

    @property
    def rate(self) -> str:
        """The link's rate in the notation of scenarios."""
        return quantity_text(self.rate_bps, "bps")


@typed
def tc_lines(scenario: Scenario) -> list[TcLine]:
    """The queues of a scenario's links in each arm; a queue that is the same in several arms appears once.

    Raises
    ------
    ScenarioError
        If the scenario has errors; the exception lists all of them.
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    for arm in resolve(scenario)["arms"]:
        for link in Plan.of(arm["plan"]).links:
            spec, shown, remarks, inner = _line(link)
            key = (link.name, link.rate_bps, link.queue, spec, shown, tuple(remarks), inner)
            found.setdefault(key, []).append(arm["name"])
    return [TcLine(tuple(arms), *key) for key, arms in found.items()]


def written(link: Link) -> tuple[str | None, list[str]]:
    """Return the words for a link's queue, which Linux need not accept, and what they leave out."""
    if link.queue not in WRITTEN:
        return None, [NONE_IN_LINUX[link.queue]]
    return WRITTEN[link.queue](link)


_Inner = tuple[tuple[str, str], ...]


def _line(link: Link) -> tuple[str | None, str | None, list[str], _Inner]:
    if link.queue not in TREES:
        return *_single(link), ()
    try:
        (_, root), *inner = (tree := tree_lines(link, written))[0]
    except NoCounterpartError as error:
        return None, None, [str(error)], ()
    return root.removeprefix("root "), None, tree[1], tuple(inner)


def _single(link: Link) -> tuple[str | None, str | None, list[str]]:
    spec, remarks = written(link)
    if spec is None:
        return None, None, remarks
    try:
        read = read_tc(spec)
    except UsageError as error:
        return None, None, [f"no command sets these values in Linux: {error}"]
    kernels = dict(effective(read.queue, link.rate_bps))
    if kernels.get("mean_packet_bytes") == LEAST_DATAGRAM:
        del kernels["mean_packet_bytes"]  # an automatic value, of which Linux makes no use
    # What tc and the kernel change is remarked on when the words are read, too.
    changes = [remark for remark in read.remarks if not remark.startswith("`bandwidth`")]
    return spec, read.shown, [*_differences(link.settings, kernels), *remarks, *changes]


_BY_RULE = frozenset({"preset", "w_rule", "burst", "mark_p", "max_packet_bytes", "limit_rule", "max_rtt_ns"})
"""Parameters that need no comparison: they only determine others, which are compared, or belong to variants
that are compared by name."""


_UNITS = ("ns", "packets", "bytes", "bps")


def _differences(ours: Mapping[str, Any], kernels: Mapping[str, Any]) -> list[str]:
    """Return a remark on each parameter that has another value in Linux, with the two values."""
    skipped = _BY_RULE | ({"target_ns"} if "min_th_bytes" in kernels else set())
    remarks = []
    for key, value in ours.items():
        if key in skipped or (key == "ecn_region" and not ours["ecn"]):
            continue
        name, _, unit = key.rpartition("_")
        other = kernels.get(key)
        if other is None and unit in ("packets", "bytes") and key != "mean_packet_bytes":
            remarks.append(_other_unit(name, value, unit, kernels))
        elif other is not None and other != value and not _is_close(other, value):
            name = name if unit in _UNITS else key
            remarks.append(f"`{name}`: {_text(key, value)} in aqmlab, {_text(key, other)} in Linux")
    return remarks


def _is_close(one: object, other: object) -> bool:
    return isinstance(one, float) and isinstance(other, float) and isclose(one, other, rel_tol=1e-9)


def _other_unit(name: str, value: int, unit: str, kernels: Mapping[str, Any]) -> str:
    other = "bytes" if unit == "packets" else "packets"
    there = kernels[f"{name}_{other}"]
    ours = quantity_text(value, unit)
    return f"`{name}`: {ours} in aqmlab, {quantity_text(there, other)} in Linux, whatever the packet sizes"


def _text(key: str, value: object) -> str:
    unit = key.rpartition("_")[2]
    if unit in _UNITS and isinstance(value, int):
        return quantity_text(value, unit)
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value:.6g}`" if isinstance(value, float) else f"`{value}`"
