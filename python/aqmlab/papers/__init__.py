"""Reproductions: a published paper is a folder of data that is run, scored and redrawn.

``papers/README.md`` describes the folders.
"""

from aqmlab.papers.folder import find_paper, papers
from aqmlab.papers.paper import Paper
from aqmlab.papers.reproduce import Reproduction, reproduce

__all__ = ["Paper", "Reproduction", "find_paper", "papers", "reproduce"]
