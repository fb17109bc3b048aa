"""Reports: one HTML file that says what was asked, what came out, and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path

from aqmlab.errors import HostError
from aqmlab.recording import Experiment

__all__ = ["write_report"]


def write_report(experiment: Experiment, output: Path | str | None = None) -> Path:
    """Write ``report.html``.

    Parameters
    ----------
    experiment
        From :func:`aqmlab.load`.
    output
        The file; ``report.html`` in the experiment's directory if not given.

    Raises
    ------
    RecordingError
        If no run has finished, or a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab.reports.render import write

    file = Path(output) if output is not None else experiment.path / "report.html"
    try:
        write(experiment, file)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
    return file
