"""Values of metrics that are measured once and stored per run, in place of the recording.

A search evaluates thousands of runs repeatedly. Reading recordings takes longer than simulating
short runs, and a recording takes half a megabyte. One line is therefore kept per run, with the
values of the requested metrics. Recordings are made in a temporary directory and removed after
reading.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

from aqmlab.claims import Names
from aqmlab.errors import HostError, UsageError
from aqmlab.metrics import Scope
from aqmlab.metrics.scope import Asked
from aqmlab.papers.paper import PaperExperiment, Thinned
from aqmlab.papers.runner import Runner
from aqmlab.papers.variants import Reading
from aqmlab.results.cells import Axis, Cell
from aqmlab.results.results import Curve

Value = float | None


Queries = Mapping[Cell, tuple[Asked, ...]]
"""The queries for each cell of an experiment."""


class ValueFile:
    """An append-only file with the values of each run and the duration of each request.

    Parameters
    ----------
    folder
        Its directory. The file's name contains a digest of the sources of all metrics, because changed
        metrics give different values.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"values-{_metrics_digest()}.jsonl"
        self._values: dict[str, dict[str, Value]] = {}
        self._seconds: dict[str, float] = {}
        for entry in self._lines():
            if "run" in entry:
                self._values.setdefault(entry["run"], {}).update(entry["values"])
            else:
                self._seconds[entry["request"]] = entry["seconds"]

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except OSError as error:
            raise HostError(f"cannot read `{self.file}`: {error.strerror}") from error
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # incomplete, as the writer was killed; the missing values are measured again

    def lacks(self, run: str, keys: Sequence[str]) -> bool:
        """Return whether some value of a run is missing."""
        known = self._values.get(run, {})
        return any(key not in known for key in keys)

    def of(self, run: str) -> Mapping[str, Value]:
        """Return the values of a run."""
        return self._values[run]

    def seconds(self, request: str) -> float:
        """Return the time that a request took when it was run; zero if it never was."""
        return self._seconds.get(request, 0.0)

    def add(self, runs: Mapping[str, Mapping[str, Value]], request: str, seconds: float) -> None:
        """Keep values, with the time that measuring them took."""
        lines = [{"run": run, "values": dict(values)} for run, values in runs.items()]
        text = "".join(json.dumps(line) + "\n" for line in [*lines, {"request": request, "seconds": seconds}])
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                # A truncated last line must not absorb the first new one.
                file.write("\n" * (file.tell() > 0) + text)
        except OSError as error:
            raise HostError(f"cannot write `{self.file}`: {error.strerror}") from error
        for run, values in runs.items():
            self._values.setdefault(run, {}).update(values)
        self._seconds[request] = seconds


def _metrics_digest() -> str:
    """Return a digest of the sources that define metrics."""
    from aqmlab import metrics
    from aqmlab.results import results

    files = [*sorted(Path(metrics.__file__).parent.glob("*.py")), Path(results.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


class _ValuesOnly:
    """Refuses queries that compare two recordings, because their values cannot be stored with one run."""

    def of_curves(self, function: str, one: Curve, other: Curve) -> dict[int, Value]:  # noqa: ARG002
        """Refuse the query.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(
            f"`{function}` compares two recordings, and a search keeps none; leave it out of `fit` and `test`"
        )


@dataclass(frozen=True)
class MeasuredValues(_ValuesOnly):
    """Values of one experiment under one reading; they are queried like :class:`aqmlab.Results`."""

    axes: tuple[Axis, ...]
    arms: tuple[str, ...]
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    found: Mapping[tuple[Cell, int], Mapping[str, Value]]

    def values(self, metric: str, cell: Cell, scope: Scope) -> dict[int, Value]:
        """Return a metric of a cell, by seed."""
        key = Asked(metric, scope).key
        return {seed: self.found[cell, seed][key] for seed in self.seeds}


class AskedValues(_ValuesOnly):
    """A stand-in for values that are not measured yet: it records what is queried.

    Parameters
    ----------
    names
        The names that the experiment defines.
    """

    def __init__(self, names: Names) -> None:
        self.axes, self.arms = names.axes, names.arms
        every = product(*(axis.labels for axis in names.axes))
        keys = [axis.name for axis in names.axes]
        self.cells = tuple(
            Cell(tuple(zip(keys, labels, strict=True)), arm) for labels in every for arm in names.arms
        )
        self.seeds = (0,)
        self.asked: dict[Cell, dict[str, Asked]] = {}

    def values(self, metric: str, cell: Cell, scope: Scope) -> dict[int, Value]:
        """Record the query, and return an arbitrary value."""
        asked = Asked(metric, scope)
        self.asked.setdefault(cell, {})[asked.key] = asked
        return {0: 1.0}

    @property
    def queries(self) -> Queries:
        """Return the queries of each cell, in the order of the cells."""
        return {cell: tuple(self.asked[cell].values()) for cell in self.cells if cell in self.asked}


@dataclass
class Measurer:
    """Measures experiments under readings unless their values are stored.

    Attributes
    ----------
    runner
        Runs experiments; its store is replaced by a temporary directory.
    folder
        The folder in which the values are kept.
    """

    runner: Runner
    folder: Path
    runs: int = 0

    def __post_init__(self) -> None:
        self._known = ValueFile(self.folder)

    def digests(
        self, experiment: PaperExperiment, reading: Reading, cells: Sequence[Cell], runs: int
    ) -> dict[tuple[Cell, int], str]:
        """Return the names of the runs of some cells, by cell and seed, without running anything.

        Raises
        ------
        ScenarioError
            If the reading cannot be run.
        """
        with self._scratch() as runner:
            cases = runner.cases(experiment, reading, Thinned(runs))
        planned = {cases.cell_of(cell): cell for cell in cases.cells}
        return {
            (cell, seed): digest
            for cell in cells
            for seed, digest in zip(cases.seeds, cases.digests(planned[cell]), strict=True)
        }

    def measure(
        self,
        experiment: PaperExperiment,
        reading: Reading,
        queries: Queries,
        names: Names,
        which: range,
    ) -> tuple[MeasuredValues, float]:
        """Return values for the scenario's seeds at positions ``which``, and the seconds that the runs took.

        Raises
        ------
        ScenarioError, UsageError, RunError
            If the reading cannot be run.
        """
        every = self.digests(experiment, reading, tuple(queries), which.stop)
        seeds = list(dict.fromkeys(seed for _, seed in every))[which.start :]
        keys = {cell: [query.key for query in asked] for cell, asked in queries.items()}
        named = sorted(f"{every[cell, s]} {sorted(keys[cell])}" for cell in queries for s in seeds)
        request = hashlib.sha256("\n".join(named).encode()).hexdigest()[:16]

        def lacking(seed: int) -> frozenset[Cell]:
            return frozenset(c for c in queries if self._known.lacks(every[c, seed], keys[c]))

        began = time.monotonic()
        fresh: dict[str, dict[str, Value]] = {}
        for cells, group in groupby(seeds, key=lacking):
            if not cells:
                continue
            together = list(group)
            for cell, seed, values in self._run(experiment, reading, queries, cells, together):
                fresh[every[cell, seed]] = values
        if fresh:
            self._known.add(fresh, request, round(time.monotonic() - began, 3))
        found = {(cell, seed): self._known.of(every[cell, seed]) for cell in queries for seed in seeds}
        measured = MeasuredValues(names.axes, names.arms, tuple(queries), tuple(seeds), found)
        return measured, self._known.seconds(request)

    def _run(
        self,
        experiment: PaperExperiment,
        reading: Reading,
        queries: Queries,
        cells: frozenset[Cell],
        seeds: Sequence[int],
    ) -> Iterator[tuple[Cell, int, dict[str, Value]]]:
        """Run some cells with some seeds, and read the requested values."""
        with self._scratch() as runner:
            results = runner.results(experiment, reading, Thinned(len(seeds)), cells, seeds[0])
            self.runs += len(results.runs)
            for cell in queries:
                if cell in cells:
                    asked = {
                        query.key: results.values(query.metric, cell, query.scope) for query in queries[cell]
                    }
                    for seed in seeds:
                        yield cell, seed, {key: of_seed[seed] for key, of_seed in asked.items()}

    @contextmanager
    def _scratch(self) -> Iterator[Runner]:
        """A runner that deletes its recordings at the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="runs-", dir=self.folder))
        try:
            yield replace(self.runner, store=directory, _done={})
        except KeyboardInterrupt as stop:
            # The runs of this reading are not kept, whatever the sweep reports about its store.
            stop.__notes__ = [
                f"measured values are kept in `{self._known.file}`; run the same command again to continue"
            ]
            raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)


__all__ = ["Asked", "AskedValues", "MeasuredValues", "Measurer", "Queries", "ValueFile"]
