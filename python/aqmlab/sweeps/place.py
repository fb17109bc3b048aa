"""Places: where recordings are kept, each complete or absent, with any number of writing processes.

Each process writes its runs in a directory of its own and then renames them into the place; if a run is
already there, the process discards its copy. While a process runs, it holds the lock of its directory;
however it ends, the kernel releases the lock. The lock thus distinguishes files of dead processes from files
in use, on any machine. The name of the directory distinguishes the files of a guest, whose locks its host
does not see.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqmlab.errors import DamageError, HostError
from aqmlab.sweeps.captured import has_packets
from aqmlab.sweeps.task import NO_CAPTURE, Capture
from aqmlab.system.files import locked, may_be_in_use, own_name
from aqmlab.system.stopping import raise_if_stopped

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run

_TAKEN = {errno.ENOTEMPTY, errno.EEXIST}
_LOOK_S = 0.05
"""Interval at which a process checks whether a lock is free."""


class Needs(NamedTuple):
    """What is required of a recording, apart from being unchanged.

    Attributes
    ----------
    whole
        Whether it must have the tables that may be left on a worker of a cluster.
    capture
        The captured packets that it must have.
    ended
        Whether a live run must have ended by itself.
    faithful
        Whether a live run must be faithful.
    """

    whole: bool = False
    capture: Capture = NO_CAPTURE
    ended: bool = False
    faithful: bool = False


def _lacking(run: Run, needs: Needs) -> Iterator[str]:
    if needs.whole:
        for table in run.manifest.left_behind:
            yield f"`{run.path}` is a summary: it has no table `{table}`"
    if needs.ended and run.manifest.live is not None and run.manifest.live.get("interrupted"):
        yield f"`{run.path}` was interrupted"
    if needs.faithful and run.manifest.live is not None and run.manifest.live.get("reasons"):
        yield f"`{run.path}` is not faithful"
    if not has_packets(run.path, needs.capture, len(run.links)):
        ports = ", ".join(f"`{port}`" for port in needs.capture.ports)
        yield f"`{run.path}` lacks requested packets: {needs.capture.bytes} bytes of each at {ports}"


class Place(ABC):
    """A place where recordings are kept, each under its own name."""

    path: Path
    called: str
    """Its name in messages: ``the store `runs/store```."""

    @abstractmethod
    def name_of(self, slug: str, seed: int, digest: str) -> str:
        """Return the name of a run, given the directory name of its arm, its seed and its digest."""

    @abstractmethod
    def below(self, name: str) -> str:
        """The actual or future path of a run's recording, relative to the place's directory."""

    @abstractmethod
    def is_of(self, run: Run, name: str) -> bool:
        """Whether a recording is that of the run with this name."""

    @abstractmethod
    def kept(self) -> str:
        """Return a sentence on what is kept and how to continue; empty if nothing is kept."""

    @property
    @abstractmethod
    def _unfinished(self) -> Path:
        """The directory of incomplete recordings."""

    def path_of(self, name: str) -> Path:
        """The actual or future path of a run's recording."""
        return self.path / self.below(name)

    def has(self, name: str) -> bool:
        """Whether the run is present and complete, which it is as soon as it has a manifest."""
        return (self.path_of(name) / "manifest.json").is_file()

    def present(self, names: Iterable[str]) -> set[str]:
        """Return which of the runs are complete; each directory is listed once, even for a million runs."""
        entries: dict[str, set[str]] = {}
        found = set()
        for name in names:
            parent, _, last = self.below(name).rpartition("/")
            if parent not in entries:
                with suppress(OSError):
                    entries[parent] = {entry.name for entry in os.scandir(self.path / parent)}
            if last in entries.setdefault(parent, set()) and self.has(name):
                found.add(name)
        return found

    def damage(self, name: str) -> tuple[str, ...]:
        """Return a sentence for each file of a run that has changed since it was written.

        Raises
        ------
        RecordingError
            If the run has another format or cannot be read.
        """
        return self.short_of(name, Needs())

    def short_of(self, name: str, needs: Needs) -> tuple[str, ...]:
        """Return why an existing run is unusable: a sentence for each damaged file and each missing part.

        Raises
        ------
        RecordingError
            If the run has another format or cannot be read.
        """
        from aqmlab.recordings.recording import load_run

        path = self.path_of(name)
        try:
            run = load_run(path)
        except DamageError as error:
            return error.reasons
        if not self.is_of(run, name):
            other = f"of arm `{run.arm}` and seed {run.seed}"
            return (f"`{path}` is the recording of another run: {other}",)
        return (*run.damage(), *_lacking(run, needs))

    def put(self, staged: Path, name: str, *, replace: bool = False) -> bool:
        """Move a complete recording to its place.

        Parameters
        ----------
        staged
            The recording, in a directory of :meth:`staging`; it is gone afterwards.
        name
            The name of its run.
        replace
            Whether it replaces an existing recording.

        Returns
        -------
        bool
            Whether the recording was put there; ``False`` if another process was first.
        """
        target = self.path_of(name)
        with self.writing():
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = staged.with_name(f"{staged.name}.aside")
            if target.exists() and (replace or not self.has(name)):
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
        """A directory of this process for incomplete recordings; removed when the block ends."""
        with self.writing():
            self._unfinished.mkdir(exist_ok=True)
            lock, directory = _own_directory(self._unfinished)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            directory.with_suffix(".lock").unlink(missing_ok=True)
            os.close(lock)

    def sweep_out(self) -> int:
        """Remove unfinished files of dead processes; return the number of these processes.

        Files of another kernel (a guest, another machine, or this one before it was restarted) are removed
        when they have been unchanged for a day.
        """
        removed = 0
        for file in sorted(self._unfinished.glob("*.lock")):
            with suppress(OSError):
                lock = os.open(file, os.O_RDWR)
                try:
                    directory, kernel = file.with_suffix(""), file.name.split("-")[0]
                    free = locked(lock) and os.fstat(lock).st_nlink
                    written = [path for path in (file, directory) if path.exists()]
                    if free and not any(may_be_in_use(path, kernel) for path in written):
                        shutil.rmtree(directory, ignore_errors=True)
                        file.unlink()
                        removed += 1
                finally:
                    os.close(lock)
        return removed

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn a write error of the operating system into an error that names this place."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise HostError(f"cannot write {self.called}: {reason}; it can still be read") from error


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the same directory, then run the block."""
    lock = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # If the file system has no locks, the last writer wins, which is harmless because the tables are
        # equal.
        while locked(lock) is False:
            raise_if_stopped()
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(lock)


def _own_directory(parent: Path) -> tuple[int, Path]:
    """Create a directory and the lock next to it, which is held as long as the process lives."""
    while True:
        directory = parent / own_name()
        file = directory.with_suffix(".lock")
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        # A process that cleans up may have found this file before we locked it; the file is then gone or soon
        # will be.
        if locked(lock) is not False and os.fstat(lock).st_nlink:
            directory.mkdir()
            return lock, directory
        os.close(lock)
