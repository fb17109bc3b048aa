"""The documentation site: every link has a target, and no page fetches anything from the network."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import site_pages as site  # noqa: E402

FETCHED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src=["']?https?:|<link[^>]+rel=["']?stylesheet[^>]+https?:"""
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "PLACE", tmp_path / "site")
    monkeypatch.setattr(site, "STAGED", tmp_path / "site" / "pages")
    return tmp_path / "site"


def without_target(page: Path, known: dict[Path, set[str]]) -> list[str]:
    """The links of a built page to missing files or anchors."""
    text = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    missing = []
    for link in map(html.unescape, set(re.findall(r"""(?:href|src)=["']?([^"'\s>]+)""", text))):
        if re.match(r"[a-z]+:|//", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        target = target / "index.html" if target.is_dir() else target
        if target.suffix == ".html" and target.is_file() and target not in known:
            known[target] = set(re.findall(r"""\bid=["']?([^"'\s>]+)""", target.read_text(encoding="utf-8")))
        if not target.is_file() or (target in known and anchor and unquote(anchor) not in known[target]):
            missing.append(link)
    return missing


def test_links_to_missing_files_and_places_are_found(tmp_path):
    (tmp_path / "b.html").write_text("<h2 id=here>x</h2>")
    (tmp_path / "a.html").write_text("<a href=b.html#here>1</a><a href='b.html#there'>2</a><img src=c.svg>")
    assert sorted(without_target(tmp_path / "a.html", {})) == ["b.html#there", "c.svg"]


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="the extra `site` is not installed")
def test_the_site_is_built_without_a_broken_link_and_fetches_nothing(place):
    assert site.main() == 0
    pages = list((place / "html").rglob("*.html"))
    assert len(pages) > 50
    known: dict[Path, set[str]] = {}
    for page in pages:
        # The page for unknown addresses is excepted because its links are absolute.
        assert page.name == "404.html" or not without_target(page, known), page
        found = FETCHED.search(page.read_text(encoding="utf-8"))
        assert found is None, (page, found[0])
    assert (place / "html" / "search.js").is_file(), "search works without a server"


def test_a_link_without_a_target_is_an_error():
    with pytest.raises(SystemExit, match=r"no file docs/missing\.md"):
        site.with_links("[text](missing.md)", Path("docs"))


def test_links_lead_to_pages_of_files_and_folders(place):
    led = site.with_links(
        "[a](../scenarios/demo.toml) [b](../vectors) [c](claims.md#the-grammar)", Path("docs")
    )
    assert led.startswith(
        "[a](../scenarios/demo.toml.md) [b](../vectors/README.md) [c](claims.md#the-grammar)"
    )
    assert "RED" in (place / "pages" / "scenarios" / "demo.toml.md").read_text(encoding="utf-8")


def test_every_page_of_the_navigation_exists():
    named = re.findall(
        r'"([\w/.-]+\.md)"', (ROOT / "tools" / "site" / "zensical.toml").read_text(encoding="utf-8")
    )
    texts = {str(text) for text in site.texts()}
    made = {"docs/reference/cli.md", "docs/reference/python.md", "docs/reference/gallery.md"}
    assert set(named) - made <= texts
    unlisted = {text for text in texts if text.startswith("docs/")} - set(named)
    assert not unlisted, "a page of docs/ that the navigation does not have"


def test_the_gallery_has_every_figure_of_the_papers_once():
    shown = re.findall(
        r"^### (.+)\n\n!\[\1\]\((?:\.\./)+(papers/[^)]+)\)$", site.gallery(), flags=re.MULTILINE
    )
    assert sorted(file for _, file in shown) == [str(figure) for figure in site.paper_figures()]
    assert (
        "Figure 2: BLUE with 600 sources: rates, queue, probability and marks",
        "papers/blue/figures/figure-2.svg",
    ) in shown
