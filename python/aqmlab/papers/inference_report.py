"""An inference as Markdown: a separate page, and a section of the scorecard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from aqmlab.papers.inference_json import AGAINST, FOR, NOT_ASKED, NOTHING, UNTOUCHED
from aqmlab.papers.scorecard_text import estimate_text, markdown_table
from aqmlab.papers.targets import FARTHEST
from aqmlab.stats import Estimate
from aqmlab.text.numbers import NO_VALUE, counted, number

Content = Mapping[str, Any]
"""The contents of ``inference.json``."""

CAUTION = (
    "The fixed reading is the one that is scored. The inferred one was found by a search. Its error on the"
    " part that the search has not seen is out of sample for these cells or findings, but not for the model:"
    " the authors of the scenarios and the candidates had read the whole paper."
)
_PARTS = {"fit": "fitted", "test": "not seen"}


def inference_markdown(content: Content) -> str:
    """``inference.md``."""
    lines = [
        f"# Inference: {content['title']}",
        "",
        CAUTION,
        "",
        f"Made on {content['date']} by aqmlab {content['version']} (commit {content['commit']}) with"
        f" `aqmlab paper infer {content['paper']}`. {how_it_was_done(content)}",
        "",
        *_table(errors_rows(content)),
        "",
        f"{conclusion(content)} {_error_words(content)}",
        "",
        "## What the data show about each setting",
        "",
        *_table(settings_rows(content)),
        "",
        _settings_words(content),
    ]
    lines += ["", "## All candidates", "", *_candidates_table(content)]
    for part, words in _PARTS.items():
        lines += ["", f"## What was {words}", "", *_items_table(content, part)]
    if content["failures"]:
        lines += ["", "## Readings that cannot be run", ""]
        for failure in content["failures"]:
            lines.append(f"- {_reading_text(failure['reading'])}: {failure['reason']}")
    return "\n".join(lines) + "\n"


def inference_section(content: Content, *, stale: bool) -> list[str]:
    """Return the scorecard's section on the inference."""
    head = ["## The inferred reading", ""]
    if stale:
        return [*head, stale_text(content)]
    return [
        *head,
        f"{CAUTION} The whole inference is in `inference.md`, made on {content['date']}.",
        "",
        *_table(errors_rows(content)),
        "",
        conclusion(content),
        "",
        *_table(settings_rows(content)),
    ]


def stale_text(content: Content) -> str:
    """State why an inference is not shown."""
    return (
        f"The inference of {content['date']} belongs to an earlier state of this folder: `aqmlab paper infer"
        f" {content['paper']}` makes a new one."
    )


def how_it_was_done(content: Content) -> str:
    """Describe how the parts were chosen, and the limits of the search."""
    design = content["design"]
    said = [
        f"How the two parts were chosen: {content['rule'] or 'not stated'}.",
        f"{content['readings']} readings were evaluated with {content['seeds']} seeds each, the better ones"
        f" and the fixed one with up to {content['final_seeds']}; the budget was {content['minutes']:g} min.",
    ]
    if content.get("shorter"):
        said.append(
            "The runs of the search are shorter than the scored ones; those of the final comparison are not."
        )
    if design:
        kind = "a folded Plackett-Burman design" if design["folded"] else "a Plackett-Burman design"
        ended = "" if design["used"] else "; too little of it was completed for a conclusion"
        said.append(f"The screening was {kind} of {design['readings']} readings{ended}.")
    else:
        said.append("There was no screening: the budget is too small for a design.")
    if content["budget_ended_in"]:
        said.append(f"**The budget ended in the stage `{content['budget_ended_in']}`.**")
    return " ".join(said)


def conclusion(content: Content) -> str:
    """Return a sentence on whether the unseen part improves as well."""
    if not content["reading"]:
        return "No reading fits clearly better than the fixed one."
    seen, unseen = (_sign(content["parts"][part]["difference"]) for part in ("fit", "test"))
    words = {
        -1: "improves as well: its error falls",
        0: "does not improve: its error is the same within the noise, and the better fit may be chance",
        1: "**gets worse**: the better fit does not carry over",
    }
    gain = "" if seen < 0 else " (with all seeds, the fit itself is not clearly better)"
    inferred = _reading_text(content["reading"])
    return f"Inferred: {inferred}{gain}. The part that the search has not seen {words[unseen]}."


def _sign(difference: Content) -> int:
    mean, half = difference["mean"], difference["half_width"]
    if half is None or abs(mean) <= half:
        return 0
    return 1 if mean > 0 else -1


def _error_words(content: Content) -> str:
    if content["of"] == "findings":
        return (
            "The error of a seed is the share of findings that do not hold in that seed alone; a finding that"
            " is not defined counts half. The table has the mean over the seeds with the 95 % interval. It is"
            " not a verdict: verdicts use all seeds together."
        )
    far = number(math.exp(FARTHEST["log"]), 2)
    words = {
        "log": f"the absolute logarithm of the ratio to the published number, at most the logarithm of {far}",
        "relative": "the absolute difference from the published number, divided by that number, at most 1",
    }[content["distance"]]
    return (
        f"The error of a cell is {words}. The table has its mean over the cells, then over the seeds, with"
        " the 95 % interval. Values below a table's `both_below` count as `both_below`."
    )


def errors_rows(content: Content) -> list[list[str]]:
    """Return the errors of both readings on both parts, the header row first."""
    parts = content["parts"]
    one = content["of"].removesuffix("s")
    heads = [f"error, {words} ({counted(len(parts[p]['items']), one)})" for p, words in _PARTS.items()]
    rows = [["reading", *heads]]
    for which, label in (("fixed", "fixed"), ("inferred", "inferred"), ("difference", "difference, paired")):
        rows.append([label, *(_error_text(content, parts[part][which], which) for part in _PARTS)])
    return rows


def _error_text(content: Content, found: Content, which: str) -> str:
    text = _estimate_text(found)
    if content["of"] == "cells" and content["distance"] == "log" and which != "difference":
        return f"{text}, a factor of {math.exp(found['mean']):.2f}"
    return text


def settings_rows(content: Content) -> list[list[str]]:
    """Return each setting with its two candidates and the evidence, the header row first."""
    rows = [["setting", "fixed", "inferred", "what the data say"]]
    for of in content["settings"]:
        inferred = of["inferred"] if of["inferred"] != of["fixed"] else "the same"
        rows.append([of["name"], of["fixed"], inferred, setting_text(of)])
    return rows


def setting_text(of: Content) -> str:
    """Return the evidence for a setting, in words."""
    others = {says: [c["label"] for c in of["candidates"] if c["says"] == says] for says in _SAID}
    if of["says"] == UNTOUCHED:
        return "not varied: no fitted result depends on it"
    if of["says"] == NOTHING:
        return f"nothing: no candidate differs beyond the noise{_elsewhere(of)}"
    if of["says"] == NOT_ASKED:
        alike = f"; like the inferred one: {_listed(others['alike'])}" if others["alike"] else ""
        return f"not evaluated for {_listed(others[NOT_ASKED])}: the budget ended, or it cannot be run{alike}"
    if of["says"] == FOR:
        against = "all others" if len(others["worse"]) > 1 else others["worse"][0]
        return f"for {of['inferred']}, against {against}"
    assert of["says"] == AGAINST
    said = [f"{words} {_listed(others[says])}" for says, words in _SAID.items() if others[says]]
    return "; ".join(said)


_SAID = {
    "worse": "against",
    "better": "better still, but seen after the search:",
    "alike": "like the inferred one:",
    NOT_ASKED: "not evaluated for",
}


def _elsewhere(of: Content) -> str:
    return "; it matters in other readings (screening)" if of["screened"] else ""


def _listed(labels: list[str]) -> str:
    return ", ".join(labels)


def _settings_words(content: Content) -> str:
    return (
        "Each candidate replaced the inferred one, with all other settings as inferred and with"
        f" {content['profile_seeds']} seeds that the search had not used. It differs beyond the noise if the"
        " interval of the paired difference excludes zero; the noise is the spread between seeds, pooled over"
        " all these readings, and a setting's candidates share the 5 % (Bonferroni). The joint effect of two"
        " settings is known only from readings that the search evaluated: `best seen` is the least error of"
        " any reading with that candidate."
    )


def _candidates_table(content: Content) -> list[str]:
    rows = [
        [
            "setting",
            "candidate",
            "error with it in the inferred reading",
            "difference",
            "best seen",
            "effect (screening)",
        ]
    ]
    for of in content["settings"]:
        for candidate in of["candidates"]:
            mark = " (inferred)" if candidate["says"] == "inferred" else ""
            rows.append(
                [
                    of["name"],
                    f"{candidate['label']}{mark}",
                    _number(candidate["error"]),
                    "" if mark else _with_half(candidate["difference"], candidate["half_width"]),
                    _number(candidate["best_seen"]),
                    _effect_text(candidate["effect"]),
                ]
            )
    return _table(rows)


def _table(rows: list[list[str]]) -> list[str]:
    return markdown_table(rows[0], rows[1:])


def _effect_text(effect: Content | None) -> str:
    if effect is None:
        return ""
    return f"{_with_half(effect['value'], effect['half_width'])}{' *' if effect['matters'] else ''}"


def _items_table(content: Content, part: str) -> list[str]:
    of_findings = content["of"] == "findings"
    what = "share of seeds in which it is true" if of_findings else "ours"
    rows = [
        [
            "",
            *([] if of_findings else ["published"]),
            f"{what}, fixed",
            f"{what}, inferred",
            "error, fixed",
            "inferred",
        ]
    ]
    for item in content["parts"][part]["items"]:
        rows.append(
            [
                item["name"],
                *([] if of_findings else [f"{item['published']:.10g}"]),
                _estimate_text(item["fixed"]),
                _estimate_text(item["inferred"]),
                _number(item["fixed_error"]),
                _number(item["inferred_error"]),
            ]
        )
    return _table(rows)


def _reading_text(reading: Content) -> str:
    return ", ".join(f"{name}: {label}" for name, label in reading.items()) or "the fixed reading"


def _estimate_text(found: Content | None) -> str:
    return estimate_text(None if found is None else Estimate(**found)).replace("-", "−")


def _number(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.3f}"


def _with_half(value: float | None, half: float | None) -> str:
    if value is None:
        return NO_VALUE
    text = f"{value:+.3f}".replace("-", "−")
    return text if half is None else f"{text} ± {half:.3f}"
