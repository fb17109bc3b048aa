"""Opens the results, or the side of a comparison, that a user's path denotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import RecordingError, UsageError
from aqmlab.metrics import EVERY_CLASS
from aqmlab.recordings.integrity import read_json
from aqmlab.results import both
from aqmlab.results.both import Both
from aqmlab.results.comparison import Comparison, compare_sides
from aqmlab.results.loading import load_recording
from aqmlab.results.pairing import Side, side_of
from aqmlab.results.results import Results
from aqmlab.sweeps.directory import load_sweep
from aqmlab.system.files import SWEEP_FILE


@typed
def load(path: Path | str) -> Results:
    """Open the results of ``run`` or ``sweep``.

    Parameters
    ----------
    path
        The directory of an experiment, of one run, or of a sweep.

    Raises
    ------
    RecordingError
        If there is no recording, or it is incomplete, corrupt or of another format.
    """
    path = Path(path)
    if is_sweep(path):
        return load_sweep(path)
    return load_recording(path)


def is_sweep(path: Path | str) -> bool:
    """Whether a directory is the directory of a sweep."""
    return (Path(path) / SWEEP_FILE).is_file()


def load_both(path: Path | str) -> Both:
    """Open a directory made by :func:`aqmlab.run_both` or :func:`aqmlab.beside`.

    Raises
    ------
    RecordingError
        If one of its two recordings is missing, incomplete or corrupt.
    """
    path = Path(path)
    if not both.is_both(path):
        raise RecordingError(f"no recording at `{path}`: `{both.FILE}` is not there")
    about = read_json(path / both.FILE, both.FORMAT_VERSION)
    simulated, live = (path / str(about.get(name, name)) for name in (both.SIMULATED, both.LIVE))
    if not simulated.exists() and live.exists():
        raise RecordingError(
            f"`{path}` was interrupted before its simulation; `aqmlab report {live}` shows the live runs"
        )
    return both.of_sides(path, load(simulated).sound(), load(live).sound())


def side(text: str, beside: Side | None = None) -> Side:
    """Return the side that ``PATH`` or ``PATH:WHICH`` denotes.

    Parameters
    ----------
    text
        The text, as on the command line.
    beside
        The other side, whose path replaces an empty path.

    Raises
    ------
    UsageError
        For an unknown arm, axis or label.
    RecordingError
        If the path holds no recording. If it holds many recordings, unreadable ones are left out.
    """
    path, which = _split(text)
    if path == "" and beside is None:
        raise UsageError(f"`{text}` has no path; only the second side may leave it out")
    if beside is not None and path in ("", str(beside.results.path)):
        return side_of(beside.results, which, text)
    return side_of(load(path).sound(), which, text)


@typed
def compare(
    first: str | Path,
    second: str | Path,
    *,
    metrics: str | Sequence[str] | None = None,
    queue: str | None = None,
    class_name: str = EVERY_CLASS,
) -> Comparison:
    """Compare the second side with the first.

    Parameters
    ----------
    first, second
        ``PATH`` of an experiment, a run or a sweep; or ``PATH:WHICH`` with the name of an arm, labels of
        axes, or both: ``runs/demo:RED``, ``runs/store/sweeps/x:RED,rate=5Mbit,count=20``. The path of the
        second side may be empty if it is the same as that of the first. If neither side names a label of
        an axis, the sides are compared label by label.
    metrics
        Names of metrics; by default the headline metrics, or :data:`MAIN` where there are several
        cases, and those of the scenario.
    queue, class_name
        The queue and the class; by default the queue by which each cell is judged, and all traffic.

    Raises
    ------
    UsageError
        For an unknown arm, axis, label, metric, queue or class, or sides that do not fit together.
    RecordingError
        If there is no recording, or it cannot be read.
    """
    one = side(str(first))
    return compare_sides(one, side(str(second), one), metrics=metrics, queue=queue, class_name=class_name)


def _split(text: str) -> tuple[str, str]:
    """Return the path with which a text begins, and the rest of the text.

    A directory's name may contain colons, so the longest existing path is taken.
    """
    ends = [match.start() for match in re.finditer(":", text)] + [len(text)]
    for end in reversed(ends):
        if end and Path(text[:end]).exists():
            return text[:end], text[end + 1 :]
    path, _, which = text.partition(":")
    return path, which
