"""Opening the results of runs: the requested runs, and their existing recordings."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aqmlab.errors import DamageError, RecordingError
from aqmlab.recordings.integrity import FORMAT_VERSION, read_json
from aqmlab.recordings.plan import Plan
from aqmlab.recordings.recording import Run, load_run
from aqmlab.results.cells import Cell, LeftOut, axes_of
from aqmlab.results.reader import Reader
from aqmlab.results.results import NOT_RUN, Missing, Results, of_runs
from aqmlab.system.files import EXPERIMENT_FILE, SWEEP_FILE
from aqmlab.system.stopping import raise_if_stopped

SWEEP_FORMAT = 2
"""The ``format_version`` of ``sweep.json``, the only one that is read."""


class SweepFile:
    """The content of ``sweep.json``; an experiment provides the same facts for a single case.

    Parameters
    ----------
    path
        The directory.
    about
        The content, if it is known already.

    Raises
    ------
    RecordingError
        If it is missing, incomplete, corrupt or of another format.
    """

    def __init__(self, path: Path, about: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.about = about or _read(
            path / SWEEP_FILE, "`aqmlab sweep SCENARIO` writes it again, and keeps the runs", SWEEP_FORMAT
        )
        try:
            about = self.about
            self.seeds = tuple(int(seed) for seed in about["seeds"])
            self.axes = axes_of(about)
            self.runs = {self._cell(cell): tuple(map(str, cell["runs"])) for cell in about["cells"]}
            self.plans = {self._cell(cell): str(cell["plan_digest"]) for cell in about["cells"]}
            self.left_out = tuple(
                LeftOut(tuple(map(str, case["labels"])), str(case["reason"]))
                for case in about.get("left_out", ())
            )
            self.failed = {str(f["run"]): str(f["reason"]) for f in about["failed"]}
            self.texts = {key: str(about[key]) for key in ("title", "question")}
            self.names = {key: tuple(map(str, about[key])) for key in ("arms", "metrics", "warnings")}
            self.claims: Sequence[Mapping[str, Any]] = tuple(about["claims"])
        except (KeyError, TypeError, ValueError) as error:
            raise _incomplete(path / SWEEP_FILE, error) from error

    def _cell(self, entry: Mapping[str, Any]) -> Cell:
        labels = zip(self.axes, entry["labels"], strict=True)
        return Cell(tuple((axis.name, str(label)) for axis, label in labels), str(entry["arm"]))

    def __iter__(self) -> Iterator[tuple[Cell, int, str]]:
        """Cell, seed and name of each run."""
        for cell, digests in self.runs.items():
            for seed, digest in zip(self.seeds, digests, strict=True):
                yield cell, seed, digest


class Kept(Protocol):
    """A place where recordings are kept by name."""

    def has(self, name: str) -> bool:
        """Return whether the run is present and complete."""

    def path_of(self, name: str) -> Path:
        """Return the path at which its recording is, or will be."""


class Recordings:
    """The recordings of the requested runs; each is opened once and then kept.

    Parameters
    ----------
    place
        The place where they are kept.
    file
        The requested runs, with their names there.
    experiment
        The contents of ``experiment.json``, for an experiment.
    """

    def __init__(self, place: Kept, file: SweepFile, experiment: Mapping[str, Any] | None = None) -> None:
        self._place = place
        self.file = file
        self._experiment = experiment
        self._runs: dict[tuple[Cell, int], Run] = {}
        self._plans: dict[str, Plan] = {}
        self._reader = Reader() if experiment is None else Reader(remedy(file.path))

    def results(self, among: Container[str] | None = None) -> Results:
        """Return the results of the runs that are present now.

        Parameters
        ----------
        among
            Names of the runs to look for; by default all.
        """
        missing = [
            lacking
            for cell, seed, digest in self.file
            if (cell, seed) not in self._runs
            and (lacking := self._opened(cell, seed, digest, to_look=among is None or digest in among))
        ]
        return Results(
            title=self.file.texts["title"],
            question=self.file.texts["question"],
            path=self.file.path,
            arms=self.file.names["arms"],
            cells=tuple(self.file.runs),
            seeds=self.file.seeds,
            finished=dict(self._runs),
            axes=self.file.axes,
            claims=self.file.claims,
            metrics=self.file.names["metrics"],
            missing=tuple(missing),
            warnings=self.file.names["warnings"],
            left_out=self.file.left_out,
            details=self._experiment or {},
            reader=self._reader,
        )

    def whole(self) -> Results:
        """Return the results of all runs, none of which may be damaged.

        Raises
        ------
        DamageError
            If a run is damaged; the error lists all damaged runs.
        """
        found = self.results()
        reasons = [line for run in found.missing if run.damaged for line in run.reason.splitlines()]
        if reasons:
            more = (reason for run in found.runs for reason in run.damage())
            raise DamageError([*reasons, *more], remedy(found.path))
        return found

    def _opened(self, cell: Cell, seed: int, digest: str, *, to_look: bool) -> Missing | None:
        """Open a recording, or report why that fails."""
        raise_if_stopped()
        if not to_look:
            return Missing(cell, seed, NOT_RUN)
        if not self._place.has(digest):
            return Missing(cell, seed, self.file.failed.get(digest, NOT_RUN))
        path = self._place.path_of(digest)
        try:
            run = load_run(path, self._plans)
        except RecordingError as error:
            if self._experiment is not None and not isinstance(error, DamageError):
                raise
            return Missing(cell, seed, str(error), damaged=True)
        if (run.seed, run.manifest.plan_digest) != (seed, self.file.plans[cell]):
            other = f"of arm `{run.arm}` and seed {run.seed}"
            return Missing(cell, seed, f"`{path}` is the recording of another run: {other}", damaged=True)
        # The run may have been made for another scenario, which gives it other names.
        called = replace(run.manifest, title=self.file.texts["title"], arm=cell.arm)
        self._runs[cell, seed] = replace(run, manifest=called)
        return None


class _Folder(NamedTuple):
    """The directory of an experiment, in which each run has a directory for its arm and seed."""

    path: Path

    def has(self, name: str) -> bool:
        return (self.path_of(name) / "manifest.json").is_file()

    def path_of(self, name: str) -> Path:
        return self.path / name


def experiment_recordings(path: Path) -> Recordings:
    """The recordings of an experiment, not opened yet.

    Raises
    ------
    RecordingError
        If ``experiment.json`` is missing, incomplete, corrupt or of another format.
    """
    file = path / EXPERIMENT_FILE
    about = _read(file, remedy(path))
    try:
        asked = {
            **about,
            "axes": (),
            "arms": [arm["name"] for arm in about["arms"]],
            "metrics": about.get("metrics", ()),
            "claims": about.get("claims", ()),
            "failed": (),
            "cells": [
                {
                    "labels": (),
                    "arm": arm["name"],
                    "plan_digest": arm["digest"],
                    "runs": [f"{arm['slug']}/seed-{seed}" for seed in about["seeds"]],
                }
                for arm in about["arms"]
            ],
        }
        return Recordings(_Folder(path), SweepFile(path, asked), about)
    except (KeyError, TypeError, ValueError) as error:
        raise _incomplete(file, error) from error


def load_recording(path: Path | str) -> Results:
    """Open a recording that ``run`` has written.

    Parameters
    ----------
    path
        The directory of an experiment, or of one run.

    Raises
    ------
    RecordingError
        If there is no recording, or it is incomplete, corrupt or of another format.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"no recording at `{path}`: there is no such directory")
    if (path / EXPERIMENT_FILE).is_file():
        return experiment_recordings(path).whole()
    if (path / "manifest.json").is_file():
        return _load_single(path)
    if (path / "both.json").is_file():
        raise RecordingError(f"`{path}` has two recordings: name `{path / 'simulated'}` or `{path / 'live'}`")
    sweeps = sorted(path.glob("sweeps/*/sweep.json"))
    if sweeps:
        raise RecordingError(f"`{path}` is a store: name one of its sweeps, such as `{sweeps[0].parent}`")
    raise RecordingError(f"no recording at `{path}`: neither `experiment.json` nor `manifest.json` is there")


def remedy(path: Path) -> str:
    """Return the remedy for damaged runs of an experiment."""
    if (path / EXPERIMENT_FILE).is_file():
        return (
            f"`aqmlab run SCENARIO --resume -o {path}` repeats damaged and missing runs, and keeps the rest"
        )
    return "run it again, or restore the directory from a copy"


def _load_single(path: Path) -> Results:
    run = load_run(path)
    reader = Reader(remedy(path))
    return of_runs(
        [run], arms=[run.arm], seeds=[run.seed], path=path, title=run.manifest.title, reader=reader
    )


def _read(file: Path, repaired: str, reads: int = FORMAT_VERSION) -> dict[str, Any]:
    try:
        return read_json(file, reads)
    except DamageError as error:
        raise DamageError(error.reasons, repaired) from error


def _incomplete(file: Path, error: Exception) -> RecordingError:
    said = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
    return RecordingError(f"`{file}` is incomplete: {said}")
