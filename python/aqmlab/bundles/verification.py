"""Verification of recordings: every file is checked, whether or not anything else reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import DamageError, RecordingError
from aqmlab.recordings.integrity import read_json
from aqmlab.recordings.recording import load_run
from aqmlab.results import both
from aqmlab.results.loading import SweepFile
from aqmlab.sweeps.directory import store_of
from aqmlab.sweeps.experiment_directory import ExperimentDirectory
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.store import Store
from aqmlab.system.files import SWEEP_FILE
from aqmlab.system.stopping import raise_if_stopped


@dataclass
class Verified:
    """The findings for a directory.

    Attributes
    ----------
    path
        The directory.
    recordings, tables, bytes
        The numbers of runs and tables checked, and their size on disk.
    missing
        Requested runs that are absent: interrupted, failed, or not yet done.
    damaged
        A sentence for each file that has changed since it was written.
    """

    path: Path
    recordings: int = 0
    tables: int = 0
    bytes: int = 0
    missing: int = 0
    damaged: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the findings as plain data."""
        return {
            "path": str(self.path),
            "recordings": self.recordings,
            "tables": self.tables,
            "bytes": self.bytes,
            "missing": self.missing,
            "damaged": self.damaged,
        }


@typed
def verify(path: Path | str) -> Verified:
    """Check every table and every description of recordings against the digests that were written with them.

    Parameters
    ----------
    path
        The directory of an experiment, a run, a sweep or a store.

    Raises
    ------
    RecordingError
        If there is nothing of that kind, or if it is of another format or cannot be read.
    """
    found = Verified(Path(path))
    _verify(found, Path(path))
    return found


def _verify(found: Verified, path: Path) -> None:
    if (path / "store.json").is_file():
        _store(found, Store(path))
    elif (path / SWEEP_FILE).is_file():
        store = store_of(path)
        with _noting(found):
            _runs(found, store, dict.fromkeys(digest for _, _, digest in SweepFile(path)))
    elif both.is_both(path):
        with _noting(found):
            about = read_json(path / both.FILE, both.FORMAT_VERSION)
            for side in ("live", "simulated"):
                if (path / about.get(side, side)).exists():
                    _verify(found, path / about.get(side, side))
    elif (path / "experiment.json").is_file():
        _experiment(found, path)
    elif (path / "manifest.json").is_file():
        _run(found, path)
    else:
        raise RecordingError(
            f"nothing to verify at `{path}`: it is not a directory of an experiment, a run, a"
            " sweep or a store"
        )


class _noting:  # noqa: N801 (used as a statement)
    """Record the damage that is found in this block."""

    def __init__(self, found: Verified) -> None:
        self._found = found

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, DamageError):
            self._found.damaged += error.reasons
        return isinstance(error, DamageError)


def _store(found: Verified, store: Store) -> None:
    for sweep in store.sweeps():
        with _noting(found):
            SweepFile(sweep)
    _runs(found, store, sorted(run.name for run in (store.path / "runs").glob("*/*")))


def _experiment(found: Verified, path: Path) -> None:
    with _noting(found):
        place = ExperimentDirectory(path)
        _runs(found, place, place.names())


def _runs(found: Verified, place: Place, names: Iterable[str]) -> None:
    for name in names:
        path = place.path_of(name)
        if not path.exists():
            found.missing += 1
        elif not place.has(name):
            found.damaged.append(f"`{path}` is incomplete: `manifest.json` is missing")
        elif damage := place.damage(name):
            found.recordings += 1
            found.damaged += damage
        else:
            _run(found, path)


def _run(found: Verified, path: Path) -> None:
    raise_if_stopped()
    found.recordings += 1
    with _noting(found):
        run = load_run(path)
        found.damaged += run.damage()
        found.tables += len(run.manifest.tables)
        found.bytes += sum(file.stat().st_size for file in path.iterdir() if file.is_file())
