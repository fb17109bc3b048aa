"""Experiments: every arm of a scenario with every seed, in one directory."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from aqmlab.arguments import names, whole
from aqmlab.errors import DamageError, HostError, RecordingError, RunError, UsageError
from aqmlab.figures import counted
from aqmlab.files import save, slug
from aqmlab.integrity import FORMAT_VERSION, read_json, sealed
from aqmlab.recording import Experiment, load, load_run
from aqmlab.scenario import Scenario, read

Progress = Callable[[Mapping[str, float]], object]
"""Told ten times a second: ``runs_done``, ``runs_total``, ``events``, ``sim_done_s``, ``sim_total_s``."""

DEFAULT_PARENT = Path("runs")
SHARE_OF_MEMORY = 0.8
DEFAULT_PCAP_BYTES = 128
LEAST_PCAP_BYTES = 20
MOST_PCAP_BYTES = 65_535
MOST_RUNS = 100_000
"""Seeds of an experiment, as in the scenario language."""


def run(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    *,
    output: Path | str | None = None,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    jobs: int | None = None,
    pcap: str | Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Progress | None = None,
    report: bool = True,
    resume: bool = False,
) -> Experiment:
    """Run every arm of a scenario with every seed.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    output
        The directory to make, which must not exist; ``runs/<utc>-<title>-<digest>`` if not given.
    seed, runs
        The first seed and how many; as in the scenario if not given.
    arms
        Names of the arms to run, or one name; all if not given.
    jobs
        Runs in parallel; one per processor by default. Results do not depend on it.
    pcap
        Ports whose packets go into ``packets.pcapng`` of each recording, by the names of their links;
        ``["all"]`` for all.
    pcap_bytes
        Bytes of each packet that it keeps; 128 if not given.
    progress
        Told how far the runs are.
    report
        Whether to make ``report.html``.
    resume
        Whether to go on with what is in ``output`` (in the latest directory of the same runs below
        ``runs``, if not given): runs that are there as they were written are kept, others are done. Without
        such a directory it begins.

    Returns
    -------
    Experiment
        The finished runs.

    Raises
    ------
    ScenarioError
        If the scenario is wrong; nothing is written then.
    UsageError
        If an argument makes no sense.
    RunError
        If runs failed; the others are kept.
    HostError
        If this machine cannot: no permission, no space, not enough memory.
    KeyboardInterrupt
        If interrupted; finished runs are kept.
    """
    asked = prepare(scenario, seed=seed, runs=runs, arms=arms)
    jobs = job_count(jobs)
    capture = Capture.chosen(pcap, pcap_bytes)
    begun = asked.begun(output) if resume else None
    directory = asked.begin(output) if begun is None else begun
    run_prepared(asked, directory, jobs, progress, capture)
    experiment = load(directory)
    if report:
        from aqmlab.reports import write_report

        write_report(experiment)
    return experiment


@dataclass(frozen=True)
class Prepared:
    """A scenario that is known to be right, and what of it is to be run.

    Attributes
    ----------
    text, file_name
        The scenario, and how messages call it.
    arms
        Those to run: ``name``, ``slug``, ``digest``, ``plan``, ``end_ns``, ``memory_bytes``, ``parameters``.
    seeds
        Those to run each arm with.
    about
        What ``experiment.json`` will say.
    """

    text: str
    file_name: str
    arms: Sequence[Mapping[str, Any]]
    seeds: Sequence[int]
    about: Mapping[str, Any]

    def begin(self, output: Path | str | None) -> Path:
        """Make the directory of the experiment; one of our own choice if none is given.

        Raises
        ------
        UsageError
            If it exists.
        HostError
            If it cannot be made.
        """
        return begin_directory(
            output, self.about, {"scenario.toml": self.text, "experiment.json": sealed(self.about)}
        )

    def begun(self, output: Path | str | None) -> Path | None:
        """The directory in which this experiment was begun, if there is one.

        Raises
        ------
        UsageError
            If the given one is of something else.
        RecordingError
            If it cannot be read.
        """
        if output is None:
            found = sorted(DEFAULT_PARENT.glob(f"*-{_own_name(self.about)}*"))
            return next((path for path in reversed(found) if self._differs(path) is None), None)
        path = Path(output)
        if not path.exists():
            return None
        differs = self._differs(path)
        if differs is not None:
            raise UsageError(f"`{path}` cannot be resumed: {differs}; name another directory")
        return path

    def _differs(self, path: Path) -> str | None:
        """In what the experiment in a directory is another one than this."""
        if not (path / "experiment.json").is_file():
            return "it holds no experiment"
        try:
            about = read_json(path / "experiment.json")
        except DamageError:
            # All of it follows from the scenario, and every run is compared with that.
            save(path / "experiment.json", sealed(self.about))
            return None
        same = {
            "results_version": "it is of another version of the results",
            "arms": "its arms are others, or have other values",
            "seeds": "its seeds are others",
            "host": "its runs are of another host",
        }
        return next((words for key, words in same.items() if about.get(key) != self.about.get(key)), None)

    def missing(self, directory: Path) -> list[tuple[list[str], list[int]]]:
        """The runs that a directory lacks, as arms and their seeds; what is damaged is removed."""
        lacking: dict[tuple[int, ...], list[str]] = {}
        for arm in self.arms:
            seeds = tuple(seed for seed in self.seeds if not _is_done(directory, arm, seed))
            if seeds:
                lacking.setdefault(seeds, []).append(str(arm["name"]))
        return [(arms, list(seeds)) for seeds, arms in lacking.items()]


def _is_done(directory: Path, arm: Mapping[str, Any], seed: int) -> bool:
    """Whether a run is there as it was written; if it is there otherwise, it is removed."""
    path = directory / str(arm["slug"]) / f"seed-{seed}"
    if not path.is_dir():
        return False
    try:
        run = load_run(path)
        of = (run.arm, run.seed, run.manifest.plan_digest, run.manifest.results_version)
        if of == (arm["name"], seed, arm["digest"], _results_version()) and not run.damage():
            return True
    except DamageError:
        pass
    shutil.rmtree(path)
    return False


def _results_version() -> int:
    from aqmlab import _core

    return _core.RESULTS_VERSION


def prepare(
    scenario: Scenario,
    *,
    seed: int | None = None,
    runs: int | None = None,
    arms: str | Sequence[str] | None = None,
    instead: str = "run it with `aqmlab sweep`",
) -> Prepared:
    """Read a scenario, and tell what is wrong with it or with what is asked of it; nothing is written.

    A scenario with a sweep is refused: ``instead`` is what to do.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If an argument makes no sense.
    """
    from aqmlab import _core

    text, name = read(scenario)
    plan = json.loads(_core.plan(text, name))
    if plan["axes"]:
        raise UsageError(f"`{name}` has a [sweep] of {counted(plan['cases'], 'case')}; {instead}")
    check_metrics(plan["metrics"], name)
    _check_claims(plan, name)
    seeds = chosen_seeds(plan["seeds"], seed, runs)
    chosen = _chosen_arms(plan["arms"], arms)
    about = describe(plan, chosen, seeds, Origin(name, _core.__version__, _core.RESULTS_VERSION))
    return Prepared(text, name, chosen, seeds, about)


class Capture(NamedTuple):
    """Which packets are kept.

    Attributes
    ----------
    ports
        Names of links; ``("all",)`` for all.
    bytes
        Of each packet.
    """

    ports: tuple[str, ...] = ()
    bytes: int = DEFAULT_PCAP_BYTES

    @staticmethod
    def chosen(ports: str | Sequence[str], kept_bytes: int | None) -> Capture:
        """One with a number of bytes that makes sense; the default one if not given.

        Raises
        ------
        UsageError
            If it makes none.
        """
        return Capture(names(ports) or (), chosen_pcap_bytes(kept_bytes))


NO_CAPTURE = Capture()


def run_prepared(
    asked: Prepared,
    directory: Path,
    jobs: int,
    progress: Progress | None = None,
    capture: Capture = NO_CAPTURE,
) -> None:
    """Do the runs on ``jobs`` threads, their recordings in ``directory``."""
    from aqmlab import _core

    failed: list[Mapping[str, Any]] = []
    finished = 0
    with keeping_what_finished(directory, f"; `--resume -o {directory}` goes on"):
        parts = asked.missing(directory)
        total = sum(len(arms) * len(seeds) for arms, seeds in parts)
        for arms, seeds in parts:
            answer = json.loads(
                _core.run(
                    asked.text,
                    asked.file_name,
                    directory,
                    jobs,
                    arms=arms,
                    seeds=seeds,
                    progress=progress and _among(progress, finished + len(failed), total),
                    memory_cap=memory_cap(jobs),
                    pcap=list(capture.ports),
                    pcap_bytes=capture.bytes,
                )
            )
            finished += len(answer["finished"])
            failed += answer["failed"]
    if parts and not finished:
        _remove_if_empty(directory)
    if failed:
        raise _failure(failed, finished, directory)


def _among(progress: Progress, before: int, total: int) -> Progress:
    """Progress of some of the runs, told as of all."""
    return lambda now: progress({**now, "runs_done": now["runs_done"] + before, "runs_total": total})


@contextmanager
def keeping_what_finished(directory: Path, then: str = "") -> Iterator[None]:
    """If what is done in it fails, keep the finished runs and say so; without any, remove the directory.

    ``then`` follows in the words: how to go on.
    """
    try:
        yield
    except BaseException as error:
        try:
            if not _remove_if_empty(directory):
                error.add_note(f"finished runs are kept in `{directory}`{then}")
        except OSError as left:
            # What went wrong first is what to tell.
            error.add_note(f"`{left.filename}` cannot be removed: {left.strerror}")
        raise


def chosen_seeds(planned: Sequence[int], seed: int | None, runs: int | None) -> list[int]:
    """Seeds ``seed, seed + 1, ...``; what is not given is as planned."""
    seed = None if seed is None else whole(seed, "`seed`")
    runs = None if runs is None else whole(runs, "`runs`")
    if runs is not None and runs < 1:
        raise UsageError(f"`{runs}` runs make no experiment; give at least 1")
    if runs is not None and runs > MOST_RUNS:
        raise UsageError(f"`{runs}` runs are too many; give at most {MOST_RUNS}")
    first = planned[0] if seed is None else seed
    count = len(planned) if runs is None else runs
    if first < 0 or first + count - 1 >= 2**63:
        raise UsageError(f"the seed `{first}` is outside of 0 to 2^63 - 1")
    return list(range(first, first + count))


def _chosen_arms(planned: Sequence[dict[str, Any]], arms: str | Sequence[str] | None) -> list[dict[str, Any]]:
    wanted = names(arms)
    if not wanted:
        return list(planned)
    known = [arm["name"] for arm in planned]
    for arm in wanted:
        if arm not in known:
            raise UsageError(f"there is no arm `{arm}`; there are {', '.join(f'`{name}`' for name in known)}")
    return [arm for arm in planned if arm["name"] in wanted]


def job_count(jobs: int | None, called: str = "jobs") -> int:
    """So many threads; one a processor that we may use where the person has no wish."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = whole(jobs, f"`{called}`")
    if jobs < 1:
        raise UsageError(f"`{jobs}` {called} make no progress; give at least 1")
    return jobs


def chosen_pcap_bytes(count: int | None) -> int:
    """Bytes to keep of each captured packet: at least an IP header, at most all of any packet."""
    if count is None:
        return DEFAULT_PCAP_BYTES
    count = whole(count, "`pcap_bytes`")
    if not LEAST_PCAP_BYTES <= count <= MOST_PCAP_BYTES:
        raise UsageError(
            f"`{count}` bytes of each packet cannot be captured; give {LEAST_PCAP_BYTES} to {MOST_PCAP_BYTES}"
        )
    return count


def memory_cap(jobs: int) -> int:
    """Bytes that one of ``jobs`` runs may take, so that all leave a fifth of what is free; 0 if not known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(int(line.split()[1]) * 1024 * SHARE_OF_MEMORY / jobs)
    return 0


class Origin(NamedTuple):
    """What an experiment was made from, and by what."""

    file_name: str
    version: str
    results_version: int


def describe(
    plan: Mapping[str, Any],
    arms: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    origin: Origin,
) -> dict[str, Any]:
    """The content of ``experiment.json``."""
    kept = ("name", "slug", "digest", "parameters")
    return {
        "format_version": FORMAT_VERSION,
        "aqmlab_version": origin.version,
        "results_version": origin.results_version,
        "title": plan["title"],
        "question": plan["question"],
        "metrics": plan["metrics"],
        "claims": plan["claims"],
        "scenario_file": origin.file_name,
        "arms": [{key: arm[key] for key in kept} for arm in arms],
        "all_arms": [arm["name"] for arm in plan["arms"]],
        "seeds": list(seeds),
        "warnings": plan["warnings"],
    }


def check_metrics(names: Sequence[str], file: str) -> None:
    """A wrong name is told before the runs, not after them."""
    if names:
        from aqmlab.metrics import find

        wrong = []
        for name in names:
            try:
                find(name)
            except UsageError as error:
                wrong.append(f"{file}: metrics: {error}")
        if wrong:
            raise UsageError("\n".join(wrong))


def _check_claims(plan: Mapping[str, Any], file: str) -> None:
    """A claim that cannot be scored is told before the runs too."""
    if plan["claims"]:
        from aqmlab.claims import Names, check_claims
        from aqmlab.plan import Plan

        plans = [Plan.of(arm["plan"]) for arm in plan["arms"]]
        names = Names.of_plans([arm["name"] for arm in plan["arms"]], (), plans)
        check_claims(plan["claims"], names, file)


def directory_name(about: Mapping[str, Any], now: datetime | None = None) -> str:
    """``20261121T193015Z-red-against-droptail-3fa9c1d2``: when, what, and a digest of all plans and seeds."""
    return f"{(now or datetime.now(UTC)).strftime('%Y%m%dT%H%M%SZ')}-{_own_name(about)}"


def _own_name(about: Mapping[str, Any]) -> str:
    named = json.dumps([[arm["digest"] for arm in about["arms"]], about["seeds"]])
    return f"{slug(about['title'])}-{sha256(named.encode()).hexdigest()[:8]}"


class _TakenError(UsageError):
    """There is something of that name."""


def begin_directory(output: Path | str | None, about: Mapping[str, Any], files: Mapping[str, str]) -> Path:
    """Make a directory with these files; one of our own choice if none is given.

    Another of the same second gets a number, also where two processes want the name at once.

    Raises
    ------
    UsageError
        If the given one exists.
    HostError
        If it cannot be made.
    """
    if output is not None:
        make_directory(Path(output), files)
        return Path(output)
    first = DEFAULT_PARENT / directory_name(about)
    numbered = (first.with_name(f"{first.name}-{i}") for i in count(2))
    for directory in chain([first], numbered):
        with suppress(_TakenError):
            make_directory(directory, files)
            return directory
    raise AssertionError("there is always another number")


def make_directory(directory: Path, files: Mapping[str, str]) -> None:
    """Make a directory with these files by name, whole or not at all.

    Raises
    ------
    UsageError
        If it exists.
    HostError
        If it cannot be made.
    """
    taken = _TakenError(
        f"`{directory}` exists already; an experiment is never overwritten (`--resume` goes on with one)"
    )
    if directory.exists() or directory.is_symlink():
        raise taken
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{directory.name}.partial-", dir=directory.parent
        ) as parent:
            partial = Path(parent) / "experiment"
            partial.mkdir()
            for name, content in files.items():
                (partial / name).write_text(content, encoding="utf-8")
            try:
                partial.rename(directory)
            except OSError as error:
                # Somebody else was first, in the same second.
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    raise taken from error
                raise
    except OSError as error:
        raise HostError(f"cannot make `{directory}`: {error.strerror or error}") from error


def _remove_if_empty(directory: Path) -> bool:
    """Remove a directory without a finished run: there is nothing in it that the scenario does not say."""
    if any(directory.glob("*/seed-*/manifest.json")):
        return False
    for child in directory.iterdir():
        if child.is_dir():
            child.rmdir()
        elif child.name in ("scenario.toml", "experiment.json"):
            child.unlink()
    directory.rmdir()
    return True


def _failure(failed: Sequence[Mapping[str, Any]], finished: int, directory: Path) -> RunError:
    first = failed[0]
    kept = f"; the others are in `{directory}`" if finished else ""
    return RunError(
        f"{len(failed)} of {counted(len(failed) + finished, 'run')} failed{kept}; the first: arm"
        f" `{first['arm']}`, seed {first['seed']}: {first['reason']}"
    )


__all__ = ["Experiment", "Progress", "RecordingError", "run"]
