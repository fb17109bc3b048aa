"""Conversion of old plans to the present form; before format version 3, quantities were strings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from aqmlab.errors import UsageError

_UNITS = ("ns", "bps", "bytes", "packets")


def present(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan of an earlier version in the present form.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is not a plan, or a quantity in it cannot be read.
    """
    return {
        **plan,
        "links": [_link(link) for link in plan["links"]],
        "classes": [_class(entry) for entry in plan["classes"]],
        "delays": [_delay(rule) for rule in plan.get("delays", ())],
        "record": _record(plan.get("record", {})),
    }


def _link(link: Mapping[str, Any]) -> dict[str, Any]:
    queue = link["queue"]
    return {
        **link,
        "rate_bps": _number(link["rate"], "bps"),
        "delay_ns": _number(link["delay"], "ns"),
        "overhead_bytes": _number(link.get("overhead", "0B"), "bytes"),
        "queue": {**queue, "settings": _settings(queue["settings"])},
    }


def _class(entry: Mapping[str, Any]) -> dict[str, Any]:
    access, start = entry.get("access"), entry.get("start", "0s")
    return {
        **entry,
        "start_ns": None if start in ("trace", "schedule") else _drawn(start, "ns"),
        "access": access
        and {"rate_bps": _number(access["rate"], "bps"), "rtt_ns": _drawn(access["rtt"], "ns")},
        "workload": _workload(entry["workload"]),
    }


_OF_A_WORKLOAD = {"on": "ns", "off": "ns", "burst": "bytes", "rate": "bps", "size": "bytes"}


def _workload(workload: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in workload.items():
        if key in _OF_A_WORKLOAD:
            unit = _OF_A_WORKLOAD[key]
            found[f"{key}_{unit}"] = _drawn(value, unit)
        elif key == "bytes":
            found[key] = None if value == "endless" else _number(value, "bytes")
        else:
            found[key] = _settings(value) if key == "tcp" else value
    return found


def _delay(rule: Mapping[str, Any]) -> dict[str, Any]:
    rate = rule["rate"]
    return {**rule, "rate_bps": None if rate == "unlimited" else _drawn(rate, "bps")}


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    found = {**record, "queues_ns": _number(record.get("queues", "0s"), "ns")}
    if "packets" in record:
        packets = record["packets"]
        until = packets["until"]
        found["packets"] = {
            **packets,
            "from_ns": _number(packets["from"], "ns"),
            "until_ns": None if until is None else _number(until, "ns"),
        }
    return found


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in settings.items():
        unit, number = _setting(value) if isinstance(value, str) else ("", value)
        found[f"{name}_{unit}" if unit else name] = number
    return found


@lru_cache(maxsize=1024)
def _setting(text: str) -> tuple[str, int | str | None]:
    """Return the unit and the number of a parameter's value; a value without a unit is a keyword."""
    if text == "unlimited":
        return "", None
    for unit in _UNITS:
        try:
            return unit, _number(text, unit)
        except ValueError:
            continue
    return "", text


def _drawn(text: str, unit: str) -> Any:  # noqa: ANN401 (a number, or a table of numbers)
    if not text.startswith("{"):
        return _number(text, unit)
    return _in_units(tomllib.loads(f"drawn = {text}")["drawn"], unit)


def _in_units(value: Any, unit: str) -> Any:  # noqa: ANN401 (any value of TOML)
    if isinstance(value, dict):
        return {key: _in_units(each, unit) for key, each in value.items()}
    if isinstance(value, list):
        return [_in_units(each, unit) for each in value]
    return _number(value, unit) if isinstance(value, str) else value


@lru_cache(maxsize=1024)
def _number(text: str, unit: str) -> int:
    from aqmlab import _core

    try:
        return _core.quantity(text, unit)
    except UsageError as error:
        raise ValueError(str(error)) from error


__all__ = ["present"]
