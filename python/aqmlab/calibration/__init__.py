"""Calibration: the connection rate, or the number of users, that offers a given load on uncongested links.

===============  ======================================================================
``calibrating``  the request, and its result
``result``       the result as a table, in words and as data: :class:`Calibration`
``search``       from a first guess to the value
``places``       where the load is measured, and its target
``population``   classes whose load follows from one number
``arithmetic``   a first estimate of the load from the classes' mean sizes
``network``      the scenario with its links uncongested and its other classes left out
``trials``       runs of that scenario, and the loads that they offered
``fit``          the load as a function of the value, and the effect of seeds and heavy tails
``writing``      the value in the scenario's own text
===============  ======================================================================
"""

from __future__ import annotations

from aqmlab.calibration.calibrating import calibrate
from aqmlab.calibration.result import Calibration

__all__ = ["Calibration", "calibrate"]
