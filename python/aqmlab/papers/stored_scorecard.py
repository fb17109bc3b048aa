"""A stored scorecard, whose texts can be written again without a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab.errors import RecordingError, ScenarioError, UsageError
from aqmlab.papers.causes import outcomes, read_causes
from aqmlab.papers.inference_json import read_inference
from aqmlab.papers.names import scenario_digest
from aqmlab.papers.paper import Finding, Paper, PublishedTable
from aqmlab.papers.scorecard import name_of
from aqmlab.papers.scorecard_json import Card, counts_json, reading_json, table_asked, texts_of
from aqmlab.papers.scoring import explanation


def stored_scorecard(paper: Paper, folder: Path, *, live: bool = False) -> dict[str, Any]:
    """Return a folder's scorecard with the current texts of the paper; what was measured stays.

    What an earlier version did not keep is absent. The outcomes of causes are those in ``causes.json``.

    Parameters
    ----------
    paper
        The paper, or its live part.
    folder
        The folder that contains the scorecard.
    live
        Whether it is the scorecard of the live experiments.

    Raises
    ------
    UsageError
        If the folder has no scorecard.
    RecordingError
        If the file is not a scorecard.
    ScenarioError
        If a scenario, or the statement of a finding or table, has changed since; the message gives its file,
        and its line where that is known.
    """
    file = folder / f"{name_of(live=live)}.json"
    again = f"`aqmlab paper {'live' if live else 'reproduce'} {paper.key} -o {folder}`"
    try:
        card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        stale = _Stale(f"since {file} was made on {card['date']}; run {again}")
        findings = _findings(paper, card["findings"], stale)
        causes = [] if live else read_causes(paper, folder)
        _check_tables(paper, card["tables"], stale)
        _check_scenarios(paper, card.get("scenarios", {}), stale)
        _check_reading(paper, card["reading"], stale)
        kept = {
            **card,
            **counts_json(entries := _retold(findings, causes)),
            "findings": entries,
            "tables": [entry | {"kind": _table(paper, entry, stale).kind} for entry in card["tables"]],
            "reading": reading_json(paper),
            "inference": None if live else _inference(paper, folder),
        }
        if live:
            twins = _findings(paper, card["live"]["simulated"], stale)
            kept["live"] = card["live"] | {"simulated": _retold(twins, [])}
    except FileNotFoundError:
        raise UsageError(
            f"{file} is missing: there is no scorecard to write again; first run {again}"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RecordingError(f"{file} is not a scorecard ({error!r}); repeat {again}") from None
    return kept


class _Stale:
    """Makes errors about what has changed since the scorecard was made."""

    def __init__(self, since: str) -> None:
        self._since = since

    def error(self, place: str, what: str) -> ScenarioError:
        """An error about a change at a place."""
        return ScenarioError(f"{place}: {what} {self._since}")


def statements_of(finding: Finding) -> list[tuple[str, str, Mapping[str, str]]]:
    """Return what decides the score of a finding: for each part, its experiment, expression and labels."""
    return [(part.experiment, " ".join(part.expect.split()), dict(part.where)) for part in finding.parts]


def statements_in(entry: Card) -> list[tuple[str, str, Mapping[str, str]]]:
    """Return the same from the entry of a finding in a scorecard."""
    return [(of["experiment"], " ".join(of["expect"].split()), of["where"]) for of in entry["statements"]]


def _findings(paper: Paper, entries: Sequence[Card], stale: _Stale) -> list[tuple[Finding, Card]]:
    """Return the findings of a scorecard in the order of the paper, each with its entry."""
    scored = {entry["name"]: entry for entry in entries}
    found = [(finding, scored.pop(finding.name)) for finding in paper.findings if finding.name in scored]
    expected = paper.path / "expected.toml"
    for name in scored:
        raise stale.error(str(expected), f"finding `{name}` is gone")
    for finding, entry in found:
        if statements_in(entry) != statements_of(finding):
            line = finding.parts[0].origin.line
            place = f"{expected}:{line}" if line else str(expected)
            raise stale.error(f"{place}: finding `{finding.name}`", "its statement has changed")
    return found


def _inference(paper: Paper, folder: Path) -> dict[str, Any] | None:
    content = read_inference(folder)
    return None if content is None else content | {"title": paper.title}


def _retold(findings: Sequence[tuple[Finding, Card]], causes: Sequence[Card]) -> list[dict[str, Any]]:
    retold = []
    for finding, entry in findings:
        explained = outcomes(finding, entry["status"], causes)
        texts = {**texts_of(finding), "explained": explained}
        retold.append({**entry, **texts, "explanation": explanation(finding, entry["status"], explained)})
    return retold


def _table(paper: Paper, entry: Card, stale: _Stale) -> PublishedTable:
    for table in paper.tables:
        if table.name == entry["name"]:
            return table
    raise stale.error(str(paper.path / "expected.toml"), f"table `{entry['name']}` is gone")


def _check_tables(paper: Paper, entries: Sequence[Card], stale: _Stale) -> None:
    for entry in entries:
        table = _table(paper, entry, stale)
        published = [[cell["published"] for cell in row["cells"]] for row in entry["rows"]]
        labels = [row["label"] for row in entry["rows"]], entry["columns"]
        same = published == [list(row) for row in table.published]
        same &= labels == (
            [row["label"] for row in table.rows],
            [column["label"] for column in table.columns],
        )
        same &= all(entry.get(key, value) == value for key, value in table_asked(table).items())
        if not same:
            raise stale.error(f"{paper.path / 'expected.toml'}: table `{table.name}`", "it has changed")


def _check_scenarios(paper: Paper, digests: Mapping[str, str], stale: _Stale) -> None:
    experiments = {experiment.file: experiment for experiment in paper.experiments}
    for file, digest in digests.items():
        if file not in experiments:
            raise stale.error(str(paper.path / file), "this experiment is gone")
        if scenario_digest(paper, experiments[file]) != digest:
            raise stale.error(str(paper.path / file), "what it runs has changed")


def _check_reading(paper: Paper, reading: Sequence[Card], stale: _Stale) -> None:
    chosen = {entry["setting"]: entry["chosen"] for entry in reading}
    for setting in paper.settings:
        if chosen.get(setting.name, setting.chosen) != setting.chosen:
            place = f"{paper.path / 'paper.toml'}: setting `{setting.name}`"
            raise stale.error(place, f"`chosen` has changed from `{chosen[setting.name]}`")
