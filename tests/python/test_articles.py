"""Articles about the reproduced papers: their form, and the figures that they quote from scorecards."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from aqmlab.papers.folder import read_paper

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import articles  # noqa: E402

SCORED = sorted(file.parent for file in (ROOT / "papers").glob("*/scorecard.json"))


@pytest.fixture(params=SCORED, ids=lambda path: path.name)
def written(request, tmp_path):
    """The scorecard of a paper, and the folder that contains its article."""
    articles.write(read_paper(request.param), tmp_path / "article")
    return json.loads((request.param / "scorecard.json").read_text(encoding="utf-8")), tmp_path / "article"


def test_metadata_has_the_fields_of_the_journal(written):
    card, folder = written
    text = (folder / "metadata.yaml").read_text(encoding="utf-8")
    keys = re.findall(r"^(\w+):", text, re.MULTILINE)
    wanted = (
        "title authors affiliations keywords code data replication abstract bibliography type domain language"
    )
    assert keys == wanted.split()
    title = json.loads(re.search(r'^title: (".*")$', text, re.MULTILINE)[1])
    firm = card["counts"]["firm"]
    assert title.startswith("[Re] " if firm["holds"] > firm["fails"] else "[¬Re] ")
    assert f"- bib: {card['paper']}\n" in text
    bibliography = (folder / "bibliography.bib").read_text(encoding="utf-8")
    assert re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE) == [card["paper"], "aqmlab"]


def test_every_finding_and_table_of_the_scorecard_is_in_the_article(written):
    card, folder = written
    text = (folder / "article.md").read_text(encoding="utf-8")
    rows = dict(
        re.findall(r"^\| (\w+) \| (?:firm|soft) \| .*? \| (holds|fails|undecided) \|", text, re.MULTILINE)
    )
    assert rows == {found["name"]: found["status"] for found in card["findings"]}
    for table in card["tables"]:
        assert f"### Table {table['name']}: " in text
    agree = text.count(" ✓")
    assert agree == sum(
        c["verdict"] == "agrees" for t in card["tables"] for r in t["rows"] for c in r["cells"]
    )
    if agree:
        assert f" {agree} of " in text.partition("## Methods")[0]


def test_an_article_stands_by_itself(written):
    _, folder = written
    text = (folder / "article.md").read_text(encoding="utf-8")
    assert "A claim of your own" not in text
    assert not re.findall(r"(?<!!)\[[^\[\]]+\]\([^()\s]+\)", text), "links into the repository"
    for figure in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (folder / figure).is_file()
    for part in ("Original article", "Summary", "Methods", "Results", "Discussion", "Code and data"):
        assert f"\n## {part}\n" in text
