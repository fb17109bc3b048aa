"""The part of a recording that a figure shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from aqmlab.errors import UsageError
from aqmlab.metrics import EVERY_CLASS
from aqmlab.recordings.recording import Run
from aqmlab.results.cells import Cell
from aqmlab.results.results import Results
from aqmlab.text.numbers import time_text


@dataclass(frozen=True)
class View:
    """A part of a recording.

    Attributes
    ----------
    flows
        Names (``"ftp 3"``) or classes; if empty, as many as fit into the figure.
    from_s, until_s
        The time to show; from the first to the last event if ``None``.
    arms
        Names of arms; all if empty.
    metrics
        Names, for figures of many runs; by default the first few metrics that the figure offers.
    x, by
        Axes of a sweep: the horizontal axis of each plot, and the axis with one plot per label (in a map, the
        vertical axis); if ``None``, the axes with the most labels.
    where
        Labels at which other axes of a sweep are fixed, by axis; by default the first label of each axis.
    over
        What boxes and bars show: ``"seeds"``, one value per seed; ``"classes"``, the same for each class of
        traffic; or ``"flows"``, the goodput of each flow.
    class_name
        The class whose response or page times are shown; ``*`` for all classes.
    reference
        The arm whose response or page times are drawn in grey behind the others.
    """

    flows: Sequence[str] = ()
    from_s: float | None = None
    until_s: float | None = None
    arms: Sequence[str] = ()
    metrics: Sequence[str] = ()
    x: str | None = None
    by: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    over: str = "seeds"
    class_name: str = EVERY_CLASS
    reference: str | None = None

    def chosen(self) -> list[str]:
        """The choices that differ from the defaults, as command-line options."""
        options = {"from_s": "from", "until_s": "until", "flows": "flow", "arms": "arm", "metrics": "metric"}
        options["class_name"] = "class"
        given = [
            each.name for each in fields(self) if getattr(self, each.name) != getattr(EVERYTHING, each.name)
        ]
        return [f"`--{options.get(name, name)}`" for name in given]

    def cells(self, results: Results) -> list[Cell]:
        """The cell of each chosen arm; in a sweep, in the case of ``where``.

        Raises
        ------
        UsageError
            For an unknown arm, axis or label.
        """
        for arm in self.arms:
            if arm not in results.arms:
                known = ", ".join(f"`{name}`" for name in results.arms)
                raise UsageError(f"there is no arm `{arm}`; the arms are {known}")
        case = {axis.name: axis.labels[0] for axis in results.axes}
        case |= {results.axis(name).name: label for name, label in self.where.items()}
        chosen = [arm for arm in results.arms if not self.arms or arm in self.arms]
        return [cell for arm in chosen for cell in results.select(arm, case)]

    def runs(self, results: Results) -> list[Run]:
        """The first finished run of each cell of :meth:`cells`."""
        return [runs[0] for runs in map(results.runs_of, self.cells(results)) if runs]

    def limits(self, first_s: float, last_s: float) -> tuple[float, float]:
        """The limits of the time axis for a recording with data from ``first_s`` to ``last_s``.

        Raises
        ------
        UsageError
            If the interval is empty.
        """
        begin = first_s if self.from_s is None else self.from_s
        end = last_s if self.until_s is None else self.until_s
        if end <= begin:
            raise UsageError(f"there is nothing to show from {time_text(begin)} to {time_text(end)}")
        return begin, end


EVERYTHING = View()
