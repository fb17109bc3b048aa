"""Write each reproduced paper as a short article in the form of ReScience C, from its folder.

    .venv/bin/python tools/articles.py [KEY ...]     (make articles)

Writes into target/articles/KEY: metadata.yaml, article.md, bibliography.bib and the figures; article.html and
article.tex if pandoc is installed, and article.pdf if Chromium is installed, too. All numbers are those of
the committed scorecard; authors, ORCIDs and the addresses of code and data are left to those who submit the
article.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab.papers.citation import bibtex, cite, venue
from aqmlab.papers.folder import papers_folder, read_paper
from aqmlab.papers.paper import Paper

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "target" / "articles"
LEFT_OUT = ("A claim of your own",)
RESULTS = ("The score", "What does not hold, and why")
"""The headings at which the results begin in a paper's README."""
HOW_SCORED = """\
A finding holds or fails if the 95 % interval of its quantity lies entirely on one side of the threshold;
otherwise, it is undecided. The table shows the comparison that decides each finding."""


def sections(text: str) -> dict[str, str]:
    """The parts of a Markdown text by their second-level headings, in order."""
    found = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {heading: body.strip() for heading, body in zip(found[::2], found[1::2], strict=True)}


def without_links(text: str) -> str:
    """The text with links replaced by their words, because an article is self-contained."""
    return re.sub(r"(?<!!)\[([^\[\]]+)\]\([^()\s]+\)", r"\1", text)


def lower(body: str) -> str:
    """A part of a text, with its headings one level lower."""
    return re.sub(r"^(#+ )", r"#\1", body, flags=re.MULTILINE)


def title_of(paper: Paper, card: dict[str, Any]) -> str:
    """The title after ``[Re]`` if most of the decided firm findings hold, otherwise after ``[¬Re]``."""
    firm = card["counts"]["firm"]
    return f"{'[Re]' if firm['holds'] > firm['fails'] else '[¬Re]'} {paper.title}"


def headline(card: dict[str, Any]) -> str:
    """The outcome, in two sentences."""
    said = []
    for strength, counts in card["counts"].items():
        holds, fails, undecided = counts["holds"], counts["fails"], counts["undecided"]
        if total := holds + fails + undecided:
            said.append(
                f"of {total} {strength} findings, {holds} hold, {fails} fail and {undecided} are undecided"
            )
    cells = [cell for table in card["tables"] for row in table["rows"] for cell in row["cells"]]
    agree = sum(cell["verdict"] == "agrees" for cell in cells)
    scored = agree + sum(cell["verdict"] == "differs" for cell in cells)
    numbers = f" {agree} of {scored} published numbers agree within their tolerance." if scored else ""
    first = "; ".join(said)
    return f"{first[0].upper()}{first[1:]} ({card['seeds']} seeds per cell).{numbers}"


def quoted(text: str) -> str:
    """A text as a double-quoted YAML string."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def cited(paper: Paper) -> str:
    """The paper's reference as text."""
    place = venue(paper)
    year = "" if str(paper.year) in place else f"{', ' if place else ''}{paper.year}"
    return f"{', '.join(paper.authors)}. {paper.title}. {place}{year}."


def metadata(paper: Paper, card: dict[str, Any]) -> str:
    """The text of ReScience C's metadata.yaml, with empty fields for the authors."""
    doi = paper.citation.get("doi", "")
    return f"""\
title: {quoted(title_of(paper, card))}
authors:
  - name: The aqmlab authors
    orcid:
    email:
    affiliations: 1,*
affiliations:
  - code: 1
    name:
    address:
keywords: "active queue management, replication, simulation, Rust, Python"
code:
  - url:
  - doi:
  - swh:
data:
  - url:
  - doi:
replication:
  - cite: {quoted(cited(paper))}
  - bib: {paper.key}
  - url:
  - doi: {doi}
abstract: {quoted(f"{paper.summary} {headline(card)}")}
bibliography: bibliography.bib
type: Replication
domain: Computer networks
language: Rust
"""


def findings(card: dict[str, Any]) -> Iterator[str]:
    """The table of the findings, each with the comparison that decides it."""
    yield "| finding | strength | what the paper says | score | what was measured |\n"
    # The widths of the columns, for pandoc.
    yield "|----|-----|------------------------|------|--------------------------------------|\n"
    for found in card["findings"]:
        measured = found["evidence"][0] if found["evidence"] else ""
        cells = (found["name"], found["strength"], found["text"], found["status"], measured)
        yield "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |\n"


def body(paper: Paper, card: dict[str, Any]) -> Iterator[str]:
    """The parts of the article."""
    readme = sections((paper.path / "README.md").read_text(encoding="utf-8"))
    scored = sections((paper.path / "scorecard.md").read_text(encoding="utf-8"))
    known = {heading: text for heading, text in readme.items() if heading not in LEFT_OUT}
    begin = next((i for i, heading in enumerate(known) if heading in RESULTS), len(known))
    yield f"# {title_of(paper, card)}\n\n## Original article\n\n{cited(paper)}\n"
    yield f"\n## Summary\n\n{' '.join(paper.summary.split())}\n\n{headline(card)}\n\n## Methods\n"
    for heading, text in list(known.items())[:begin]:
        yield f"\n### {heading}\n\n{lower(text)}\n"
    yield f"\n## Results\n\n{HOW_SCORED}\n\n"
    yield from findings(card)
    for heading, text in scored.items():
        if heading.startswith(("Table ", "Figures")):
            yield f"\n### {heading}\n\n{text}\n"
    yield "\n## Discussion\n"
    for heading, text in list(known.items())[begin:]:
        yield f"\n### {heading}\n\n{lower(text)}\n"
    yield f"""
## Code and data

`aqmlab paper reproduce {paper.key}` repeats all runs, tables and figures
({paper.cost.get("full", "time not measured")}); `--finding`, `--table` and `--figure` repeat a part. The
scenarios, findings and published numbers are in the folder `papers/{paper.key}`; `scorecard.json` there has
every comparison. The results were produced on {card["date"]} with aqmlab {card["version"]}, commit
{card["commit"]}. The same scenario and seed give the same bytes.
"""


def drawn(folder: Path) -> None:
    """Render the article in every format whose programs are installed."""
    if shutil.which("pandoc") is None:
        sys.stdout.write("pandoc is not installed: no article.html, article.tex, article.pdf\n")
        return
    title = re.search(
        r'^title: (".*")$', (folder / "metadata.yaml").read_text(encoding="utf-8"), re.MULTILINE
    )
    common = ["pandoc", "article.md", "--standalone", "--metadata", f"pagetitle={json.loads(title[1])}"]
    subprocess.run(
        [*common, "--self-contained", "-c", "article.css", "-o", "article.html"], cwd=folder, check=True
    )
    subprocess.run([*common, "-o", "article.tex"], cwd=folder, check=True)
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.stdout.write("chromium is not installed: no article.pdf\n")
        return
    profile = folder / "profile"
    subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={profile}", "--no-pdf-header-footer", "--print-to-pdf=article.pdf",
         (folder / "article.html").as_uri()],
        cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    shutil.rmtree(profile, ignore_errors=True)


STYLE = """\
body { font: 10.5pt/1.45 serif; max-width: 46em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-size: 8.5pt; }
td, th { border-bottom: 1px solid #ccc; padding: 2pt 5pt; text-align: left; vertical-align: top; }
td, th { overflow-wrap: anywhere; }
img { max-width: 100%; }
pre { white-space: pre-wrap; }
"""


def write(paper: Paper, folder: Path) -> None:
    """Write the sources of the article of one paper."""
    card = json.loads((paper.path / "scorecard.json").read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if (paper.path / "figures").is_dir():
        shutil.copytree(paper.path / "figures", folder / "figures", ignore=shutil.ignore_patterns("*.csv"))
    (folder / "metadata.yaml").write_text(metadata(paper, card), encoding="utf-8")
    (folder / "article.md").write_text(without_links("".join(body(paper, card))), encoding="utf-8")
    (folder / "article.css").write_text(STYLE, encoding="utf-8")
    (folder / "bibliography.bib").write_text(f"{bibtex(paper)}\n{cite()}", encoding="utf-8")


def main() -> None:
    """Write the articles of the papers that are named, or of all papers that have a scorecard."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("key", nargs="*", help="papers; by default, all that have a scorecard")
    scored = sorted(file.parent.name for file in papers_folder().glob("*/scorecard.json"))
    keys = parser.parse_args().key or scored
    if unknown := set(keys) - set(scored):
        parser.error(f"no scorecard for {', '.join(sorted(unknown))}; papers with one: {', '.join(scored)}")
    for key in keys:
        write(read_paper(papers_folder() / key), PLACE / key)
        drawn(PLACE / key)
        sys.stdout.write(f"{(PLACE / key).relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
