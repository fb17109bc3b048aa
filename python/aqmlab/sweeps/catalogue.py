"""The recordings that can be queried in a store, a sweep or an experiment, and their descriptions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aqmlab.errors import RecordingError
from aqmlab.recordings.integrity import damaged_tables
from aqmlab.recordings.manifest import Manifest, read_manifest
from aqmlab.recordings.plan import Plan
from aqmlab.results.cells import Cell, short_names
from aqmlab.results.loading import SweepFile, load_recording
from aqmlab.sweeps.directory import store_of
from aqmlab.sweeps.store import Store
from aqmlab.system.files import SWEEP_FILE


@dataclass(frozen=True)
class CataloguedRun:
    """A recording.

    Attributes
    ----------
    path
        Its directory.
    digest
        Digest of the run; for a run outside a store, the digest of its plan together with its seed.
    cell
        The swept values and the arm, as given by the first sweep that contains the run.
    seed
        The seed.
    manifest
        Its description.
    """

    path: Path
    digest: str
    cell: Cell
    seed: int
    manifest: Manifest


@dataclass
class Catalogue:
    """The recordings of a directory.

    Attributes
    ----------
    root
        The folder that contains all files of the recordings.
    entries
        The recordings, each once.
    cells
        The sweep, cell, seed and digest of every run in every sweep, whether present or not.
    skipped
        Unreadable recordings, with the reasons.
    plans
        The plans of the recordings, by digest.
    """

    root: Path
    entries: list[CataloguedRun] = field(default_factory=list)
    cells: list[tuple[str, Cell, int, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    plans: dict[str, Plan] = field(default_factory=dict, repr=False)

    def axes(self) -> dict[str, str]:
        """The short name of each axis, by its full name."""
        cells = [entry.cell for entry in self.entries] + [cell for _, cell, _, _ in self.cells]
        names = list(dict.fromkeys(name for cell in dict.fromkeys(cells) for name, _ in cell.settings))
        return dict(zip(names, short_names(names), strict=True))

    def tables(self) -> list[str]:
        """The tables that any of the recordings has."""
        return list(dict.fromkeys(table for entry in self.entries for table in entry.manifest.tables))

    def mixed(self) -> bool:
        """Whether the recordings come from several versions, whose tables may have different columns."""
        manifests = (entry.manifest for entry in self.entries)
        versions = {(m.aqmlab_version, m.parts.get("recording")) for m in manifests}
        return len(versions) > 1

    def files(self, table: str) -> list[tuple[str, str]]:
        """Return the files of a table, each with the digest of its run; changed files are skipped."""
        found = []
        for entry in self.entries:
            tables = entry.manifest.tables
            if table not in tables:
                continue
            if damaged := damaged_tables(entry.path, entry.manifest.file_digests, [table]):
                self.skipped.extend(damaged.values())
            else:
                found.append((f"{entry.path}/{table}.parquet", entry.digest))
        return found


def catalogue(path: Path) -> Catalogue:
    """Return the catalogue of a path: a store, or the directory of a sweep, an experiment or a run.

    All paths in the catalogue are absolute, and symbolic links in the given path are resolved.

    Raises
    ------
    RecordingError
        If the path is none of these, or has another format than this program reads.
    """
    path = path.resolve()
    if (path / SWEEP_FILE).is_file():
        return _of_sweeps(store_of(path), [path], only=True)
    if (path / "store.json").is_file():
        store = Store(path)
        return _of_sweeps(store, store.sweeps(), only=False)
    if (path / "experiment.json").is_file() or (path / "manifest.json").is_file():
        return _of_experiment(path)
    raise RecordingError(f"`{path}` is neither a store nor the directory of a sweep, an experiment or a run")


def _of_sweeps(store: Store, sweeps: Sequence[Path], *, only: bool) -> Catalogue:
    found = Catalogue(store.path / "runs")
    for path in sweeps:
        try:
            runs = list(SweepFile(path))
        except RecordingError as error:
            if only:
                raise
            found.skipped.append(str(error))
            continue
        found.cells += [(path.name, cell, seed, digest) for cell, seed, digest in runs]
    known: dict[str, Cell] = {}
    for _, cell, _, digest in found.cells:
        known.setdefault(digest, cell)
    for digest in [digest for digest in known if store.has(digest)] if only else store.digests():
        _add(found, store.path_of(digest), known.get(digest), digest)
    of_another = [entry for entry in found.entries if entry.manifest.run_digest != entry.digest]
    found.skipped += [f"`{entry.path}` is the recording of another run" for entry in of_another]
    found.entries = [entry for entry in found.entries if entry not in of_another]
    return found


def _of_experiment(path: Path) -> Catalogue:
    found = Catalogue(path)
    for run in load_recording(path).runs:
        _add(found, run.path, None, f"{run.manifest.plan_digest}-{run.seed}")
    return found


def _add(found: Catalogue, path: Path, cell: Cell | None, digest: str) -> None:
    try:
        manifest = read_manifest(path, found.plans)
        entry = CataloguedRun(path, digest, cell or Cell((), manifest.arm), manifest.seed, manifest)
        there = {entry.name for entry in os.scandir(path)}
        lacking = [table for table in manifest.tables if f"{table}.parquet" not in there]
    except RecordingError as error:
        found.skipped.append(str(error))
    except OSError as error:
        found.skipped.append(f"cannot read `{path}`: {error.strerror}")
    else:
        if lacking:
            found.skipped.append(f"`{path}` is incomplete: `{lacking[0]}.parquet` is missing")
        else:
            found.entries.append(entry)


def labels(cell: Cell, axes: Mapping[str, str]) -> Iterator[str | None]:
    """Return a cell's label on each axis; ``None`` on axes that the cell's own sweep lacks."""
    own = dict(cell.settings)
    return (own.get(name) for name in axes)
