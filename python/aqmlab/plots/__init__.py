"""Figures for papers: PDF, SVG or PNG, the same bytes for the same recording."""

from __future__ import annotations

from aqmlab.plots.draw import KINDS, draw
from aqmlab.plots.view import View

__all__ = ["KINDS", "View", "draw"]
