"""A scenario with its links uncongested, and with only the calibrated classes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aqmlab.calibration.population import Population
from aqmlab.errors import UsageError, unknown
from aqmlab.language.scenario import resolve
from aqmlab.recordings.plan import Link, Plan, quantity_text
from aqmlab.results.cells import axes_of, axis_named
from aqmlab.text.numbers import listed

QUEUE = {"kind": "droptail", "limit": "10s"}
"""The queue that replaces every link's own queue; it holds as much as the link sends in ten seconds."""

_LEFT_OUT = ("sweep", "claim", "arm", "stop", "metrics", "live", "question", "runs", "seed")
_NOT_FOLLOWED = ("record", "stop", "live", "duration", "warmup", "question")
"""Keys that are ignored in an arm's changes, because a calibration sets them itself."""


@dataclass(frozen=True)
class Case:
    """One arm of one case of a scenario.

    Attributes
    ----------
    content
        The case's scenario, with the changes of each arm written as dotted paths.
    arm
        The arm's name.
    plan
        The resolved scenario.
    seed
        The scenario's first seed.
    swept
        Paths that the sweep sets.
    """

    content: Mapping[str, Any]
    arm: str
    plan: Plan
    seed: int
    swept: frozenset[str]


def cases(text: str, name: str, arm: str | None, where: Mapping[str, str]) -> Iterator[Case]:
    """Return the cases of a scenario that have the given labels, under one arm or all arms.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If an arm, axis or label is unknown.
    """
    from aqmlab import _core

    swept = _core.Sweep(text, name)
    about = json.loads(swept.about())
    if arm is not None and arm not in about["arms"]:
        raise unknown("arm", arm, about["arms"])
    axes = axes_of(about)
    wanted = {axis_named(axes, axis).name: label for axis, label in where.items()}
    for axis in axes:
        if axis.name in wanted and wanted[axis.name] not in axis.labels:
            raise unknown(f"label of `{axis.short}`", wanted[axis.name], axis.labels)
    for i in range(int(about["cases"])):
        case = json.loads(swept.case(i))
        labels = {str(axis): str(label) for axis, label in case["settings"]}
        if any(labels[axis] != label for axis, label in wanted.items()):
            continue
        content = tomllib.loads(case["toml"])
        for planned in case["arms"]:
            if arm in (None, planned["name"]):
                yield Case(
                    content,
                    planned["name"],
                    Plan.of(planned["plan"]),
                    int(about["seeds"][0]),
                    frozenset(key for axis in axes for key in axis.keys),
                )


@dataclass(frozen=True)
class Uncongested:
    """The rules that make a scenario's links uncongested, and the classes that send.

    Attributes
    ----------
    populations
        The calibrated classes.
    others
        Names of other classes that send.
    faster
        Factor by which links are faster.
    keep
        Names of links that keep their rates; ``*`` stands for any characters.
    warmup_ns, end_ns
        When measurement begins and ends.
    folder
        Folder to which the relative names of files in the scenario refer.
    """

    populations: Sequence[Population]
    others: Collection[str]
    faster: float
    keep: Sequence[str]
    warmup_ns: int
    end_ns: int
    folder: Path

    def is_kept(self, link: str) -> bool:
        """Return whether a link keeps its rate."""
        return any(fnmatchcase(link, pattern) for pattern in self.keep)

    def rate_bps(self, link: Link) -> int:
        """Return the rate of a link in the changed scenario."""
        return link.rate_bps if self.is_kept(link.name) else round(self.faster * link.rate_bps)

    @property
    def senders(self) -> frozenset[str]:
        """Names of the classes that send."""
        return frozenset({one.name for one in self.populations} | set(self.others))

    def scenario(self, case: Case) -> dict[str, Any]:
        """Return a case's scenario for one arm, without a sweep; the populations' numbers are unchanged."""
        content = {key: value for key, value in case.content.items() if key not in _LEFT_OUT}
        title = str(content.get("title", "scenario"))
        content |= {
            "title": f"calibrate {', '.join(one.name for one in self.populations)}: {title}",
            "duration": quantity_text(self.end_ns, "ns"),
            "warmup": quantity_text(self.warmup_ns, "ns"),
            "record": {"queues": "0s", "flows": "0s"},
            "traffic": [self._entry(entry) for entry in case.content["traffic"]],
        }
        content["arm"] = [{"name": case.arm} | self._changes(case)]
        return content

    def _entry(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a class of traffic, with an absolute path to its file if necessary."""
        file = {"file": str((self.folder / entry["file"]).resolve())} if "file" in entry else {}
        return {**entry, **file}

    def _changes(self, case: Case) -> dict[str, Any]:
        """Return the changes of the arm, followed by those that make links uncongested."""
        own = (
            (each, value)
            for path, value in _arm(case).items()
            if path != "name" and path.split(".")[0] not in _NOT_FOLLOWED
            for each in self._written_out(path)
        )
        changes: dict[str, Any] = {}
        for path, value in (*own, *self._network(case)):
            # Later changes take precedence, even where the arm sets the same path or a part of it.
            changes.pop(path, None)
            changes[path] = value
        return changes

    def _written_out(self, path: str) -> Iterator[str]:
        """Expand a path with a star in the class's name into one path per sending class that matches."""
        first, _, rest = path.partition(".")
        name, _, key = rest.partition(".")
        if first != "traffic" or "*" not in name:
            yield path
            return
        for sender in sorted(self.senders):
            if fnmatchcase(sender, name):
                yield f"traffic.{sender}.{key}"

    def _network(self, case: Case) -> Iterator[tuple[str, Any]]:
        for link, place, prefix in _placed(case):
            yield f"{place}.{prefix}rate", quantity_text(self.rate_bps(link), "bps")
            yield f"{place}.{prefix}queue", QUEUE
            yield f"{place}.{prefix}faults", {}
        for planned in case.plan.classes:
            if planned.name in self.senders:
                # Set explicitly, because the default depends on the slowest link, which is faster now.
                access = quantity_text(planned.access.rate_bps, "bps") if planned.access else "none"
                yield f"traffic.{planned.name}.access_rate", access
            else:
                yield f"traffic.{planned.name}.enabled", False
        for one in self.populations:
            yield one.path, one.toml(one.written)

    def _with_rates(self, links: Sequence[Link]) -> Iterator[str]:
        """Name links with their rates, a link and its reverse link together if their rates are equal."""
        back: set[str] = set()
        for i, link in enumerate(links):
            if link.name in back:
                continue
            ways = (
                other.name
                for other in links[i + 1 :]
                if (other.source, other.target, other.rate_bps) == (link.target, link.source, link.rate_bps)
            )
            way = next(ways, None)
            back |= set() if way is None else {way}
            both = "" if way is None else " and back"
            yield f"`{link.name}`{both} ({quantity_text(self.rate_bps(link), 'bps')})"

    def differences(self, case: Case) -> tuple[str, ...]:
        """Describe the differences from the scenario in words."""
        said = []
        for kept, what in (
            (False, f"links {self.faster:g} times as fast"),
            (True, "links that keep their rate"),
        ):
            links = [link for link in case.plan.links if self.is_kept(link.name) == kept]
            if links:
                said.append(f"{what}: {listed(list(self._with_rates(links)))}")
        said.append(f"every queue is drop-tail and holds {QUEUE['limit']} at its link's rate; no faults")
        absent = [f"`{one.name}`" for one in case.plan.classes if one.name not in self.senders]
        if absent:
            said.append(f"left out: {listed(absent)}")
        plan = case.plan
        if plan.ends_early or self.end_ns != plan.end_ns or self.warmup_ns != plan.warmup_ns:
            begin, end = (quantity_text(ns, "ns") for ns in (self.warmup_ns, self.end_ns))
            said.append(f"measured from {begin} to {end}, whatever the scenario's [stop] says")
        return tuple(said)


def _arm(case: Case) -> Mapping[str, Any]:
    arms: Sequence[Mapping[str, Any]] = case.content.get("arm", ())
    return next((arm for arm in arms if arm["name"] == case.arm), {})


def _placed(case: Case) -> Iterator[tuple[Link, str, str]]:
    """Return each link with the path of its table, and the prefix of its keys there."""
    links = {link.name: link for link in case.plan.links}
    kind = case.content["topology"]["kind"]
    if kind == "dumbbell":
        yield links["bottleneck"], "topology", ""
        yield links["reverse"], "topology", "reverse_"
    elif kind == "parking_lot":
        for name, link in links.items():
            back = name.endswith("-reverse")
            yield link, f"topology.{name.removesuffix('-reverse')}", "reverse_" if back else ""
    else:
        for entry in case.content["link"]:
            there = f"{entry['from']}-{entry['to']}"
            name = entry.get("name", there)
            yield links[name], f"link.{name}", ""
            way_back = links.get(f"{name}-reverse" if "name" in entry else f"{entry['to']}-{entry['from']}")
            if entry.get("duplex", True) and way_back is not None:
                yield way_back, f"link.{name}", "reverse_"


def the_same(found: Sequence[tuple[Case, Mapping[str, Any]]], more: str) -> None:
    """Refuse cases that differ in settings on which the load depends.

    Raises
    ------
    UsageError
        If two cases differ; the message gives a remedy.
    """
    (first, scenario), *others = found
    digest = resolve(scenario)["arms"][0]["digest"]
    for case, other in others:
        if resolve(other)["arms"][0]["digest"] != digest:
            what = f"the arms `{first.arm}` and `{case.arm}`"
            if case.arm == first.arm:
                what = "cases of the sweep"
            raise UsageError(f"{what} differ in settings that determine the load; {more}")
