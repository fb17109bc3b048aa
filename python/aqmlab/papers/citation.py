"""Citations: BibTeX entries of the program and of the papers, even without the papers' folders."""

from __future__ import annotations

import re
from pathlib import Path

from aqmlab.arguments import typed
from aqmlab.errors import unknown
from aqmlab.papers.folder import papers_folder, read_paper
from aqmlab.papers.paper import Paper

PACKAGED = Path(__file__).parents[1] / "citations.bib"
"""Entries of the program and of the papers included with it; tools/pages.py writes them."""
PROGRAM = "aqmlab"


@typed
def cite(key: str | None = None) -> str:
    """The BibTeX entry of the program, or of a paper.

    Parameters
    ----------
    key
        A paper as ``aqmlab paper list`` lists it, or its folder; without a key, the program is cited.

    Raises
    ------
    UsageError
        If the paper is unknown; the message gives the nearest key.
    ScenarioError
        If the paper's folder is invalid.
    """
    if key is not None:
        for folder in (Path(key), papers_folder() / key):
            if (folder / "paper.toml").is_file():
                return bibtex(read_paper(folder))
    known = _entries(PACKAGED.read_text(encoding="utf-8"))
    if (key or PROGRAM) not in known:
        raise unknown("paper", str(key), [name for name in known if name != PROGRAM])
    return known[key or PROGRAM]


def bibtex(paper: Paper) -> str:
    """Return the BibTeX entry of a paper read from its folder; the entry is named by the paper's key."""
    fields = dict(paper.citation)
    kind = fields.pop("type", "misc")
    if not paper.citation:
        fields["note"] = venue(paper)
    return entry(kind, paper.key, paper.authors, paper.title, {"year": str(paper.year), **fields})


def venue(paper: Paper) -> str:
    """Return the place of publication, without the notes that the folder adds after the first semicolon."""
    return paper.published.partition(";")[0]


def entry(kind: str, key: str, authors: tuple[str, ...], title: str, fields: dict[str, str]) -> str:
    """Return a BibTeX entry with one line per field; braces keep the capitals of the title."""
    lines = {"author": " and ".join(map(_name, authors)), "title": f"{{{title}}}", **fields}
    body = "".join(f"  {name} = {{{_escaped(text)}}},\n" for name, text in lines.items() if text)
    return f"@{kind}{{{key},\n{body}}}\n"


def _name(author: str) -> str:
    """Return a person's name unchanged; put ``The aqmlab authors``, which is not a person, in braces."""
    return f"{{{author}}}" if author.startswith("The ") else author


def _escaped(text: str) -> str:
    return re.sub(r"(?<!\\)[&%$#_]", r"\\\g<0>", text)


def _entries(text: str) -> dict[str, str]:
    found = re.findall(r"^@\w+\{(\S+),\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    whole = re.findall(r"^@\w+\{\S+,\n(?:.*\n)*?\}\n", text, re.MULTILINE)
    return dict(zip(found, whole, strict=True))
