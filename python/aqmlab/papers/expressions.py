"""Evaluates expressions of claims as numbers, for the cells of tables and the classification of seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aqmlab.claims import Claim, Names
from aqmlab.claims.check import Level, kind_of
from aqmlab.claims.seeds import MetricValues, SeedLeaves
from aqmlab.claims.tree import Compare, Expression
from aqmlab.claims.values import Evaluator
from aqmlab.errors import ScenarioError


def of_each_seed(
    expression: str, where: Mapping[str, str], what: str, names: Names
) -> tuple[Expression, dict[str, str]]:
    """Return an expression that has a value for each seed, and ``where`` with the full names of its axes.

    Raises
    ------
    ScenarioError
        If the expression is invalid or has one value for all seeds.
    """
    claim = Claim(what, f"{expression} >= 0", where=where)
    claim.check(names)
    bound = claim.bound(names)
    tree = claim.tree
    assert isinstance(tree, Compare)
    if kind_of(tree.first, names, bound).level > Level.SEED:
        raise ScenarioError(
            f"{what}: `{expression}` has one value for all seeds; write one that has a value per seed"
        )
    return tree.first, bound


class ExpressionValues:
    """Values of expressions over one experiment's results, seed by seed.

    Parameters
    ----------
    results
        Results of the experiment, or its measured values.
    names
        The names that expressions about the experiment may use.
    """

    def __init__(self, results: MetricValues, names: Names) -> None:
        self._results = results
        self._names = names
        self._evaluator = Evaluator(self._names, SeedLeaves(results, self._names))

    def values(self, expression: str, where: Mapping[str, str], what: str) -> dict[int, float | None]:
        """The value of an expression for each seed, in the unit used in files; ``None`` where undefined.

        Parameters
        ----------
        expression
            An expression in the grammar of claims: ``goodput_bps{class=ftp} / 1e6``.
        where
            Labels that apply to the whole expression, by axis.
        what
            The name of the expression in messages.

        Raises
        ------
        ScenarioError
            If the expression is invalid.
        """
        asked, bound = of_each_seed(expression, where, what, self._names)
        unit = kind_of(asked, self._names, bound).unit
        found = self._by_seed(self._evaluator.value(asked, bound))
        return {seed: None if value is None else unit.written_value(value) for seed, value in found.items()}

    def unit(self, expression: str, where: Mapping[str, str], what: str) -> str:
        """The unit of these values; differences of percentages also have the unit ``%``."""
        asked, bound = of_each_seed(expression, where, what, self._names)
        return kind_of(asked, self._names, bound).unit.written()

    def truths(self, condition: str, where: Mapping[str, str], what: str) -> dict[int, bool | None]:
        """Return, for each seed, whether a condition is true; ``None`` where it is undefined.

        Raises
        ------
        ScenarioError
            If the condition is invalid or contains a figure over the seeds.
        """
        claim = Claim(what, condition, where=where)
        claim.check(self._names, of_each_seed=True)
        found = self._by_seed(self._evaluator.truth(claim.tree, claim.bound(self._names)))
        return {seed: None if value is None else value > 0.5 for seed, value in found.items()}

    def _by_seed(self, found: object) -> dict[int, float | None]:
        import numpy as np

        values = np.broadcast_to(np.asarray(found, dtype=np.float64), len(self._results.seeds))
        pairs = zip(self._results.seeds, values, strict=True)
        return {seed: None if math.isnan(value) else float(value) for seed, value in pairs}
