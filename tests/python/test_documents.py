"""The outputs in the documents are those that the programs currently print."""

from __future__ import annotations

import json
import re
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


@pytest.mark.parametrize("tool", ["pages", "which_aqm", "then_and_now"])
def test_documents_made_of_data_are_current(tool):
    command = [sys.executable, f"tools/{tool}.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_outputs_in_the_documents_are_those_of_today():
    command = [sys.executable, "tools/outputs.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_artifact_names_what_each_paper_has():
    text = (ROOT / "ARTIFACT.md").read_text(encoding="utf-8")
    for paper, section in zip(papers(), text.split("\n## ")[1:], strict=True):
        assert section.startswith(paper.title)
        assert f"`aqmlab paper reproduce {paper.key}`" in " ".join(section.split())
        rows = dict(re.findall(r"^\| `--(finding|table|figure)` \| (.*) \|$", section, re.MULTILINE))
        names = {option: re.findall(r"`([^`]+)`", row) for option, row in rows.items()}
        assert sum(map(len, names.values())) == len(paper.findings) + len(paper.tables) + len(paper.figures)
        for option, listed in names.items():
            for name in listed:
                findings, tables, figures = choose(paper, Wanted(**{f"{option}s": [name]}))
                chosen = {"finding": findings, "table": tables, "figure": figures}[option]
                assert [one.name for one in chosen] == [name]


MARKER = re.compile(r"^\s*(?:[-*+]|\d+\.) ")
IN_A_LINE = re.compile(
    r"(?:[.:;!?]|, or|, and) - (?=[A-Za-z`*\[\"])|\) - (?=[A-Z`*])|[.:;!?)] \d+\. (?=\*\*|[A-Z`])|\S ```"
)


COMMAND_AFTER_A_COMMENT = re.compile(r"(?:^|\s)# .*\s(?:aqmlab|make|cargo|pip|git|parallel) [a-z-]")


def broken(text: str) -> list[str]:
    """The places that careless re-wrapping has damaged, each as `line: damage`."""
    found: list[str] = []
    fence, before = False, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fence = not fence
        elif not fence and not line.startswith("    ") and not line.startswith("|"):
            item = MARKER.match(line) is not None
            prose = re.sub(r"`[^`]*`", "``", line)
            if item and before.strip() and not MARKER.match(before) and not before.startswith((" ", "#")):
                found.append(f"{number}: a list without an empty line before it")
            if IN_A_LINE.search(prose) or prose.endswith((". -", "; -", ": -")):
                found.append(f"{number}: a list item within a line")
            if re.search(r"\]\([^)\s]*$", prose) or (before.endswith("]") and prose.startswith("(")):
                found.append(f"{number}: a link across lines")
            if before.startswith("|") and line.strip():
                found.append(f"{number}: a row of a table without its bar")
        elif not fence and line.startswith("|") and before.startswith("|"):
            bars = [len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in (before, line)]
            if bars[0] != bars[1]:
                found.append(f"{number}: a row of a table with {bars[1]} bars below one with {bars[0]}")
        elif (fence or line.startswith("    ")) and COMMAND_AFTER_A_COMMENT.search(line):
            found.append(f"{number}: a command behind the comment of another")
        before = line
    return [*found, "a block of code without an end"] if fence else found


def test_no_list_table_link_or_block_is_broken():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    wrong = [f"{name}:{at}" for name in names for at in broken((ROOT / name).read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "3. The fixed candidate stays. 4. **More seeds** for the best.",
        "- It was found by a search. - Its error is small.",
        "- One. -\n  Two.",
        "it takes none and\n\n- is lost, or - continues",
        "The limits:\n- one",
        "Run this: ```aqmlab demo```",
        "See [the\nguide](docs/\nguide.md).",
        "See [the guide]\n(guide.md).",
        "| a | b |\n|---|---|\n| 1 | 2\nand more |",
        "| a | b |\n|---|---|\n| 1 |",
        "```\nnever closed",
        "Run:\n\n    make demo # the demonstration make test # the tests",
    ],
)
def test_what_a_careless_wrapping_breaks_is_found(text):
    assert broken(text)


@pytest.mark.parametrize(
    "text",
    [
        "The sum `a. - b` and 1 - x.\n\n- One.\n- Two, by\n  section 3. The rest.\n\n1. A `2. B`\n2. C.",
        "| a | `x|y` |\n|---|---|\n| 1 \\| 2 | 3 |\n\n```\n- a. - b\n```\n",
        "See [the\nguide](guide.md).",
        "Run:\n\n    make demo     # the demonstration\n    make test     # the tests",
    ],
)
def test_sound_markdown_is_left_alone(text):
    assert not broken(text)


NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:\.rs|\.py|\.js|\.md|/))`")
"""A file or folder that a text names, by its full path or by the end of it."""


def unknown_places(text: str, known: list[str]) -> list[str]:
    """Return the files and folders that a text names and that do not exist."""
    return [
        name for name in NAMED.findall(text) if not any(f"/{path}".endswith(f"/{name}") for path in known)
    ]


def test_the_map_and_the_tour_name_places_that_exist():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = listed.stdout.splitlines()
    folders = {f"{parent}/" for name in files for parent in Path(name).parents if str(parent) != "."}
    known = [*files, *folders]
    for page in ("ARCHITECTURE.md", "docs/code-tour.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert len(NAMED.findall(text)) > 10
        assert not unknown_places(text, known), page
    assert unknown_places("see `law/purple.rs`", known) == ["law/purple.rs"]
