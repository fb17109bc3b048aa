"""Writing a bundle: a ZIP file with the scenario, recordings, lock files, and the SHA-256 of each file."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab.arguments import typed
from aqmlab.bundles.environment import cargo_lock, requirements
from aqmlab.errors import HostError, RecordingError, UsageError
from aqmlab.paths import is_sweep, load
from aqmlab.recordings.integrity import read_json, sealed
from aqmlab.results.results import Results
from aqmlab.sweeps.directory import store_of
from aqmlab.sweeps.named_files import named_files
from aqmlab.sweeps.parcel import RECORDINGS, SUMMARIES, packed
from aqmlab.sweeps.store import STORE_FILE
from aqmlab.system.files import EXPERIMENT_FILE, slug

FORMAT_VERSION = 1
INDEX = "bundle.json"
SCENARIO = "scenario.toml"
EXPERIMENT, STORE = "experiment", "store"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every member, fixed so that the same runs give the same bytes."""
_KEPT = (".toml", ".json", ".csv", ".html")
"""The extensions of files that aqmlab writes in addition to the runs."""
_README = """\
{title}

Made by aqmlab {version}. To check it, with aqmlab installed and without a network:

    aqmlab bundle --check {file}
    aqmlab bundle --check --rerun {file}

The first compares every file with its SHA-256. The second also repeats a seed and compares the digests of
its tables. After unpacking, `aqmlab report {place}` prints the results. `lock/` lists package versions.
"""


@typed
def bundle(path: Path | str, output: Path | str | None = None, *, summaries: bool = False) -> Path:
    """Put an experiment or a sweep into one file, for others to check and to repeat.

    Parameters
    ----------
    path
        The directory of an experiment or a sweep.
    output
        The file; by default it is named after the title, with ``.zip``.
    summaries
        Whether to leave out the tables of packets, of requests, and of individual flows over time.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        If the file exists, or the directory is that of a single run.
    RecordingError
        If no run has finished, or a recording is damaged.
    HostError
        If the file cannot be written.
    """
    path = Path(path)
    results = load(path).sound()
    if not is_sweep(path) and not (path / EXPERIMENT_FILE).is_file():
        raise UsageError(f"`{path}` is a single run: name the directory of its experiment")
    if not results.runs:
        raise RecordingError(f"`{path}` holds no finished run")
    if damage := results.damage():
        raise damage
    file = Path(f"{slug(results.title)}.zip") if output is None else Path(output)
    if file.exists():
        raise UsageError(f"`{file}` exists already; name another file with `-o`, or remove it")
    members = _members(results, path, file.name, summaries=summaries)
    about = {
        "format_version": FORMAT_VERSION,
        "aqmlab_version": results.version,
        "title": results.title,
        "directory": _place(path),
        "host": results.runs[0].manifest.host,
        "content": SUMMARIES if summaries else RECORDINGS,
        "seeds": list(results.finished_seeds),
        "runs": len(results.runs),
    }
    half = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        _write(half, members, about)
        half.rename(file)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    return file


def _write(file: Path, members: Iterator[tuple[str, bytes]], about: dict[str, Any]) -> None:
    digests = {}
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as out:
        for name, content in members:
            digests[name] = hashlib.sha256(content).hexdigest()
            out.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
        index = sealed({**about, "files": digests})
        out.writestr(zipfile.ZipInfo(INDEX, _EPOCH), index, zipfile.ZIP_DEFLATED)


def _place(path: Path) -> str:
    return f"{STORE}/sweeps/{path.resolve().name}" if is_sweep(path) else EXPERIMENT


def _members(results: Results, path: Path, file_name: str, *, summaries: bool) -> Iterator[tuple[str, bytes]]:
    place = _place(path)
    title = {"title": results.title, "version": results.version, "file": file_name, "place": place}
    yield "README.txt", _README.format(**title).encode()
    yield "lock/requirements.txt", requirements().encode()
    if lock := cargo_lock():
        yield "lock/Cargo.lock", lock
    for file in sorted(path.iterdir()):
        if file.is_file() and file.suffix in _KEPT and not file.name.startswith("."):
            yield f"{place}/{file.name}", file.read_bytes()
    scenario = path / SCENARIO
    written = scenario if is_sweep(path) else Path(read_json(path / EXPERIMENT_FILE)["scenario_file"])
    text = scenario.read_text(encoding="utf-8")
    for name, content in named_files(text, str(written), "put into a bundle").items():
        yield f"{place}/{name}", content
    root, base = path, EXPERIMENT
    if is_sweep(path):
        root, base = store_of(path).path, STORE
        yield f"{STORE}/{STORE_FILE}", (root / STORE_FILE).read_bytes()
    for run in sorted({run.path for run in results.runs}):
        below = run.resolve().relative_to(root.resolve()).as_posix()
        for name, content in packed(run, SUMMARIES if summaries else RECORDINGS).items():
            yield f"{base}/{below}/{name}", content
