"""From a recording to a file with one figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.answers import Answer, answer
from aqmlab.errors import HostError, UsageError
from aqmlab.figures import listed
from aqmlab.files import write_whole
from aqmlab.metrics import Measured, measure
from aqmlab.plots.appearance import AS_MADE, STYLE, Appearance
from aqmlab.plots.cumulative import cumulative_ack, cumulative_rows
from aqmlab.plots.kinds import delay_cdf, goodput_delay, series
from aqmlab.plots.ladder import ladder, ladder_rows
from aqmlab.plots.rtt import goodput_rtt, goodput_rtt_rows
from aqmlab.plots.senders import cwnd, srtt, trace_rows
from aqmlab.plots.sequence import sequence_rows, time_sequence
from aqmlab.plots.variance_time import variance_time
from aqmlab.plots.view import EVERYTHING, View
from aqmlab.recording import Experiment
from aqmlab.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqmlab.plots.sweep_kinds import SweepKind

Draw = Callable[[Experiment, Sequence[Measured], Answer, View], "Figure"]
Rows = Callable[[Experiment, Sequence[Measured], Answer, View], Iterator[tuple[Any, ...]]]


class FigureKind(NamedTuple):
    """A kind of figure: how it is drawn, and its numbers, the names of the columns first."""

    draw: Draw
    rows: Rows | None = None


def _whole(figure: Callable[[Experiment, Sequence[Measured], Answer], Figure]) -> FigureKind:
    """A figure of the whole experiment, which refuses a choice of flows, arms or times."""

    def draw(experiment: Experiment, runs: Sequence[Measured], results: Answer, view: View) -> Figure:
        if given := view.chosen():
            kind = figure.__name__.replace("_", "-")
            raise UsageError(f"`{kind}` shows the whole experiment; leave out {listed(given)}")
        return figure(experiment, runs, results)

    return FigureKind(draw)


def _compared(kind: str) -> FigureKind:
    """A figure of many runs, which an experiment has too: a case with several arms and seeds."""

    def figure(experiment: Experiment, _runs: Sequence[Measured], results: Answer, view: View) -> Figure:
        return sweep_kind(kind).draw(Results.of_experiment(experiment), view, results.queue)

    def rows(
        experiment: Experiment, _runs: Sequence[Measured], results: Answer, view: View
    ) -> Iterator[tuple[Any, ...]]:
        found = sweep_kind(kind).rows
        return iter(()) if found is None else found(Results.of_experiment(experiment), view, results.queue)

    return FigureKind(figure, rows)


def sweep_kind(kind: str) -> SweepKind:
    """The kind of figure of a sweep of a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    from aqmlab.plots.sweep_kinds import SWEEP_KINDS

    if kind in SWEEP_KINDS:
        return SWEEP_KINDS[kind]
    known = ", ".join(f"`{name}`" for name in SWEEP_KINDS)
    if kind in KINDS:
        raise UsageError(
            f"`{kind}` is a figure of single runs, and this is a sweep; of a sweep there are {known}"
        )
    raise UsageError(f"there is no figure `{kind}` of a sweep; there are {known}")


KINDS: dict[str, FigureKind] = {
    "series": _whole(series),
    "delay-cdf": _whole(delay_cdf),
    "goodput-delay": _whole(goodput_delay),
    "goodput-rtt": FigureKind(goodput_rtt, goodput_rtt_rows),
    "variance-time": _whole(variance_time),
    "cwnd": FigureKind(cwnd, trace_rows),
    "srtt": FigureKind(srtt, trace_rows),
    "time-sequence": FigureKind(time_sequence, sequence_rows),
    "cumulative-ack": FigureKind(cumulative_ack, cumulative_rows),
    "ladder": FigureKind(ladder, ladder_rows),
    "box": _compared("box"),
    "bar": _compared("bar"),
}
"""What can be drawn of an experiment, by the name that the command line takes."""

_FORMATS = (".pdf", ".svg", ".png")


def draw(  # noqa: PLR0913 (keyword arguments)
    experiment: Experiment,
    kind: str,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    view: View = EVERYTHING,
    look: Appearance = AS_MADE,
) -> Path:
    """Draw one figure; see :func:`aqmlab.plot`.

    Raises
    ------
    UsageError
        For an unknown kind, file format or queue.
    RecordingError
        If a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    found = known_kind(kind)
    look.check()
    file = Path(output) if output is not None else experiment.path / "figures" / f"{kind}.pdf"
    rows = found.rows
    check_format(file, (".csv",) if rows else ())
    runs = measure(experiment)
    results = answer(experiment, queue=queue)
    if rows and file.suffix.lower() == ".csv":
        write_csv(file, rows(experiment, runs, results, view))
    else:
        save(
            lambda: found.draw(experiment, runs, results, view),
            file,
            experiment.title,
            experiment.version,
            look,
        )
    return file


def figure_of(
    experiment: Experiment,
    kind: str,
    *,
    queue: str | None = None,
    view: View = EVERYTHING,
    look: Appearance = AS_MADE,
) -> Figure:
    """Make one figure, which the caller may change and save; see :func:`aqmlab.figure`.

    Raises
    ------
    UsageError
        For an unknown kind or queue, or looks that make no sense.
    RecordingError
        If a recording cannot be read.
    """
    found = known_kind(kind)
    runs = measure(experiment)
    results = answer(experiment, queue=queue)
    return made(lambda: found.draw(experiment, runs, results, view), look)


def draw_sweep(  # noqa: PLR0913 (keyword arguments)
    results: Results,
    kind: str,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    view: View = EVERYTHING,
    look: Appearance = AS_MADE,
) -> Path:
    """Draw one figure of a sweep; see :func:`aqmlab.plot`.

    Raises
    ------
    UsageError
        For an unknown kind, file format, queue, arm, axis or metric.
    RecordingError
        If a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    found = sweep_kind(kind)
    look.check()
    file = Path(output) if output is not None else results.path / "figures" / f"{kind}.pdf"
    check_format(file, (".csv",) if found.rows else ())
    if found.rows and file.suffix.lower() == ".csv":
        write_csv(file, found.rows(results, view, queue))
    else:
        save(lambda: found.draw(results, view, queue), file, results.title, version_of(results), look)
    return file


def version_of(results: Results) -> str:
    """Of aqmlab, as the runs have it."""
    manifests = [run.manifest for cell in results.cells for run in results.runs(cell)]
    return ", ".join(sorted({manifest.aqmlab_version for manifest in manifests}))


def made(figure: Callable[[], Figure], look: Appearance) -> Figure:
    """Draw a figure that the caller may change."""
    with look.applied():
        drawn = figure()
        # Ticks and their texts are made when a figure is first drawn, in the style that is set then.
        drawn.draw_without_rendering()
        return drawn


def known_kind(kind: str) -> FigureKind:
    """The kind of figure of a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    if kind not in KINDS:
        raise UsageError(f"there is no figure `{kind}`; there are {', '.join(f'`{name}`' for name in KINDS)}")
    return KINDS[kind]


def check_format(file: Path, others: Sequence[str] = ()) -> None:
    """See that a file of this name can be written: as a figure, or as one of ``others``.

    Raises
    ------
    UsageError
        If not.
    """
    formats = (*_FORMATS, *others)
    if file.suffix.lower() not in formats:
        raise UsageError(f"`{file}` has no format that can be drawn; let it end in {', '.join(formats)}")


def save(
    figure: Callable[[], Figure], file: Path, title: str, version: str, look: Appearance = AS_MADE
) -> None:
    """Draw a figure in the style of all and write it.

    Raises
    ------
    UsageError
        If its looks make no sense.
    HostError
        If the file cannot be written.
    """
    suffix = file.suffix.lower()
    content = io.BytesIO()
    # No display is asked for, and the caller's own style is left alone.
    with look.applied():
        figure().savefig(content, format=suffix[1:], metadata=_metadata(suffix, title, version))
    with writing(file):
        write_whole(file, content.getvalue())


def write_csv(file: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write the numbers of a figure.

    Raises
    ------
    HostError
        If the file cannot be written.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with writing(file):
        write_whole(file, text.getvalue())


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """Make the directory of ``file``; what goes wrong with either is the machine's fault."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error


def _metadata(suffix: str, title: str, version: str) -> dict[str, Any]:
    """Title and maker; no date, so that the same recording gives the same file."""
    if suffix == ".pdf":
        return {"Title": title, "Creator": f"aqmlab {version}", "CreationDate": None}
    if suffix == ".svg":
        return {"Title": title, "Creator": f"aqmlab {version}", "Date": None}
    return {"Title": title, "Software": f"aqmlab {version}"}


__all__ = [
    "KINDS",
    "STYLE",
    "check_format",
    "draw",
    "draw_sweep",
    "figure_of",
    "made",
    "save",
    "sweep_kind",
    "write_csv",
]
