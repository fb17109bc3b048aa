"""Metrics of a recording, each defined in one place, from exact counts or, for changes over time, samples."""

from aqmlab.metrics import classes as _classes
from aqmlab.metrics import control as _control
from aqmlab.metrics import draining as _draining
from aqmlab.metrics import flow as _flow
from aqmlab.metrics import frames as _frames
from aqmlab.metrics import inner_queues as _inner_queues
from aqmlab.metrics import losses as _losses
from aqmlab.metrics import oscillation as _oscillation
from aqmlab.metrics import phenomena as _phenomena
from aqmlab.metrics import programs as _programs
from aqmlab.metrics import queue as _queue
from aqmlab.metrics import responsiveness as _responsiveness
from aqmlab.metrics import scaling as _scaling
from aqmlab.metrics import thresholds as _thresholds
from aqmlab.metrics import wait_metrics as _wait_metrics
from aqmlab.metrics.flow import flow_goodput, jain_index
from aqmlab.metrics.flow_totals import Flows, FlowTotals
from aqmlab.metrics.histograms import Histogram
from aqmlab.metrics.measured import (
    EVERY_CLASS,
    EVERY_QUEUE,
    Measured,
    QueueTotals,
    RequestTotals,
    Samples,
    Window,
    measure,
    named_classes,
)
from aqmlab.metrics.packet_kinds import EVERY_KIND, KINDS
from aqmlab.metrics.registry import Metric, Parameter, all_metrics, find
from aqmlab.metrics.scope import EVERY_ROUTER, EVERYTHING, Scope, Takes

__all__ = [
    "EVERYTHING",
    "EVERY_CLASS",
    "EVERY_KIND",
    "EVERY_QUEUE",
    "EVERY_ROUTER",
    "KINDS",
    "FlowTotals",
    "Flows",
    "Histogram",
    "Measured",
    "Metric",
    "Parameter",
    "QueueTotals",
    "RequestTotals",
    "Samples",
    "Scope",
    "Takes",
    "Window",
    "all_metrics",
    "find",
    "flow_goodput",
    "jain_index",
    "measure",
    "named_classes",
]

# Importing the modules registers their metrics.
_ = (
    _classes,
    _control,
    _draining,
    _flow,
    _frames,
    _inner_queues,
    _losses,
    _oscillation,
    _phenomena,
    _programs,
    _queue,
    _responsiveness,
    _scaling,
    _thresholds,
    _wait_metrics,
)
