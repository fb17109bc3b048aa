"""Whether a folder says what can be run: nothing is run for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from aqmlab.claims import Claim, Names
from aqmlab.errors import AqmlabError
from aqmlab.papers.folder import Paper, PaperExperiment, PublishedTable, Thinned
from aqmlab.papers.reproduce import claim_of
from aqmlab.papers.tables import cell_expression
from aqmlab.papers.variants import Reading, variant
from aqmlab.plan import Network, network
from aqmlab.results import Axis


def problems(paper: Paper) -> list[str]:
    """What is wrong with a folder, in words; empty if nothing is.

    Every candidate must change a plan and be runnable, the chosen ones must change none; findings, tables,
    figures, and what the small versions keep must be askable of their experiments.
    """
    found = [*_settings(paper)]
    for experiment in paper.experiments:
        found += _thinned(paper, experiment)
    names = {experiment.file: _names(paper, experiment) for experiment in paper.experiments}
    for finding in paper.findings:
        for part in finding.parts:
            found += _complaint(claim_of(finding, part), names[part.experiment])
    for table in paper.tables:
        found += _table(table, names[table.experiment])
    for figure in paper.figures:
        if figure.kind == "sweep":
            where = {str(k): str(v) for k, v in figure.content.get("where", {}).items()}
            label = names[figure.experiment].labels(_key(names[figure.experiment], str(figure.content["x"])))[
                0
            ]
            arm = str(next(iter(figure.content.get("arms", names[figure.experiment].arms))))
            other = figure.content.get("curves")
            if other:
                where[str(other)] = names[figure.experiment].labels(
                    _key(names[figure.experiment], str(other))
                )[0]
            where |= {str(figure.content["x"]): label, "arm": arm}
            claim = Claim(f"figure {figure.name}", f"{figure.content['y']} >= 0", where=where)
            found += _complaint(claim, names[figure.experiment])
    return found


def _key(names: Names, axis: str) -> str:
    from aqmlab.claims.tree import label

    return names.key(label(axis))


def _complaint(claim: Claim, names: Names) -> list[str]:
    try:
        claim.check(names)
    except AqmlabError as error:
        return [f"{claim.name}: {error}"]
    return []


def _table(table: PublishedTable, names: Names) -> Iterator[str]:
    for row in table.rows:
        for column in table.columns:
            what = f"table {table.name}, {row['label']}, {column['label']}"
            try:
                expression, where = cell_expression(table.value, row, column, what)
                yield from _complaint(Claim(what, f"{expression} >= 0", where=where), names)
            except AqmlabError as error:
                yield f"{what}: {error}"


def _settings(paper: Paper) -> Iterator[str]:
    base = {e.file: _digests(paper, e, {}) for e in paper.experiments}
    for setting in paper.settings:
        for label in setting.candidates:
            # Also the chosen one is put in, to see that the files hold it.
            asked = replace(paper, settings=(replace(setting, chosen=""),))
            changed = False
            for experiment in paper.experiments:
                if not setting.keys(experiment.file, label):
                    continue
                try:
                    digests = _digests(asked, experiment, {setting.name: label})
                except AqmlabError as error:
                    yield f"setting {setting.name}, {label}: {experiment.file}: {error}"
                    changed = True
                    continue
                changed |= digests != base[experiment.file]
            if changed and label == setting.chosen:
                yield f"setting {setting.name}: {label} is said to be chosen, but the files do not hold it"
            if not changed and label != setting.chosen:
                yield f"setting {setting.name}: {label} changes nothing"


def _digests(paper: Paper, experiment: PaperExperiment, reading: Reading) -> list[str]:
    """The plans of the first and the last case: a candidate shows in each of them."""
    swept = _swept(paper, experiment, reading, Thinned())
    count = int(json.loads(swept.about())["cases"])
    cases = [json.loads(swept.case(i)) for i in {0, count - 1}]
    return [arm["digest"] for case in cases for arm in case["arms"]]


def _thinned(paper: Paper, experiment: PaperExperiment) -> list[str]:
    try:
        variant(paper, experiment, {}, experiment.quick)
    except AqmlabError as error:
        return [f"{experiment.file}: quick: {error}"]
    return []


def _swept(paper: Paper, experiment: PaperExperiment, reading: Reading, thinned: Thinned) -> Any:  # noqa: ANN401
    from aqmlab import _core

    file: Path = paper.path / experiment.file
    return _core.Sweep(variant(paper, experiment, reading, thinned), str(file))


def _names(paper: Paper, experiment: PaperExperiment) -> Names:
    swept = _swept(paper, experiment, {}, Thinned())
    about = json.loads(swept.about())
    axes = [Axis(a["name"], a["short"], tuple(a["keys"]), tuple(a["labels"])) for a in about["axes"]]
    networks: list[Network] = [
        network(arm["plan"]) for i in range(int(about["cases"])) for arm in json.loads(swept.case(i))["arms"]
    ]
    return Names.of_networks(about["arms"], axes, networks)
