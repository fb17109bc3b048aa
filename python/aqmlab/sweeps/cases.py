"""Cases, cells and tasks of a scenario: what there is to run, each under its digest."""

from __future__ import annotations

import json
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from aqmlab.errors import UsageError
from aqmlab.experiment import check_metrics, chosen_seeds
from aqmlab.figures import counted
from aqmlab.files import slug
from aqmlab.plan import Plan
from aqmlab.results import Axis, Cell
from aqmlab.scenario import Scenario, read

MOST_RUNS = 1_000_000
"""Runs of a sweep, as in the scenario language."""


@dataclass(frozen=True)
class Task:
    """One run to do: all that a worker needs, on whatever machine.

    Attributes
    ----------
    digest
        Of the run: of its plan, its seed and the version of results.
    arm, seed
        Which run of the scenario text.
    toml
        The scenario of one case.
    file_name
        Where that came from, for messages; files that it names are looked for beside it.
    memory_bytes
        What the run will need at least.
    replace
        Whether it takes the place of a recording that is there, and damaged.
    """

    digest: str
    arm: str
    seed: int
    toml: str
    file_name: str
    memory_bytes: int
    replace: bool = False

    def to_json(self) -> dict[str, Any]:
        """The task as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> Task:
        """The task that :meth:`to_json` was of."""
        return Task(**content)


@dataclass(frozen=True)
class Shard:
    """One of several equal parts of a sweep: runs belong to it by their digests, wherever it is done."""

    index: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """``"2/8"``: the second of eight.

        Raises
        ------
        UsageError
            If it is no such thing.
        """
        first, slash, last = text.partition("/")
        if not (slash and first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
            raise UsageError(f"`{text}` is no shard; write K/N: `1/4` to `4/4` are the four quarters")
        if not 1 <= int(first) <= int(last):
            raise UsageError(f"there is no shard `{text}`: the first is `1/{last}`, the last `{last}/{last}`")
        return Shard(int(first), int(last))

    def has(self, digest: str) -> bool:
        """Whether a run is part of it."""
        return int(digest[:16], 16) % self.count == self.index - 1


@dataclass(frozen=True)
class PlannedCell:
    """A case under one arm.

    Attributes
    ----------
    case
        Number of the case.
    labels
        The swept values, in the order of the axes.
    arm
        The arm's name.
    plan_digest
        Of all that decides the result but the seed.
    memory_bytes
        What each of its runs needs at least.
    weight
        Bits that its links can carry in a run: what runs of one scenario take of time goes with it.
    """

    case: int
    labels: tuple[str, ...]
    arm: str
    plan_digest: str
    memory_bytes: int
    weight: float


class Cases:
    """Everything that a scenario asks for.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict; without a sweep it has one case.
    seed, runs
        The first seed and how many; as in the scenario if not given.

    Attributes
    ----------
    text, file_name
        The scenario's text and where it came from.
    about
        ``title``, ``question``, ``metrics``, ``warnings``, ``arms``, ``axes``, ``claims``.
    seeds
        The same in every cell.
    cells
        Case by case, and in each the arms.

    Raises
    ------
    ScenarioError
        If the scenario is wrong, in whatever case.
    UsageError
        If the seeds make no sense, or there is no metric of a name.
    """

    def __init__(self, scenario: Scenario, *, seed: int | None = None, runs: int | None = None) -> None:
        from aqmlab import _core

        self.text, self.file_name = read(scenario)
        swept = _core.Sweep(self.text, self.file_name)
        self.about: dict[str, Any] = json.loads(swept.about())
        check_metrics(self.about["metrics"], self.file_name)
        self.seeds = chosen_seeds(self.about["seeds"], seed, runs)
        self.case_count = int(self.about["cases"])
        count = self.case_count * len(self.about["arms"]) * len(self.seeds)
        if count > MOST_RUNS:
            raise UsageError(
                f"{counted(self.case_count, 'case')} of {counted(len(self.about['arms']), 'arm')} with"
                f" {counted(len(self.seeds), 'seed')} each are {count} runs; at most {MOST_RUNS} are allowed:"
                " write shorter lists, or fewer runs"
            )
        self.results_version: int = _core.RESULTS_VERSION
        cells = []
        networks: dict[tuple[tuple[str, ...], ...], dict[str, Any]] = {}
        self._texts: list[bytes] = []
        for i in range(self.case_count):
            case = json.loads(swept.case(i))
            for arm in case["arms"]:
                named = tuple(
                    tuple(str(entry["name"]) for entry in arm["plan"][key]) for key in ("links", "classes")
                )
                networks.setdefault(named, arm["plan"])
            # Texts of the cases of one sweep are long and alike.
            self._texts.append(zlib.compress(case["toml"].encode()))
            cells += list(_cells(case))
        self._check_claims(networks.values())
        self.cells = tuple(cells)

    def _check_claims(self, plans: Iterable[Mapping[str, Any]]) -> None:
        """A claim that cannot be scored is told before the runs; it may name what any case has."""
        if self.about["claims"]:
            from aqmlab.claims import Names, check_claims

            names = Names.of_plans(self.about["arms"], axes_of(self.about), map(Plan.of, plans))
            check_claims(self.about["claims"], names, self.file_name)

    def digest(self, cell: PlannedCell, seed: int) -> str:
        """The name of a run in a store."""
        from aqmlab import _core

        return _core.run_digest(cell.plan_digest, seed)

    def digests(self, cell: PlannedCell) -> list[str]:
        """The names of the runs of a cell, in the order of the seeds."""
        return [self.digest(cell, seed) for seed in self.seeds]

    def __iter__(self) -> Iterator[tuple[PlannedCell, int, str]]:
        """Cell, seed and digest of each run: cell by cell, and in each the seeds."""
        return self.runs()

    def runs(self, among: Container[Cell] | None = None) -> Iterator[tuple[PlannedCell, int, str]]:
        """The same of some of the cells only."""
        for cell in self.cells:
            if among is None or self.cell_of(cell) in among:
                for seed in self.seeds:
                    yield cell, seed, self.digest(cell, seed)

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def cell_of(self, planned: PlannedCell) -> Cell:
        """The cell, as results have it."""
        names = (axis.name for axis in axes_of(self.about))
        return Cell(tuple(zip(names, planned.labels, strict=True)), planned.arm)

    def task(self, cell: PlannedCell, seed: int) -> Task:
        """What a worker has to be told of a run."""
        return Task(
            digest=self.digest(cell, seed),
            arm=cell.arm,
            seed=seed,
            toml=zlib.decompress(self._texts[cell.case]).decode(),
            file_name=self.file_name,
            memory_bytes=cell.memory_bytes,
        )

    @cached_property
    def name(self) -> str:
        """What the sweep's directory is called: its title, and a digest of all its runs."""
        named = sha256()
        for _, _, digest in self:
            named.update(digest.encode())
        return f"{slug(self.about['title'])}-{named.hexdigest()[:8]}"


def axes_of(about: Mapping[str, Any]) -> tuple[Axis, ...]:
    """The axes of a scenario, as the core returns them and as ``sweep.json`` has them."""
    return tuple(
        Axis(str(axis["name"]), str(axis["short"]), tuple(axis["keys"]), tuple(map(str, axis["labels"])))
        for axis in about["axes"]
    )


def _cells(case: dict[str, Any]) -> Iterable[PlannedCell]:
    labels = tuple(str(label) for _, label in case["settings"])
    for arm in case["arms"]:
        rates = (link["rate_bps"] for link in arm["plan"]["links"])
        yield PlannedCell(
            case=int(case["index"]),
            labels=labels,
            arm=str(arm["name"]),
            plan_digest=str(arm["digest"]),
            memory_bytes=int(arm["memory_bytes"]),
            weight=sum(rates) * int(arm["end_ns"]) / 1e9,
        )


__all__ = ["Cases", "PlannedCell", "Shard", "Task", "axes_of"]
