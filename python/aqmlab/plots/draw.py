"""From a recording to a file with one figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aqmlab.answers import Table, table
from aqmlab.errors import HostError, UsageError
from aqmlab.files import write_whole
from aqmlab.metrics import Measured, measure
from aqmlab.plots.cumulative import cumulative_ack, cumulative_rows
from aqmlab.plots.kinds import delay_cdf, goodput_delay, series
from aqmlab.plots.ladder import ladder, ladder_rows
from aqmlab.plots.senders import cwnd, srtt, trace_rows
from aqmlab.plots.sequence import sequence_rows, time_sequence
from aqmlab.plots.variance_time import variance_time
from aqmlab.plots.view import EVERYTHING, View
from aqmlab.recording import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[Experiment, Sequence[Measured], Table, View], "Figure"]
Rows = Callable[[Experiment, Sequence[Measured], Table, View], Iterator[tuple[Any, ...]]]


class Kind(NamedTuple):
    """A kind of figure: how it is drawn, and its numbers, the names of the columns first."""

    draw: Draw
    rows: Rows | None = None


def _whole(figure: Callable[[Experiment, Sequence[Measured], Table], Figure]) -> Kind:
    """A figure that shows all there is."""
    return Kind(lambda experiment, runs, results, _view: figure(experiment, runs, results))


KINDS: dict[str, Kind] = {
    "series": _whole(series),
    "delay-cdf": _whole(delay_cdf),
    "goodput-delay": _whole(goodput_delay),
    "variance-time": _whole(variance_time),
    "cwnd": Kind(cwnd, trace_rows),
    "srtt": Kind(srtt, trace_rows),
    "time-sequence": Kind(time_sequence, sequence_rows),
    "cumulative-ack": Kind(cumulative_ack, cumulative_rows),
    "ladder": Kind(ladder, ladder_rows),
}
"""What can be drawn, by the name that the command line takes."""

_FORMATS = (".pdf", ".svg", ".png")

STYLE: dict[str, Any] = {
    "font.size": 8,
    # A dollar in a title is a dollar.
    "text.parse_math": False,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    # Text stays text: it can be searched and edited.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    # Names inside of SVG files would otherwise be drawn at random.
    "svg.hashsalt": "aqmlab",
}


def draw(
    experiment: Experiment,
    kind: str,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    view: View = EVERYTHING,
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
    if kind not in KINDS:
        raise UsageError(f"there is no figure `{kind}`; there are {', '.join(f'`{name}`' for name in KINDS)}")
    file = Path(output) if output is not None else experiment.path / "figures" / f"{kind}.pdf"
    rows = KINDS[kind].rows
    check_format(file, (".csv",) if rows else ())
    runs = measure(experiment)
    results = table(experiment, queue=queue, measured=runs)
    if rows and file.suffix.lower() == ".csv":
        write_csv(file, rows(experiment, runs, results, view))
    else:
        figure = KINDS[kind].draw
        save(lambda: figure(experiment, runs, results, view), file, experiment.title, experiment.version)
    return file


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


def save(figure: Callable[[], Figure], file: Path, title: str, version: str) -> None:
    """Draw a figure in the style of all and write it.

    Raises
    ------
    HostError
        If the file cannot be written.
    """
    import matplotlib as mpl

    suffix = file.suffix.lower()
    content = io.BytesIO()
    # No display is asked for, and the caller's own style is left alone.
    with mpl.rc_context(STYLE):
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
