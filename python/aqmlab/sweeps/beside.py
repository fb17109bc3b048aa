"""A sweep that was both simulated and run live: a third directory, next to the other two, compares them."""

from __future__ import annotations

from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.recordings.integrity import sealed
from aqmlab.results.both import FILE, FORMAT_VERSION, LIVE, SIMULATED, Both, of_sides
from aqmlab.results.results import Results
from aqmlab.sweeps.directory import store_of
from aqmlab.system.files import write_whole


@typed
def beside(simulated: Results, live: Results, *, report: bool = True) -> Both:
    """Compare the simulated and the live results of a sweep, cell by cell.

    Parameters
    ----------
    simulated, live
        Results from ``aqmlab.sweep(scenario).wait()`` and ``aqmlab.sweep(scenario, host="live").wait()``,
        both with the same store.
    report
        Whether to make one ``report.html`` that covers both.

    Returns
    -------
    Both
        The comparison; its ``path`` is a directory in the store, which ``aqmlab report`` opens.

    Raises
    ------
    UsageError
        If the two are not sweeps of the same store.
    RecordingError
        If neither has a finished run.
    HostError
        If the directory cannot be written.
    """
    store = store_of(live.path)
    if store.path.resolve() != store_of(simulated.path).path.resolve():
        raise UsageError(
            f"`{simulated.path}` and `{live.path}` are in different stores; `aqmlab merge` joins them"
        )
    directory = store.sweep_directory(f"{live.path.name.removesuffix(f'-{LIVE}')}-both")
    found = of_sides(directory, simulated, live)
    about = {
        "format_version": FORMAT_VERSION,
        "title": live.title,
        SIMULATED: f"../{simulated.path.name}",
        LIVE: f"../{live.path.name}",
    }
    files = {
        "scenario.toml": Path(live.path / "scenario.toml").read_text(encoding="utf-8"),
        FILE: sealed(about),
    }
    with store.writing():
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(directory / name, content)
    if report:
        from aqmlab.reports import write_report

        write_report(found)
    return found
