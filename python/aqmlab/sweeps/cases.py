"""Cases, cells and tasks of a scenario: the runs to execute, each identified by its digest."""

from __future__ import annotations

import json
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from aqmlab.arguments import names as all_names
from aqmlab.arguments import whole
from aqmlab.errors import ScenarioError, UsageError
from aqmlab.language.scenario import Scenario, read
from aqmlab.recordings.plan import Plan
from aqmlab.results.cells import Cell, LeftOut, axes_of
from aqmlab.sweeps.task import LIVE, NO_CAPTURE, SIMULATOR, Capture, Task
from aqmlab.system.files import slug
from aqmlab.text.numbers import counted

MOST_RUNS = 1_000_000
"""Largest number of runs in a sweep, as in the scenario language."""
MOST_SEEDS = 100_000
"""Largest number of seeds per cell, as in the scenario language."""


@dataclass(frozen=True)
class Shard:
    """One of several equal parts of a sweep; each run's part follows from its digest, on every machine."""

    index: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """``"2/8"``: the second of eight.

        Raises
        ------
        UsageError
            If the text does not have this form.
        """
        first, slash, last = text.partition("/")
        if not (slash and first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
            raise UsageError(f"`{text}` is not a shard; write K/N: `1/4` to `4/4` are the four quarters")
        if not 1 <= int(first) <= int(last):
            raise UsageError(f"there is no shard `{text}`: the first is `1/{last}`, the last `{last}/{last}`")
        return Shard(int(first), int(last))

    def has(self, digest: str) -> bool:
        """Return whether a run belongs to this part."""
        return int(digest[:16], 16) % self.count == self.index - 1


@dataclass(frozen=True)
class PlannedCell:
    """One case with one arm.

    Attributes
    ----------
    case
        Number of the case.
    labels
        The swept values, in the order of the axes.
    arm, slug
        The name of the arm, and the name of the arm's directory in an experiment.
    plan_digest
        Digest of everything that determines the result except the seed and the program.
    parts
        The parts of the program that determine the result, each with its version.
    memory_bytes
        Minimum memory of each of its runs.
    end_ns
        Longest duration of each of its runs.
    weight
        Bits that its links can carry in a run; the time that a run of a given scenario takes is proportional
        to this.
    """

    case: int
    labels: tuple[str, ...]
    arm: str
    slug: str
    plan_digest: str
    parts: dict[str, int]
    memory_bytes: int
    end_ns: int
    weight: float


class Cases:
    """Everything that a scenario requests.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict; without a sweep it has one case.
    seed, runs
        The first seed, and the number of seeds; by default as in the scenario.
    arms
        Names of the arms, or one name; all if not given.
    host
        ``"sim"`` or ``"live"``: the host of the runs.
    capture
        The packets to keep.
    instead
        If sweeps are not accepted: the advice given for a scenario that has one.

    Attributes
    ----------
    text, file_name
        The scenario's text and where it came from.
    about
        ``title``, ``question``, ``metrics``, ``warnings``, ``arms``, ``axes``, ``claims``.
    seeds
        The seeds, which are the same in every cell.
    cells
        The cells, case by case; those of a case are in the order of the arms.
    left_out
        The cases that cannot run, because their values do not fit together.

    Raises
    ------
    ScenarioError
        If the scenario is invalid, if a value of an axis fits in no combination, or if no case can run.
    UsageError
        If the seeds are out of range, or a metric, arm or port is unknown.
    """

    def __init__(  # noqa: PLR0913 (keyword arguments)
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        runs: int | None = None,
        arms: str | Sequence[str] | None = None,
        host: str = SIMULATOR,
        capture: Capture = NO_CAPTURE,
        instead: str = "",
    ) -> None:
        from aqmlab import _core

        self.text, self.file_name = read(scenario)
        swept = _core.Sweep(self.text, self.file_name)
        self.about: dict[str, Any] = json.loads(swept.about())
        self.case_count = int(self.about["cases"])
        if instead and self.about["axes"]:
            count = counted(self.case_count, "case")
            raise UsageError(f"`{self.file_name}` has a [sweep] of {count}; {instead}")
        _check_metrics(self.about["metrics"], self.file_name)
        self.seeds = chosen_seeds(self.about["seeds"], seed, runs)
        self.all_arms: list[str] = self.about["arms"]
        self.about["arms"] = _chosen_arms(self.all_arms, arms)
        self._check_count()
        swept.check(self.file_name, self.about["arms"], host == SIMULATOR, list(capture.ports))
        self.host, self.capture = host, capture
        cells: list[PlannedCell] = []
        left_out: list[LeftOut] = []
        first_error: ScenarioError | None = None
        networks: dict[tuple[tuple[str, ...], ...], Plan] = {}
        self._texts: dict[int, bytes] = {}
        for i in range(self.case_count):
            try:
                case = json.loads(swept.case(i))
            except ScenarioError as error:
                # Each of its values fits elsewhere: only their combination is impossible.
                first_error = first_error or error
                reasons = "; ".join(problem["message"] for problem in error.errors)
                left_out.append(LeftOut(tuple(swept.labels(i)), reasons))
                continue
            plans = [Plan.of(arm["plan"]) for arm in case["arms"]]
            for plan in plans:
                named = tuple(tuple(entry.name for entry in part) for part in (plan.links, plan.classes))
                networks.setdefault(named, plan)
            # The scenarios of a sweep's cases are long and similar, so they compress well.
            text = case["toml"] if self.about["axes"] else self.text
            self._texts[i] = zlib.compress(text.encode())
            cells += [cell for cell in _cells(case, plans, host) if cell.arm in self.about["arms"]]
        if first_error is not None and not cells:
            raise first_error
        self.case_count -= len(left_out)
        self.left_out = tuple(left_out)
        self._check_claims(networks.values())
        self.cells = tuple(cells)
        self._digests: dict[tuple[int, str], tuple[str, ...]] = {}

    def _check_count(self) -> None:
        count = self.case_count * len(self.about["arms"]) * len(self.seeds)
        if count > MOST_RUNS:
            raise UsageError(
                f"{counted(self.case_count, 'case')} of {counted(len(self.about['arms']), 'arm')} with"
                f" {counted(len(self.seeds), 'seed')} each are {count} runs; at most {MOST_RUNS} are allowed:"
                " write shorter lists, or fewer runs"
            )

    def _check_claims(self, plans: Iterable[Plan]) -> None:
        """Report claims that could not be scored, before any run begins; they may name parts of any case."""
        if self.about["claims"]:
            from aqmlab.claims import Names, check_claims

            names = Names.of_plans(self.all_arms, axes_of(self.about), plans)
            check_claims(self.about["claims"], names, self.file_name)

    def digest(self, cell: PlannedCell, seed: int) -> str:
        """Return the name of a run in a store."""
        from aqmlab import _core

        return _core.run_digest(cell.plan_digest, seed, cell.parts)

    def digests(self, cell: PlannedCell) -> tuple[str, ...]:
        """The names of the runs of a cell, in the order of the seeds; each name is computed once."""
        key = cell.case, cell.arm
        if key not in self._digests:
            self._digests[key] = tuple(self.digest(cell, seed) for seed in self.seeds)
        return self._digests[key]

    def __iter__(self) -> Iterator[tuple[PlannedCell, int, str]]:
        """Iterate over the cell, seed and digest of each run, in the order of :meth:`runs`."""
        return self.runs()

    def runs(self, among: Container[Cell] | None = None) -> Iterator[tuple[PlannedCell, int, str]]:
        """Return the cell, seed and digest of every run in the cells ``among``; by default, in all cells.

        The runs are ordered by cell and then by seed. For live runs, all cells of a seed come before the next
        seed, so that gradual changes in the machine affect all cells alike.
        """
        cells = [cell for cell in self.cells if among is None or self.cell_of(cell) in among]
        if self.host == LIVE:
            pairs = ((cell, i) for i in range(len(self.seeds)) for cell in cells)
        else:
            pairs = ((cell, i) for cell in cells for i in range(len(self.seeds)))
        for cell, i in pairs:
            yield cell, self.seeds[i], self.digests(cell)[i]

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def cell_of(self, planned: PlannedCell) -> Cell:
        """Return the cell in the form that results use."""
        names = (axis.name for axis in axes_of(self.about))
        return Cell(tuple(zip(names, planned.labels, strict=True)), planned.arm)

    def task(self, cell: PlannedCell, seed: int) -> Task:
        """Return the description of a run for a worker."""
        digest = self.digest(cell, seed)
        return Task(
            digest=digest,
            name=digest,
            arm=cell.arm,
            seed=seed,
            toml=zlib.decompress(self._texts[cell.case]).decode(),
            file_name=self.file_name,
            memory_bytes=cell.memory_bytes,
            parts=cell.parts,
            host=self.host,
            pcap=self.capture.ports,
            pcap_bytes=self.capture.bytes,
        )

    @cached_property
    def name(self) -> str:
        """The name of the sweep's directory: its title, and a digest of all its runs."""
        named = sha256()
        for _, _, digest in self:
            named.update(digest.encode())
        host = f"-{LIVE}" if self.host == LIVE else ""
        return f"{slug(self.about['title'])}-{named.hexdigest()[:8]}{host}"


def chosen_seeds(planned: Sequence[int], seed: int | None, runs: int | None) -> list[int]:
    """Return the seeds ``seed, seed + 1, ...``; by default the scenario's."""
    seed = None if seed is None else whole(seed, "`seed`")
    runs = None if runs is None else whole(runs, "`runs`")
    if runs is not None and runs < 1:
        raise UsageError(f"`{runs}` runs are too few; give at least 1")
    if runs is not None and runs > MOST_SEEDS:
        raise UsageError(f"`{runs}` runs are too many; give at most {MOST_SEEDS}")
    first = planned[0] if seed is None else seed
    count = len(planned) if runs is None else runs
    if first < 0 or first + count - 1 >= 2**63:
        raise UsageError(f"the seed `{first}` is outside 0 to 2^63 - 1")
    return list(range(first, first + count))


def _chosen_arms(known: Sequence[str], arms: str | Sequence[str] | None) -> list[str]:
    wanted = all_names(arms)
    if not wanted:
        return list(known)
    for arm in wanted:
        if arm not in known:
            raise UsageError(
                f"there is no arm `{arm}`; the arms are {', '.join(f'`{name}`' for name in known)}"
            )
    return [arm for arm in known if arm in wanted]


def _check_metrics(names: Sequence[str], file: str) -> None:
    """Check names now, so that a wrong one is reported before the runs and not after them."""
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


def _cells(case: dict[str, Any], plans: Iterable[Plan], host: str) -> Iterable[PlannedCell]:
    from aqmlab import _core

    labels = tuple(str(label) for _, label in case["settings"])
    for arm, plan in zip(case["arms"], plans, strict=True):
        yield PlannedCell(
            case=int(case["index"]),
            labels=labels,
            arm=str(arm["name"]),
            slug=str(arm["slug"]),
            plan_digest=str(arm["digest"]),
            parts=_core.host_parts(arm["parts"], host),
            memory_bytes=int(arm["memory_bytes"]),
            end_ns=int(arm["end_ns"]),
            weight=sum(link.rate_bps for link in plan.links) * plan.end_ns / 1e9,
        )


__all__ = ["LIVE", "Cases", "PlannedCell", "Shard", "chosen_seeds"]
