"""The place of a load measurement, and the target load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from aqmlab.errors import UsageError, unknown
from aqmlab.recordings.plan import Link, Plan, TrafficClass
from aqmlab.text.numbers import listed, number

RESPONSES = "responses"
REQUESTS = "requests"
NAMED = "named"
DIRECTIONS = (RESPONSES, REQUESTS, NAMED)
"""The accepted directions: that of the responses, that of the requests, and that of the link named."""

WIRE = "wire"
PAYLOAD = "payload"
COUNTS = (WIRE, PAYLOAD)


@dataclass(frozen=True)
class Load:
    """A requested load.

    Attributes
    ----------
    bps
        The load in bit/s.
    link
        The link on which it is measured.
    count
        ``"wire"``: bytes with headers and the link's overhead; or ``"payload"``.
    responses
        Whether the load consists mainly of responses, not requests.
    """

    bps: float
    link: Link
    count: str
    responses: bool

    def __str__(self) -> str:
        share = 100 * self.bps / self.link.rate_bps
        return f"{number(self.bps / 1e6)} Mbit/s ({number(share, 3)} % of the rate of `{self.link.name}`)"


def measured_link(plan: Plan, name: str, direction: str, classes: Sequence[TrafficClass]) -> Link:
    """Return the directed link on which the load of the given classes is measured.

    Parameters
    ----------
    plan
        The plan that contains the links.
    name
        Name of the link, in either direction.
    direction
        One of :data:`DIRECTIONS`.
    classes
        The classes whose load is measured.

    Raises
    ------
    UsageError
        If there is no such link or direction, or a class does not cross it, or the classes cross it
        in different directions.
    """
    if direction not in DIRECTIONS:
        raise unknown("direction", direction, DIRECTIONS)
    link = plan.link(name)
    if link is None:
        raise unknown("link", name, [each.name for each in plan.links])
    if direction == NAMED:
        for one in classes:
            if name not in (*one.path, *one.return_path):
                raise _misses(one, name)
        return link
    found = {one.name: _crossed(plan, link, one, direction) for one in classes}
    if len({each.name for each in found.values()}) > 1:
        ways = listed([f"those of `{one}` cross `{each.name}`" for one, each in found.items()])
        raise UsageError(
            f"{direction} take different routes: {ways}; name the link to measure and add"
            f" `--direction {NAMED}`"
        )
    return next(iter(found.values()))


def _crossed(plan: Plan, link: Link, one: TrafficClass, direction: str) -> Link:
    """Return whichever of the link and its reverse link a class's responses or requests cross."""
    way = one.return_path if direction == RESPONSES else one.path
    both = [link, *(each for each in plan.links if (each.source, each.target) == (link.target, link.source))]
    crossed = next((each for each in both if each.name in way), None)
    if crossed is None:
        raise _misses(one, link.name)
    return crossed


def _misses(one: TrafficClass, name: str) -> UsageError:
    def way(links: Sequence[str]) -> str:
        return listed([f"`{link}`" for link in links]) if links else "no link"

    return UsageError(
        f"the class `{one.name}` does not cross `{name}`: its requests cross {way(one.path)},"
        f" its responses {way(one.return_path)}"
    )


def target_bps(text: str, link: Link, *, allow_overload: bool = False) -> float:
    """Return a load in bit/s, from a share of a link's rate (``"35 %"``) or a rate (``"3.5Mbit"``).

    Raises
    ------
    UsageError
        If the text is neither a share nor a rate, is zero, or exceeds the link's rate although that is not
        allowed.
    """
    wanted = _share(text) * link.rate_bps if text.rstrip().endswith("%") else _rate(text)
    if wanted <= 0:
        raise UsageError(f"the target `{text}` is not a positive load; give one above zero")
    if wanted > link.rate_bps and not allow_overload:
        raise UsageError(
            f"the target `{text}` is {number(100 * wanted / link.rate_bps)} % of the rate of `{link.name}`"
            f" ({link.rate}); a load above that rate needs `--allow-overload`"
        )
    return wanted


def _share(text: str) -> float:
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise UsageError(f'the target `{text}` is not a share; write "35 %", or a rate such as "3.5Mbit"')
    return share


def _rate(text: str) -> float:
    from aqmlab import _core

    try:
        return float(_core.quantity(text, "bps"))
    except UsageError as error:
        raise UsageError(f'the target {error}, or a share of the link such as "35 %"') from None
