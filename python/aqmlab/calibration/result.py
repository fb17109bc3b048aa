"""The result of a calibration: as a table, in words and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.calibration.fit import Fit, Needed, Spread, narrowing, spread
from aqmlab.calibration.places import WIRE, Load
from aqmlab.calibration.population import Population, shortest
from aqmlab.calibration.trials import Loads
from aqmlab.calibration.writing import write_values
from aqmlab.text.numbers import display_value, estimate_text, fixed, listed, number, time_text
from aqmlab.text.tables import Column, Grid


@dataclass(frozen=True)
class Calibration:
    """The connection rate, or number of users, that offers a load on uncongested links.

    Attributes
    ----------
    classes
        The calibrated classes; their numbers keep the ratio that they have in the scenario.
    values
        Their numbers, by name, as a scenario accepts them: ``{"web": 43.2}``.
    asked
        The target load, where it is measured, and which bytes are counted.
    fit
        The line through the loads around the value of the first class, and where it reaches the
        target.
    proportional
        Whether the load is proportional to the value, without a noticeable deviation.
    spread
        How much the load of a single run varies between seeds at that value.
    needed
        The cost of knowing the mean load more accurately.
    tail
        Index of a Pareto tail with infinite variance, if a class has one.
    runs, interval_s
        Number of seeds, and the measured time of each run.
    loads
        Loads in bit/s, by value of the first class and by seed: around the calibrated value, and at it.
    differences
        How the network in the runs differs from the scenario's.
    remarks
        Remarks to consider before the value is used.
    """

    classes: tuple[Population, ...]
    values: Mapping[str, float]
    asked: Load
    fit: Fit
    proportional: bool
    spread: Spread
    needed: tuple[Needed, ...]
    tail: float | None
    runs: int
    interval_s: float
    loads: Loads
    differences: tuple[str, ...]
    remarks: tuple[str, ...]
    runs_done: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {value:g}" for name, value in self.values.items())
        return f"<Calibration {found} for {self.asked}>"

    def __str__(self) -> str:
        lines = [str(self.grid()), "", *self.sentences()]
        return "\n".join(lines)

    def grid(self) -> Grid:
        """Return the values that were tried, and the load at each."""
        first = self.classes[0]
        columns = (first.unit, "load [Mbit/s]", f"of `{self.asked.link.name}` [%]", "between seeds [%]")
        table = Grid(*(Column(head, right=True) for head in columns))
        for value, by_seed in sorted(self.loads.items()):
            found = spread(list(by_seed.values()))
            share = 100 * found.mean.mean / self.asked.link.rate_bps
            table.add(
                first.digits(value),
                estimate_text(found.mean, "bit/s"),
                number(share, 3),
                fixed(100 * found.variation, 1),
            )
        return table

    def sentences(self) -> tuple[str, ...]:
        """The result, in words."""
        return (self.sentence, self._seeds, self._accuracy, *self.remarks)

    @property
    def sentence(self) -> str:
        """The value and its interval."""
        counted = "headers included" if self.asked.count == WIRE else "of payload"
        what = listed(
            [f"{one.digits(self.values[one.name])} {one.unit} of `{one.name}`" for one in self.classes]
        )
        low, high = self.fit.low, self.fit.high
        interval = "no interval: the interval of the slope includes zero"
        if low is not None and high is not None:
            interval = f"95 % interval {shortest(low)} to {shortest(high)}, n = {self.runs} seeds"
        return f"A load of {self.asked}, {counted}, takes {what} ({interval})."

    @property
    def _seeds(self) -> str:
        def mbit(bps: float) -> str:
            return number(display_value(bps, "bit/s"), 3)

        found = self.spread
        return (
            f"At this value, one run of {time_text(self.interval_s)} offers a median of"
            f" {mbit(found.median)} Mbit/s, and {mbit(found.least)} to {mbit(found.most)} over all seeds"
            f" (80 % of them {mbit(found.p10)} to {mbit(found.p90)}); its coefficient of variation between"
            f" seeds is {fixed(100 * found.variation, 1)} %."
        )

    @property
    def _accuracy(self) -> str:
        half = self.spread.mean.half_width or 0.0
        now = f"The mean load of such runs is known to ±{number(100 * half / self.spread.mean.mean, 2)} %"
        takes = listed(
            [
                f"±{100 * n.share:.0f} % takes {_round(n.seeds)} seeds or one run of {_round(n.seconds)} s"
                for n in self.needed
            ]
        )
        if self.tail is None:
            return f"{now}; {takes}."
        narrower = number(100 * 10 ** -narrowing(self.tail), 2)
        return (
            f"{now}; {takes}. Sizes have a Pareto tail of index {self.tail:.3g} and infinite variance: a run"
            f" ten times as long narrows its interval only to {narrower} % of its width, longer runs offer"
            " more load because larger transfers fit into them, and intervals over few seeds cover the mean"
            " less often than their confidence level states."
        )

    def write(self, text: str, arm: str | None, file: Path) -> None:
        """Write a scenario with the values to a file.

        Parameters
        ----------
        text
            The scenario's text.
        arm
            The arm to which the value belongs, where arms have their own values.
        file
            The file, which may be the scenario's.

        Raises
        ------
        HostError
            If the file cannot be written.
        """
        values = {one.path: one.toml(self.values[one.name]) for one in self.classes}
        write_values(text, values, arm, file)

    def to_json(self) -> dict[str, Any]:
        """Return the whole result as plain data, for programs."""
        first = self.classes[0]
        return {
            "format_version": 1,
            "classes": [
                {
                    "name": one.name,
                    "key": one.key,
                    "written": one.written,
                    "value": self.values[one.name],
                    "toml": one.toml(self.values[one.name]),
                }
                for one in self.classes
            ],
            "target_bps": self.asked.bps,
            "link": self.asked.link.name,
            "link_rate_bps": self.asked.link.rate_bps,
            "count": self.asked.count,
            "fit": {
                "class": first.name,
                "value": self.fit.value,
                "low": self.fit.low,
                "high": self.fit.high,
                "slope_bps": self.fit.slope.mean,
                "slope_half_width_bps": self.fit.slope.half_width,
            },
            "proportional": self.proportional,
            "at_value": {
                "mean_bps": self.spread.mean.mean,
                "mean_half_width_bps": self.spread.mean.half_width,
                "variation": self.spread.variation,
                "least_bps": self.spread.least,
                "p10_bps": self.spread.p10,
                "median_bps": self.spread.median,
                "p90_bps": self.spread.p90,
                "most_bps": self.spread.most,
            },
            "tail_index": self.tail,
            "needed": [
                {"share": each.share, "seeds": each.seeds, "seconds": each.seconds} for each in self.needed
            ],
            "runs": self.runs,
            "interval_s": self.interval_s,
            "loads_bps": [
                {"value": value, "seed": seed, "load_bps": load}
                for value, by_seed in sorted(self.loads.items())
                for seed, load in by_seed.items()
            ],
            "differences": list(self.differences),
            "remarks": list(self.remarks),
        }


def _round(value: float) -> str:
    """Return two digits of an estimate: ``96``, ``4 100``, ``4.8e+06``."""
    value = float(f"{value:.2g}")
    return f"{value:,.0f}".replace(",", " ") if value < 1e6 else f"{value:.1e}"
