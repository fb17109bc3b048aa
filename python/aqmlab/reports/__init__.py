"""Reports: one HTML file with the question, the results, and the evidence for and against the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.system.files import save, slug

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.results.both import Both
    from aqmlab.results.results import Results

__all__ = ["write_report"]


def write_report(
    of: Results | Both,
    output: Path | str | None = None,
    *,
    queue: str | None = None,
    class_name: str = "*",
    scored: Sequence[Scored] | None = None,
) -> Path:
    """Write ``report.html``.

    For a scenario that was run both simulated and live, missing reports of the two experiments or sweeps are
    written too.

    Parameters
    ----------
    of
        Results from :func:`aqmlab.load`, :func:`aqmlab.run_both` or :func:`aqmlab.beside`.
    output
        The file; by default ``report.html`` in the directory of the results, or
        ``report-NAME.html`` for one class or queue.
    queue, class_name
        The subject of the answer, as in :func:`aqmlab.answer`.
    scored
        The scored claims, if they have been scored already.

    Raises
    ------
    RecordingError
        If an experiment has no finished run, or a recording cannot be read.
    HostError
        If the file cannot be written.
    """
    from aqmlab.reports.render import render
    from aqmlab.results.both import Both

    queue = None if queue == "*" else queue
    if isinstance(of, Both):
        for side in (of.simulated, of.live):
            if not (side.axes and (side.path / "report.html").exists()):
                write_report(side)
    if output is None:
        parts = [name for name in (class_name, queue) if name is not None and name != "*"]
        output = of.path / (f"report-{slug('-'.join(parts))}.html" if parts else "report.html")
    file = Path(output)
    save(file, render(of, queue, class_name, scored))
    return file
