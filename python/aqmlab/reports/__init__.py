"""Reports: one HTML file that says what was asked, what came out, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.files import save, slug
from aqmlab.recording import Experiment

if TYPE_CHECKING:
    from aqmlab.both import Both
    from aqmlab.claims import Scored
    from aqmlab.results import Results

__all__ = ["write_both_report", "write_report", "write_sweep_report"]


def write_report(
    experiment: Experiment,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    class_name: str = "*",
) -> Path:
    """Write ``report.html``.

    Parameters
    ----------
    experiment
        From :func:`aqmlab.load`.
    output
        The file; ``report.html`` in the experiment's directory if not given, or ``report-NAME.html`` where it
        is of one class or queue.
    queue, class_name
        What the answer is of, as of :func:`aqmlab.answer`.

    Raises
    ------
    RecordingError
        If no run has finished, or a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab.reports.render import render

    queue = None if queue == "*" else queue
    parts = [name for name in (class_name, queue) if name is not None and name != "*"]
    if output is None and parts:
        output = experiment.path / f"report-{slug('-'.join(parts))}.html"
    return _write(render(experiment, queue, class_name), output, experiment.path)


def write_sweep_report(
    results: Results, output: Path | str | None = None, scored: Sequence[Scored] | None = None
) -> Path:
    """Write the ``report.html`` of a sweep.

    Parameters
    ----------
    results
        From :func:`aqmlab.load_results`.
    output
        The file; ``report.html`` in the sweep's directory if not given.
    scored
        Its claims, if they have been scored already.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab.reports.sweep.render import render

    return _write(render(results, scored), output, results.path)


def write_both_report(both: Both, output: Path | str | None = None) -> Path:
    """Write the ``report.html`` of a scenario simulated and live, and those of its two experiments.

    Parameters
    ----------
    both
        From :func:`aqmlab.both.load_both`.
    output
        The file; ``report.html`` in its directory if not given.

    Raises
    ------
    RecordingError
        If a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab.reports.both import render

    for experiment in (both.simulated, both.live):
        write_report(experiment)
    return _write(render(both), output, both.path)


def _write(page: str, output: Path | str | None, directory: Path) -> Path:
    file = Path(output) if output is not None else directory / "report.html"
    save(file, page)
    return file
