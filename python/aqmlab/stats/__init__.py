"""Statistics over seeds: intervals, paired differences, verdicts.

Every seed is one independent replication, and arms share their arrivals seed by seed.
"""

from __future__ import annotations

from aqmlab.stats.intervals import CONFIDENCE, Estimate, Interval, estimate, t_quantile
from aqmlab.stats.paired import paired_difference

__all__ = ["CONFIDENCE", "Estimate", "Interval", "estimate", "paired_difference", "t_quantile"]
