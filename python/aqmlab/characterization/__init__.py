"""Characterizations of AQMs as RFC 7928 describes them: every section, several seeds, verdicts from intervals."""

from __future__ import annotations

from aqmlab.characterization.characterizing import Characterization, characterize

__all__ = ["Characterization", "characterize"]
