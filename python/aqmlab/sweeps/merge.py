"""Merging stores: runs of sweeps, made on any machines, end up in one store with complete tables."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import RecordingError, UsageError
from aqmlab.recordings.manifest import read_manifest
from aqmlab.results.loading import Recordings, SweepFile
from aqmlab.results.results import NOT_RUN, Results
from aqmlab.sweeps.conclusion import Conclusion, conclude
from aqmlab.sweeps.directory import with_failed, write_about
from aqmlab.sweeps.place import Needs, alone_in
from aqmlab.sweeps.store import Store, store_path
from aqmlab.sweeps.task import LIVE
from aqmlab.system.files import SWEEP_FILE

WHOLE = Needs(whole=True)
_NO_LINKS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EACCES}


@dataclass(frozen=True)
class Merged:
    """The result of a merge.

    Attributes
    ----------
    store
        The destination.
    added, present
        Numbers of runs that were added, and of runs that were present already.
    sweeps
        A conclusion for each sweep of the sources, drawn from the runs that are now in the destination.
    damaged
        A sentence for each file of the sources that has changed since it was written; its run is left out.
    """

    store: Store
    added: int
    present: int
    sweeps: tuple[Conclusion, ...]
    damaged: tuple[str, ...] = ()


@typed
def merge(sources: Sequence[Path | str], store: Path | str | None = None, *, report: bool = True) -> Merged:
    """Copy complete runs and sweeps of several stores into one, and rebuild the tables of these sweeps.

    Files are linked where possible and otherwise copied; the sources remain unchanged.

    Parameters
    ----------
    sources
        Directories of stores.
    store
        The destination, created if it does not exist; ``AQMLAB_STORE``, or ``runs/store``, if not given.
    report
        Whether to make a ``report.html`` of each sweep that is complete.

    Raises
    ------
    UsageError
        If there are no sources, or the destination is one of them.
    RecordingError
        If a source is not a store or has recordings of another format, or two stores have different results
        for a run with the same digest.
    HostError
        If the destination cannot be written.
    """
    if not sources:
        raise UsageError("nothing to merge: name the stores")
    opened = [Store(source) for source in sources]
    into = Store.made(store_path(store))
    if any(source.path.resolve() == into.path.resolve() for source in opened):
        raise UsageError(f"`{into.path}` cannot be merged into itself: name another destination")
    added = present = 0
    damaged: list[str] = []
    with into.staging() as staging:
        for source in opened:
            for digest in source.digests():
                if wrong := source.damage(digest):
                    damaged += wrong
                    continue
                there = into.has(digest)
                sound = there and not into.damage(digest)
                if sound:
                    _check_equal(source, into, digest)
                if sound and not (into.short_of(digest, WHOLE) and not source.short_of(digest, WHOLE)):
                    present += 1
                else:
                    with into.writing():
                        _copy(source.path_of(digest), staging / digest)
                    added += into.put(staging / digest, digest, replace=there)
    names = dict.fromkeys(path.name for source in opened for path in source.sweeps())
    sweeps = tuple(_rebuilt(into, name, opened, report) for name in names)
    return Merged(into, added, present, sweeps, tuple(damaged))


def _rebuilt(into: Store, name: str, sources: Iterable[Store], report: bool) -> Conclusion:
    """Rebuild a sweep's directory from its contents in the sources and the destination."""
    directory = into.sweep_directory(name)
    homes = [store.sweep_directory(name) for store in (into, *sources)]
    files = [SweepFile(home) for home in homes if (home / SWEEP_FILE).is_file()]
    failed: dict[str, str] = {}
    for file in files:
        failed |= {digest: why for digest, why in file.failed.items() if not into.has(digest)}
    scenario = (files[-1].path / "scenario.toml").read_text(encoding="utf-8")
    with into.writing():
        directory.mkdir(parents=True, exist_ok=True)
        with alone_in(directory):
            write_about(into, directory, scenario, with_failed(files[-1].about, failed))
            found = Recordings(into, SweepFile(directory)).results()
            return conclude(found, judge=not _unfinished(found), report=report)


def _unfinished(found: Results) -> bool:
    """Whether there are runs that no process has tried yet."""
    return any(missing.reason == NOT_RUN for missing in found.missing)


def _check_equal(source: Store, into: Store, digest: str) -> None:
    """Check that a run has the same results in both stores; if not, one of the machines is at fault."""
    manifests = [read_manifest(store.path_of(digest)) for store in (source, into)]
    if manifests[0].host == LIVE:
        # No two live runs are the same, so the existing one is kept.
        return
    # Files whose bytes differ may have the same content, because different versions may have written them.
    ours, theirs = (
        {name: of.digest for name, of in (*manifest.tables.items(), *manifest.left_behind.items())}
        for manifest in manifests
    )
    if ours != theirs:
        raise RecordingError(
            f"`{source.path_of(digest)}` and `{into.path_of(digest)}` contain the same run with different"
            " results"
        )


def _copy(source: Path, target: Path) -> None:
    target.mkdir()
    for file in sorted(source.iterdir()):
        try:
            os.link(file, target / file.name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _copy_file(file, target / file.name)


def _copy_file(source: Path, target: Path) -> None:
    try:
        content = source.open("rb")
    except OSError as error:
        raise RecordingError(f"cannot read `{source}`: {error.strerror}") from error
    with content, target.open("xb") as copied:
        shutil.copyfileobj(content, copied)
        copied.flush()
        os.fsync(copied.fileno())
