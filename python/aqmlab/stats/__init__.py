"""Statistics over seeds: intervals, paired differences, verdicts.

Every seed is one independent replication, and arms share their arrivals seed by seed. Within a run,
``survival`` estimates distributions of durations that are known only in part.

=================  =====================================================================
``intervals``      means: Student's t (``student``)
``differences``    differences between arms: seed by seed, or Welch if seeds form no pairs
``sentence``       such a difference in words
``quantiles``      medians and other quantiles: order statistics
``proportion``     shares of seeds: Clopper-Pearson
``verdict``        comparisons that hold, fail or are undecided; how these combine
``multiple``       several comparisons at once: Holm
``warmup``         the end of a series' initial transient: MSER-5
``batch_means``    an interval from a single long run
``ellipse``        two metrics together: the 1-sigma ellipse of their covariance
=================  =====================================================================

This package exports only the names that tables of results need; import all others from their modules.
"""

from __future__ import annotations

from aqmlab.stats.differences import Difference, difference
from aqmlab.stats.intervals import CONFIDENCE, Estimate, Interval, estimate
from aqmlab.stats.student import quantile as t_quantile

__all__ = ["CONFIDENCE", "Difference", "Estimate", "Interval", "difference", "estimate", "t_quantile"]
