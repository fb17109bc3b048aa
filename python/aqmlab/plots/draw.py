"""Draws one figure of a recording, and writes it to a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.errors import HostError, UsageError
from aqmlab.figures.kinds import KINDS, SWEEP_KINDS, WAIT_CURVES, WAIT_KINDS, FigureKind
from aqmlab.figures.model import Figure
from aqmlab.figures.view import EVERYTHING, View
from aqmlab.plots.appearance import AS_MADE, STYLE, Appearance
from aqmlab.plots.render import render
from aqmlab.results.results import Results
from aqmlab.system.files import write_whole
from aqmlab.text.numbers import listed

if TYPE_CHECKING:
    import matplotlib.figure as mpl

_FORMATS = (".pdf", ".svg", ".png")


def draw(  # noqa: PLR0913 (keyword arguments)
    results: Results,
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
        For an unknown kind, file format, queue, arm, axis or metric.
    RecordingError
        If a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    found, view = _asked(results, kind, view)
    look.check()
    file = Path(output) if output is not None else results.path / "figures" / f"{kind}.pdf"
    check_format(file, (".csv",) if found.numbers else ())
    where = queue if results.axes else results.place(queue)
    if found.numbers and file.suffix.lower() == ".csv":
        write_csv(file, found.rows(results, view, where))
    else:
        save(found.make(results, view, where), file, results.title, results.version, look)
    return file


def figure_of(
    results: Results,
    kind: str,
    *,
    queue: str | None = None,
    view: View = EVERYTHING,
    look: Appearance = AS_MADE,
) -> mpl.Figure:
    """Make one figure, which the caller may change and save; see :func:`aqmlab.figure`.

    Raises
    ------
    UsageError
        For an unknown kind, queue, arm, axis or metric, or an invalid appearance.
    RecordingError
        If a recording cannot be read.
    """
    found, view = _asked(results, kind, view)
    where = queue if results.axes else results.place(queue)
    made = found.make(results, view, where)
    with look.applied():
        drawn = render(made)
        # Ticks and their labels are created when a figure is first drawn, in the style that is set at that
        # time.
        drawn.draw_without_rendering()
        return drawn


def kind_of(results: Results, kind: str) -> FigureKind:
    """Return the named kind of figure for these results; experiments and sweeps have different kinds.

    Raises
    ------
    UsageError
        If no kind has this name.
    """
    kinds = SWEEP_KINDS if results.axes else KINDS
    if kind in kinds:
        return kinds[kind]
    known = ", ".join(f"`{name}`" for name in kinds)
    if results.axes and kind in KINDS:
        raise UsageError(
            f"`{kind}` is a figure of single runs, and this is a sweep; figures of sweeps: {known}"
        )
    raise UsageError(f"there is no figure `{kind}`{' of a sweep' if results.axes else ''}; known: {known}")


def _asked(results: Results, kind: str, view: View) -> tuple[FigureKind, View]:
    """Return the named kind of figure, and the view, which gets the usual reference for requests or pages."""
    found = kind_of(results, kind)
    given = view.chosen()
    of_flows = [option for option in given if option in ("`--flow`", "`--from`", "`--until`")]
    has_times = kind == "series" or (kind in WAIT_CURVES and "`--flow`" not in of_flows)
    if kind in SWEEP_KINDS and of_flows and not has_times:
        raise UsageError(f"`{kind}` shows whole runs; leave out {listed(of_flows)}")
    if kind in WAIT_KINDS:
        usual = view.reference is None and results.reference not in view.arms
        return found, replace(view, reference=results.reference) if usual else view
    of_requests = [option for option in given if option in ("`--class`", "`--reference`")]
    if of_requests:
        raise UsageError(f"`{kind}` is not a figure of requests or pages; leave out {listed(of_requests)}")
    return found, view


def check_format(file: Path, others: Sequence[str] = ()) -> None:
    """Check that a file has one of the formats of figures or of ``others``.

    Raises
    ------
    UsageError
        If the file's format is not supported.
    """
    formats = (*_FORMATS, *others)
    if file.suffix.lower() not in formats:
        raise UsageError(f"no format for `{file}`; its name must end with one of {', '.join(formats)}")


def save(figure: Figure, file: Path, title: str, version: str, look: Appearance = AS_MADE) -> None:
    """Draw a figure with the given look, and write it to a file.

    Raises
    ------
    UsageError
        If its appearance is invalid.
    HostError
        If the file cannot be written.
    """
    suffix = file.suffix.lower()
    content = io.BytesIO()
    # No display is needed, and the caller's own style does not change.
    with look.applied():
        render(figure).savefig(content, format=suffix[1:], metadata=_metadata(suffix, title, version))
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
    """Make the directory of ``file``; system errors here and in the block become :exc:`HostError`."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error


def _metadata(suffix: str, title: str, version: str) -> dict[str, Any]:
    """A file's metadata: title and creator, but no date, so that the same recording gives the same file."""
    if suffix == ".pdf":
        return {"Title": title, "Creator": f"aqmlab {version}", "CreationDate": None}
    if suffix == ".svg":
        return {"Title": title, "Creator": f"aqmlab {version}", "Date": None}
    return {"Title": title, "Software": f"aqmlab {version}"}


__all__ = [
    "KINDS",
    "STYLE",
    "SWEEP_KINDS",
    "check_format",
    "draw",
    "figure_of",
    "kind_of",
    "save",
    "write_csv",
]
