"""Figures for papers, as PDF, SVG or PNG; the same recording always gives the same bytes."""

from __future__ import annotations

from aqmlab.figures.view import View
from aqmlab.plots.draw import KINDS, SWEEP_KINDS, draw

__all__ = ["KINDS", "SWEEP_KINDS", "View", "draw"]
