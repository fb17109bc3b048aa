"""Checks of shapers and the queues inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.recordings.plan import quantity_text
from aqmlab.soundness.disciplines import plans, queues
from aqmlab.soundness.doubt import CellDoubt, Check, merged

if TYPE_CHECKING:
    from aqmlab.results.results import Results

_AGED = frozenset({"red", "ared", "scred", "choke"})
"""Disciplines whose average decays while they are idle."""


def shapers_matter(results: Results) -> Check:
    """Check whether shapers are slower than their links, keep their promises, and tell idle queues."""
    kind, findings, found = "shaper", [], 0
    for cell, plan in plans(results):
        for queue in queues(plan):
            if queue.kind not in ("tbf", "htb"):
                continue
            found += 1
            classes = [one for one in queue.settings.get("class") or () if isinstance(one, Mapping)]
            most = _most_bps(queue.settings)
            name, rate = queue.link.name, queue.link.rate_bps
            if most >= rate:
                sentence = (
                    f"`{name}` sends {quantity_text(rate, 'bps')}, and its {queue.kind} lets"
                    f" {quantity_text(most, 'bps')} pass: the link decides when packets leave, not the shaper"
                )
                remedy = "give the shaper a lower rate than the link, or leave it out"
                findings.append(CellDoubt(cell, "warning", sentence, remedy, most / rate))
            findings += [
                CellDoubt(cell, "warning", f"`{name}`: {sentence}", remedy, badness)
                for sentence, remedy, badness in (
                    *_promises(classes),
                    *_never_idle(queue.settings),
                    *_faster_inside(queue.kind, queue.settings),
                )
            ]
    finding = "they are slower than their links and keep their promises" if found else "there is no shaper"
    return Check(kind, "shapers shape", finding, merged(kind, results, findings))


def _most_bps(settings: Mapping[str, Any]) -> int:
    """Return the rate at which a shaper sends at most."""
    roots = [one for one in settings.get("class") or () if one.get("parent") is None] or [settings]
    return sum(int(one.get("ceil_bps") or one["rate_bps"]) for one in roots)


def _faster_inside(kind: str, settings: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return a finding for each shaper directly inside that is not slower than what it is in."""
    found = []
    for one in (settings, *(settings.get("class") or ())):
        queue = one.get("queue")
        if not isinstance(queue, Mapping) or queue["kind"] not in ("tbf", "htb"):
            continue
        own, inner = int(one.get("ceil_bps") or one["rate_bps"]), _most_bps(queue["settings"])
        if inner >= own:
            place = f"class `{one['name']}`" if "name" in one else kind
            sentence = (
                f"the {queue['kind']} inside its {place} lets {quantity_text(inner, 'bps')} pass, and the"
                f" {place} sends at most {quantity_text(own, 'bps')}: the one inside never shapes"
            )
            remedy = "give the shaper inside the lower rate, or leave it out"
            found.append((sentence, remedy, inner / own))
    return found


def _promises(classes: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, float]]:
    """Return a finding for each class whose children have more rate than itself, and so get less."""
    found = []
    for parent in classes:
        children = [one for one in classes if one.get("parent") == parent["name"]]
        promised = sum(int(one["rate_bps"]) for one in children)
        if promised > parent["ceil_bps"]:
            sentence = (
                f"the classes inside `{parent['name']}` have rates of {quantity_text(promised, 'bps')}"
                f" together, and it never sends more than {quantity_text(parent['ceil_bps'], 'bps')}: not all"
                " of them get theirs, and the last in order may get nothing"
            )
            remedy = "lower the rates of the classes until their sum is that of the class above them"
            found.append((sentence, remedy, promised / parent["ceil_bps"]))
    return found


def _never_idle(settings: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Return a finding for each queue directly inside that waits in vain to be told that it is idle."""
    if settings["asks_empty"]:
        return []
    inside = [settings.get("queue"), *(one.get("queue") for one in settings.get("class") or ())]
    found = []
    for queue in inside:
        if not isinstance(queue, Mapping) or queue["kind"] not in _AGED:
            continue
        if queue.get("settings", queue).get("idle") == "never":
            continue
        sentence = (
            f"the shaper does not ask an empty queue for packets, so `{queue['kind']}` inside is never idle,"
            " and its average keeps its value until the next arrivals"
        )
        remedy = (
            'this is what Linux does; write `idle = "never"` in the queue if it is meant, or'
            " `asks_empty = true` in the shaper"
        )
        found.append((sentence, remedy, 0.0))
    return found
