"""Findings that do not hold, scored again under the readings that may explain them: ``causes.md``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab.errors import RecordingError, UsageError
from aqmlab.papers.names import scenario_digest
from aqmlab.papers.paper import Finding, Paper, Thinned
from aqmlab.papers.readings import Scorer
from aqmlab.papers.runner import Runner
from aqmlab.papers.scorecard_text import markdown_table
from aqmlab.papers.scoring import ScoredFinding, evidence, reading_text
from aqmlab.papers.variants import Reading
from aqmlab.system.files import save

FILE = "causes.json"
"""The name of the file in a paper's folder."""


def score_causes(
    findings: Sequence[Finding], runner: Runner
) -> Iterator[tuple[Reading, list[ScoredFinding]]]:
    """Score findings under the readings named as their causes, reading by reading.

    These verdicts are not part of the score. A finding's ``cause_seeds`` determines the number of seeds; if
    it has none, that of the paper's multiverse does.
    """
    groups: dict[tuple[int, tuple[tuple[str, str], ...]], list[Finding]] = {}
    for finding in findings:
        for cause in finding.causes:
            runs = runner.paper.multiverse.for_causes(finding).runs
            groups.setdefault((runs, tuple(cause.items())), []).append(finding)
    for (runs, choices), of_cause in groups.items():
        reading = dict(choices)
        versions = {e.file: Thinned(runs) for e in runner.paper.experiments}
        scored = Scorer(runner, versions).scored(reading, of_cause)
        yield reading, [one for one in scored if one is not None]
        runner.forget()


def to_explain(
    paper: Paper, folder: Path, among: Sequence[Finding]
) -> list[tuple[Finding, Mapping[str, Any]]]:
    """Return the findings that name causes and do not hold, each with its entry from the folder's scorecard.

    Raises
    ------
    UsageError
        If the folder has no scorecard.
    """
    file = folder / "scorecard.json"
    command = f"`aqmlab paper reproduce {paper.key} -o {folder}`"
    try:
        scored = {entry["name"]: entry for entry in json.loads(file.read_text(encoding="utf-8"))["findings"]}
    except FileNotFoundError:
        raise UsageError(
            f"{file} is missing: there is no scorecard to explain; first run {command}"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise RecordingError(f"{file} is not a scorecard ({error}); repeat {command}") from None
    return [
        (finding, scored[finding.name])
        for finding in among
        if finding.causes and scored.get(finding.name, {"status": "holds"})["status"] != "holds"
    ]


def explained(
    paper: Paper,
    finding: Finding,
    entry: Mapping[str, Any],
    scored: Sequence[tuple[Reading, ScoredFinding]],
    made: Mapping[str, str],
) -> dict[str, Any]:
    """Return the entry of a finding in ``causes.json``.

    Parameters
    ----------
    paper, finding
        The paper, and the finding.
    entry
        Its entry in the scorecard.
    scored
        Its score under each of its causes that was tried.
    made
        The facts about its creation: ``version``, ``commit``, ``date``.
    """
    tried = {tuple(cause.items()): one for cause, one in scored}
    return {
        "name": finding.name,
        "text": finding.text,
        "expect": [part.expect for part in finding.parts],
        "scenarios": _digests(paper, [finding]),
        "status": entry["status"],
        "evidence": entry["evidence"],
        **made,
        "causes": [
            {"reading": dict(cause), "status": one.status, "evidence": list(evidence(one))}
            for cause in finding.causes
            if (one := tried.get(tuple(cause.items()))) is not None
        ],
    }


def add(paper: Paper, folder: Path, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add findings' entries to the folder's files, replacing earlier ones, and return their content.

    Entries that are no longer about the paper are dropped.

    Raises
    ------
    RecordingError
        If the folder's file is not a valid file of causes.
    """
    return _write(paper, folder, [*read_causes(paper, folder), *entries])


def rewrite(paper: Paper, folder: Path) -> dict[str, Any]:
    """Write the folder's files again with the current texts, if they exist; return their content."""
    return _write(paper, folder, read_causes(paper, folder))


def _write(paper: Paper, folder: Path, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kept = {one["name"]: one for one in entries}
    findings = [{**kept[f.name], "text": f.text} for f in paper.findings if f.name in kept]
    content = {"format_version": 1, "paper": paper.key, "findings": findings}
    if not findings and not (folder / FILE).exists():
        return content
    save(folder / FILE, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    save(folder / "causes.md", causes_markdown(paper, content))
    return content


def read_causes(paper: Paper, folder: Path) -> list[dict[str, Any]]:
    """Return the entries of the folder's ``causes.json``.

    An entry of which the statement or scenario has changed since is left out.

    Raises
    ------
    RecordingError
        If the file is not a valid file of causes.
    """
    file = folder / FILE
    if not file.exists():
        return []
    try:
        found = {one["name"]: one for one in json.loads(file.read_text(encoding="utf-8"))["findings"]}
        findings = [f for f in paper.findings if f.name in found]
        stated = [f for f in findings if found[f.name]["expect"] == [part.expect for part in f.parts]]
        of = _digests(paper, stated)
        return [found[f.name] for f in stated if found[f.name].get("scenarios") == _those_of(f, of)]
    except (ValueError, LookupError, TypeError) as error:
        raise RecordingError(f"{file} is damaged ({error}); remove it, and repeat the command") from None


def _digests(paper: Paper, findings: Sequence[Finding]) -> dict[str, str]:
    """Return the digests of the scenarios of all these findings' experiments."""
    files = dict.fromkeys(part.experiment for finding in findings for part in finding.parts)
    return {file: scenario_digest(paper, paper.experiment(file)) for file in files}


def _those_of(finding: Finding, digests: Mapping[str, str]) -> dict[str, str]:
    return {part.experiment: digests[part.experiment] for part in finding.parts}


def outcomes(finding: Finding, status: str, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the score of a finding under each reading that is named as its cause and was tried.

    Parameters
    ----------
    finding
        The finding.
    status
        Its score; if it holds, there is nothing to explain.
    entries
        What :func:`read_causes` returns.
    """
    if status == "holds":
        return []
    causes = (cause for one in entries if one["name"] == finding.name for cause in one["causes"])
    told = {tuple(cause["reading"].items()): cause["status"] for cause in causes}
    return [
        {"reading": dict(cause), "status": told[key]}
        for cause in finding.causes
        if (key := tuple(cause.items())) in told
    ]


def causes_markdown(paper: Paper, content: Mapping[str, Any]) -> str:
    """Return ``causes.md``: for each finding, its score under each reading, with the decisive comparisons."""
    lines = [
        f"# Causes: {paper.title}",
        "",
        "Findings that fail or are undecided in the scorecard, scored again with one or a few settings"
        " changed and all else the same. Each such change gives a reading. A reading under which a finding"
        " holds explains why the finding does not hold in the scorecard, but is not part of the score. The"
        " measurements shown are the comparisons that decide: the clearest failures of a finding that fails,"
        " or the narrowest successes of one that holds.",
        "",
        f"Written by `aqmlab paper causes {paper.key}`; all are also in `{FILE}`.",
        "",
        *markdown_table(
            ("finding", "scorecard", "holds with"),
            [(one["name"], one["status"], _holding(one) or "none") for one in content["findings"]],
        ),
    ]
    for one in content["findings"]:
        lines += [
            "",
            f"## {one['name']}: {one['text']}",
            "",
            f"Scored on {one['date']} by aqmlab {one['version']} (commit {one['commit']}).",
            "",
            *markdown_table(
                ("reading", "score", "what was measured"),
                [
                    _row("the scorecard's", one),
                    *(_row(reading_text(cause["reading"]), cause) for cause in one["causes"]),
                ],
            ),
        ]
    return "\n".join(lines) + "\n"


def _holding(one: Mapping[str, Any]) -> str:
    return "; ".join(reading_text(cause["reading"]) for cause in one["causes"] if cause["status"] == "holds")


def _row(reading: str, scored: Mapping[str, Any]) -> tuple[str, str, str]:
    status = f"**{scored['status']}**" if scored["status"] == "holds" else scored["status"]
    return reading, status, "<br>".join(scored["evidence"])
