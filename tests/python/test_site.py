"""The documentation site: every link has a target, and no page fetches anything from the network."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

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


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="the extra `site` is not installed")
def test_the_site_is_built_without_a_broken_link_and_fetches_nothing(place):
    assert site.main() == 0
    pages = list((place / "html").rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
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
