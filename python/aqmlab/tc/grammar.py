"""The words of a discipline in tc: how they are read, and the remarks that several disciplines make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import linux, numbers
from aqmlab.tc.effective import NoCounterpartError, Queue, effective
from aqmlab.tc.numbers import Kept

DEFAULT_RATE_BPS = 8 * linux.DEFAULT_RATE
"""RED's ``bandwidth`` if none is given (tc-red(8)), and the link's rate for disciplines without one."""
FULL_PACKET = 1500
"""The largest packet of most links, in bytes."""
HEADERS = "over Ethernet, Linux counts 14 bytes of header with each packet; aqmlab does not"


class Given(dict[str, Any]):
    """The value of each word: a :class:`~aqmlab.tc.numbers.Kept`, or that of a word without a value.

    Attributes
    ----------
    each
        All words in their order; the mapping has the last value of a repeated word, as tc does.
    """

    def __init__(self, each: Iterable[tuple[str, Any]] = ()) -> None:
        self.each = tuple(each)
        super().__init__(self.each)


@dataclass
class Reading:
    """What the words of a discipline mean: the queue, which may raise :class:`NoCounterpartError`.

    Attributes
    ----------
    shown
        What ``tc -d qdisc show`` prints; empty if tc printed the words.
    """

    queue: Callable[[], Queue]
    shown: str
    remarks: list[str]
    rate_bps: int | None = None


@dataclass(frozen=True)
class Grammar:
    """The words of a discipline: with a value, without a value, and without an equivalent in aqmlab."""

    values: Mapping[str, Callable[[str], Kept]]
    flags: Mapping[str, tuple[str, Any]]
    refused: Mapping[str, str]
    queue: Callable[[Given], Reading]


@dataclass(frozen=True)
class Vocabulary:
    """A discipline of Linux in tc's words.

    Attributes
    ----------
    given
        The words that a user writes.
    shown
        The words that tc prints.
    """

    given: Grammar
    shown: Grammar


Written = tuple[str, list[str]]
"""The words for a link's queue, which Linux need not accept, and remarks on what they leave out."""
Writer = Callable[[Link], Written]


def given_words(kind: str, words: Sequence[str], grammar: Grammar) -> Iterator[tuple[str, Any]]:
    """Yield each word with its value."""
    rest = iter(words)
    for word in rest:
        if word in grammar.flags:
            yield grammar.flags[word]
        elif word in grammar.values:
            value = next(rest, None)
            if value is None:
                raise UsageError(f"{kind}: `{word}` has no value")
            try:
                yield word, grammar.values[word](value)
            except UsageError as error:
                raise UsageError(f"{kind} {word}: {error}") from None
        elif word in grammar.refused:
            raise NoCounterpartError(f"{kind}: `{word}` has no equivalent in aqmlab: {grammar.refused[word]}")
        else:
            known = ", ".join(f"`{name}`" for name in (*grammar.values, *grammar.flags))
            raise UsageError(f"{kind}: `{word}` is not an option; the options are {known}")


def checked(queue: Queue) -> Callable[[], Queue]:
    """Return a function that returns this queue, or raises an error if the discipline refuses a parameter."""

    def check() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    return check


def value(given: Given, word: str) -> int:
    """Return the whole number that tc keeps; 0 if there is none."""
    return int(given[word].value) if word in given else 0


def changes(given: Given, units: Mapping[str, str]) -> list[str]:
    """Return a remark on each number that tc changes or takes as not given."""
    remarks = []
    for word, unit in units.items():
        if word not in given:
            continue
        kept = given[word]
        written = f"`{word} {kept.text}`"
        if kept.value == 0:
            remarks.append(f"tc takes {written} as not given")
        elif kept.changed:
            remarks.append(f"tc keeps {written} as {_quantity(int(kept.value), unit)}")
    return remarks


def _quantity(value: int, unit: str) -> str:
    scale, unit = _SCALES.get(unit, (1, unit))
    return quantity_text(scale * value, unit)


_SCALES = {"Bps": (8, "bps"), "us": (1000, "ns")}


def rounded(given: Given, words: Sequence[str]) -> list[str]:
    """Return a remark on sizes that tc shows in larger units."""
    found = [
        f"`{word} {given[word].text}`"
        for word in words
        if word in given and given[word].text[-2:] in ("Kb", "Mb")
    ]
    if not found:
        return []
    return [
        f"tc rounds the sizes that it shows: {', '.join(found)} may be up to 15 B (Kb) or 1023 B (Mb) away"
    ]


def raised(quantum: int) -> list[str]:
    """Return a remark if Linux raises this quantum."""
    return ["Linux raises the quantum to 256 B"] if 0 < quantum < linux.LEAST_QUANTUM else []


def limit_in_packets(settings: Mapping[str, Any], mean_packet: int) -> int:
    """Return a queue's limit in packets, also if it is in bytes."""
    return int(settings.get("limit_packets") or max(1, settings["limit_bytes"] // mean_packet))


def time_words(us: int) -> str:
    """Return a time as a word of tc."""
    return f"{us // 1000}ms" if us % 1000 == 0 else f"{us}us"


def no_room(limit: int) -> list[str]:
    """Return a remark if the limit is below the size of a full packet."""
    if limit >= FULL_PACKET:
        return []
    return [f"a packet of more than {in_bytes(limit)} never finds room: Linux drops it"]


def in_bytes(value: int) -> str:
    """Return a size in the notation of scenarios."""
    return quantity_text(value, "bytes")


def size_shown(text: str) -> Kept:
    """Read a size as tc shows it."""
    shown = numbers.size(text.replace("Mb", "")).value * (2**20 if text.endswith("Mb") else 1)
    return Kept(text, shown, min(shown, numbers.LARGEST))  # tc shows the largest sizes as `4096Mb`


def packets_shown(text: str) -> Kept:
    """Read a number of packets as tc shows it."""
    return numbers.count(text.removesuffix("p"))


ECN: Mapping[str, tuple[str, Any]] = {"ecn": ("ecn", True), "noecn": ("ecn", False)}
"""The words that switch ECN on and off."""
