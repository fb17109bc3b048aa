"""DualPI2 in tc's words: what tc and Linux 7.3 make of them, and the queue that they describe."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.recordings.plan import Link, quantity_text
from aqmlab.tc import numbers
from aqmlab.tc.grammar import Given, Grammar, Reading, Vocabulary, Written, changes, checked, limit_in_packets
from aqmlab.tc.linux import time_text
from aqmlab.tc.numbers import Kept

DEFAULTS = {"limit": 10_000, "target": 15_000, "tupdate": 16_000, "alpha": 41, "beta": 819}
"""Packets, microseconds, and gains in 1/256 Hz."""
GAIN = 256
"""tc sends gains in units of 1/256 Hz."""
TYPICAL_IN_MAX = 6
"""Without one of them, tc takes ``max_rtt`` to be this many times ``typical_rtt``."""
_MOST = 2**32 - 1
_FLAGS = {
    "drop_on_overload": ("overload", "drop"),
    "overflow": ("overload", "overflow"),
    "drop_enqueue": ("decide", "enqueue"),
    "drop_dequeue": ("decide", "dequeue"),
    "l4s_ect": ("classifier", "l4s"),
    "any_ect": ("classifier", "any_ect"),
    "split_gso": ("split_gso", True),
    "no_split_gso": ("split_gso", False),
}
_WORDS = {(name, value): word for word, (name, value) in _FLAGS.items()}
NO_MEMORY_LIMIT = "aqmlab has no limit of memory: `memlimit` is left out"
_PERCENTAGE = re.compile(r"(\d+(?:\.\d*)?)%?", re.ASCII)


@dataclass(frozen=True)
class LinuxDualPi2:
    """DualPI2's parameters in the kernel: packets, microseconds, percent, and gains in 1/256 Hz.

    Attributes
    ----------
    step
        The step: microseconds, or packets if ``step_in_packets``.
    """

    limit: int
    target: int
    tupdate: int
    alpha: int
    beta: int
    step: int
    step_in_packets: bool
    min_qlen_step: int
    coupling: int
    protection: int
    overload: str
    decide: str
    classifier: str
    split_gso: bool

    @property
    def shown(self) -> str:
        """What ``tc qdisc show`` prints, except for ``memlimit``, which the kernel derives."""
        gains = (f"{word} {reported(n) / GAIN:f}" for word, n in (("alpha", self.alpha), ("beta", self.beta)))
        step = f"{self.step}p" if self.step_in_packets else time_text(self.step)
        words = (
            f"dualpi2 limit {self.limit}p target {time_text(self.target)} tupdate {time_text(self.tupdate)}",
            *gains,
            f"step_thresh {step} min_qlen_step {self.min_qlen_step}p coupling_factor {self.coupling}",
            _WORDS["overload", self.overload],
            _WORDS["decide", self.decide],
            f"classic_protection {self.protection}%",
            _WORDS["classifier", self.classifier],
            _WORDS["split_gso", self.split_gso],
        )
        return " ".join(words)


def reported(gain: int) -> int:
    """The gain that the kernel reports for one that it was given: its scaled gain, converted back."""
    return (gain * _MOST // 4 // 10**9) * 10**9 * 4 // _MOST


def _given_as(shown: float) -> int:
    """Return the gain of which the kernel reports this one."""
    units = round(shown * GAIN)
    return next((n for n in range(units, units + 3) if reported(n) == units), units)


def _single(x: float) -> float:
    """Return a number in single precision, as tc computes gains."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def gains(max_rtt_us: int, tupdate_us: int) -> tuple[int, int]:
    """Return alpha and beta in 1/256 Hz, as tc derives them from the largest round-trip time.

    Raises
    ------
    UsageError
        If tc refuses the time.
    """
    alpha = _single(tupdate_us / (max_rtt_us * max_rtt_us) * 1e6 * _single(0.1))
    beta = _single(_single(_single(0.3) / _single(max_rtt_us)) * 1e6)
    if min(alpha, beta) < 1.0 / GAIN:
        raise UsageError(
            f"tc refuses `max_rtt`, which is too long: alpha would be {alpha:.3g} and beta {beta:.3g},"
            f" and one of them below 1/{GAIN}"
        )
    return int(alpha * GAIN), int(beta * GAIN)


def gain(text: str) -> Kept:
    """A gain in Hz, of which tc keeps whole 1/256 Hz."""
    try:
        kept = numbers.chance(text)
    except UsageError:
        raise UsageError(f"`{text}` is not a gain; write a number in Hz, such as `0.16`") from None
    if not 0 <= kept.value < 2**23:
        raise UsageError(f"`{text}` is not a gain that tc accepts; write one from 0 to {2**23 - 1}")
    return Kept(text, kept.value, int(_single(kept.value) * GAIN) / GAIN)


def percentage(text: str) -> Kept:
    """A whole percentage, with or without ``%``."""
    found = _PERCENTAGE.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise UsageError(f"`{text}` is not a percentage; write one from `0%` to `100%`")
    return Kept(text, float(found[1]), int(float(found[1])))


def packets(text: str) -> Kept:
    """A whole number of packets, with or without ``p``."""
    kept = numbers.count(re.sub(r"(p|pkt|packets?)$", "", text))
    return Kept(text, kept.written, kept.value)


def step(text: str) -> Kept:
    """A step: a time, or packets if the word ends in ``p``, ``pkt``, ``packet`` or ``packets``."""
    return packets(text) if _in_packets(text) else numbers.time_us(text)


def _in_packets(text: str) -> bool:
    return re.fullmatch(r"\w+?(p|pkt|packets?)", text) is not None


def read(given: Given, *, shown: bool) -> tuple[dict[str, Any], LinuxDualPi2, list[str]]:
    """Return the queue, the parameters in the kernel, and remarks. ``shown``: tc printed the words.

    Raises
    ------
    UsageError
        If tc refuses the words.
    """

    def value(word: str) -> int:
        return int(given[word].value) if word in given else 0

    def own_gain(word: str) -> int | None:
        if word not in given:
            return None
        return _given_as(given[word].written) if shown else int(given[word].value * GAIN)

    remarks = [NO_MEMORY_LIMIT] if "memlimit" in given else []
    us = {word: value(word) for word in ("target", "tupdate") if value(word)}
    hz = {word: found for word in ("alpha", "beta") if (found := own_gain(word)) is not None}
    if value("max_rtt") or value("typical_rtt"):
        typical = value("typical_rtt") or max(1, value("max_rtt") // TYPICAL_IN_MAX)
        longest = value("max_rtt") or typical * TYPICAL_IN_MAX
        if typical > longest:
            raise UsageError(
                f"tc refuses `typical_rtt` {time_text(typical)}, which exceeds `max_rtt` {time_text(longest)}"
            )
        if us or hz:
            words = ", ".join(f"`{word}`" for word in (*us, *hz))
            remarks.append(f"with `max_rtt` or `typical_rtt`, tc ignores {words}")
        us = {"target": typical, "tupdate": max(1, min(typical, longest // 3))}
        hz = dict(zip(("alpha", "beta"), gains(longest, us["tupdate"]), strict=True))
    if shown and hz:
        remarks.append("the kernel reports gains that it has rounded; these are the ones that it was given")
    flags = {name: given[name] for name in ("overload", "decide", "classifier", "split_gso") if name in given}
    queue: dict[str, Any] = {"kind": "dualpi2", "preset": "linux"}
    if value("limit"):
        queue["limit"] = quantity_text(value("limit"), "packets")
    queue |= {word: quantity_text(time * 1000, "ns") for word, time in us.items()}
    queue |= {word: n / GAIN for word, n in hz.items()}
    in_packets = "step_thresh" in given and _in_packets(given["step_thresh"].text)
    if in_packets:
        queue |= {"native": "step_packets", "step_packets": value("step_thresh")}
    elif value("step_thresh"):
        queue["step_thresh"] = quantity_text(value("step_thresh") * 1000, "ns")
    if value("min_qlen_step"):
        queue["min_qlen_step"] = value("min_qlen_step")
    if "coupling_factor" in given:
        queue["coupling"] = value("coupling_factor")
    if "classic_protection" in given:
        queue["classic_protection"] = value("classic_protection")
    queue |= {name: flag for name, flag in flags.items() if name != "split_gso"}
    full = DEFAULTS | us | hz
    kernel = LinuxDualPi2(
        limit=value("limit") or DEFAULTS["limit"],
        target=full["target"],
        tupdate=full["tupdate"],
        alpha=full["alpha"],
        beta=full["beta"],
        step=value("step_thresh") if in_packets else value("step_thresh") or 1000,
        step_in_packets=in_packets,
        min_qlen_step=value("min_qlen_step"),
        coupling=value("coupling_factor") if "coupling_factor" in given else 2,
        protection=value("classic_protection") if "classic_protection" in given else 10,
        overload=flags.get("overload", "drop"),
        decide=flags.get("decide", "dequeue"),
        classifier=flags.get("classifier", "l4s"),
        split_gso=flags.get("split_gso", True),
    )
    return queue, kernel, remarks


def _reading(given: Given, *, shown: bool) -> Reading:
    queue, kernel, remarks = read(given, shown=shown)
    if not shown:
        remarks += changes(given, {"limit": "packets", "target": "us", "tupdate": "us"})
    return Reading(checked(queue), "" if shown else kernel.shown, remarks)


def write(link: Link) -> Written:
    """Return the words for a DualPI2."""
    settings = link.settings
    limit = limit_in_packets(settings, link.mean_packet_bytes)
    target, tupdate = (max(1, round(settings[f"{word}_ns"] / 1000)) for word in ("target", "tupdate"))
    if settings["native"] == "step_packets":
        step_thresh = f"{settings['step_packets']}p"
    else:
        ramp = settings["min_th_ns"] + settings["range_ns"] // 2
        step_ns = settings["step_thresh_ns"] if settings["native"] == "step" else ramp
        step_thresh = f"{max(1, round(step_ns / 1000))}us"
    coupling = max(1, round(settings["coupling"]))
    words = [
        f"dualpi2 limit {limit} target {target}us tupdate {tupdate}us",
        f"alpha {settings['alpha']!r} beta {settings['beta']!r}",
        f"step_thresh {step_thresh} min_qlen_step {settings['min_qlen_step']} coupling_factor {coupling}",
        "overflow" if settings["overload"] == "overflow" else "drop_on_overload",
        _WORDS["decide", settings["decide"]],
        f"classic_protection {settings['classic_protection']}",
        "any_ect" if settings["classifier"] == "any_ect" else "l4s_ect",
    ]
    return " ".join(words), []


_VALUES = {
    "limit": numbers.count,
    "memlimit": numbers.size,
    **dict.fromkeys(("target", "tupdate", "max_rtt", "typical_rtt"), numbers.time_us),
    **dict.fromkeys(("alpha", "beta"), gain),
    "step_thresh": step,
    "min_qlen_step": packets,
    "coupling_factor": numbers.count,
    "classic_protection": percentage,
}
VOCABULARY = Vocabulary(
    given=Grammar(_VALUES, _FLAGS, {}, lambda given: _reading(given, shown=False)),
    shown=Grammar(_VALUES | {"limit": packets}, _FLAGS, {}, lambda given: _reading(given, shown=True)),
)
