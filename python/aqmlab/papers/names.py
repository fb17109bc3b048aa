"""The names of a paper's experiment, without a run: arms, axes and labels, queues and classes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from aqmlab.claims import Names
from aqmlab.papers.paper import Paper, PaperExperiment, Thinned
from aqmlab.papers.variants import Reading, variant
from aqmlab.recordings.plan import Plan
from aqmlab.results.cells import Axis, Cell

AS_IT_STANDS = Thinned()


def swept(
    paper: Paper, experiment: PaperExperiment, reading: Reading, thinned: Thinned = AS_IT_STANDS
) -> Any:  # noqa: ANN401 (the core's class)
    """Return an experiment under a reading, thinned if requested, as a sweep that is expanded case by case.

    Raises
    ------
    ScenarioError
        If the experiment cannot be run.
    """
    from aqmlab import _core

    text = variant(paper, experiment, reading, thinned)
    return _core.Sweep(text, str(paper.path / experiment.file))


def names_of(paper: Paper, experiment: PaperExperiment, thinned: Thinned = AS_IT_STANDS) -> Names:
    """Return the names that claims about the experiment, or a smaller version of it, may use."""
    expanded = swept(paper, experiment, {}, thinned)
    about = json.loads(expanded.about())
    axes = [Axis(a["name"], a["short"], tuple(a["keys"]), tuple(a["labels"])) for a in about["axes"]]
    cases = (json.loads(expanded.case(i)) for i in range(int(about["cases"])))
    plans = (Plan.of(arm["plan"]) for case in cases for arm in case["arms"])
    return Names.of_plans(about["arms"], axes, plans)


def scenario_digest(paper: Paper, experiment: PaperExperiment) -> str:
    """Return a digest of the plans of an experiment's cells, which comments and titles do not change."""
    expanded = swept(paper, experiment, {})
    cases = (json.loads(expanded.case(i)) for i in range(int(json.loads(expanded.about())["cases"])))
    plans = [[case["settings"], [[arm["name"], arm["digest"]] for arm in case["arms"]]] for case in cases]
    return hashlib.sha256(json.dumps(plans).encode()).hexdigest()[:16]


def selected(names: Names, arms: Sequence[str], where: Mapping[str, str]) -> Iterator[Cell]:
    """Yield the cells of these arms at these labels of axes."""
    labels = [
        [(axis.name, label) for label in axis.labels if label == where.get(axis.name, label)]
        for axis in names.axes
    ]
    return (Cell(settings, arm) for settings in product(*labels) for arm in arms)
