"""Recordings in transit from a worker without access to the store: files, and the parts left behind.

A *summary* is a recording without the tables of individual flows over time, packets and requests. Its
manifest lists these under ``left_behind`` instead of ``tables``; the rest is unchanged.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from aqmlab.errors import unknown
from aqmlab.metrics import all_metrics
from aqmlab.recordings.integrity import read_json, sealed

Bring = Literal["summaries", "recordings"]
"""The part of a recording that a worker without access to the store sends back."""

SUMMARIES: Bring = "summaries"
RECORDINGS: Bring = "recordings"
COURSES = ("flow_series", "packets", "requests", "trace")
"""The tables that a summary lacks."""

_MANIFEST = "manifest.json"
_TABLE = ".parquet"
_OF_A_PART = re.compile(r"\b(from|until|window)\b")
"""Words in a claim that make it refer to a part of a run."""


def chosen(word: str) -> Bring:
    """Return the part for which a word stands.

    Raises
    ------
    UsageError
        If the word is unknown.
    """
    for known in (SUMMARIES, RECORDINGS):
        if word == known:
            return known
    raise unknown("choice", word, (SUMMARIES, RECORDINGS))


def packed(recording: Path, bring: Bring) -> dict[str, bytes]:
    """Return the files of a recording, or of its summary, by name."""
    if bring == RECORDINGS:
        return {file.name: file.read_bytes() for file in sorted(recording.iterdir())}
    about = read_json(recording / _MANIFEST)
    tables = {name: facts for name, facts in about["tables"].items() if name not in COURSES}
    left = {name: facts for name, facts in about["tables"].items() if name in COURSES}
    files = {f"{name}{_TABLE}": (recording / f"{name}{_TABLE}").read_bytes() for name in tables}
    return {**files, _MANIFEST: sealed({**about, "tables": tables, "left_behind": left}).encode()}


def unpack(files: Mapping[str, bytes], directory: Path) -> None:
    """Write the files into a new directory; they are on disk when this function returns.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    directory.mkdir()
    for name, content in files.items():
        if Path(name).name != name:
            raise ValueError(f"`{name}` is not a file name")
        with (directory / name).open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())


def enough(about: Mapping[str, Any], bring: Bring) -> Bring:
    """Return the part that workers must send back for the tables and claims of a scenario.

    Parameters
    ----------
    about
        The scenario's ``metrics`` and ``claims``.
    bring
        The requested part.
    """
    text = json.dumps([about["metrics"], about["claims"]])
    named = set(re.findall(r"\w+", text))
    from_samples = any(metric.from_samples and metric.name in named for metric in all_metrics())
    return RECORDINGS if from_samples or _OF_A_PART.search(text) else bring
