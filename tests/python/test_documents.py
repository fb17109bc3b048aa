"""What the documents show is what comes out today."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from aqmlab.papers.folder import papers
from aqmlab.papers.reproduce import Wanted, choose

ROOT = Path(__file__).parents[2]
METRICS = {
    "mean queueing delay [ms]": "queueing delay, mean [ms]",
    "goodput [Mbit/s]": "goodput [Mbit/s]",
    "drops [%]": "drops [%]",
}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_the_table_of_the_readme_is_that_of_the_demonstration():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| arm |"))
    heads, *rows = [cells(line) for line in lines[start : start + 6] if not line.startswith("|---")]
    assert [row[0] for row in rows] == ["DropTail", "RED", "Adaptive RED", "Adaptive RED + ECN"]
    shown = (ROOT / "docs" / "tutorials" / "first-figure.md").read_text(encoding="utf-8")
    table = [line.split("  ") for line in shown.splitlines()]
    table = [[cell.strip() for cell in line if cell.strip()] for line in table]
    arms = next(line for line in table if "gentle RED + ECN" in line)
    for column, head in enumerate(heads[1:], start=1):
        values = next(line for line in table if line and line[0] == METRICS[head] and len(line) == 8)
        for row in rows:
            assert row[column] == values[1 + arms.index(row[0])]


def test_the_readme_counts_the_findings_that_the_scorecards_count():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    cards = sorted((ROOT / "papers").glob("*/scorecard.json"))
    counted = [json.loads(card.read_text(encoding="utf-8"))["counts"]["firm"] for card in cards]
    said = {(int(holds), int(of)) for holds, of in re.findall(r"(\d+) of (\d+)", readme)}
    assert {(counts["holds"], sum(counts.values())) for counts in counted} <= said


def test_documents_made_of_data_are_current():
    command = [sys.executable, "tools/pages.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_outputs_in_the_documents_are_those_of_today():
    command = [sys.executable, "tools/outputs.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_command_of_the_artifact_names_what_its_paper_has():
    text = (ROOT / "ARTIFACT.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(aqmlab reproduce .*?)` \| (?:-|< 1|\d+) \| \S.* \|$", text, re.MULTILINE)
    asked = {}
    for row in rows:
        _, _, key, option, name = shlex.split(row)
        asked.setdefault(key, []).append((option, name))
    for paper in papers():
        found = asked.pop(paper.key)
        assert len(found) == len(paper.findings) + len(paper.tables) + len(paper.figures)
        for option, name in found:
            kind = option.removeprefix("--")
            findings, tables, figures = choose(paper, Wanted(**{f"{kind}s": [name]}))
            assert name in {"finding": [f.name for f in findings], "table": [t.name for t in tables]}.get(
                kind, [f.name for f in figures]
            )
    assert not asked
