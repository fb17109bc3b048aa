"""The result of an inference as plain data: ``inference.json``, from which all texts are generated."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab.errors import RecordingError
from aqmlab.papers.inference import HeldAgainst, InferredReading, reading_of
from aqmlab.papers.inference_spec import target_name
from aqmlab.papers.names import scenario_digest
from aqmlab.papers.paper import Paper, Setting
from aqmlab.papers.scorecard_text import estimate_json
from aqmlab.papers.search import Beside
from aqmlab.stats.screening import Effect
from aqmlab.system.files import json_text

FILE = "inference.json"
FORMAT_VERSION = 1
FOR, AGAINST, NOTHING, NOT_ASKED, UNTOUCHED = "for", "against", "nothing", "not asked", "untouched"
"""Kinds of evidence about a setting: for one candidate, against some, neither, not examined, not varied."""


def inference_json(found: InferredReading, made: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole inference as data; ``made`` has the version, the commit and the date."""
    spec, search = found.paper.inference, found.found
    rows, folded = search.design
    return {
        "format_version": FORMAT_VERSION,
        "paper": found.paper.key,
        "title": found.paper.title,
        **made,
        "state": state_of(found.paper),
        "rule": spec.rule,
        "of": "findings" if found.fit[0].target.finding else "cells",
        "distance": spec.distance,
        "minutes": spec.minutes,
        "budget_ended_in": search.ended or None,
        "seeds": spec.seeds,
        **({"shorter": dict(spec.shorter)} if spec.shorter else {}),
        "final_seeds": found.final_seeds,
        "profile_seeds": search.profile_seeds[1] - search.profile_seeds[0],
        "readings": len(search.tried),
        "design": {"readings": rows, "folded": folded, "used": bool(search.effects)} if rows else None,
        "reading": dict(found.reading),
        "parts": {name: _part(found, part) for name, part in (("fit", found.fit), ("test", found.test))},
        "settings": [_setting(found, j) for j in range(len(found.searched))]
        + [_untouched(found.paper, name) for name in found.untouched],
        "failures": [
            {"reading": reading_of(found.searched, row), "reason": reason}
            for row, reason in found.failures.items()
        ],
    }


def state_of(paper: Paper) -> str:
    """Return a digest of what an inference is based on: scenarios, settings, fitted and tested parts."""
    spec = paper.inference
    both = (*spec.fit, *spec.test)
    findings = [f for f in paper.findings if any(target.finding == f.name for target in both)]
    tables = [t for t in paper.tables if any(target.table == t.name for target in both)]
    about: list[object] = [spec.fit, spec.test, spec.settings, spec.distance]
    about += [dict(spec.shorter)] if spec.shorter else []
    about += [(t.name, t.value, t.rows, t.columns, t.published, t.both_below) for t in tables]
    about += [(f.name, [(p.experiment, p.expect, dict(p.where)) for p in f.parts]) for f in findings]
    files = {t.experiment for t in tables} | {p.experiment for f in findings for p in f.parts}
    about += [
        _of_setting(s, files)
        for s in paper.settings
        if not s.experiments or files.intersection(s.experiments)
    ]
    about += [(file, scenario_digest(paper, paper.experiment(file))) for file in sorted(files)]
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


def _of_setting(setting: Setting, files: set[str]) -> object:
    """Return what a setting changes in these experiments; the others play no part in the inference."""
    candidates = {
        label: {key: value for key, value in changes.items() if not key.endswith(".toml") or key in files}
        for label, changes in setting.candidates.items()
    }
    return (
        setting.name,
        setting.chosen,
        sorted(files.intersection(setting.experiments)),
        setting.arms,
        candidates,
    )


def inference_text(content: Mapping[str, Any]) -> str:
    """The content of ``inference.json``."""
    return json_text(content, indent=1) + "\n"


def read_inference(folder: Path) -> dict[str, Any] | None:
    """Return the inference in a folder, or ``None`` if there is none.

    Raises
    ------
    RecordingError
        If the file cannot be read, is damaged, or has another format version.
    """
    file = folder / FILE
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        version = content["format_version"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(
            f"`{file}` cannot be read: {error}; `aqmlab paper infer` makes a new one"
        ) from error
    if version != FORMAT_VERSION:
        raise RecordingError(f"`{file}` has format version `{version}`; `aqmlab paper infer` makes a new one")
    return content


def _part(found: InferredReading, part: Sequence[HeldAgainst]) -> dict[str, Any]:
    return {
        "fixed": estimate_json(found.error(part, "fixed")),
        "inferred": estimate_json(found.error(part, "inferred")),
        "difference": estimate_json(found.difference(part)),
        "items": [
            {
                "name": target_name(held.target, found.paper.tables),
                "published": held.published,
                "fixed": estimate_json(held.fixed),
                "inferred": estimate_json(held.inferred),
                "fixed_error": _mean(held.fixed_errors),
                "inferred_error": _mean(held.inferred_errors),
            }
            for held in part
        ],
    }


def _setting(found: InferredReading, j: int) -> dict[str, Any]:
    setting, level = found.searched[j], found.found.inferred[j]
    beside, own = found.found.beside[j], found.found.beside[j][level]
    effects = (None, *found.found.effects[j]) if found.found.effects else (None,) * len(beside)
    candidates = [
        {
            "label": label,
            "error": _mean(beside[i].errors),
            "difference": _difference(beside[i], own),
            "half_width": beside[i].half_width,
            "says": "inferred" if i == level else _says(beside[i], own),
            "best_seen": _best_seen(found, j, i),
            "effect": _effect(effects[i]),
        }
        for i, label in enumerate(setting.candidates)
    ]
    others = [str(candidate["says"]) for candidate in candidates if candidate["says"] != "inferred"]
    return {
        "name": setting.name,
        "fixed": setting.candidates[0],
        "inferred": setting.candidates[level],
        "says": _verdict(others),
        "screened": None if not found.found.effects else any(e.matters for e in found.found.effects[j]),
        "candidates": candidates,
    }


def _untouched(paper: Paper, name: str) -> dict[str, Any]:
    chosen = next(setting.chosen for setting in paper.settings if setting.name == name)
    return {
        "name": name,
        "fixed": chosen,
        "inferred": chosen,
        "says": UNTOUCHED,
        "screened": None,
        "candidates": [],
    }


def _says(beside: Beside, own: Beside) -> str:
    """Return ``worse`` or ``better`` (beyond the noise), ``alike`` (within it) or ``not asked`` (unknown)."""
    difference = _difference(beside, own)
    if difference is None or beside.half_width is None:
        return NOT_ASKED
    if abs(difference) <= beside.half_width:
        return "alike"
    return "worse" if difference > 0 else "better"


def _verdict(others: Sequence[str]) -> str:
    if any(says in ("worse", "better") for says in others):
        return FOR if all(says == "worse" for says in others) else AGAINST
    return NOT_ASKED if NOT_ASKED in others else NOTHING


def _difference(beside: Beside, own: Beside) -> float | None:
    if beside.errors is None or own.errors is None:
        return None
    return (math.fsum(beside.errors) - math.fsum(own.errors)) / len(own.errors)


def _best_seen(found: InferredReading, j: int, level: int) -> float | None:
    """The smallest error of any reading with a candidate, over the seeds common to all readings."""
    seeds = found.paper.inference.seeds
    errors = [
        _mean(errors[:seeds]) for row, errors in found.found.tried.items() if errors and row[j] == level
    ]
    return min((error for error in errors if error is not None), default=None)


def _effect(effect: Effect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    return {"value": effect.value, "half_width": effect.half_width, "matters": effect.matters}


def _mean(values: Sequence[float] | None) -> float | None:
    return math.fsum(values) / len(values) if values else None
