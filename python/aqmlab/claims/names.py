"""The names that claims can use: arms, axes and their labels, queues, classes, windows of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.tree import Choice, Every, Label, Pick, label
from aqmlab.errors import UsageError, unknown
from aqmlab.metrics import KINDS, Window, named_classes
from aqmlab.recordings.plan import Plan
from aqmlab.results.cells import Axis, axis_named
from aqmlab.results.results import Results
from aqmlab.text.units import TIME, quantity

ARM, QUEUE, CLASS, WINDOW = "arm", "queue", "class", "window"
KIND, ROUTER = "kind", "router"
"""Keys for a kind of packet and for a router, unless an axis such as `queue.kind` has that name."""
FROM, UNTIL = "from", "until"
POSITIONS = ("first", "last", "previous", "next")
"""Positions on an axis; a label with such a name must be quoted."""
MOST_WINDOWS = 10_000

Bindings = Mapping[str, str]
"""Bindings by ``"arm"``, ``"queue"``, ``"class"``, ``"window"``, ... or the full name of an axis."""


@dataclass(frozen=True)
class Names:
    """The names that a claim may use.

    Attributes
    ----------
    arms
        The arms, in the order of the scenario.
    axes
        The swept dimensions.
    queues, classes, routers
        Known names; where empty, any name is accepted.
    """

    arms: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    queues: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    routers: tuple[str, ...] = ()

    @staticmethod
    def of_results(results: Results) -> Names:
        """Return the names of a sweep or an experiment; queues and classes are those of its runs' plans."""
        return Names.of_plans(results.arms, results.axes, results.plans)

    @staticmethod
    def of_plans(arms: Iterable[str], axes: Iterable[Axis], plans: Iterable[Plan]) -> Names:
        """Return the names of arms and axes, with the queues and classes of the plans."""
        plans = tuple(plans)
        return Names(
            tuple(arms),
            tuple(axes),
            tuple(dict.fromkeys(link.name for each in plans for link in each.links)),
            tuple(dict.fromkeys(of.name for each in plans for of in each.classes)),
            tuple(dict.fromkeys(name for each in plans for name in each.nodes)),
        )

    def key(self, axis: Label) -> str:
        """Return the key meant by a word before ``in``, after ``over`` or before ``=``."""
        if not axis.quoted and axis.text in (ARM, QUEUE, CLASS, WINDOW):
            return axis.text
        try:
            return axis_named(self.axes, axis.text).name
        except UsageError as error:
            if not axis.quoted and axis.text in (KIND, ROUTER):
                return axis.text
            raise MisplacedError(axis.at, str(error)) from error

    def labels(self, key: str) -> tuple[str, ...]:
        """Return all labels of an axis, in order; windows of time cannot be listed."""
        own = {
            ARM: self.arms,
            QUEUE: self.queues,
            CLASS: self.classes,
            KIND: KINDS,
            ROUTER: self.routers,
            WINDOW: (),
        }
        return own[key] if key in own else axis_named(self.axes, key).labels

    def open(self, bound: Iterable[str]) -> tuple[str, ...]:
        """Return the axes that have several labels and are not bound."""
        fixed = set(bound)
        keys = [ARM, *(axis.name for axis in self.axes)]
        return tuple(key for key in keys if key not in fixed and len(self.labels(key)) > 1)

    def short(self, key: str) -> str:
        """Return the short name of an axis."""
        return next((axis.short for axis in self.axes if axis.name == key), key)

    def options(self, choice: Choice) -> tuple[str, ...]:
        """Return the labels that a choice selects, in the order of the axis or, for a list, as listed."""
        key = self.key(choice.axis)
        every = self.labels(key)
        if choice.mode == "in":
            found = [text for pick in choice.picks for text in self._picked(key, pick)]
            twice = next((text for text in found if found.count(text) > 1), None) if len(found) < 99 else None
            if twice is not None:
                raise MisplacedError(choice.at, f"`{twice}` is listed twice")
            return tuple(found)
        if not every:
            what = "list the windows" if key == WINDOW else "list its labels"
            raise MisplacedError(
                choice.at, f"`{choice.axis.text}` cannot be selected as a whole here; {what}: `in (...)`"
            )
        left_out = {text for pick in choice.picks for text in self._picked(key, pick)}
        rest = tuple(text for text in every if text not in left_out)
        if not rest:
            raise MisplacedError(choice.at, f"no label of `{choice.axis.text}` remains after `except`")
        return rest

    def resolve(self, key: str, given: Label, bound: Bindings | None = None) -> str:
        """Return the label to which a word refers: itself, or ``first``, ``last``, ``previous``, ``next``.

        Without ``bound``, positions relative to a binding are not resolved.
        """
        if key == WINDOW:
            return window_label(_window(given))
        every = self.labels(key)
        if given.text in every or (not every and key in (QUEUE, CLASS, ROUTER)):
            return given.text
        if not given.quoted and given.text in POSITIONS:
            return self._position(key, given, bound)
        if key in (QUEUE, CLASS, KIND, ROUTER) and given.text == "*":
            return "*"
        if key == CLASS and "," in given.text:
            parts = named_classes(given.text)
            strange = next((part for part in parts if part not in every), None)
            if strange is None and len(set(parts)) == len(parts):
                return ",".join(parts)
            given = replace(given, text=strange or given.text)
        what = "kind of packet" if key == KIND else f"value of `{key}`"
        what = key if key in (ARM, QUEUE, CLASS, ROUTER) else what
        raise MisplacedError(given.at, str(unknown(what, given.text, every)))

    def _position(self, key: str, given: Label, bound: Bindings | None) -> str:
        every = self.labels(key)
        if given.text in ("first", "last"):
            return every[0 if given.text == "first" else -1]
        if bound is None:
            return every[0]
        if key not in bound:
            raise MisplacedError(
                given.at,
                f"`{given.text}` of `{self.short(key)}` needs an enclosing `for` or `over` that runs over it",
            )
        place = every.index(bound[key]) + (1 if given.text == "next" else -1)
        if not 0 <= place < len(every):
            raise MisplacedError(
                given.at, f"`{bound[key]}` of `{self.short(key)}` has no {given.text} label; leave it out"
            )
        return every[place]

    def _picked(self, key: str, pick: Pick | Every) -> Sequence[str]:
        if isinstance(pick, Every):
            if key != WINDOW:
                raise MisplacedError(
                    pick.at, f"`every` makes windows and does not apply to `{self.short(key)}`"
                )
            return _every(pick)
        first = self.resolve(key, pick.first)
        if pick.last is None:
            return (first,)
        every = self.labels(key)
        last = self.resolve(key, pick.last)
        if not every:
            raise MisplacedError(
                pick.at, f"`to` selects labels along an axis and does not apply to `{self.short(key)}`"
            )
        begin, end = every.index(first), every.index(last)
        if begin > end:
            raise MisplacedError(pick.at, f"`{first}` comes after `{last}`")
        return every[begin : end + 1]


def window_label(window: Window) -> str:
    """Return ``20s-40s``, rounded to nanoseconds; an exponent, which may contain a hyphen, is avoided."""
    begin, end = (f"{time:.9f}".rstrip("0").rstrip(".") for time in window)
    return f"{begin}s-{end}s"


def window_of(text: str) -> Window:
    """Return the window that a label written by :func:`window_label` stands for."""
    return _window(label(text))


def seconds(given: Label, what: str) -> float:
    """Return a time of a run: ``20s``."""
    found = quantity(given.text)
    if found is None or found[1] != TIME or found[0] < 0:
        raise MisplacedError(given.at, f"`{given.text}` is not a time for {what}; write `20s`")
    return found[0]


def _window(given: Label) -> Window:
    begin, dash, end = given.text.partition("-")
    times = quantity(begin), quantity(end)
    if not dash or any(time is None or time[1] != TIME for time in times):
        raise MisplacedError(given.at, f"`{given.text}` is not a window of time; write `20s-40s`")
    window = Window(*(time[0] for time in times if time))
    if not window.from_s < window.until_s:
        raise MisplacedError(given.at, f"the window `{given.text}` ends before it begins")
    return window


def _every(pick: Every) -> tuple[str, ...]:
    step = seconds(pick.step, "the step")
    first, last = seconds(pick.first, "the beginning"), seconds(pick.last, "the end")
    # Rounding the times must not lose a window.
    count = math.floor((last - first) / step + 1e-9) if step > 0 else 0
    if not 1 <= count <= MOST_WINDOWS:
        raise MisplacedError(pick.at, f"`{pick}` makes {count} windows; it must make 1 to {MOST_WINDOWS}")
    return tuple(window_label(Window(first + i * step, first + (i + 1) * step)) for i in range(count))
