"""The scenario of a section with what is tested as its arms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from aqmlab import _core
from aqmlab.characterization.guides import Guide, Subject
from aqmlab.characterization.queues import Aqm
from aqmlab.characterization.sections import Section
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.language.scenario import resolve

_QUEUE = "topology.queue"
_NUMERIC = {"number", "whole number", "size", "time", "rate"}
"""The kinds of parameters that can be halved and doubled."""
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)(.*)")


@dataclass(frozen=True)
class Arm:
    """An arm of a section.

    Attributes
    ----------
    name
        Its name.
    subject
        Name of the AQM or the congestion control that it is about.
    against
        Name of the arm with which it is compared; empty for one that is only compared with.
    """

    name: str
    subject: str
    against: str = ""


@dataclass(frozen=True)
class Prepared:
    """A section that is ready to run.

    Attributes
    ----------
    section
        The section.
    scenario
        The scenario, for :func:`aqmlab.sweep`.
    arms
        The arms that are compared.
    left_out
        Arms that cannot run, with the reasons.
    """

    section: Section
    scenario: dict[str, Any]
    arms: tuple[Arm, ...]
    left_out: tuple[str, ...] = ()


def prepare(
    guide: Guide, section: Section, subjects: Sequence[Subject], rate: str | None, *, quick: bool
) -> Prepared:
    """Return a section's scenario with arms made from what is tested.

    Parameters
    ----------
    guide
        The document that is followed.
    section
        A section with a scenario.
    subjects
        What is tested.
    rate
        The rate of the bottleneck; the scenario's if ``None``. A section with a fixed rate ignores it.
    quick
        Whether to keep only the labels of :attr:`Section.quick`.
    """
    scenario = deepcopy(section.content)
    for key, labels in section.quick.items() if quick else ():
        scenario["sweep"][key] = list(labels)
    if rate is not None and section.scale is not None:
        _scale(scenario, section.scale, rate)
    scenario["title"] = section.title
    arms, tables, left_out = _arms(guide, section, scenario, subjects)
    scenario["arm"] = tables
    return Prepared(section, scenario, arms, left_out)


def _arms(
    guide: Guide, section: Section, scenario: Mapping[str, Any], subjects: Sequence[Subject]
) -> tuple[tuple[Arm, ...], list[dict[str, Any]], tuple[str, ...]]:
    """Return the arms, their tables in the scenario, and the reasons why others are left out."""

    def table(name: str, subject: Subject, **more: object) -> dict[str, Any]:
        settings = subject.settings(section, scenario)
        return {"name": name, **{key: {**value, **more} for key, value in settings.items()}}

    if not (section.ecn or section.parameters):
        compared = [Arm(guide.reference, ""), *(Arm(one.name, one.name, guide.reference) for one in subjects)]
        reference = {"name": guide.reference}
        return tuple(compared), [reference, *(table(one.name, one) for one in subjects)], ()
    arms: list[Arm] = []
    tables: list[dict[str, Any]] = []
    left_out: list[str] = []
    for aqm in subjects:
        if not isinstance(aqm, Aqm):
            raise TypeError(f"{section.id}: `ecn` and `parameters` are for sections about queues")
        if section.ecn:
            switch = "ecn" in aqm.parameters
            name = f"{aqm.name} with ECN"
            arms += [Arm(aqm.name, aqm.name), Arm(name, aqm.name, aqm.name)]
            tables.append(table(aqm.name, aqm, **({"ecn": False} if switch else {})))
            on = table(name, aqm, **({"ecn": True} if switch else {}))
            tables.append({**on, "traffic.*.tcp.ecn": True})
            continue
        arms.append(Arm(aqm.name, aqm.name))
        tables.append(table(aqm.name, aqm))
        for word, changed in _neighbours(aqm, {**scenario, "arm": [table(aqm.name, aqm)]}):
            name = f"{aqm.name}, {word}"
            reason = _refused({**scenario, "arm": [table(name, aqm, **changed)]})
            if reason:
                left_out.append(f"{name}: {reason}")
                continue
            arms.append(Arm(name, aqm.name, aqm.name))
            tables.append(table(name, aqm, **changed))
    return tuple(arms), tables, tuple(left_out)


def _scale(scenario: dict[str, Any], keys: Sequence[str], rate: str) -> None:
    """Give the bottleneck another rate, and multiply buffer and load by the same factor."""
    topology = scenario["topology"]
    factor = _bits(rate, "--rate") / _bits(str(topology["rate"]), "topology.rate")
    topology["rate"] = rate
    if not str(topology["queue"]["limit"]).endswith("bdp"):
        topology["queue"]["limit"] = _times(topology["queue"]["limit"], factor)
    for key in keys:
        table, _, last = key.rpartition(".")
        kind, _, pattern = table.partition(".")
        if kind == "traffic":
            owners = [t for t in scenario["traffic"] if fnmatchcase(t["name"], pattern)]
        else:
            owners = [scenario["topology"][pattern]]
        for owner in owners:
            owner[last] = _times(owner[last], factor)


def _times(value: object, factor: float) -> Any:  # noqa: ANN401 (a value of TOML)
    """Multiply a count, a rate of bits or requests, or a number of packets; counts do not fall below 1."""
    if isinstance(value, int):
        return max(round(value * factor), 1)
    text = str(value)
    if text.endswith("/s"):  # of requests
        return f"{float(text[:-2]) * factor:g}/s"
    if text.endswith("p"):
        return f"{max(round(int(text[:-1]) * factor), 1)}p"
    return f"{round(_bits(text, 'rate') * factor)}bit"


def _bits(text: str, where: str) -> float:
    try:
        bits = float(_core.quantity(text, "bps"))
    except UsageError as error:
        raise UsageError(f"`{where}`: {error}") from None
    if bits <= 0:
        raise UsageError(f"`{where}` is `{text}`; write a rate above zero")
    return bits


def _neighbours(aqm: Aqm, scenario: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return each numeric parameter, halved and doubled, with a name such as ``target 2.5ms``."""
    rows = aqm.parameters
    resolved = resolve({k: v for k, v in scenario.items() if k not in ("sweep", "metrics")})["arms"][0]
    found = []
    for parameter in resolved["parameters"]:
        owner, _, name = str(parameter["path"]).rpartition(".")
        row = rows.get(name) if owner == _QUEUE else None
        if row is None or row["kind"] not in _NUMERIC:
            continue
        number = _QUANTITY.fullmatch(str(parameter["value"]))
        if number is None or float(number[1]) == 0:
            continue  # `none`, `off` and zero have neither a half nor a double
        for factor in (0.5, 2.0):
            value = _changed(float(number[1]) * factor, number[2], whole=row["kind"] == "whole number")
            if value is not None:
                shown = value if isinstance(value, str) else f"{value:g}"
                found.append((f"{name} {shown}", {name: value}))
    return found


def _changed(number: float, unit: str, *, whole: bool) -> float | int | str | None:
    """Return the number with its unit; whole numbers are rounded, and ``None`` if nothing is left of them."""
    if not whole and unit != "p":
        return f"{number:.10g}{unit}" if unit else number
    rounded = round(number)
    if rounded == 0:
        return None
    return f"{rounded}{unit}" if unit else rounded


def _refused(scenario: Mapping[str, Any]) -> str:
    """Return why a scenario cannot run; empty if it can."""
    try:
        resolve({k: v for k, v in scenario.items() if k not in ("sweep", "metrics")})
    except ScenarioError as error:
        return error.errors[0]["message"] if error.errors else str(error)
    return ""
