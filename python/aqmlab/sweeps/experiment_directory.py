"""The directory of an experiment: recordings that users can find by arm and seed.

::

    scenario.toml, experiment.json   the request
    <arm>/seed-<n>/                  the recording of a run
    .tmp/                            incomplete recordings, while runs are in progress
"""

from __future__ import annotations

import errno
import json
from collections.abc import Container, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.errors import DamageError, HostError, UsageError
from aqmlab.recordings.integrity import FORMAT_VERSION, read_json, sealed
from aqmlab.sweeps.place import Place
from aqmlab.sweeps.task import LIVE
from aqmlab.system.files import EXPERIMENT_FILE, partial_directory, save, slug

if TYPE_CHECKING:
    from aqmlab.recordings.recording import Run
    from aqmlab.results.loading import Recordings
    from aqmlab.sweeps.cases import Cases
    from aqmlab.sweeps.conclusion import Conclusion

DEFAULT_PARENT = Path("runs")
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
SCENARIO_FILE = "scenario.toml"


class ExperimentDirectory(Place):
    """The directory of an experiment that has been begun.

    Parameters
    ----------
    path
        The directory.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.called = f"`{self.path}`"

    def name_of(self, slug: str, seed: int, digest: str) -> str:  # noqa: ARG002 (stores need it)
        """The directory of the run."""
        return f"{slug}/seed-{seed}"

    def below(self, name: str) -> str:
        """Return the run's name, which is its path relative to the experiment's directory."""
        return name

    def names(self) -> list[str]:
        """The names of the requested runs.

        Raises
        ------
        DamageError
            If `experiment.json` has changed since it was written.
        """
        return list(self._asked)

    def is_of(self, run: Run, name: str) -> bool:
        """Whether a recording has the requested arm, plan, seed and versions."""
        of = run.manifest
        return self._asked.get(name) == (of.arm, of.seed, of.plan_digest, of.parts)

    @cached_property
    def _asked(self) -> dict[str, tuple[Any, ...]]:
        """The arm, seed, plan digest and versions of the parts of each requested run, by the run's name."""
        about = read_json(self.path / EXPERIMENT_FILE)
        try:
            return {
                self.name_of(arm["slug"], seed, ""): (arm["name"], seed, arm["digest"], arm["parts"])
                for arm in about["arms"]
                for seed in about["seeds"]
            }
        except (KeyError, TypeError) as error:
            raise DamageError([f"`{self.path / EXPERIMENT_FILE}` is incomplete: {error!r}"]) from error

    def kept(self) -> str:
        """Describe what an interrupt leaves behind, and how to continue from there."""
        if not any(self.path.glob("*/seed-*/manifest.json")):
            return ""
        return f"finished runs are kept in `{self.path}`; resume with `--resume -o {self.path}`"

    def sweep_out(self) -> int:
        """Remove unfinished files of dead processes, and their directory once it is empty."""
        removed = super().sweep_out()
        with suppress(OSError):
            self._unfinished.rmdir()
        return removed

    @property
    def _unfinished(self) -> Path:
        # No arm's directory has a name that begins with a dot, so this cannot clash with one.
        return self.path / ".tmp"

    def remove_if_empty(self) -> bool:
        """Remove the directory if it has no finished run, because all else can be restored from the scenario.

        Raises
        ------
        OSError
            If it has no finished run, but contains anything besides the scenario file, the experiment file
            and empty directories.
        """
        if any(self.path.glob("*/seed-*/manifest.json")):
            return False
        for child in self.path.iterdir():
            if child.is_dir():
                child.rmdir()
            elif child.name in (SCENARIO_FILE, EXPERIMENT_FILE):
                child.unlink()
        self.path.rmdir()
        return True


class AskedExperiment:
    """The files that are written next to the runs of an experiment while it runs.

    Parameters
    ----------
    place
        The place of the runs.
    """

    def __init__(self, place: ExperimentDirectory) -> None:
        self.path = place.path

    def update(self, tried: Container[str], failed: Mapping[str, str]) -> None:
        """Write nothing: `experiment.json` follows from the scenario and exists from the start."""

    def recordings(self) -> Recordings:
        """Return the recordings of the runs, which are not opened yet."""
        from aqmlab.results.loading import experiment_recordings

        return experiment_recordings(self.path)

    def conclude(self, recordings: Recordings, **_wishes: bool) -> Conclusion:
        """Open the recordings that exist, just as if the caller had named the directory."""
        from aqmlab.sweeps.conclusion import Conclusion

        return Conclusion(recordings.whole())


def begin(cases: Cases, output: Path | str | None) -> ExperimentDirectory:
    """Make the directory of an experiment; by default, its name is generated.

    Raises
    ------
    UsageError
        If the directory exists.
    HostError
        If the directory cannot be created.
    """
    files = {SCENARIO_FILE: cases.text, EXPERIMENT_FILE: sealed(describe_experiment(cases))}
    return ExperimentDirectory(begin_directory(output, cases, files))


def begun(cases: Cases, output: Path | str | None) -> ExperimentDirectory | None:
    """The directory in which this experiment was begun, if there is one; seeds that it lacks are added to it.

    Raises
    ------
    UsageError
        If the given directory is that of another experiment.
    RecordingError
        If the directory cannot be read, or its format is not that of today.
    """
    about = describe_experiment(cases)
    if output is None:
        path = next((path for path in latest(cases) if _differs(path, about) is None), None)
    else:
        path = Path(output) if Path(output).exists() else None
    if path is None:
        return None
    differs = _differs(path, about)
    if differs is not None:
        raise UsageError(f"`{path}` cannot be resumed: {differs}; name another directory")
    _add_seeds(path, cases, about)
    return ExperimentDirectory(path)


_SAME = {
    "host": "its runs are of the other kind (simulated or live)",
    "arms": "its arms differ, or have other values or versions",
}


def continues(path: Path, cases: Cases) -> bool:
    """Return whether a directory holds this experiment, possibly with fewer seeds."""
    return _differs(path, describe_experiment(cases)) is None


def _differs(path: Path, wanted: Mapping[str, Any]) -> str | None:
    """Return why the experiment in a directory is not the requested one, or not a part of it."""
    if not (path / EXPERIMENT_FILE).is_file():
        return "it contains no experiment"
    try:
        about = read_json(path / EXPERIMENT_FILE)
    except DamageError:
        # The file's content follows from the scenario, with which every run is compared.
        save(path / EXPERIMENT_FILE, sealed(wanted))
        return None
    for key, words in _SAME.items():
        if about.get(key) != wanted.get(key):
            return words
    others = sorted({*about.get("seeds", ())} - {*wanted["seeds"]})
    return f"it also has seed {others[0]}, which is not requested" if others else None


def _add_seeds(path: Path, cases: Cases, wanted: Mapping[str, Any]) -> None:
    """Rewrite the files that state the request, if it now has more seeds."""
    if read_json(path / EXPERIMENT_FILE)["seeds"] != cases.seeds:
        save(path / SCENARIO_FILE, cases.text)
        save(path / EXPERIMENT_FILE, sealed(wanted))


def describe_experiment(cases: Cases) -> dict[str, Any]:
    """The content of ``experiment.json``."""
    from aqmlab import _core

    plan = json.loads(_core.plan(cases.text, cases.file_name))
    chosen = [arm for arm in plan["arms"] if arm["name"] in cases.about["arms"]]
    kept = ("name", "slug", "digest", "parameters")
    about = {
        "format_version": FORMAT_VERSION,
        "aqmlab_version": _core.__version__,
        "title": plan["title"],
        "question": plan["question"],
        "metrics": plan["metrics"],
        "claims": plan["claims"],
        "scenario_file": cases.file_name,
        "arms": [
            {key: arm[key] for key in kept} | {"parts": _core.host_parts(arm["parts"], cases.host)}
            for arm in chosen
        ],
        "all_arms": cases.all_arms,
        "seeds": cases.seeds,
        "warnings": plan["warnings"],
    }
    return {**about, "host": LIVE} if cases.host == LIVE else about


def directory_name(cases: Cases, now: datetime | None = None) -> str:
    """``20261121T193015Z-red-against-droptail-3fa9c1d2``: the time, the title, and a digest of all runs."""
    return f"{(now or datetime.now(UTC)).strftime('%Y%m%dT%H%M%SZ')}-{cases.name}"


def latest(cases: Cases) -> list[Path]:
    """Return the directories with generated names for experiments of this title, the latest first."""
    return sorted(DEFAULT_PARENT.glob(f"*-{slug(cases.about['title'])}-*"), reverse=True)


class _TakenError(UsageError):
    """Raised when the name of a directory is already in use."""


def begin_directory(output: Path | str | None, cases: Cases, files: Mapping[str, str]) -> Path:
    """Make a directory with these files; by default, its name is generated.

    If the generated name is taken, a number is appended; this also works if two processes choose the same
    name at the same time.

    Raises
    ------
    UsageError
        If the given directory exists.
    HostError
        If the directory cannot be created.
    """
    if output is not None:
        _make_directory(Path(output), Path(output).name, files)
        return Path(output)
    first = DEFAULT_PARENT / directory_name(cases)
    numbered = (first.with_name(f"{first.name}-{i}") for i in count(2))
    for directory in chain([first], numbered):
        with suppress(_TakenError):
            _make_directory(directory, cases.name, files)
            return directory
    raise AssertionError("there is always another number")


def _make_directory(directory: Path, called: str, files: Mapping[str, str]) -> None:
    """Create a directory with these files, given as contents by name, completely or not at all.

    Until it is complete, its content is in a temporary directory named after ``called``.
    """
    taken = _TakenError(
        f"`{directory}` exists already; an experiment is never overwritten (`--resume` continues one)"
    )
    if directory.exists() or directory.is_symlink():
        raise taken
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with partial_directory(directory.parent, called) as parent:
            partial = parent / "experiment"
            partial.mkdir()
            for name, content in files.items():
                (partial / name).write_text(content, encoding="utf-8")
            try:
                partial.rename(directory)
            except OSError as error:
                # Another process was first, in the same second.
                if error.errno in _TAKEN:
                    raise taken from error
                raise
    except OSError as error:
        raise HostError(f"cannot make `{directory}`: {error.strerror or error}") from error
