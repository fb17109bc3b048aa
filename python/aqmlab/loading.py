"""Opening the directory of an experiment, or of a single run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aqmlab.cells import Cell
from aqmlab.errors import DamageError, RecordingError
from aqmlab.integrity import FORMAT_VERSION, read_json
from aqmlab.reader import Reader
from aqmlab.recording import Run, load_run
from aqmlab.results import NOT_RUN, Missing, Results


def load_recording(path: Path | str) -> Results:
    """Open what ``run`` left.

    Parameters
    ----------
    path
        The directory of an experiment, or of one run.

    Raises
    ------
    RecordingError
        If there is no recording, or it is incomplete, corrupt or of a later format.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"no recording at `{path}`: there is no such directory")
    if (path / "experiment.json").is_file():
        return _load_experiment(path)
    if (path / "manifest.json").is_file():
        return _load_single(path)
    if (path / "both.json").is_file():
        raise RecordingError(
            f"`{path}` is of two recordings: name `{path / 'simulated'}` or `{path / 'live'}`"
        )
    sweeps = sorted(path.glob("sweeps/*/sweep.json"))
    if sweeps:
        raise RecordingError(f"`{path}` is a store: name one of its sweeps, such as `{sweeps[0].parent}`")
    raise RecordingError(f"no recording at `{path}`: neither `experiment.json` nor `manifest.json` is there")


def _load_experiment(path: Path) -> Results:
    try:
        about = read_json(path / "experiment.json")
    except DamageError as error:
        raise DamageError(error.reasons, remedy(path)) from error
    version = about.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise RecordingError(
            f"`{path / 'experiment.json'}` has the format version `{version}`; this aqmlab reads up to"
            f" {FORMAT_VERSION}"
        )
    try:
        seeds = tuple(int(seed) for seed in about["seeds"])
        runs = _load_runs(path, [(arm, seed) for arm in about["arms"] for seed in seeds])
        return of_runs(
            runs,
            arms=[str(arm["name"]) for arm in about["arms"]],
            seeds=seeds,
            path=path,
            title=str(about["title"]),
            question=str(about["question"]),
            claims=tuple(about.get("claims", ())),
            metrics=tuple(map(str, about.get("metrics", ()))),
            warnings=tuple(map(str, about["warnings"])),
            details=about,
            reader=Reader(remedy(path)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"`{path / 'experiment.json'}` is incomplete: {_words(error)}") from error


def _load_runs(path: Path, asked: Sequence[tuple[dict[str, Any], int]]) -> tuple[Run, ...]:
    """The finished runs of an experiment, each in the directory of its arm and seed.

    Raises
    ------
    DamageError
        If any is damaged: all that is, is named.
    """
    runs: list[Run] = []
    reasons: list[str] = []
    for arm, seed in asked:
        folder = path / str(arm["slug"]) / f"seed-{seed}"
        if not (folder / "manifest.json").is_file():
            continue
        try:
            run = load_run(folder)
        except DamageError as error:
            reasons += error.reasons
            continue
        digest = arm.get("digest", run.manifest.plan_digest)
        if (run.arm, run.seed, run.manifest.plan_digest) == (str(arm["name"]), seed, digest):
            runs.append(run)
        else:
            reasons.append(
                f"`{folder}` is the recording of another run: of arm `{run.arm}` and seed {run.seed}"
            )
    if reasons:
        raise DamageError([*reasons, *(reason for run in runs for reason in run.damage())], remedy(path))
    return tuple(runs)


def remedy(path: Path) -> str:
    """What to do about damaged runs of an experiment."""
    if (path / "experiment.json").is_file():
        return f"`aqmlab run SCENARIO --resume -o {path}` does what is damaged or missing, and keeps the rest"
    return "run it again, or restore the directory from a copy"


def _load_single(path: Path) -> Results:
    run = load_run(path)
    reader = Reader(remedy(path))
    return of_runs(
        [run], arms=[run.arm], seeds=[run.seed], path=path, title=run.manifest.title, reader=reader
    )


def of_runs(runs: Iterable[Run], *, arms: Sequence[str], seeds: Sequence[int], **about: Any) -> Results:  # noqa: ANN401 (what :class:`Results` has)
    """Results without swept values: a cell for each arm; what is not among the runs has not been run."""
    cells = {arm: Cell((), arm) for arm in arms}
    finished = {(cells[run.arm], run.seed): run for run in runs}
    missing = [
        Missing(cell, seed, NOT_RUN)
        for cell in cells.values()
        for seed in seeds
        if (cell, seed) not in finished
    ]
    return Results(
        arms=tuple(arms),
        cells=tuple(cells.values()),
        seeds=tuple(seeds),
        finished=finished,
        missing=tuple(missing),
        **about,
    )


def _words(error: Exception) -> str:
    return f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)


__all__ = ["load_recording", "of_runs", "remedy"]
