"""Metrics: each is defined in one place, over the exact counts of a recording."""

from aqmlab.metrics import flow as _flow
from aqmlab.metrics import queue as _queue
from aqmlab.metrics.flow import flow_goodput, jain_index
from aqmlab.metrics.measured import EVERY_CLASS, FlowTotals, Histogram, Measured, QueueTotals, measure
from aqmlab.metrics.registry import Metric, all_metrics, find

__all__ = [
    "EVERY_CLASS",
    "FlowTotals",
    "Histogram",
    "Measured",
    "Metric",
    "QueueTotals",
    "all_metrics",
    "find",
    "flow_goodput",
    "jain_index",
    "measure",
]

# Importing the two modules is what registers their metrics.
_ = (_flow, _queue)
