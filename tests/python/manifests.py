"""Manifests for tests that read no files, and results whose runs have been replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aqmlab.recordings.manifest import Manifest, manifest_of
from aqmlab.recordings.plan import Plan
from aqmlab.recordings.recording import Run
from aqmlab.results.reader import Reader
from aqmlab.results.results import Results, of_runs

TIMES = {"warmup_ns": 0, "stop": {"at_ns": 10**9}, "record": {"queues_ns": 0}}
"""The parts of a plan that no test with a manifest reads."""


def manifest(**content: Any) -> Manifest:
    """A manifest with this content in addition to the common fields."""
    usual = {
        "format_version": 4,
        "parts": {},
        "aqmlab_version": "0.1.0",
        "title": "Synthetic",
        "arm": "red",
        "seed": 1,
        "plan_digest": "0" * 64,
        "tables": {},
        "links": [],
    }
    return manifest_of(usual | content, Plan.of(TIMES | content["plan"]))


def with_runs(results: Results, runs: Iterable[Run]) -> Results:
    """The results with these finished runs in place of their own; no file of these runs has been read."""
    made = of_runs(runs, arms=results.arms, seeds=results.seeds, path=results.path, title=results.title)
    return replace(
        results, finished=made.finished, missing=made.missing, reader=Reader(results.reader.remedy)
    )
