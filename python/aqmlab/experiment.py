"""Experiments: every arm of a scenario with every seed, in one directory."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from aqmlab.errors import HostError, RecordingError, RunError, UsageError
from aqmlab.recording import Experiment, load
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
    arms: Sequence[str] | None = None,
    jobs: int | None = None,
    pcap: Sequence[str] = (),
    pcap_bytes: int | None = None,
    progress: Progress | None = None,
    report: bool = True,
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
        Names of the arms to run; all if not given.
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
    directory = asked.begin(output)
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
        directory = free_directory(self.about) if output is None else Path(output)
        about = json.dumps(self.about, indent=1, ensure_ascii=False) + "\n"
        make_directory(directory, {"scenario.toml": self.text, "experiment.json": about})
        return directory


def prepare(
    scenario: Scenario,
    *,
    seed: int | None = None,
    runs: int | None = None,
    arms: Sequence[str] | None = None,
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
        raise UsageError(f"`{name}` has a [sweep] of {plan['cases']} cases; {instead}")
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
    def chosen(ports: Sequence[str], kept_bytes: int | None) -> Capture:
        """One with a number of bytes that makes sense; the default one if not given.

        Raises
        ------
        UsageError
            If it makes none.
        """
        return Capture(tuple(ports), chosen_pcap_bytes(kept_bytes))


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

    with keeping_what_finished(directory):
        answer = json.loads(
            _core.run(
                asked.text,
                asked.file_name,
                directory,
                jobs,
                arms=[arm["name"] for arm in asked.arms],
                seeds=asked.seeds,
                progress=progress,
                memory_cap=memory_cap(jobs),
                pcap=list(capture.ports),
                pcap_bytes=capture.bytes,
            )
        )
    if not answer["finished"]:
        _remove_if_empty(directory)
    if answer["failed"]:
        raise _failure(answer, directory)


@contextmanager
def keeping_what_finished(directory: Path) -> Iterator[None]:
    """If what is done in it fails, keep the finished runs and say so; without any, remove the directory."""
    try:
        yield
    except BaseException as error:
        try:
            if not _remove_if_empty(directory):
                error.add_note(f"finished runs are kept in `{directory}`")
        except OSError as left:
            # What went wrong first is what to tell.
            error.add_note(f"`{left.filename}` cannot be removed: {left.strerror}")
        raise


def chosen_seeds(planned: Sequence[int], seed: int | None, runs: int | None) -> list[int]:
    """Seeds ``seed, seed + 1, ...``; what is not given is as planned."""
    if runs is not None and runs < 1:
        raise UsageError(f"`{runs}` runs make no experiment; give at least 1")
    if runs is not None and runs > MOST_RUNS:
        raise UsageError(f"`{runs}` runs are too many; give at most {MOST_RUNS}")
    first = planned[0] if seed is None else seed
    count = len(planned) if runs is None else runs
    if first < 0 or first + count - 1 >= 2**63:
        raise UsageError(f"the seed `{first}` is outside of 0 to 2^63 - 1")
    return list(range(first, first + count))


def _chosen_arms(planned: Sequence[dict[str, Any]], arms: Sequence[str] | None) -> list[dict[str, Any]]:
    if not arms:
        return list(planned)
    names = [arm["name"] for arm in planned]
    for arm in arms:
        if arm not in names:
            raise UsageError(f"there is no arm `{arm}`; there are {', '.join(f'`{name}`' for name in names)}")
    return [arm for arm in planned if arm["name"] in arms]


def job_count(jobs: int | None, called: str = "jobs") -> int:
    """So many threads; one a processor that we may use where the person has no wish."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs < 1:
        raise UsageError(f"`{jobs}` {called} make no progress; give at least 1")
    return jobs


def chosen_pcap_bytes(count: int | None) -> int:
    """Bytes to keep of each captured packet: at least an IP header, at most all of any packet."""
    if count is None:
        return DEFAULT_PCAP_BYTES
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
        "format_version": 1,
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

        for name in names:
            try:
                find(name)
            except UsageError as error:
                raise UsageError(f"{file}: metrics: {error}") from error


def _check_claims(plan: Mapping[str, Any], file: str) -> None:
    """A claim that cannot be scored is told before the runs too."""
    if plan["claims"]:
        from aqmlab.claims import Names, check_claims
        from aqmlab.plan import network

        networks = [network(arm["plan"]) for arm in plan["arms"]]
        names = Names.of_networks([arm["name"] for arm in plan["arms"]], (), networks)
        check_claims(plan["claims"], names, file)


def directory_name(about: Mapping[str, Any], now: datetime | None = None) -> str:
    """``20261121T193015Z-red-against-droptail-3fa9c1d2``: when, what, and a digest of all plans and seeds."""
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    named = json.dumps([[arm["digest"] for arm in about["arms"]], about["seeds"]])
    return f"{stamp}-{slug(about['title'])}-{sha256(named.encode()).hexdigest()[:8]}"


def slug(title: str) -> str:
    """A title as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].rstrip("-") or "experiment"


def free_directory(about: Mapping[str, Any]) -> Path:
    """A directory of our own choice; another of the same second gets a number."""
    first = DEFAULT_PARENT / directory_name(about)
    numbered = (first.with_name(f"{first.name}-{i}") for i in count(2))
    return next(path for path in chain([first], numbered) if not path.exists())


def make_directory(directory: Path, files: Mapping[str, str]) -> None:
    """Make a directory with these files by name, whole or not at all.

    Raises
    ------
    UsageError
        If it exists.
    HostError
        If it cannot be made.
    """
    if directory.exists() or directory.is_symlink():
        raise UsageError(f"`{directory}` exists already; an experiment is never overwritten")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{directory.name}.partial-", dir=directory.parent
        ) as parent:
            partial = Path(parent) / "experiment"
            partial.mkdir()
            for name, content in files.items():
                (partial / name).write_text(content, encoding="utf-8")
            partial.rename(directory)
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


def _failure(answer: Mapping[str, Any], directory: Path) -> RunError:
    first = answer["failed"][0]
    failed, total = len(answer["failed"]), len(answer["failed"]) + len(answer["finished"])
    kept = f"; the others are in `{directory}`" if answer["finished"] else ""
    return RunError(
        f"{failed} of {total} runs failed{kept}; the first: arm `{first['arm']}`, seed {first['seed']}:"
        f" {first['reason']}"
    )


__all__ = ["Experiment", "Progress", "RecordingError", "run"]
