"""The integers that tc computes from its words, and those that the kernel keeps (iproute2 6.1, Linux 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log

from aqmlab.errors import UsageError
from aqmlab.tc.numbers import LARGEST, unsigned

DEFAULT_RATE = 1_250_000
"""RED's ``bandwidth`` if none is given, or one below 8 bit/s, in bytes per second (tc-red(8))."""
DEFAULT_PROBABILITY = 0.02
CODEL_UNIT_NS = 1024
"""The kernel's CoDel keeps times in units of 1024 ns."""
PIE_UNIT_NS = 64
"""The kernel's PIE keeps times in units of 64 ns."""
PIE_GAINS_PER_HZ = 16
"""The kernel's PIE keeps alpha and beta in sixteenths of 1/s."""
PIE_LARGEST_GAIN = 32
_PIE_DEFAULTS = {"limit": 1000, "target": 15_000, "tupdate": 15_000, "alpha": 2, "beta": 20}
CHOKE_PACKET = 1000
"""The ``avpkt`` of CHOKe and SFQ if none is given (tc-choke(8), tc-sfq(8))."""
LONGEST_CHOKE = 2**17 - 1
"""CHOKe's largest limit in the kernel, in packets."""
FULL_FRAME = 1514
"""Bytes of a full packet on Ethernet, with its header: the quantum that Linux gives if none is written."""
LEAST_QUANTUM, LARGEST_QUANTUM = 256, 2**20
LARGE_WEIGHT_LOG = 10
"""The exponent from which tc warns that the burst seems to be too large."""
_ONE = 2.0**32
_TICKS_PER_US = 15.625
_DEEPEST, _CELLS = 31, 256
_AVERAGE_BITS = 32
"""The kernel's average and thresholds, with as many fractional bits as the weight has, take fewer bits."""


@dataclass(frozen=True)
class LinuxRed:
    """RED's parameters in the kernel; sizes are in bytes, or in packets for CHOKe.

    The kernel does not keep the ``limit`` of SFQ's RED.

    Attributes
    ----------
    w_log
        The weight of the average is 2^-w_log.
    max_p
        The probability at ``high``, in units of 2^-32, as ``tc -d qdisc show`` prints it.
    scell_log
        The table for idle periods has cells of 2^scell_log microseconds.
    """

    limit: int
    low: int
    high: int
    w_log: int
    max_p: int
    scell_log: int
    flags: tuple[str, ...]
    kind: str = "red"

    @property
    def range(self) -> int:
        """The bytes or packets between the thresholds; the kernel takes 0 as 1."""
        return max(1, self.high - self.low)

    @property
    def rise(self) -> int:
        """The rise of the probability per byte or packet, in units of 2^-32."""
        return max(1, self.max_p // self.range)

    @property
    def probability(self) -> float:
        """The probability that the kernel approaches at ``high``."""
        return self.rise * self.range / _ONE

    @property
    def shown(self) -> str:
        """What ``tc -d qdisc show`` prints."""
        text = size_text if self.kind == "red" else "{}p".format
        sizes = ((name, text(size)) for name, size in zip(("limit", "min", "max"), self.sizes, strict=True))
        words = [self.kind, *(word for pair in sizes for word in pair), *self.flags]
        chance = f"{self.max_p / _ONE:g}"
        return " ".join([*words, f"ewma {self.w_log} probability {chance} Scell_log {self.scell_log}"])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Limit and thresholds."""
        return self.limit, self.low, self.high


@dataclass(frozen=True)
class AskedRed:
    """RED's parameters as given to tc; the rate is in bytes per second.

    Sizes are in bytes, or in packets for CHOKe, except for ``avpkt``. 0 stands for a default, except for the
    first two.
    """

    limit: int
    avpkt: int
    low: int = 0
    high: int = 0
    burst: int = 0
    rate: int = 0
    probability: float = DEFAULT_PROBABILITY
    flags: tuple[str, ...] = ()


def red(asked: AskedRed) -> LinuxRed:
    """Return RED's parameters in the kernel.

    Raises
    ------
    UsageError
        If tc or the kernel refuses them.
    """
    high = asked.high or (_u32(3 * asked.low) if asked.low else asked.limit // 4)
    low = asked.low or high // 3
    burst = asked.burst or _u32(2 * low + high) // _u32(3 * asked.avpkt)
    w_log = _weight_log(low, burst, asked.avpkt)
    p_log = _probability_log(low, high, asked.probability)
    scell_log = _cell_log(w_log, asked.avpkt, asked.rate or DEFAULT_RATE)
    max_p = unsigned(asked.probability * _ONE)
    if "nodrop" in asked.flags and "ecn" not in asked.flags:
        raise UsageError("the kernel refuses `nodrop` without `ecn`")
    if high < low:
        raise UsageError(f"the kernel refuses `max` {high}, which is below `min` {low}")
    _check_room(high, w_log, burst)
    if max_p == 0:
        # The kernel then derives max_p from the whole number of bits that tc sends with it.
        max_p = _u32((LARGEST >> p_log) * max(1, high - low))
    return LinuxRed(asked.limit, low, high, w_log, max_p, scell_log, asked.flags)


def choke(asked: AskedRed) -> LinuxRed:
    """Return CHOKe's parameters in the kernel; sizes are in packets, except for ``avpkt``.

    Raises
    ------
    UsageError
        If tc or the kernel refuses them.
    """
    kernel = _average(asked, "choke", "limit")
    if asked.limit > LONGEST_CHOKE:
        raise UsageError(f"the kernel refuses `limit` {asked.limit}; write at most {LONGEST_CHOKE} packets")
    return kernel


def sfq_red(asked: AskedRed) -> LinuxRed:
    """Return the parameters of SFQ's RED in the kernel; its ``limit`` is ``redflowlimit``.

    Raises
    ------
    UsageError
        If tc or the kernel refuses them.
    """
    return _average(asked, "sfq", "redflowlimit")


def _average(asked: AskedRed, kind: str, limit: str) -> LinuxRed:
    in_packets = kind == "choke"
    high = asked.high or asked.limit // 4
    low = asked.low or high // 3
    if high > asked.limit:
        raise UsageError(f"tc refuses `max` {high}, which exceeds `{limit}` {asked.limit}")
    if low >= high:
        raise UsageError(f"tc refuses `min` {low}, which is not below `max` {high}")
    if asked.avpkt == 0:
        raise UsageError("tc computes no weight: `avpkt` must be at least 1")
    burst = asked.burst or _u32(2 * low + high) // _u32(3 * (1 if in_packets else asked.avpkt))
    scale = asked.avpkt if in_packets else 1
    in_bytes = (_u32(low * scale), _u32(high * scale))
    w_log = _weight_log(in_bytes[0], burst, asked.avpkt)
    p_log = _probability_log(*in_bytes, asked.probability)
    scell_log = _cell_log(w_log, asked.avpkt, asked.rate) if in_packets else 0  # SFQ's has no table
    _check_room(high, w_log, burst)
    max_p = unsigned(asked.probability * _ONE) or _u32((LARGEST >> p_log) * (high - low))
    return LinuxRed(asked.limit, low, high, w_log, max_p, scell_log, asked.flags, kind)


def _check_room(high: int, w_log: int, burst: int) -> None:
    """Raise an error if the thresholds do not fit the average's fixed-point number, as the kernel does."""
    if high.bit_length() + w_log >= _AVERAGE_BITS:
        raise UsageError(_no_room(high, w_log, burst))


def _no_room(high: int, w_log: int, burst: int) -> str:
    why = "the kernel answers `Invalid argument`: "
    most = _AVERAGE_BITS - 1 - high.bit_length()
    if most < 1:
        return f"{why}`max` must be below 2^{_AVERAGE_BITS - 2}, but it is {high}"
    return (
        f"{why}with `max` {high}, the weight must be at least 2^-{most}; `burst` {burst} makes it 2^-{w_log}"
    )


def weight_log(low: int, burst: int, avpkt: int) -> int | None:
    """Return the exponent of the weight that tc computes from a burst, or ``None`` if it finds none.

    It is the smallest k with ``burst + 1 - low / avpkt <= (1 - (1 - W)^burst) / W``, W = 2^-k (Floyd and
    Jacobson 1993, inequality 3).
    """
    excess = float(burst) + 1.0 - low / avpkt
    if excess < 1.0:
        return None
    for k in range(1, 32):
        weight = 2.0**-k
        if excess <= (1.0 - (1.0 - weight) ** float(burst)) / weight:
            return k
    return None


def _weight_log(low: int, burst: int, avpkt: int) -> int:
    found = weight_log(low, burst, avpkt)
    if found is not None:
        return found
    if low < avpkt:
        raise UsageError(f"tc computes no weight: `min` {low} must be at least one `avpkt`, which is {avpkt}")
    if burst < (least := ceil(low / avpkt)):
        raise UsageError(f"burst `{burst}` is too small for `min` {low}; it must be at least {least}")
    raise UsageError(f"burst `{burst}` is too large: tc computes no weight of at least 2^-31 from it")


def _probability_log(low: int, high: int, probability: float) -> int:
    """Return the number of times that tc doubles the rise of the probability per byte until it exceeds 1."""
    range_ = _u32(high - low)
    if range_ == 0:
        return 0
    if range_ >= 2**31:
        raise UsageError(
            f"tc refuses `max` {high}, which is below `min` {low}"
            if high < low
            else f"tc refuses thresholds that are {range_} bytes apart; write at most 2147483647"
        )
    rise = probability / range_
    for doublings in range(32):
        if rise > 1.0:
            return doublings
        rise *= 2.0
    raise UsageError(
        f"tc refuses the probability `{probability:g}`: with {range_} bytes between the thresholds,"
        f" it must exceed `{range_ / 2**31:.3g}`"
    )


def _cell_log(w_log: int, avpkt: int, rate: int) -> int:
    """Return the size of the cells in tc's table for idle periods."""
    ticks = unsigned(unsigned(1e6 * (avpkt / rate)) * _TICKS_PER_US)
    longest = _DEEPEST * ticks / -log(1.0 - 2.0**-w_log)
    return next((cell for cell in range(31) if longest / 2**cell < 2 * _CELLS), 31)


def _u32(x: int) -> int:
    return x & LARGEST


@dataclass(frozen=True)
class LinuxCodel:
    """CoDel's parameters in the kernel: packets, and times in units of 1024 ns."""

    limit: int
    target: int
    interval: int
    ecn: bool
    ce_threshold: int | None = None

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        threshold = "" if self.ce_threshold is None else f" ce_threshold {_units_text(self.ce_threshold)}"
        return (
            f"codel limit {self.limit}p target {_units_text(self.target)}{threshold}"
            f" interval {_units_text(self.interval)}" + " ecn" * self.ecn
        )


def codel(
    limit: int = 0,
    target_us: int = 0,
    interval_us: int = 0,
    *,
    ecn: bool = False,
    ce_threshold_us: int | None = None,
) -> LinuxCodel:
    """Return CoDel's parameters in the kernel; 0 stands for a default."""
    target, interval = (codel_units(us) for us in (target_us or 5000, interval_us or 100_000))
    threshold = None if ce_threshold_us is None else codel_units(ce_threshold_us)
    return LinuxCodel(limit or 1000, target, interval, ecn, threshold)


def codel_units(us: int) -> int:
    """The kernel's units in a time in microseconds."""
    return us * 1000 // CODEL_UNIT_NS


def _units_text(units: int) -> str:
    return time_text(units * CODEL_UNIT_NS // 1000)


@dataclass(frozen=True)
class LinuxFqCodel:
    """FQ-CoDel's parameters in the kernel: CoDel's, packets, bytes, and whether only ECT(1) counts."""

    codel: LinuxCodel
    flows: int
    quantum: int
    memory_limit: int
    batch: int
    only_ect1: bool

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        own, threshold = self.codel, ""
        if own.ce_threshold is not None:
            threshold = f" ce_threshold {_units_text(own.ce_threshold)}"
            threshold += " ce_threshold_selector 0x1/0x3" * self.only_ect1
        return (
            f"fq_codel limit {own.limit}p flows {self.flows} quantum {self.quantum}"
            f" target {_units_text(own.target)}{threshold} interval {_units_text(own.interval)}"
            f" memory_limit {size_text(self.memory_limit)}" + " ecn" * own.ecn + f" drop_batch {self.batch}"
        )


@dataclass(frozen=True)
class LinuxPie:
    """PIE's parameters in the kernel.

    Attributes
    ----------
    limit
        Packets.
    target
        Units of 64 ns.
    tupdate
        Timer ticks of 1 ms; the timer runs one tick longer.
    alpha, beta
        Sixteenths of 1/s.
    flags
        Those of ``ecn``, ``bytemode`` and ``dq_rate_estimator`` that are set.
    """

    limit: int
    target: int
    tupdate: int
    alpha: int
    beta: int
    flags: tuple[str, ...]

    @property
    def period_ms(self) -> int:
        """The milliseconds between two updates of the probability."""
        return self.tupdate + 1

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints."""
        return " ".join([f"pie limit {self.limit}p {self.control}", *self.flags])

    @property
    def control(self) -> str:
        """The part of what tc prints that concerns the controller."""
        target = time_text(self.target * PIE_UNIT_NS // 1000)
        words = f"target {target} tupdate {time_text(1000 * self.tupdate)}"
        return f"{words} alpha {self.alpha} beta {self.beta}"


def pie(asked: Mapping[str, int], flags: tuple[str, ...] = ()) -> LinuxPie:
    """Return PIE's parameters in the kernel from those that tc keeps, by word; 0 stands for a default.

    Raises
    ------
    UsageError
        If tc refuses them.
    """
    given = {word: asked.get(word, 0) or default for word, default in _PIE_DEFAULTS.items()}
    for name in ("alpha", "beta"):
        if given[name] > PIE_LARGEST_GAIN:
            raise UsageError(
                f"tc refuses `{name}` {given[name]}; write at most {PIE_LARGEST_GAIN}, in sixteenths"
            )
    target, tupdate = given["target"] * 1000 // PIE_UNIT_NS, ceil(given["tupdate"] / 1000)
    return LinuxPie(given["limit"], target, tupdate, given["alpha"], given["beta"], flags)


def quantum(asked: int) -> int:
    """Return the quantum of FQ-PIE or SFQ in the kernel; 0 stands for the default.

    Raises
    ------
    UsageError
        If the kernel refuses it.
    """
    if asked > LARGEST_QUANTUM:
        raise UsageError(f"the kernel refuses `quantum` {asked}; write at most {LARGEST_QUANTUM} bytes")
    return max(LEAST_QUANTUM, asked or FULL_FRAME)


def size_text(size: int) -> str:
    """A size as tc prints it."""
    for unit, name, slack in ((2**20, "Mb", 1024), (2**10, "Kb", 16)):
        whole = round(size / unit)  # to even, as rint(3)
        if size >= unit and abs(whole * unit - size) < slack:
            return f"{whole:g}{name}"
    return f"{size}b"


def rate_text(bytes_per_s: int) -> str:
    """A rate as tc prints it."""
    rate, unit = 8 * bytes_per_s, 0
    while unit < len(_RATE_UNITS) - 1 and rate >= 1000 and (rate % 1000 == 0 or rate >= 1_000_000):
        rate, unit = rate // 1000, unit + 1
    return f"{rate}{_RATE_UNITS[unit]}bit"


_RATE_UNITS = ("", "K", "M", "G", "T")


def time_text(us: int) -> str:
    """A time as tc prints it."""
    for unit, name in ((1_000_000, "s"), (1_000, "ms")):
        if us >= unit:
            return f"{us / unit:.3g}{name}"
    return f"{us}us"
