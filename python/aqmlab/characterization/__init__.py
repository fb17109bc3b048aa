"""Characterizations of AQMs as RFC 7928 describes them, with several seeds and verdicts from intervals."""

from __future__ import annotations

from aqmlab.characterization.characterizing import Characterization, characterize

__all__ = ["Characterization", "characterize"]
