"""The directory of a sweep, ``sweeps/<name>/`` in a store; the runs are elsewhere in the store.

It contains ``scenario.toml`` as given, and ``sweep.json``, which lists the cells and the digests of their
runs. Both exist before the first run. No file depends on when, where or in how many steps the runs were
executed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from aqmlab.errors import DamageError, RecordingError
from aqmlab.recordings.integrity import sealed
from aqmlab.results.loading import SWEEP_FORMAT, Recordings, SweepFile
from aqmlab.results.results import Results
from aqmlab.sweeps.cases import Cases
from aqmlab.sweeps.conclusion import Conclusion, conclude
from aqmlab.sweeps.place import Place, alone_in
from aqmlab.sweeps.store import Store
from aqmlab.sweeps.task import LIVE
from aqmlab.system.files import SWEEP_FILE, write_whole

_ABOUT = ("title", "question", "metrics", "warnings", "arms", "axes", "claims")


def describe(cases: Cases, place: Place, failed: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """The content of ``sweep.json``.

    Parameters
    ----------
    cases
        The request.
    place
        The place of the runs.
    failed
        Why recordings are missing, by name of the run.
    """
    about = {
        "format_version": SWEEP_FORMAT,
        **{key: cases.about[key] for key in _ABOUT},
        "seeds": cases.seeds,
        "cells": [
            {
                "labels": list(cell.labels),
                "arm": cell.arm,
                "plan_digest": cell.plan_digest,
                "runs": [
                    place.name_of(cell.slug, seed, digest)
                    for seed, digest in zip(cases.seeds, cases.digests(cell), strict=True)
                ],
            }
            for cell in cases.cells
        ],
        "excluded": cases.about["excluded"],
        "left_out": [{"labels": list(case.labels), "reason": case.reason} for case in cases.left_out],
    }
    return with_failed({**about, "host": LIVE} if cases.host == LIVE else about, failed)


def with_failed(about: Mapping[str, Any], failed: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of ``sweep.json`` with ``failed`` as its failures, in the order of the runs."""
    runs = dict.fromkeys(digest for cell in about["cells"] for digest in cell["runs"])
    named = [{"run": digest, "reason": failed[digest]} for digest in runs if digest in failed]
    return {**about, "failed": named}


def write_about(store: Store, directory: Path, scenario: str, about: Mapping[str, Any]) -> None:
    """Write the scenario and ``sweep.json``, unless both are already there with that content.

    Raises
    ------
    HostError
        If the files cannot be written.
    """
    content = sealed(about)
    with store.writing():
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in (("scenario.toml", scenario), (SWEEP_FILE, content)):
            file = directory / name
            if not file.exists() or file.read_bytes() != text.encode():
                write_whole(file, text)


class Directory(Protocol):
    """What the directory of a request holds besides the runs: the description and the conclusions."""

    path: Path
    """The folder for the tables and the report."""

    def update(self, tried: Container[str], failed: Mapping[str, str]) -> None:
        """Write the description of the request, with the failed runs.

        Parameters
        ----------
        tried
            Names of the runs that the caller has tried or will try.
        failed
            The runs that failed, with the reasons.
        """

    def recordings(self) -> Recordings:
        """Return the recordings of the runs, which are not opened yet."""

    def conclude(self, recordings: Recordings, *, judge: bool, report: bool) -> Conclusion:
        """Write the conclusions drawn from the runs.

        Parameters
        ----------
        recordings
            The result of :meth:`recordings`; some of the recordings may be open by now.
        judge
            Whether to score the claims and make the report, as well as the tables; false while other shards
            are missing.
        report
            Whether to make the report if the claims are scored.
        """


class SweepDirectory:
    """The directory of a sweep in a store, while its runs are executed.

    Parameters
    ----------
    store
        The store.
    cases
        The request.
    """

    def __init__(self, store: Store, cases: Cases) -> None:
        self.path = store.sweep_directory(cases.name)
        self._store, self._cases = store, cases

    def update(self, tried: Container[str], failed: Mapping[str, str]) -> None:
        """Write both files; failures that other processes have recorded are kept."""
        with self._store.writing():
            self.path.mkdir(parents=True, exist_ok=True)
            with alone_in(self.path):
                self._update(tried, failed)

    def recordings(self) -> Recordings:
        """Return the recordings of the runs in ``sweep.json``, which are not opened yet."""
        return Recordings(self._store, SweepFile(self.path))

    def conclude(self, recordings: Recordings, *, judge: bool, report: bool) -> Conclusion:
        """Write tables, verdicts and the report of all finished runs, including those of other processes."""
        with self._store.writing(), alone_in(self.path):
            recordings.file = SweepFile(self.path)
            results = recordings.results()
            return conclude(results, judge=judge or not results.missing, report=report)

    def _update(self, tried: Container[str], failed: Mapping[str, str]) -> None:
        reasons = dict(failed)
        if (self.path / SWEEP_FILE).exists():
            try:
                others = SweepFile(self.path).failed
            except DamageError:
                # A damaged file does not matter, because it is about to be rewritten from the scenario.
                others = {}
            reasons |= {name: why for name, why in others.items() if name not in tried}
        lacking = {name: why for name, why in reasons.items() if not self._store.has(name)}
        about = describe(self._cases, self._store, lacking)
        write_about(self._store, self.path, self._cases.text, about)


def store_of(directory: Path) -> Store:
    """Return the store that contains a sweep's directory.

    Raises
    ------
    RecordingError
        If the directory is not in a store.
    """
    try:
        return Store(directory.resolve().parent.parent)
    except RecordingError as error:
        raise RecordingError(f"cannot open the store of the sweep `{directory}`: {error}") from error


def load_sweep(path: Path | str) -> Results:
    """Open the results of a sweep, or the results so far if it has not ended.

    Parameters
    ----------
    path
        Its directory.

    Raises
    ------
    RecordingError
        If there is no sweep, or it is incomplete, corrupt or in another format.
    """
    path = Path(path)
    return Recordings(store_of(path), SweepFile(path)).results()
