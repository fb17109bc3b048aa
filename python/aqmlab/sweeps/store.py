"""The store: recordings by the digest of their run, each there whole or not at all.

::

    store.json                  {"format_version": 1}
    runs/3f/3fa9c1d2.../        a recording as of `aqmlab run`
    sweeps/<name>/              what a sweep asked and found: scenario, cells, tables, report
    tmp/<process>/, <process>.lock   what a living process is writing

Any number of processes may write it at once. Each writes its runs in a directory of its own under ``tmp``
and renames them; who finds his run there already throws his own away. The lock of such a directory is held by
the process (and let go by the kernel, however the process ends), so that what a dead process left can be told
from what is in use, on whatever machine.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aqmlab.errors import DamageError, HostError, RecordingError, UsageError
from aqmlab.files import write_whole
from aqmlab.stopping import raise_if_stopped

FORMAT_VERSION = 1
DEFAULT_STORE = Path("runs/store")
VARIABLE = "AQMLAB_STORE"
SWEEP_FILE = "sweep.json"

_MARK = "store.json"
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST}
_LOOK_S = 0.05
"""Between looks at whether a lock is free."""


class Store:
    """A store that is there.

    Parameters
    ----------
    path
        Its directory.

    Raises
    ------
    RecordingError
        If there is no store, or one of a later format.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            content = json.loads((self.path / _MARK).read_text(encoding="utf-8"))
            version = content["format_version"]
        except FileNotFoundError:
            raise RecordingError(f"no store at `{self.path}`: `{_MARK}` is not there") from None
        except OSError as error:
            raise RecordingError(f"cannot read `{self.path / _MARK}`: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(f"`{self.path / _MARK}` is corrupt: {error}") from error
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise RecordingError(
                f"the store `{self.path}` has the format version `{version}`; this aqmlab reads up to"
                f" {FORMAT_VERSION}"
            )

    @staticmethod
    def made(path: Path | str) -> Store:
        """The store at ``path``, made if there is nothing.

        Raises
        ------
        UsageError
            If there is something else.
        HostError
            If nothing can be written there.
        """
        path = Path(path)
        if not (path / _MARK).exists():
            try:
                path.mkdir(parents=True, exist_ok=True)
                # Another process may be making the same store.
                others = [entry for entry in path.iterdir() if not entry.name.startswith(f".{_MARK}.")]
                if others and not (path / _MARK).exists():
                    raise UsageError(f"`{path}` is no store, and not empty: name another directory")
                write_whole(path / _MARK, json.dumps({"format_version": FORMAT_VERSION}) + "\n")
            except (FileExistsError, NotADirectoryError):
                raise UsageError(f"`{path}` is no store, but a file, or in one: name a directory") from None
            except OSError as error:
                raise HostError(f"cannot make the store `{path}`: {error.strerror or error}") from error
        store = Store(path)
        store._begin_writing()
        return store

    def path_of(self, digest: str) -> Path:
        """Where the recording of a run is, or would be."""
        return self.path / "runs" / digest[:2] / digest

    def has(self, digest: str) -> bool:
        """Whether the run is there, whole: the manifest appears with all the rest."""
        return (self.path_of(digest) / "manifest.json").is_file()

    def damage(self, digest: str, *, whole: bool = False) -> tuple[str, ...]:
        """A sentence for each file of a run that is not as it was written.

        Parameters
        ----------
        digest
            Of the run.
        whole
            Whether tables that were left on a worker of a cluster are missing too.

        Raises
        ------
        RecordingError
            If it is of a later format, or cannot be read.
        """
        from aqmlab import _core
        from aqmlab.recording import load_run

        path = self.path_of(digest)
        try:
            run = load_run(path)
        except DamageError as error:
            return error.reasons
        of = run.manifest
        known = of.results_version == _core.RESULTS_VERSION
        if known and _core.run_digest(of.plan_digest, run.seed) != digest:
            return (f"`{path}` is the recording of another run",)
        left = of.left_behind if whole else ()
        return (*run.damage(), *(f"`{path}` is a summary: it has no table `{table}`" for table in left))

    def digests(self) -> list[str]:
        """The runs that are there, in the order of their digests."""
        return sorted(
            run.name
            for group in _directories(self.path / "runs")
            for run in _directories(group)
            if self.has(run.name)
        )

    def sweeps(self) -> list[Path]:
        """The directories of its sweeps, by name."""
        return [path for path in _directories(self.path / "sweeps") if (path / SWEEP_FILE).is_file()]

    def sweep_directory(self, name: str) -> Path:
        """Where a sweep of that name has its tables."""
        return self.path / "sweeps" / name

    def put(self, staged: Path, digest: str, *, replace: bool = False) -> bool:
        """Give a whole recording its place.

        Parameters
        ----------
        staged
            The recording, in a directory of :meth:`staging`; it is gone afterwards.
        digest
            Of its run.
        replace
            Whether to put it in the place of one that is there.

        Returns
        -------
        bool
            Whether it was put there; ``False`` if somebody else was first.
        """
        target = self.path_of(digest)
        with writing(self.path):
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = staged.with_name(f"{staged.name}.aside")
            if target.exists() and (replace or not self.has(digest)):
                with suppress(FileNotFoundError):
                    target.rename(aside)
            try:
                staged.rename(target)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
                shutil.rmtree(staged)
                return False
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return True

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A directory of this process for what is not whole yet; removed at the end."""
        parent = self.path / "tmp"
        with writing(self.path):
            parent.mkdir(exist_ok=True)
            lock, directory = _own_directory(parent)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            directory.with_suffix(".lock").unlink(missing_ok=True)
            os.close(lock)

    def sweep_out(self) -> int:
        """Remove what dead processes left half done; returns of how many."""
        removed = 0
        for file in sorted((self.path / "tmp").glob("*.lock")):
            with suppress(OSError):
                lock = os.open(file, os.O_RDWR)
                try:
                    if _locked(lock) and os.fstat(lock).st_nlink:
                        shutil.rmtree(file.with_suffix(""), ignore_errors=True)
                        file.unlink()
                        removed += 1
                finally:
                    os.close(lock)
        return removed

    def _begin_writing(self) -> None:
        """Find out now, not after the first run, whether anything can be written."""
        with self.staging() as directory, writing(self.path):
            (directory / "probe").write_bytes(b"x")
            (self.path / "runs").mkdir(exist_ok=True)
        self.sweep_out()


def store_path(path: Path | str | None) -> Path:
    """Where the store is: as given, or else as the environment says, or else :data:`DEFAULT_STORE`."""
    return Path(path or os.environ.get(VARIABLE) or DEFAULT_STORE)


def kept_in(store: Path) -> str:
    """What one who interrupts is told."""
    return f"finished runs are kept in `{store}`: the same request goes on"


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until no other process is in this block for the same directory."""
    lock = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Where the file system has no locks, the last writer of equal tables wins.
        while _locked(lock) is False:
            raise_if_stopped()
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(lock)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """An operating system that refuses to write ends in a sentence about the store."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(f"cannot write the store `{path}`: {reason}; it can still be read") from error


def _own_directory(parent: Path) -> tuple[int, Path]:
    """A new directory, and the lock beside it, which is held as long as the process lives."""
    while True:
        directory = parent / f"{os.getpid()}-{os.urandom(4).hex()}"
        file = directory.with_suffix(".lock")
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        # A process tidying up may have found the lock before it was held: then it is gone or soon will be.
        if _locked(lock) is not False and os.fstat(lock).st_nlink:
            directory.mkdir()
            return lock, directory
        os.close(lock)


def _locked(file: int) -> bool | None:
    """Take a lock if it is free; ``None`` where the file system has none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _directories(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry) for entry in os.scandir(path) if entry.is_dir())
    except FileNotFoundError:
        return []


__all__ = [
    "DEFAULT_STORE",
    "FORMAT_VERSION",
    "SWEEP_FILE",
    "Store",
    "alone_in",
    "kept_in",
    "store_path",
    "writing",
]
