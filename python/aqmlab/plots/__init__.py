"""Figures for papers, as PDF, SVG or PNG; the same recording always gives the same bytes."""

from __future__ import annotations

from aqmlab.plots.draw import KINDS, draw
from aqmlab.plots.view import View

__all__ = ["KINDS", "View", "draw"]
