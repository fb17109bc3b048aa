"""Checks that a folder describes runnable experiments, without running them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from aqmlab.claims import Claim, Names, check_claims
from aqmlab.errors import AqmlabError, unknown
from aqmlab.papers.expressions import of_each_seed
from aqmlab.papers.figures import PRESETS
from aqmlab.papers.inference_spec import length_settings
from aqmlab.papers.names import names_of, swept
from aqmlab.papers.paper import Paper, PaperExperiment, PaperFigure, PublishedTable, Setting
from aqmlab.papers.scoring import claim_of, claims_of, missing_labels
from aqmlab.papers.tables import cell_expression
from aqmlab.papers.variants import Reading


def problems(paper: Paper) -> list[str]:
    """Describe the errors in a paper's folder; the result is empty if there are none.

    Every candidate except the chosen ones must change a plan and be runnable; the chosen ones must
    change none. Findings, tables, figures and the small versions must refer to existing parts of
    their experiments.
    """
    names = {experiment.file: names_of(paper, experiment) for experiment in paper.experiments}
    every = (*paper.settings, *length_settings(paper.inference))
    found = [*_settings(replace(paper, settings=every), names)]
    for experiment in paper.experiments:
        found += _thinned(paper, experiment, names[experiment.file])
    for finding in paper.findings:
        for part in finding.parts:
            found += _complaint(claim_of(finding, part), names[part.experiment])
    for table in paper.tables:
        found += _table(table, names[table.experiment])
    for figure in paper.figures:
        if figure.kind in PRESETS:
            found += _figure(figure, names[figure.experiment])
    return found


def _figure(figure: PaperFigure, names: Names) -> Iterator[str]:
    try:
        PRESETS[figure.kind].check(figure, names)
    except AqmlabError as error:
        yield str(error)


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
                of_each_seed(expression, where, what, names)
            except AqmlabError as error:
                yield f"{what}: {error}"


def _settings(paper: Paper, names: Mapping[str, Names]) -> Iterator[str]:
    base = {e.file: _digests(paper, e, {}) for e in paper.experiments}
    for setting in paper.settings:
        yield from _arms(paper, setting, names)
        for label in setting.candidates:
            # The chosen candidate is also applied, to verify that the files contain it.
            asked = replace(paper, settings=(replace(setting, chosen=""),))
            changed = False
            for experiment in paper.experiments:
                if not setting.changes(experiment.file, label):
                    continue
                try:
                    digests = _digests(asked, experiment, {setting.name: label})
                except AqmlabError as error:
                    yield f"setting {setting.name}, {label}: {experiment.file}: {error}"
                    changed = True
                    continue
                changed |= digests != base[experiment.file]
            if changed and label == setting.chosen:
                yield f"setting {setting.name}: {label} is marked as chosen, but the files do not contain it"
            if not changed and label != setting.chosen:
                yield f"setting {setting.name}: {label} changes nothing"


def _arms(paper: Paper, setting: Setting, names: Mapping[str, Names]) -> Iterator[str]:
    """Describe each arm that the setting names but that none of its experiments has."""
    files = [e for e in paper.experiments if not setting.experiments or e.file in setting.experiments]
    known = {arm for experiment in files for arm in names[experiment.file].arms}
    for label in setting.candidates:
        named = {arm for e in files for change in setting.changes(e.file, label) for arm in change.arms}
        for arm in sorted(named - known):
            yield f"setting {setting.name}, {label}: {unknown('arm', arm, sorted(known))}"


def _digests(paper: Paper, experiment: PaperExperiment, reading: Reading) -> list[str]:
    """Return digests of the plans of the first and the last case; a candidate must change at least one."""
    expanded = swept(paper, experiment, reading)
    count = int(json.loads(expanded.about())["cases"])
    cases = [json.loads(expanded.case(i)) for i in {0, count - 1}]
    return [arm["digest"] for case in cases for arm in case["arms"]]


def _thinned(paper: Paper, experiment: PaperExperiment, whole: Names) -> Iterator[str]:
    """Check the small version, and that findings lack nothing in it but labels that it leaves out."""
    if not experiment.quick.keep:
        return
    what = f"{experiment.file}: quick"
    try:
        claims = json.loads(swept(paper, experiment, {}, experiment.quick).about())["claims"]
        small = names_of(paper, experiment, experiment.quick)
        check_claims(claims, small)
    except AqmlabError as error:
        yield f"{what}: {error}"
        return
    for finding in paper.findings:
        for claim in claims_of([finding], experiment.file):
            if not missing_labels(claim, whole, small):
                yield from (f"{what}: {complaint}" for complaint in _complaint(claim, small))
