"""From a discipline in tc's syntax to a scenario's queue with the preset ``linux``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.plan import quantity_text
from aqmlab.tc import numbers
from aqmlab.tc.effective import Queue, effective

DEFAULT_RATE_BPS = 10_000_000
"""RED's ``bandwidth`` if none is given (tc-red(8))."""
CODEL_UNIT_NS = 1024
"""Linux's CoDel keeps times in units of 1024 ns."""

Given = Mapping[str, Any]


@dataclass(frozen=True)
class TcQueue:
    """A Linux discipline as a queue of a scenario.

    Attributes
    ----------
    spec
        The words, starting with the discipline's name.
    queue
        The queue in the syntax of scenarios.
    rate_bps
        The link's rate if the words contain it; otherwise ``None``.
    remarks
        Remarks on those meanings of the words that the queue does not express.
    """

    spec: str
    queue: Queue
    rate_bps: int | None
    remarks: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The line of a scenario."""
        import tomlkit

        entries = (f"{name} = {tomlkit.item(value).as_string()}" for name, value in self.queue.items())
        return f"queue = {{ {', '.join(entries)} }}"


def read_tc(text: str) -> TcQueue:
    """Return the queue for ``red limit 400000 avpkt 1000 ecn``, or for a whole ``tc qdisc add ...`` command.

    Raises
    ------
    UsageError
        If tc refuses the words, or aqmlab has no equivalent discipline or parameter.
    """
    words = _discipline(text.split())
    spec, (kind, *rest) = " ".join(words), words
    grammar = _GRAMMARS.get(kind)
    if grammar is None:
        raise UsageError(_no_discipline(kind))
    given = dict(_given(kind, rest, grammar))
    queue, rate_bps, remarks = grammar.queue(given)
    effective(queue, rate_bps or DEFAULT_RATE_BPS)  # refuses values that contradict each other
    return TcQueue(spec, queue, rate_bps, tuple(remarks))


@dataclass(frozen=True)
class _Grammar:
    """The words of a discipline: with a value, without a value, and without an equivalent in aqmlab."""

    values: Mapping[str, Callable[[str], float]]
    flags: Mapping[str, tuple[str, bool]]
    refused: Mapping[str, str]
    queue: Callable[[Given], tuple[Queue, int | None, Sequence[str]]]


def _discipline(words: Sequence[str]) -> list[str]:
    """The words, without a leading ``tc qdisc add dev DEV root``."""
    rest = list(words)
    if rest[:2] == ["tc", "qdisc"]:
        rest = rest[3:]
        while rest and rest[0] in ("dev", "root", "parent", "handle"):
            del rest[: 1 if rest[0] == "root" else 2]
    if not rest:
        raise UsageError("there is no discipline; write one as tc does: `red limit 400000 avpkt 1000 ecn`")
    return rest


def _given(kind: str, words: Sequence[str], grammar: _Grammar) -> Iterator[tuple[str, Any]]:
    """Each word with its value; tc uses the last value of a repeated word."""
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
            raise UsageError(f"{kind}: `{word}` has no equivalent in aqmlab: {grammar.refused[word]}")
        else:
            known = ", ".join(f"`{name}`" for name in (*grammar.values, *grammar.flags))
            raise UsageError(f"{kind}: `{word}` is not an option; the options are {known}")


def _no_discipline(kind: str) -> str:
    ours = ", ".join(f"`{name}`" for name in _GRAMMARS)
    if kind in LINUX_ONLY:
        return f"`{kind}` is a Linux discipline without a counterpart in aqmlab, which has {ours}"
    near = get_close_matches(kind, (*_GRAMMARS, *LINUX_ONLY), 1)
    hint = f" (`{near[0]}`?)" if near else ""
    return f"`{kind}` is not a queue discipline{hint}; aqmlab has {ours}"


def _bytes(value: float) -> str:
    return quantity_text(int(value), "bytes")


def _red(given: Given) -> tuple[Queue, int | None, Sequence[str]]:
    if missing := [word for word in ("limit", "avpkt") if not given.get(word)]:
        raise UsageError(f"red: {' and '.join(f'`{word}`' for word in missing)} must be given, in bytes")
    queue: dict[str, Any] = {"kind": "ared" if given.get("adaptive") else "red", "preset": "linux"}
    sizes = (("limit", "limit"), ("min", "min_th"), ("max", "max_th"), ("avpkt", "mean_packet"))
    queue |= {name: _bytes(given[word]) for word, name in sizes if given.get(word)}
    numbers = (("burst", "burst"), ("probability", "max_p"))
    queue |= {name: given[word] for word, name in numbers if given.get(word)}
    if given.get("ecn"):
        queue["ecn"] = True
        if given.get("harddrop"):
            queue["ecn_region"] = "rfc3168"
    rate_bps = given.get("bandwidth") or DEFAULT_RATE_BPS
    written = quantity_text(rate_bps, "bps")
    return queue, rate_bps, [f"`bandwidth` is the link's `rate` in aqmlab: {written}", IDLE, HEADERS]


def _codel(given: Given) -> tuple[Queue, int | None, Sequence[str]]:
    queue: dict[str, Any] = {"kind": "codel", "preset": "linux"}
    if "limit" in given:
        queue["limit"] = quantity_text(given["limit"], "packets")
    queue |= {
        word: quantity_text(given[word] * 1000, "ns") for word in ("target", "interval") if word in given
    }
    if given.get("ecn"):
        queue["ecn"] = True
    settings = effective(queue, DEFAULT_RATE_BPS)
    return queue, None, codel_units(settings["target_ns"], settings["interval_ns"])


def _fifo(given: Given, unit: str) -> tuple[Queue, int | None, Sequence[str]]:
    if "limit" not in given:
        raise UsageError(
            f"{unit[0]}fifo without `limit` takes the device's txqueuelen as its limit; write a limit"
        )
    queue = {"kind": "droptail", "limit": quantity_text(given["limit"], unit)}
    return queue, None, [HEADERS] if unit == "bytes" else []


IDLE = "behind a shaper such as htb, Linux never finds RED's queue idle, and its average does not age"
HEADERS = "over Ethernet, Linux counts 14 bytes of header with each packet; aqmlab does not"


def codel_units(*times_ns: int) -> list[str]:
    """Return a remark with CoDel's times as Linux rounds them; none if Linux keeps them."""
    kept = [ns // CODEL_UNIT_NS * CODEL_UNIT_NS for ns in times_ns]
    if kept == list(times_ns):
        return []
    written = " and ".join(quantity_text(ns, "ns") for ns in kept)
    return [
        f"Linux keeps CoDel's times in units of {CODEL_UNIT_NS} ns: `target` and `interval` are {written}"
    ]


_ECN = {"ecn": ("ecn", True), "noecn": ("ecn", False)}
_GRAMMARS = {
    "red": _Grammar(
        values={
            **dict.fromkeys(("limit", "min", "max", "avpkt"), numbers.size),
            "burst": numbers.count,
            "probability": numbers.chance,
            "bandwidth": numbers.rate,
        },
        flags={word: (word, True) for word in ("ecn", "harddrop", "adaptive")},
        refused={
            "nodrop": "aqmlab drops packets that cannot be marked",
            "qevent": "only the kernel can attach actions to packets",
        },
        queue=_red,
    ),
    "codel": _Grammar(
        values={"limit": numbers.count, "target": numbers.time_us, "interval": numbers.time_us},
        flags=_ECN,
        refused={"ce_threshold": "CoDel's law alone decides which packets to mark"},
        queue=_codel,
    ),
    "pfifo": _Grammar({"limit": numbers.size}, {}, {}, lambda given: _fifo(given, "packets")),
    "bfifo": _Grammar({"limit": numbers.size}, {}, {}, lambda given: _fifo(given, "bytes")),
}
LINUX_ONLY = (
    *("cake", "cbs", "choke", "drr", "etf", "ets", "fq", "fq_codel", "fq_pie", "gred", "hfsc", "hhf", "htb"),
    *("mq", "mqprio", "multiq", "netem", "noqueue", "pfifo_fast", "pie", "plug", "prio", "qfq", "sfb", "sfq"),
    *("skbprio", "taprio", "tbf"),
)
"""Linux disciplines that have no equivalent in aqmlab."""

__all__ = ["CODEL_UNIT_NS", "DEFAULT_RATE_BPS", "HEADERS", "IDLE", "TcQueue", "codel_units", "read_tc"]
