"""The store: recordings by the digest of their run, each complete or absent.

::

    store.json                  {"format_version": 1}
    runs/3f/3fa9c1d2.../        a recording as written by `aqmlab run`
    sweeps/<name>/              definition and results of a sweep: scenario, cells, tables, report
    tmp/<process>/, <process>.lock   files that a living process is writing

Any number of processes may write to it at the same time (:mod:`aqmlab.sweeps.place`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.errors import HostError, RecordingError, UsageError
from aqmlab.recordings.integrity import other_format
from aqmlab.sweeps.place import Place
from aqmlab.system.files import SWEEP_FILE, write_whole

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run

FORMAT_VERSION = 1
DEFAULT_STORE = Path("runs/store")
VARIABLE = "AQMLAB_STORE"
STORE_FILE = "store.json"


class Store(Place):
    """An existing store.

    Parameters
    ----------
    path
        Its directory.

    Raises
    ------
    RecordingError
        If there is no store, or it has another format than this program reads.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.called = f"the store `{self.path}`"
        try:
            content = json.loads((self.path / STORE_FILE).read_text(encoding="utf-8"))
            version = content["format_version"]
        except FileNotFoundError:
            raise RecordingError(f"no store at `{self.path}`: `{STORE_FILE}` is not there") from None
        except OSError as error:
            raise RecordingError(f"cannot read `{self.path / STORE_FILE}`: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(f"`{self.path / STORE_FILE}` is corrupt: {error}") from error
        if version != FORMAT_VERSION:
            raise other_format(self.path / STORE_FILE, version, FORMAT_VERSION)

    @staticmethod
    def made(path: Path | str) -> Store:
        """The store at ``path``, created if it does not exist.

        Raises
        ------
        UsageError
            If the path exists and is not a store.
        HostError
            If nothing can be written there.
        """
        path = Path(path)
        if not (path / STORE_FILE).exists():
            try:
                path.mkdir(parents=True, exist_ok=True)
                # Another process may be creating the same store.
                others = [entry for entry in path.iterdir() if not entry.name.startswith(f".{STORE_FILE}.")]
                if others and not (path / STORE_FILE).exists():
                    raise UsageError(f"`{path}` is not a store, and not empty: name another directory")
                write_whole(path / STORE_FILE, json.dumps({"format_version": FORMAT_VERSION}) + "\n")
            except (FileExistsError, NotADirectoryError):
                raise UsageError(
                    f"`{path}` is a file, or inside one, not a store: name a directory"
                ) from None
            except OSError as error:
                raise HostError(f"cannot create the store `{path}`: {error.strerror or error}") from error
        store = Store(path)
        store._begin_writing()
        return store

    def name_of(self, slug: str, seed: int, digest: str) -> str:  # noqa: ARG002 (experiments need them)
        """The digest of the run."""
        return digest

    def below(self, name: str) -> str:
        """The actual or future path of a run's recording, relative to the store's directory."""
        return f"runs/{name[:2]}/{name}"

    def is_of(self, run: Run, name: str) -> bool:
        """Whether a recording belongs to that digest."""
        return run.manifest.run_digest == name

    def kept(self) -> str:
        """Return a sentence that says what is kept after an interrupt, and how to continue."""
        return kept_in(self.path)

    @property
    def _unfinished(self) -> Path:
        return self.path / "tmp"

    def digests(self) -> list[str]:
        """Return the digests of the existing runs, in order."""
        return sorted(
            run.name
            for group in _directories(self.path / "runs")
            for run in _directories(group)
            if self.has(run.name)
        )

    def sweeps(self) -> list[Path]:
        """The directories of the store's sweeps, in the order of their names."""
        return [path for path in _directories(self.path / "sweeps") if (path / SWEEP_FILE).is_file()]

    def sweep_directory(self, name: str) -> Path:
        """Return the directory with the tables of the sweep of that name."""
        return self.path / "sweeps" / name

    def _begin_writing(self) -> None:
        """Check now, rather than after the first run, whether the store can be written."""
        with self.staging() as directory, self.writing():
            (directory / "probe").write_bytes(b"x")
            (self.path / "runs").mkdir(exist_ok=True)
        self.sweep_out()


def store_path(path: Path | str | None) -> Path:
    """The path of the store: as given, or from the environment, or :data:`DEFAULT_STORE`."""
    return Path(path or os.environ.get(VARIABLE) or DEFAULT_STORE)


def kept_in(store: Path) -> str:
    """Return a sentence that says what a store keeps after an interrupt, and how to continue."""
    return f"finished runs are kept in `{store}`; run the same command again to continue"


def _directories(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry) for entry in os.scandir(path) if entry.is_dir())
    except FileNotFoundError:
        return []
