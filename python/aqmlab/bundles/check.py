"""Checking a bundle: each file against its SHA-256, and a repeated seed against the digests of its tables."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from aqmlab.arguments import typed
from aqmlab.bundles.verification import verify
from aqmlab.bundles.write import EXPERIMENT, FORMAT_VERSION, INDEX, SCENARIO
from aqmlab.errors import DamageError, RecordingError, UsageError, unknown
from aqmlab.paths import load
from aqmlab.recordings.integrity import read_json
from aqmlab.recordings.recording import Run
from aqmlab.results.results import Results
from aqmlab.sweeps.task import LIVE


@dataclass(frozen=True)
class Repeated:
    """One repeated run.

    Attributes
    ----------
    arm, seed
        The arm and the seed of the run.
    tables
        Number of tables compared.
    differ
        Names of the tables whose contents differ.
    parts
        Parts of the program whose version here differs from the one in the bundle, with both versions:
        ``qdisc.red 1, here 2``.
    """

    arm: str
    seed: int
    tables: int
    differ: tuple[str, ...]
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """The findings for a bundle whose files are unchanged.

    Attributes
    ----------
    path
        The file.
    title
        Title of the experiment or the sweep.
    files, recordings
        Numbers of files and recordings checked.
    repeated
        The repeated runs; none unless requested.
    """

    path: Path
    title: str
    files: int
    recordings: int
    repeated: tuple[Repeated, ...] = ()

    @property
    def same(self) -> bool:
        """Whether every repeated run gave the same tables as in the bundle."""
        return not any(run.differ for run in self.repeated)


@typed
def check_bundle(file: Path | str, *, rerun: bool = False, seed: int | None = None) -> Checked:
    """Check that every file of a bundle is unchanged and, on request, repeat one of its seeds.

    Parameters
    ----------
    file
        A file written by :func:`bundle`.
    rerun
        Whether to repeat a seed in every arm (for a sweep, in its first case) and compare all
        tables.
    seed
        The seed to repeat; by default the first finished one.

    Raises
    ------
    DamageError
        If a file is missing, has changed, or was added.
    RecordingError
        If there is no bundle, or its format is too new.
    UsageError
        If there is no such seed, or its runs are live, because live runs differ each time.
    """
    file = Path(file)
    with tempfile.TemporaryDirectory(prefix="aqmlab-bundle-") as made:
        folder = Path(made)
        about = _unpacked(file, folder)
        place = folder / str(about["directory"])
        root = place if about["directory"] == EXPERIMENT else folder / "store"
        found = verify(root)
        if found.damaged:
            raise DamageError(found.damaged)
        repeated = _repeated(place, folder / "again", seed) if rerun else ()
    return Checked(file, str(about.get("title", "")), len(about["files"]), found.recordings, repeated)


def _unpacked(file: Path, folder: Path) -> Mapping[str, Any]:
    """Extract all files, check them against their SHA-256, and return the contents of ``bundle.json``."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [info.filename for info in archive.infolist()]
            if INDEX not in names:
                raise RecordingError(f"`{file}` is not a bundle: `{INDEX}` is not in it")
            (folder / INDEX).write_bytes(archive.read(INDEX))
            about = _index(file, folder / INDEX)
            wanted: Mapping[str, str] = about["files"]
            reasons = [f"`{file}`: `{name}` is missing" for name in wanted if name not in names]
            known = {*wanted, INDEX}
            reasons += [f"`{file}`: `{name}` is not in `{INDEX}`" for name in names if name not in known]
            if len(names) != len(set(names)):
                reasons.append(f"`{file}` has two files with the same name")
            if reasons:
                raise DamageError(reasons)
            for name, digest in wanted.items():
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != digest:
                    reasons.append(
                        f"`{file}`: `{name}` has changed since it was written (its SHA-256 differs)"
                    )
                    continue
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
    except FileNotFoundError:
        raise RecordingError(f"no bundle at `{file}`: there is no such file") from None
    except zipfile.BadZipFile as error:
        raise DamageError([f"`{file}` is not a ZIP file, or is damaged: {error}"]) from error
    except OSError as error:
        raise RecordingError(f"cannot read `{file}`: {error.strerror or error}") from error
    if reasons:
        raise DamageError(reasons)
    return about


def _index(file: Path, index: Path) -> Mapping[str, Any]:
    try:
        about = read_json(index, FORMAT_VERSION)
    except DamageError as error:
        raise DamageError([f"`{file}`: {reason}" for reason in error.reasons]) from error
    except RecordingError as error:
        raise RecordingError(f"`{file}`: {error}") from error
    if not (isinstance(about.get("files"), dict) and isinstance(about.get("directory"), str)):
        raise DamageError([f"`{file}`: `{INDEX}` has no list of files"])
    # A path that leads out of the folder is refused before any file is written.
    for name in [about["directory"], *about["files"]]:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise DamageError([f"`{file}`: `{name}` is outside the bundle"])
    return about


def _repeated(place: Path, again: Path, seed: int | None) -> tuple[Repeated, ...]:
    results = load(place)
    if results.runs[0].manifest.host == LIVE:
        raise UsageError(
            "live runs cannot be repeated exactly, because the kernel takes part in their decisions"
        )
    seeds = results.finished_seeds
    if seed is not None and seed not in seeds:
        raise unknown("seed", str(seed), map(str, seeds))
    wanted = seeds[0] if seed is None else seed
    cells = [cell for cell in results.cells if cell.settings == results.cells[0].settings]
    runs = [run for cell in cells for run in results.runs_of(cell) if run.seed == wanted]
    new = _run_again(results, place, again, wanted)
    return tuple(_compared(run, new[run.arm]) for run in runs)


def _run_again(results: Results, place: Path, again: Path, seed: int) -> Mapping[str, Run]:
    """Return the runs of a seed by arm; for a sweep, those of its first case."""
    scenario = place / SCENARIO
    if not results.axes:
        from aqmlab.experiment import run

        made = run(scenario, output=again, seed=seed, runs=1, arms=results.finished_arms, report=False)
        return {one.arm: one for one in made.runs}
    from aqmlab.sweeps.sweep import sweep

    first = [cell for cell in results.cells if cell.settings == results.cells[0].settings]
    work = sweep(scenario, store=again, seed=seed, runs=1, among=first, report=False)
    work.wait()
    return {one.arm: one for cell in first for one in work.results.runs_of(cell)}


def _compared(old: Run, new: Run) -> Repeated:
    kept = {**old.manifest.tables, **old.manifest.left_behind}
    made = new.manifest.tables
    names = sorted({*kept, *made})
    differ = [n for n in names if n not in kept or n not in made or kept[n].digest != made[n].digest]
    before, now = old.manifest.parts, new.manifest.parts
    parts = [f"{p} {before[p]}, here {now.get(p, '-')}" for p in sorted(before) if before[p] != now.get(p)]
    return Repeated(old.arm, old.seed, len(names), tuple(differ), tuple(parts))


def as_json(checked: Checked) -> dict[str, Any]:
    """Return the findings as plain data."""
    content = {
        "format_version": 1,
        "path": str(checked.path),
        "title": checked.title,
        "files": checked.files,
        "recordings": checked.recordings,
        "repeated": [vars(run) for run in checked.repeated],
    }
    return dict(json.loads(json.dumps(content)))
