"""From a discipline in tc's syntax to a scenario's queue with the preset ``linux``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.recordings.plan import quantity_text
from aqmlab.tc import dualpi2, linux, numbers
from aqmlab.tc.commands import EXAMPLE, Other, Source, Words, disciplines
from aqmlab.tc.effective import LEAST_RATE_BPS, NoCounterpartError, Queue, effective
from aqmlab.tc.numbers import Kept

DEFAULT_RATE_BPS = 8 * linux.DEFAULT_RATE
"""RED's ``bandwidth`` if none is given (tc-red(8))."""
FULL_PACKET = 1500
"""The largest packet of most links, in bytes."""
LONGEST_BURST = 1_000_000
"""The largest ``burst`` that RED accepts in aqmlab."""
NOTICEABLE = 1e-3
"""The relative difference from which a probability that the kernel rounds is remarked on."""

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
    shown
        What ``tc -d qdisc show`` prints of this discipline, without handle and place.
    remarks
        Remarks on values that tc and the kernel change, and on meanings of the words that the queue does not
        express.
    """

    spec: str
    queue: Queue
    rate_bps: int | None
    shown: str
    remarks: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The line of a scenario."""
        import tomlkit

        entries = (f"{name} = {tomlkit.item(value).as_string()}" for name, value in self.queue.items())
        return f"queue = {{ {', '.join(entries)} }}"


@dataclass(frozen=True)
class TcSkipped:
    """A command without a queue for aqmlab, and the reason."""

    spec: str
    reason: str


@typed
def read_tc(text: str) -> TcQueue:
    """Return the queue for ``red limit 400000 avpkt 1000 ecn``, a command, or a line of ``tc qdisc show``.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words, aqmlab has no equivalent discipline or parameter, or there is
        not exactly one discipline.
    """
    found = list(disciplines(text))
    given = [one for one in found if isinstance(one, Words)]
    given = [one for one in given if one.source is not Source.BARE or one.words[0] in _GRAMMARS] or given
    if len(given) > 1:
        raise UsageError(f"there are {len(given)} disciplines; write one as tc does: {EXAMPLE}")
    if given:
        return _read(given[0])
    raise next((one.reason for one in found if isinstance(one, Other)), _nothing())


@typed
def read_tc_script(text: str) -> list[TcQueue | TcSkipped]:
    """Return the queues of a shell script, or of the output of ``tc qdisc show``, in their order.

    Commands without a queue for aqmlab, such as those about classes, are skipped.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words of a discipline; the message names the lines. Also if there is
        no queue.
    """
    parts = list(disciplines(text))
    if len(parts) <= 1:
        return [read_tc(text)]
    found: list[TcQueue | TcSkipped] = []
    wrong = []
    for one in parts:
        try:
            if isinstance(one, Other):
                raise one.reason
            if one.source is Source.BARE and one.words[0] not in _GRAMMARS:
                raise NoCounterpartError(f"`{one.words[0]}` is neither tc nor a queue discipline of aqmlab")
            found.append(_read(one))
        except NoCounterpartError as error:
            found.append(TcSkipped(one.text, str(error)))
        except UsageError as error:
            wrong.append(f"line {one.line}: {error}")
    if wrong:
        raise UsageError("; ".join(wrong))
    if not any(isinstance(one, TcQueue) for one in found):
        raise UsageError(
            "; ".join(f"`{one.spec}`: {one.reason}" for one in found if isinstance(one, TcSkipped))
        )
    return found


def _nothing() -> UsageError:
    return UsageError(f"there is no discipline; write one as tc does: {EXAMPLE}")


def _read(given: Words) -> TcQueue:
    kind, *rest = given.words
    grammars = _SHOWN if given.source is Source.SHOWN else _GRAMMARS
    grammar = grammars.get(kind)
    if grammar is None:
        error = NoCounterpartError if kind in LINUX_ONLY or given.source is Source.SHOWN else UsageError
        raise error(_no_discipline(kind))
    values, without = dict[str, Any](), list[str]()
    for word, value in _given(kind, rest, grammar):
        values[word] = value
        if word in grammar.refused:
            without.append(f"`{word}` has no equivalent in aqmlab: {grammar.refused[word]}")
    reading = grammar.queue(values)
    if without:
        raise NoCounterpartError(f"{kind}: {'; '.join(without)}")
    if given.source is Source.CHANGED:
        reading.remarks.append("`change` keeps the options of the existing discipline that it does not give")
    spec = " ".join(given.words)
    return TcQueue(spec, reading.queue(), reading.rate_bps, reading.shown or spec, tuple(reading.remarks))


@dataclass
class _Reading:
    """What the words of a discipline mean: the queue, which may raise :class:`NoCounterpartError`."""

    queue: Callable[[], Queue]
    shown: str
    remarks: list[str]
    rate_bps: int | None = None


@dataclass(frozen=True)
class _Grammar:
    """The words of a discipline: with a value, without a value, and without an equivalent in aqmlab."""

    values: Mapping[str, Callable[[str], Kept]]
    flags: Mapping[str, tuple[str, Any]]
    refused: Mapping[str, str]
    queue: Callable[[Given], _Reading]


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
            raise NoCounterpartError(f"{kind}: `{word}` has no equivalent in aqmlab: {grammar.refused[word]}")
        else:
            known = ", ".join(f"`{name}`" for name in (*grammar.values, *grammar.flags))
            raise UsageError(f"{kind}: `{word}` is not an option; the options are {known}")


def _no_discipline(kind: str) -> str:
    ours = ", ".join(f"`{name}`" for name in _GRAMMARS)
    if kind in _NOT_READ:
        return f"aqmlab has `{kind}`, but does not read tc's options for it yet, only those of {ours}"
    if kind in LINUX_ONLY:
        return f"`{kind}` is a Linux discipline without a counterpart in aqmlab, which has {ours}"
    near = get_close_matches(kind, (*_GRAMMARS, *LINUX_ONLY), 1)
    hint = f" (`{near[0]}`?)" if near else ""
    return f"`{kind}` is not a queue discipline{hint}; aqmlab has {ours}"


def _value(given: Given, word: str) -> int:
    """The whole number that tc keeps; 0 if there is none."""
    return int(given[word].value) if word in given else 0


def _changes(given: Given, units: Mapping[str, str]) -> list[str]:
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
_RED_SIZES = {"limit": "limit", "min": "min_th", "max": "max_th", "avpkt": "mean_packet"}
_RED_UNITS = dict.fromkeys(_RED_SIZES, "bytes") | {"burst": "packets", "bandwidth": "Bps"}


def _red(given: Given) -> _Reading:
    if missing := [word for word in ("limit", "avpkt") if not _value(given, word)]:
        raise UsageError(f"red: {' and '.join(f'`{word}`' for word in missing)} must be given, in bytes")
    chance = given["probability"].value if "probability" in given else linux.DEFAULT_PROBABILITY
    flags = tuple(word for word in ("ecn", "harddrop", "adaptive", "nodrop") if given.get(word))
    asked = linux.AskedRed(
        limit=_value(given, "limit"),
        avpkt=_value(given, "avpkt"),
        low=_value(given, "min"),
        high=_value(given, "max"),
        burst=_value(given, "burst"),
        rate=_value(given, "bandwidth"),
        probability=chance,
        flags=flags,
    )
    try:
        kernel = linux.red(asked)
    except UsageError as error:
        raise UsageError(f"red: {error}") from None
    rate_bps = int(8 * given["bandwidth"].written) if asked.rate else DEFAULT_RATE_BPS
    remarks = [*_changes(given, _RED_UNITS), *_probability(given, kernel)]
    if kernel.w_log >= linux.LARGE_WEIGHT_LOG:
        remarks.append(f"tc warns that the burst seems to be too large: the weight is 2^-{kernel.w_log}")
    remarks += _no_room(kernel.limit)
    if kernel.high > kernel.limit:
        remarks.append(f"the average cannot reach `max`, which is {_bytes(kernel.high)}: `limit` is smaller")
    if "harddrop" in flags and "ecn" not in flags:
        remarks.append("`harddrop` has no effect without `ecn`")
    if "adaptive" in flags:
        remarks.append(NEVER_ADAPTS)
    remarks.append(f"`bandwidth` is the link's `rate` in aqmlab: {quantity_text(rate_bps, 'bps')}")
    if rate_bps < LEAST_RATE_BPS:
        remarks[-1] += f", where a link has at least {quantity_text(LEAST_RATE_BPS, 'bps')}"
    remarks += [IDLE, HEADERS]
    return _Reading(lambda: _red_queue(given, kernel, rate_bps), kernel.shown, remarks, rate_bps)


def _red_queue(given: Given, kernel: linux.LinuxRed, rate_bps: int) -> Queue:
    """Return a queue with the kernel's parameters, as the user wrote them where possible."""
    queue: dict[str, Any] = {"kind": "ared" if "adaptive" in kernel.flags else "red", "preset": "linux"}
    queue |= {name: _bytes(_value(given, word)) for word, name in _RED_SIZES.items() if _value(given, word)}
    if burst := _value(given, "burst"):
        queue["burst"] = burst
    if kernel.max_p != numbers.unsigned(linux.DEFAULT_PROBABILITY * 2.0**32):
        chance = given["probability"].value if "probability" in given else 1.0
        kept = 0.0 < chance <= 1.0 and numbers.unsigned(chance * 2.0**32) == kernel.max_p
        queue["max_p"] = chance if kept else kernel.max_p / 2.0**32
    queue |= _marking(kernel.flags)
    weight = 2.0**-kernel.w_log
    settings = effective({**queue, "burst": 1, "w_q": weight}, rate_bps)
    ours = {name: settings[f"{name}_bytes"] for name in ("limit", "min_th", "max_th")}
    queue |= {
        name: _bytes(size)
        for (name, own), size in zip(ours.items(), kernel.sizes, strict=True)
        if own != size
    }
    if burst > LONGEST_BURST or effective(queue, rate_bps)["w_q"] != weight:
        queue.pop("burst", None)
        queue["w_q"] = weight
    return queue


def _probability(given: Given, kernel: linux.LinuxRed) -> list[str]:
    """Return a remark if the kernel's probability differs from tc's."""
    if kernel.high == kernel.low:
        return []  # the average is never between the thresholds
    asked = given["probability"] if "probability" in given else Kept("0.02", 0.02, 0.02)
    if abs(kernel.probability - asked.value) <= NOTICEABLE * asked.value:
        return []
    why = (
        "whose kernel keeps the rise per byte in whole units of 2^-32"
        if numbers.unsigned(asked.value * 2.0**32) == kernel.max_p
        else "because tc keeps only the 32 bits below 1"
    )
    return [f"`probability {asked.text}` is {kernel.probability:.6g} in Linux, {why}"]


def _marking(flags: Sequence[str]) -> Queue:
    """Return the parameters for these flags of RED."""
    if "ecn" not in flags:
        return {}
    queue: dict[str, Any] = {"ecn": True}
    if "harddrop" in flags:
        queue["ecn_region"] = "rfc3168"
    return queue


def _shown_red(given: Given) -> _Reading:
    """Reads what tc shows of RED: sizes, flags and, with ``-d``, weight and probability."""
    flags = [word for word in ("ecn", "harddrop", "adaptive") if given.get(word)]
    queue: dict[str, Any] = {"kind": "ared" if "adaptive" in flags else "red", "preset": "linux"}
    queue |= {name: _bytes(_value(given, word)) for word, name in _RED_SIZES.items() if word in given}
    remarks = _rounded(given, ("limit", "min", "max"))
    queue |= _marking(flags)
    if "adaptive" in flags:
        remarks.append(NEVER_ADAPTS)
    if "probability" in given:
        queue["max_p"] = _shown_probability(given["probability"])
    if "ewma" in given:
        queue["w_q"] = 2.0 ** -_value(given, "ewma")
    else:
        remarks.append("weight and probability are tc's defaults here; `tc -d qdisc show` prints them")
    remarks += ["tc shows neither `avpkt` nor `bandwidth`: they are those of the link here", IDLE, HEADERS]

    def checked() -> Queue:
        packet = _bytes(min(FULL_PACKET, _value(given, "limit")))
        effective(queue | {"mean_packet": packet}, DEFAULT_RATE_BPS)
        return queue

    return _Reading(checked, "", remarks)


def _shown_probability(shown: Kept) -> float:
    """Return the probability that tc shows with six digits: a whole number of units of 2^-32."""
    below = min(int(shown.value * 2.0**32), numbers.LARGEST)
    if below == numbers.LARGEST or f"{below / 2**32:g}" == f"{shown.value:g}":
        return min(shown.value, numbers.LARGEST / 2**32)
    return (below + 1) / 2**32


def _rounded(given: Given, words: Sequence[str]) -> list[str]:
    """Return a remark on sizes that tc shows in larger units."""
    rounded = [
        f"`{word} {given[word].text}`"
        for word in words
        if word in given and given[word].text[-2:] in ("Kb", "Mb")
    ]
    if not rounded:
        return []
    return [
        f"tc rounds the sizes that it shows: {', '.join(rounded)} may be up to 15 B (Kb) or 1023 B (Mb) away"
    ]


def _codel(given: Given) -> _Reading:
    kernel = linux.codel(
        *(_value(given, word) for word in ("limit", "target", "interval")),
        ecn=bool(given.get("ecn")),
        ce_threshold_us=_value(given, "ce_threshold") if "ce_threshold" in given else None,
    )
    queue: dict[str, Any] = {"kind": "codel", "preset": "linux"}
    if _value(given, "limit"):
        queue["limit"] = quantity_text(_value(given, "limit"), "packets")
    times = {word: _value(given, word) * 1000 for word in ("target", "interval") if _value(given, word)}
    if "ce_threshold" in given:
        queue["ce_threshold"] = quantity_text(max(1, _value(given, "ce_threshold") * 1000), "ns")
    changes = _changes(given, {"limit": "packets", "target": "us", "interval": "us"})
    return _codel_reading(queue, times, kernel.ecn, changes, kernel.shown)


def _fq_codel(given: Given) -> _Reading:
    count = {
        word: _value(given, word) for word in ("limit", "flows", "quantum", "memory_limit", "drop_batch")
    }
    threshold = _value(given, "ce_threshold") if "ce_threshold" in given else None
    own = linux.codel(
        count["limit"] or 10_240,
        *(_value(given, word) for word in ("target", "interval")),
        ecn=bool(given.get("ecn", True)),
        ce_threshold_us=threshold,
    )
    kernel = linux.LinuxFqCodel(
        own,
        flows=count["flows"] or 1024,
        quantum=max(256, count["quantum"] or 1514),
        memory_limit=min(2**31, count["memory_limit"] or 2**25),
        batch=count["drop_batch"] or 64,
        only_ect1="ce_threshold_selector" in given,
    )
    remarks = _changes(
        given,
        {"limit": "packets", "quantum": "bytes", "memory_limit": "bytes", "target": "us", "interval": "us"},
    )
    if 0 < count["quantum"] < 256:
        remarks.append("Linux raises the quantum to 256 B")
    times = {word: _value(given, word) * 1000 for word in ("target", "interval") if _value(given, word)}
    if threshold is not None:
        times["ce_threshold"] = max(1, threshold * 1000)
    return _fq_codel_reading(given, kernel, times, remarks, kernel.shown)


def _shown_fq_codel(given: Given) -> _Reading:
    """Reads what tc shows of FQ-CoDel; times are as in CoDel, and sizes as in bfifo."""
    times = {
        word: _shown_units(given, word) for word in ("target", "interval", "ce_threshold") if word in given
    }
    own = linux.codel(_value(given, "limit"), ecn=bool(given.get("ecn")))
    kernel = linux.LinuxFqCodel(
        own,
        flows=_value(given, "flows"),
        quantum=_value(given, "quantum"),
        memory_limit=_value(given, "memory_limit"),
        batch=_value(given, "drop_batch") or 64,
        only_ect1="ce_threshold_selector" in given,
    )
    return _fq_codel_reading(given, kernel, times, _rounded(given, ("memory_limit",)), "")


def _fq_codel_reading(
    given: Given, kernel: linux.LinuxFqCodel, times: Mapping[str, int], remarks: list[str], shown: str
) -> _Reading:
    queue: dict[str, Any] = {"kind": "fq_codel", "preset": "linux"}
    written = {
        "limit": ("limit", quantity_text(kernel.codel.limit, "packets")),
        "flows": ("flows", kernel.flows),
        "quantum": ("quantum", quantity_text(kernel.quantum, "bytes")),
        "memory_limit": ("memory_limit", quantity_text(kernel.memory_limit, "bytes")),
        "drop_batch": ("batch", kernel.batch),
    }
    queue |= dict(written[word] for word in written if word in given and _value(given, word))
    queue |= {name: quantity_text(ns, "ns") for name, ns in times.items()}
    if kernel.only_ect1:
        queue["ce_threshold_for"] = "ect1"
    if not kernel.codel.ecn:
        queue["ecn"] = False

    def checked() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    kept = (times.get("target", 5_000_000), times.get("interval", 100_000_000))
    return _Reading(checked, shown, [*remarks, *codel_units(*kept)])


def _selector(text: str) -> Kept:
    """The selector of the packets that `ce_threshold` marks; aqmlab has that of ECT(1)."""
    parts = text.split("/")
    if len(parts) != 2 or [int(numbers.count(part).value) for part in parts] != [1, 3]:
        raise UsageError(f"`{text}` is not `1/3`, ECT(1), the only selector that aqmlab has")
    return Kept(text, 1, 1)


def _shown_units(given: Given, word: str) -> int:
    """Return a time of CoDel, in nanoseconds, from what tc shows of it."""
    us = _value(given, word)
    units = -(-us * 1000 // linux.CODEL_UNIT_NS) if given[word].text.endswith("us") else 0
    return units * linux.CODEL_UNIT_NS or max(1, us) * 1000


def _shown_codel(given: Given) -> _Reading:
    """Reads what tc shows of CoDel; times are in whole microseconds, rounded down, or have three digits."""
    queue: dict[str, Any] = {
        "kind": "codel",
        "preset": "linux",
        "limit": quantity_text(_value(given, "limit"), "packets"),
    }
    times = {
        word: _shown_units(given, word) for word in ("target", "interval", "ce_threshold") if word in given
    }
    return _codel_reading(queue, times, bool(given.get("ecn")), [], "")


def _codel_reading(
    queue: dict[str, Any], times: Mapping[str, int], ecn: bool, remarks: list[str], shown: str
) -> _Reading:
    queue |= {name: quantity_text(ns, "ns") for name, ns in times.items()}
    if ecn:
        queue["ecn"] = True

    def checked() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    kept = (times.get("target", 5_000_000), times.get("interval", 100_000_000))
    return _Reading(checked, shown, [*remarks, *codel_units(*kept)])


def _dualpi2(given: Given, *, shown: bool) -> _Reading:
    queue, kernel, remarks = dualpi2.read(given, shown=shown)
    if not shown:
        remarks += _changes(given, {"limit": "packets", "target": "us", "tupdate": "us"})

    def checked() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    return _Reading(checked, "" if shown else kernel.shown, remarks)


_PIE_UNITS = {"limit": "packets", "target": "us", "alpha": "", "beta": ""}


def _pie(given: Given) -> _Reading:
    flags = tuple(word for word in ("ecn", "bytemode", "dq_rate_estimator") if given.get(word))
    words = ("limit", "target", "tupdate", "alpha", "beta")
    try:
        kernel = linux.pie({word: _value(given, word) for word in words}, flags)
    except UsageError as error:
        raise UsageError(f"pie: {error}") from None
    queue: dict[str, Any] = {"kind": "pie", "preset": "linux"}
    if _value(given, "limit"):
        queue["limit"] = quantity_text(kernel.limit, "packets")
    if _value(given, "target"):
        queue["target"] = quantity_text(_value(given, "target") * 1000, "ns")
    if _value(given, "tupdate"):
        queue["t_update"] = f"{kernel.period_ms}ms"
    for word in ("alpha", "beta"):
        if _value(given, word):
            queue[word] = _value(given, word) / linux.PIE_GAINS_PER_HZ
    if "bytemode" in flags:
        queue["byte_mode"] = True
    if "dq_rate_estimator" in flags:
        queue["delay"] = "rate"
    if "ecn" in flags:
        queue["ecn"] = True

    def checked() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    remarks = [*_changes(given, _PIE_UNITS), pie_period(kernel), HEADERS]
    return _Reading(checked, kernel.shown, remarks)


def pie_period(kernel: linux.LinuxPie) -> str:
    """Return a remark with the time between the updates of Linux's PIE."""
    return (
        f"Linux's timer runs one tick longer than `tupdate`: `t_update` is {kernel.period_ms}ms with 1000"
        " ticks per second (CONFIG_HZ)"
    )


def _fifo(given: Given, unit: str) -> _Reading:
    if "limit" not in given:
        message = f"{unit[0]}fifo without `limit` takes the device's txqueuelen as its limit; write a limit"

        def without_limit() -> Queue:
            raise NoCounterpartError(message)

        return _Reading(without_limit, "", [])
    limit = _value(given, "limit")
    remarks = _changes(given, {"limit": unit}) if limit else []
    if unit == "bytes":
        remarks += [*_no_room(limit), HEADERS]
    queue = {"kind": "droptail", "limit": quantity_text(limit, unit)}

    def checked() -> Queue:
        effective(queue, DEFAULT_RATE_BPS)
        return queue

    shown = f"{unit[0]}fifo limit {linux.size_text(limit) if unit == 'bytes' else f'{limit}p'}"
    return _Reading(checked, shown, remarks)


def _no_room(limit: int) -> list[str]:
    """Return a remark if the limit is below the size of a full packet."""
    if limit >= FULL_PACKET:
        return []
    return [f"a packet of more than {_bytes(limit)} never finds room: Linux drops it"]


def _bytes(value: int) -> str:
    return quantity_text(value, "bytes")


IDLE = "behind a shaper such as htb, Linux never finds RED's queue idle, and its average does not age"
HEADERS = "over Ethernet, Linux counts 14 bytes of header with each packet; aqmlab does not"
NEVER_ADAPTS = (
    "with tc of iproute2 6.1, Linux 6.1 reports `adaptive` but never moves the probability;"
    ' `kind = "red"` is what it does'
)


def codel_units(*times_ns: int) -> list[str]:
    """Return a remark with CoDel's times as Linux rounds them; none if Linux keeps them."""
    kept = [ns // linux.CODEL_UNIT_NS * linux.CODEL_UNIT_NS for ns in times_ns]
    if kept == list(times_ns):
        return []
    written = " and ".join(quantity_text(ns, "ns") for ns in kept)
    unit = f"{linux.CODEL_UNIT_NS} ns"
    return [f"Linux keeps CoDel's times in units of {unit}: `target` and `interval` are {written}"]


def _size_shown(text: str) -> Kept:
    shown = numbers.size(text.replace("Mb", "")).value * (2**20 if text.endswith("Mb") else 1)
    return Kept(text, shown, min(shown, numbers.LARGEST))  # tc shows the largest sizes as `4096Mb`


def _shown_bfifo(given: Given) -> _Reading:
    reading = _fifo(given, "bytes")
    reading.remarks += _rounded(given, ("limit",))
    return reading


def _packets_shown(text: str) -> Kept:
    return numbers.count(text.removesuffix("p"))


_ECN = {"ecn": ("ecn", True), "noecn": ("ecn", False)}
_RED_FLAGS = {word: (word, True) for word in ("ecn", "harddrop", "adaptive", "nodrop")}
_RED_REFUSED = {
    "nodrop": "aqmlab drops packets that cannot be marked",
    "qevent": "only the kernel can attach actions to packets",
}
_CODEL_TIMES = dict.fromkeys(("target", "interval", "ce_threshold"), numbers.time_us)
_PIE_NUMBERS = dict.fromkeys(("target", "tupdate"), numbers.time_us) | dict.fromkeys(
    ("alpha", "beta"), numbers.count
)
_PIE_SWITCHES = _ECN | {
    "bytemode": ("bytemode", True),
    "nobytemode": ("bytemode", False),
    "dq_rate_estimator": ("dq_rate_estimator", True),
    "no_dq_rate_estimator": ("dq_rate_estimator", False),
}
_GRAMMARS = {
    "red": _Grammar(
        values={
            **dict.fromkeys(("limit", "min", "max", "avpkt"), numbers.size),
            "burst": numbers.count,
            "probability": numbers.chance,
            "bandwidth": numbers.rate,
        },
        flags=_RED_FLAGS | {"adaptative": ("adaptive", True)},
        refused=_RED_REFUSED,
        queue=_red,
    ),
    "codel": _Grammar({"limit": numbers.count, **_CODEL_TIMES}, _ECN, {}, _codel),
    "fq_codel": _Grammar(
        values={
            **dict.fromkeys(("limit", "flows", "drop_batch"), numbers.count),
            **dict.fromkeys(("quantum", "memory_limit"), numbers.size),
            **_CODEL_TIMES,
            "ce_threshold_selector": _selector,
        },
        flags=_ECN,
        refused={},
        queue=_fq_codel,
    ),
    "pie": _Grammar({"limit": numbers.count, **_PIE_NUMBERS}, _PIE_SWITCHES, {}, _pie),
    "dualpi2": _Grammar(dualpi2.VALUES, dualpi2.FLAGS, {}, lambda given: _dualpi2(given, shown=False)),
    "pfifo": _Grammar({"limit": numbers.size}, {}, {}, lambda given: _fifo(given, "packets")),
    "bfifo": _Grammar({"limit": numbers.size}, {}, {}, lambda given: _fifo(given, "bytes")),
}
_SHOWN = {
    "red": _Grammar(
        values={
            **dict.fromkeys(("limit", "min", "max"), _size_shown),
            **dict.fromkeys(("ewma", "Plog", "Scell_log"), numbers.count),
            "probability": numbers.chance,
        },
        flags=_RED_FLAGS,
        refused=_RED_REFUSED,
        queue=_shown_red,
    ),
    "codel": _Grammar({"limit": _packets_shown, **_CODEL_TIMES}, _ECN, {}, _shown_codel),
    "fq_codel": _Grammar(
        values={
            "limit": _packets_shown,
            **dict.fromkeys(("flows", "drop_batch"), numbers.count),
            **dict.fromkeys(("quantum", "memory_limit"), _size_shown),
            **_CODEL_TIMES,
            "ce_threshold_selector": _selector,
        },
        flags=_ECN,
        refused={},
        queue=_shown_fq_codel,
    ),
    "pie": _Grammar({"limit": _packets_shown, **_PIE_NUMBERS}, _PIE_SWITCHES, {}, _pie),
    "dualpi2": _Grammar(dualpi2.SHOWN, dualpi2.FLAGS, {}, lambda given: _dualpi2(given, shown=True)),
    "pfifo": _Grammar({"limit": _packets_shown}, {}, {}, lambda given: _fifo(given, "packets")),
    "bfifo": _Grammar({"limit": _size_shown}, {}, {}, _shown_bfifo),
}
LINUX_ONLY = (
    *("cake", "cbs", "choke", "drr", "etf", "ets", "fq", "fq_pie", "gred", "hfsc", "hhf", "htb"),
    *("mq", "mqprio", "multiq", "netem", "noqueue", "pfifo_fast", "plug", "prio", "qfq", "sfb", "sfq"),
    *("skbprio", "taprio", "tbf", "ingress", "clsact"),
)
"""Linux disciplines whose options aqmlab does not read."""
_NOT_READ = {"cake", "choke", "sfb"}
"""Those of them that aqmlab has."""

__all__ = [
    "DEFAULT_RATE_BPS",
    "HEADERS",
    "IDLE",
    "LONGEST_BURST",
    "NEVER_ADAPTS",
    "TcQueue",
    "TcSkipped",
    "codel_units",
    "pie_period",
    "read_tc",
    "read_tc_script",
]
