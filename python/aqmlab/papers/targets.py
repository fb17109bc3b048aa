"""The distance of a reading from the published results: the error of each cell or finding, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from aqmlab.claims import Claim, Names
from aqmlab.claims.arithmetic import Floats
from aqmlab.claims.scan import MisplacedError
from aqmlab.claims.seeds import MetricValues, Point, SeedLeaves
from aqmlab.claims.values import Evaluator
from aqmlab.errors import UsageError
from aqmlab.metrics import find
from aqmlab.papers.expressions import ExpressionValues
from aqmlab.papers.inference_spec import table_of, target_name
from aqmlab.papers.measured_values import AskedValues, Queries
from aqmlab.papers.paper import Paper, Target
from aqmlab.papers.required_cells import by_default, queue_is_known
from aqmlab.papers.scoring import claim_of
from aqmlab.papers.tables import cell_expression

FARTHEST = {"log": math.log(10.0), "relative": 1.0}
"""Largest error of a cell, by distance: a factor of ten, or a difference as large as the published number."""
_SO, _NOT, _UNKNOWN = 0.0, 1.0, 0.5
"""The error of a finding for one seed if it holds, if it does not hold, and if that is unknown."""

Measured = Mapping[str, MetricValues]
"""Measured values, by the experiment's file."""


class Targets:
    """The published results that can be compared with a reading.

    Parameters
    ----------
    paper
        The paper; only its tables, its findings and its distance of cells are used.
    names
        The names that each experiment defines, by file.
    """

    def __init__(self, paper: Paper, names: Mapping[str, Names]) -> None:
        self._paper, self.names = paper, names
        self._findings = {finding.name: finding for finding in paper.findings}

    def queries(self, targets: Sequence[Target]) -> dict[str, Queries]:
        """Return the queries for every cell in every experiment.

        Raises
        ------
        ScenarioError
            If a target cannot be computed from its experiment.
        UsageError
            If the default queue depends on the runs.
        """
        asked = {file: AskedValues(names) for file, names in self.names.items()}
        for target in targets:
            try:
                self.ours(target, asked)
            except MisplacedError as error:
                raise UsageError(f"{target_name(target, self._paper.tables)}: {error}") from error
        found = {file: values.queries for file, values in asked.items() if values.queries}
        for file, queries in found.items():
            of_default = [
                what.metric
                for of_cell in queries.values()
                for what in of_cell
                if by_default(what.scope, find(what.metric))
            ]
            if of_default and not queue_is_known(self.names[file]):
                raise UsageError(
                    f"`{of_default[0]}` depends on a queue, but {file} has several queues and none called"
                    " `bottleneck`; name the queue: {queue=...}"
                )
        return found

    def _claims(self, target: Target) -> list[tuple[str, Claim]]:
        finding = self._findings[target.finding]
        return [(part.experiment, claim_of(finding, part)) for part in finding.parts]

    def _expression(self, target: Target) -> tuple[str, dict[str, str], str]:
        """Return the expression of a cell, its labels, and its name."""
        table, what = table_of(target, self._paper.tables), target_name(target, self._paper.tables)
        expression, where = cell_expression(
            table.value, table.rows[target.row], table.columns[target.column], what
        )
        return expression, where, what

    def ours(self, target: Target, measured: Measured) -> Floats:
        """Return one value per seed: a cell's own or, for a finding, 1 where it is true and 0 where false.

        NaN where undefined.
        """
        if target.finding:
            return self._truths(target, measured)
        table = table_of(target, self._paper.tables)
        asking = ExpressionValues(measured[table.experiment], self.names[table.experiment])
        found = asking.values(*self._expression(target))
        return np.array([math.nan if value is None else value for value in found.values()])

    def _truths(self, target: Target, measured: Measured) -> Floats:
        """Return, for each seed alone, whether all parts of a finding are true."""
        parts = [
            truth_of_each_seed(claim, measured[file], self.names[file])
            for file, claim in self._claims(target)
        ]
        stack = np.stack(parts)
        return np.where((stack == 0).any(axis=0), 0.0, np.where(np.isnan(stack).any(axis=0), math.nan, 1.0))

    def errors(self, target: Target, ours: Floats) -> Floats:
        """The error for each seed, from 0 to 1 for a finding, and to :data:`FARTHEST` for a cell."""
        if target.finding:
            return np.where(np.isnan(ours), _UNKNOWN, np.where(ours > 0, _SO, _NOT))
        published, least = self.published(target), table_of(target, self._paper.tables).both_below
        distance = self._paper.inference.distance
        return np.array([cell_error(value, published, distance, least) for value in ours])

    def published(self, target: Target) -> float:
        """The paper's number for a cell."""
        found = table_of(target, self._paper.tables).published[target.row][target.column]
        assert found is not None
        return found


def cell_error(ours: float, published: float, distance: str, least: float = 0.0) -> float:
    """Return the distance of a value from the published one.

    Parameters
    ----------
    ours
        Our value; NaN has the maximum distance.
    distance
        ``"log"``: the absolute logarithm of the ratio of the two. ``"relative"``: their absolute difference
        divided by the published value.
    least
        Smaller values count as this value.
    """
    farthest = FARTHEST[distance]
    if math.isnan(ours):
        return farthest
    if distance == "relative":
        ours, published = (value if abs(value) >= least else least for value in (ours, published))
        return min(abs(ours - published) / abs(published), farthest)
    ours, published = max(ours, least), max(published, least)
    return min(abs(math.log(ours / published)), farthest) if ours > 0 else farthest


def truth_of_each_seed(claim: Claim, measured: MetricValues, names: Names) -> Floats:
    """Return, for each seed alone, whether a claim is true: 1, 0, or NaN where it is not defined.

    A mean or a median over seeds is then the value of the single seed, and a share is 0 or 1; a standard
    deviation is not defined.
    """
    claim.check(names)
    leaves, bound = SeedLeaves(measured, names), claim.bound(names)
    found = []
    for i in range(len(measured.seeds)):
        alone = Point(leaves, names, np.array([i]))
        found.append(float(np.ravel(Evaluator(names, alone).truth(claim.tree, bound))[0]))
    return np.array(found)
