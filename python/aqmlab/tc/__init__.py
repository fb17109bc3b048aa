"""Queues in tc's syntax, and their parameters in Linux."""

from __future__ import annotations

from aqmlab.tc.line import TcLine, tc_lines
from aqmlab.tc.spec import TcQueue, read_tc

__all__ = ["TcLine", "TcQueue", "read_tc", "tc_lines"]
