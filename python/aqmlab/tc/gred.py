"""gred in tc's words, both ways: a table, and a line for each virtual queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import numbers, red
from aqmlab.tc.effective import NoCounterpartError, Queue
from aqmlab.tc.grammar import DEFAULT_RATE_BPS, HEADERS, Given, Grammar, given_words, size_shown, value

MOST_QUEUES = 16
USUAL_PRIORITY = 8
_NEEDED = ("DP", "limit", "min", "max", "avpkt")
_GIVEN = Grammar(
    values={
        **dict.fromkeys(("limit", "min", "max", "avpkt"), numbers.size),
        **dict.fromkeys(("burst", "DP", "vq", "prio"), numbers.count),
        "probability": numbers.chance,
        "bandwidth": numbers.rate,
    },
    flags={word: (word, True) for word in ("ecn", "harddrop")},
    refused={},
    queue=red.VOCABULARY.given.queue,
)
_SHOWN = Grammar(
    values={**red.VOCABULARY.shown.values, **dict.fromkeys(("vq", "prio"), numbers.count)},
    flags=_GIVEN.flags,
    refused={},
    queue=red.VOCABULARY.shown.queue,
)


@dataclass(frozen=True)
class _Table:
    """The words of ``setup``."""

    queues: int
    default: int
    priorities: bool
    limit: int
    marks: bool


def _table(words: Sequence[str], *, shown: bool) -> _Table:
    sizes = size_shown if shown else numbers.size
    grammar = Grammar(
        values={**dict.fromkeys(("vqs", "DPs", "default"), numbers.count), "limit": sizes},
        flags={word: (word, True) for word in ("grio", "ecn", "harddrop")},
        refused={},
        queue=_GIVEN.queue,
    )
    if not shown and words[:1] != ["setup"]:
        raise UsageError("gred: the first command of a table has `setup`, as in `gred setup vqs 3 default 2`")
    found = Given(given_words("gred setup", words if shown else words[1:], grammar))
    number = value(found, "vqs") or value(found, "DPs")
    if not number or "default" not in found:
        raise UsageError("gred setup: `vqs` and `default` must be given")
    if number > MOST_QUEUES:
        raise UsageError(f"gred setup: tc knows at most {MOST_QUEUES} virtual queues, and `vqs` is {number}")
    default = value(found, "default")
    if default >= number:
        raise UsageError(f"gred setup: `default` {default} must be less than `vqs` {number}")
    marks = bool(found.get("ecn") or found.get("harddrop"))
    return _Table(number, default, bool(found.get("grio")), value(found, "limit"), marks)


def read(
    setup: Sequence[str],
    queues: Sequence[Sequence[str]],
    place: Callable[[int], Callable[[UsageError], UsageError]],
    *,
    shown: bool,
) -> tuple[Queue, list[str]]:
    """Return the queue of a table and the words of its virtual queues, and remarks.

    ``place`` returns what adds its line to an error about one of the virtual queues.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words, or aqmlab has no equivalent.
    """
    table = _table(setup, shown=shown)
    if table.marks and queues:
        raise UsageError(
            "gred: after `ecn` or `harddrop` in `setup`, the kernel refuses virtual queues; write the word"
            " with each of them"
        )
    classes: dict[int, dict[str, Any]] = {}
    priorities: dict[int, int] = {}
    remarks: list[str] = []
    for index, words in enumerate(queues):
        try:
            given = Given(given_words("gred", words, _SHOWN if shown else _GIVEN))
            number = value(given, "vq") if "vq" in given else value(given, "DP")
            found = _shown_queue(given, remarks) if shown else _given_queue(given, table, remarks)
            if number >= table.queues:
                raise UsageError(
                    f"gred: the kernel refuses the virtual queue {number}: `vqs` is {table.queues}"
                )
        except UsageError as error:
            raise place(index)(error) from None
        usual = priorities.get(table.default, USUAL_PRIORITY)
        priorities[number] = value(given, "prio") or usual
        classes[number] = found
    if table.default not in classes:
        raise NoCounterpartError(
            f"gred: the default virtual queue {table.default} is not set up; Linux queues packets without RED"
            " that belong to no other; add it"
        )
    queue: dict[str, Any] = {"kind": "gred", "preset": "linux"}
    equal = len(set(priorities.values())) < len(priorities)
    if table.priorities and len(classes) > 1:
        queue["average"] = "all" if equal else "priority"
    if table.priorities and equal:
        remarks.append("two virtual queues have the same `prio`, so `grio` makes Linux average all packets")
    if not table.priorities and any(one != USUAL_PRIORITY for one in priorities.values()) and not shown:
        remarks.append("without `grio`, Linux ignores `prio`")
    tables = []
    for number, found in sorted(classes.items()):
        one: dict[str, Any] = {"name": f"dp{number}"}
        if number != table.default:
            one["traffic"] = [one["name"]]
        if queue.get("average") == "priority":
            one["priority"] = priorities[number]
        tables.append(one | found)
    queue["class"] = tables
    if len(tables) > 1:
        remarks.append(
            "filters are not read: `traffic` of a class names the traffic that belongs to it; write yours, or"
            " `dscp` or `port`"
        )
    return queue, list(dict.fromkeys([*remarks, HEADERS]))


def _given_queue(given: Given, table: _Table, remarks: list[str]) -> dict[str, Any]:
    needed = [
        word
        for word in _NEEDED
        if not value(given, word) and not (word == "DP" and {"DP", "vq"} & set(given))
    ]
    if needed:
        names = ", ".join(f"`{word}`" for word in needed)
        raise UsageError(f"gred: {names} must be given with each virtual queue")
    try:
        kernel = red.in_kernel(given, "red")
    except UsageError as error:
        raise UsageError(f"g{error}") from None
    rate_bps = int(8 * given["bandwidth"].written) if value(given, "bandwidth") else DEFAULT_RATE_BPS
    found = dict(red.queue_of(given, kernel, rate_bps))
    remarks += [*red.averaging(given, kernel), red.bandwidth(rate_bps)]
    if table.limit and table.limit < value(given, "limit"):
        found["limit"] = quantity_text(table.limit, "bytes")
        remarks.append("Linux lowers `limit` of a virtual queue to that of `setup`")
    return {name: kept for name, kept in found.items() if name not in ("kind", "preset")}


def _shown_queue(given: Given, remarks: list[str]) -> dict[str, Any]:
    reading = _SHOWN.queue(given)
    remarks += [remark for remark in reading.remarks if remark not in (red.IDLE, HEADERS)]
    return {name: kept for name, kept in reading.queue().items() if name not in ("kind", "preset")}


def write(link: Link) -> tuple[str, list[str], list[str]]:
    """Return the words of the table, those of its virtual queues, and remarks."""
    settings = link.settings
    classes, average = settings["class"], settings["average"]
    if len(classes) > MOST_QUEUES:
        raise NoCounterpartError(f"`class`: Linux knows at most {MOST_QUEUES} virtual queues")
    table = f"gred setup vqs {len(classes)} default {rest(classes)}" + " grio" * (average != "class")
    queues, remarks = [], []
    if settings.get("limit_packets") or settings.get("limit_bytes"):
        remarks.append("`limit`: nothing limits all virtual queues together in Linux")
    for number, one in enumerate(classes):
        own = {**settings, **{name: kept for name, kept in one.items() if kept is not None}}
        words, more = red.write(_with(link, own))
        words = words.removeprefix("red ")
        if average != "class":
            words += f" prio {max(1, one['priority']) if average == 'priority' else USUAL_PRIORITY}"
        queues.append(f"gred {words} vq {number}")
        remarks += more
    return table, queues, remarks


def _with(link: Link, settings: Mapping[str, Any]) -> Link:
    return replace(link, queue="red", settings=settings)


def rest(classes: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the class that takes all other packets."""
    unnamed = (
        i for i, one in enumerate(classes) if not any(one.get(by) for by in ("traffic", "dscp", "port"))
    )
    return next(unnamed, len(classes) - 1)


def virtual_queues(words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Divide what tc shows of a table into the words of the table and those of each virtual queue."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "vq":
            parts.append([])
        parts[-1].append(word)
    return parts[0], parts[1:]
