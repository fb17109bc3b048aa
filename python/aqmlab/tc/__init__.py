"""Queues in tc's syntax, and their parameters in Linux."""

from __future__ import annotations

from aqmlab.tc.effective import NoCounterpartError
from aqmlab.tc.line import TcLine, tc_lines
from aqmlab.tc.spec import TcQueue, TcSkipped, read_tc, read_tc_script
from aqmlab.tc.tree import TcTree, read_tc_trees

__all__ = [
    "NoCounterpartError",
    "TcLine",
    "TcQueue",
    "TcSkipped",
    "TcTree",
    "read_tc",
    "read_tc_script",
    "read_tc_trees",
    "tc_lines",
]
