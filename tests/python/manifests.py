"""Manifests for tests that read no files."""

from __future__ import annotations

from typing import Any

from aqmlab.manifest import Manifest, manifest_of
from aqmlab.plan import Plan


def manifest(**content: Any) -> Manifest:
    """A manifest with this content besides what every one has."""
    usual = {
        "format_version": 3,
        "aqmlab_version": "0.1.0",
        "title": "Synthetic",
        "arm": "red",
        "seed": 1,
        "plan_digest": "0" * 64,
        "tables": {},
        "links": [],
    }
    return manifest_of(usual | content, Plan.of(content["plan"]))
