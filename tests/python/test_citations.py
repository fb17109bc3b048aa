"""How to cite the program and the papers that it reproduces."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import aqmlab
from aqmlab.papers.folder import papers
from aqmlab.papers.paper import Paper

ROOT = Path(__file__).parents[2]
PAPERS = papers()
yaml = pytest.importorskip("yaml")


def cited():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def fields(entry):
    """Check that the braces of an entry balance, and return its fields."""
    assert entry.count("{") == entry.count("}")
    assert re.fullmatch(r"@[a-z]+\{[a-z]+,\n(  [a-z]+ = \{.*\},\n)+\}\n", entry)
    return dict(re.findall(r"^  ([a-z]+) = \{(.*)\},$", entry, re.MULTILINE))


def test_the_program_is_cited_as_citation_cff_has_it(aqmlab_cli):
    ended = aqmlab_cli("cite")
    assert ended.returncode == 0
    found, about = fields(ended.stdout), cited()
    assert ended.stdout.startswith("@software{aqmlab,\n")
    assert found["title"] == f"{{{about['title']}}}"
    assert found["version"] == about["version"] == aqmlab.__version__
    assert found["author"] == f"{{{about['authors'][0]['name']}}}"
    assert found["license"] == " OR ".join(about["license"])


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.key)
def test_a_paper_is_cited_from_its_folder_and_without_it(paper, monkeypatch, tmp_path):
    entry = aqmlab.cite(paper.key)
    found = fields(entry)
    assert found["title"] == f"{{{paper.title}}}"
    assert found["author"] == " and ".join(paper.authors)
    assert found["year"] == str(paper.year)
    # From here on, the folders of the papers are not found, as if only the package were installed.
    monkeypatch.setenv("AQMLAB_PAPERS", str(tmp_path))
    assert aqmlab.cite(paper.key) == entry


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.key)
def test_citation_cff_has_each_paper(paper: Paper):
    (found,) = (r for r in cited()["references"] if r["title"] == paper.title)
    names = [f"{a.get('given-names', '')} {a['family-names']}".strip() for a in found["authors"]]
    assert (tuple(names), found["year"]) == (paper.authors, paper.year)


def test_a_paper_of_ones_own_is_cited(tmp_path, aqmlab_cli):
    shutil.copytree(ROOT / "papers" / "christiansen", tmp_path / "mine")
    about = tmp_path / "mine" / "paper.toml"
    text = about.read_text(encoding="utf-8")
    text = text.replace('key = "christiansen"', 'key = "mine"').replace(
        "for web traffic", "by 50 % & more", 1
    )
    about.write_text(
        re.sub(r"(?m)^title = .*", 'title = "Queues by 50 % & more"', text, count=1), encoding="utf-8"
    )
    ended = aqmlab_cli("cite", tmp_path / "mine")
    assert ended.returncode == 0, ended.stderr
    assert fields(ended.stdout)["title"] == r"{Queues by 50 \% \& more}"


def test_an_unknown_paper_is_exit_2(aqmlab_cli):
    ended = aqmlab_cli("cite", "wiegle")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "there is no paper `wiegle`; did you mean `weigle`?" in ended.stderr
