"""Waiting times of users: for the responses to their requests, and for whole web pages.

Both are recorded in the same way and therefore have the same metrics, figures and sections of reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.metrics.histograms import quoted
from aqmlab.metrics.measured import EVERY_CLASS, Measured, RequestTotals, named_classes
from aqmlab.metrics.response_times import ResponseTimes
from aqmlab.recordings.plan import quantity_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from aqmlab.recordings.recording import Run, Tables

AT_LEAST, BELOW = "at_least", "below"
"""Names of the parameters that restrict a metric to a range of sizes."""

Size = float | None


class Sample(NamedTuple):
    """Requests, or pages, of a run: sizes in bytes, and times in seconds."""

    sizes: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]


class SizeBand(NamedTuple):
    """A range of sizes of responses or pages; the upper limit, if there is one, is exclusive."""

    at_least: int
    below: int | None = None

    @property
    def parameters(self) -> dict[str, float | None]:
        """Return the parameters that restrict a metric to these sizes."""
        return {AT_LEAST: float(self.at_least), BELOW: None if self.below is None else float(self.below)}

    def __str__(self) -> str:
        low, high = (size and quantity_text(size, "bytes") for size in self)
        if not low:
            return f"below {high}" if high else "all sizes"
        return f"{low} to {high}" if high else f"from {low}"


@dataclass(frozen=True)
class Waits:
    """Something that users wait for: requests, or pages.

    Attributes
    ----------
    one, many
        Singular and plural; names of tables begin with the singular, names of counts with the plural.
    time, size
        The measured quantity, and the quantity that defines the bands.
    until_s
        The time up to which distribution functions are shown by default.
    totals
        Returns the totals of a class in a run, by size band.
    serial
        The columns that identify one request or page among those of a user.
    """

    one: str
    many: str
    time: str
    size: str
    until_s: float
    totals: Callable[[Measured, str], list[RequestTotals]] = field(repr=False)
    serial: str = field(repr=False)

    @property
    def key(self) -> str:
        """The prefix in the names of columns, figures and metrics about these waits."""
        return self.time.split()[0]

    def metric(self, what: str) -> str:
        """Return the name of a metric of these times; ``what`` is, for instance, ``"median_s"``."""
        return f"{self.key}_time_{what}"

    def of_sizes(
        self, run: Measured, class_name: str, at_least: Size = None, below: Size = None
    ) -> list[RequestTotals]:
        """Return a class's totals per size band between two sizes; empty if either size is inside a band."""
        bands = self.totals(run, class_name)
        begins = {float(band.response_low_bytes) for band in bands}
        if not {size for size in (at_least, below) if size} <= begins:
            return []
        return [
            band
            for band in bands
            if band.response_low_bytes >= (at_least or 0.0)
            and (below is None or band.response_low_bytes < below)
        ]

    def times(
        self, run: Measured, class_name: str, at_least: Size = None, below: Size = None
    ) -> ResponseTimes:
        """Return the times of a class, for all sizes or for certain size bands."""
        return ResponseTimes.of(self.of_sizes(run, class_name, at_least, below))

    def sample(self, tables: Tables, run: Run, class_name: str) -> Sample:
        """The completed requests or pages of the given classes that were recorded individually."""
        import numpy as np

        named = ", ".join(map(quoted, named_classes(class_name)))
        chosen = "" if class_name == EVERY_CLASS else f"WHERE class IN ({named})"
        found = tables.arrays(
            f"{self.one}_sample",
            f"{self.key}_bytes AS bytes, {self.metric('ns')} / 1e9 AS time_s",
            f"{chosen} ORDER BY class, start_ns, user, {self.serial}",
            [run],
        )
        return Sample(np.asarray(found["bytes"]), np.asarray(found["time_s"]))

    def bands(self, run: Measured, class_name: str) -> list[SizeBand]:
        """Return the size bands in which a class has completed requests or pages, ascending."""
        bands = {
            (band.response_low_bytes, band.response_high_bytes)
            for band in self.totals(run, class_name)
            if band.completed
        }
        return [SizeBand(low, None if high is None else high + 1) for low, high in sorted(bands)]


REQUESTS = Waits(
    "request", "requests", "response time", "response size", 2.0, Measured.requests_of, "serial, exchange"
)
PAGES = Waits("page", "pages", "page time", "page weight", 20.0, Measured.pages_of, "page")
ALL_WAITS = (REQUESTS, PAGES)
