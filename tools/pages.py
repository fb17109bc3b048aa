"""Rewrite the texts that are generated from data: docs/metrics.md, ARTIFACT.md, citations, scores.

.venv/bin/python tools/pages.py            rewrite all
.venv/bin/python tools/pages.py --check    write nothing; exit with 1 if one is stale
"""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab.api import metric_list
from aqmlab.papers.causes import outcomes, read_causes
from aqmlab.papers.citation import PACKAGED, PROGRAM, bibtex, entry, venue
from aqmlab.papers.folder import read_paper
from aqmlab.papers.paper import Finding, Paper
from aqmlab.papers.scoring import reading_text
from aqmlab.papers.stored_scorecard import statements_in, statements_of

ROOT = Path(__file__).resolve().parent.parent
BETTER = {"less": ", lower is better", "more": ", higher is better", "": ""}
METRICS = """\
# Metrics

<!-- written by tools/pages.py from the metrics of the package; `make docs` writes it again -->

Each metric is defined in one place, and tables, reports, claims, figures and Python take it from
there. `aqmlab metrics` lists all metrics, `aqmlab metrics NAME` prints one, and with `--json`, both
print JSON for programs.

The name of a metric ends in its unit. Formulas refer to the tables of a [recording](recording.md).
In formulas, `T` is the length of the measured interval in seconds, `(t1_ns - t0_ns) / 1e9`, and `C`
is the rate of the queue's link in bit/s. Sums over `flows` include only flows whose data cross the
queue and, if a class is given, only flows of that class; the row of `summary` is that of the queue
and class. For any part of the run other than the measured interval, metrics that accept a `window`
are computed from samples.

Wherever a metric is named (options, `metrics` of a scenario, claims, Python), braces after its name
select a queue, a class, a kind, a router or a window, and set parameters:
`loss_bins_percent{queue=last, window=20s-40s, bin=100ms}`. Claims also accept arms and axes there.
"""


def wrapped(text: str) -> str:
    """A paragraph wrapped at 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def of_metric(entry: Mapping[str, Any]) -> Iterator[str]:
    """The section of one metric."""
    yield f"\n## `{entry['name']}`\n\n"
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    yield wrapped(f"**{entry['label']}**{unit}{BETTER[entry['better']]}: {entry['definition']}.")
    yield f"\n```text\n{entry['formula']}\n```\n\n"
    over, asked = entry["over"].replace(", ", "`, `"), ", ".join(entry["asked_of"])
    yield wrapped(f"Over `{over}`. Scope: {asked}. Source: {entry['source']}.")
    if entry["parameters"]:
        yield "\n"
    for told in entry["parameters"]:
        default = "" if told["default"] is None else f"; {told['default']:g} by default"
        unit = f" [{told['unit']}]" if told["unit"] else ""
        line = f"- `{told['name']}`{unit}: {told['definition']}{default}"
        yield textwrap.fill(line, 100, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def metrics_page() -> str:
    """docs/metrics.md."""
    return METRICS + "".join(line for entry in metric_list() for line in of_metric(entry))


def papers() -> list[Paper]:
    """The papers of this repository, by key."""
    return [read_paper(file.parent) for file in sorted((ROOT / "papers").glob("*/paper.toml"))]


def quoted(text: str) -> str:
    """A text as a double-quoted YAML string."""
    return json.dumps(text, ensure_ascii=False)


def reference(paper: Paper) -> Iterator[str]:
    """A paper as a reference of CITATION.cff."""
    kinds = {"techreport": "report", "inproceedings": "conference-paper", "article": "article"}
    yield f"  - type: {kinds.get(paper.citation.get('type', ''), 'generic')}\n"
    yield f"    title: {quoted(paper.title)}\n    authors:\n"
    for author in paper.authors:
        given, _, family = author.rpartition(" ")
        yield f"      - family-names: {quoted(family)}\n"
        yield f"        given-names: {quoted(given)}\n" if given else ""
    for field, key in (("institution", "institution"), ("booktitle", "conference")):
        if field in paper.citation:
            yield f"    {key}:\n      name: {quoted(paper.citation[field])}\n"
    for field in ("journal", "number", "volume", "issue", "doi"):
        if field in paper.citation:
            yield f"    {field}: {quoted(paper.citation[field])}\n"
    yield f"    year: {paper.year}\n"
    yield f"    notes: {quoted(venue(paper))}\n" if paper.published else ""


def citation_file() -> str:
    """The text of CITATION.cff, in which the papers' references are rewritten and the rest is kept."""
    kept = re.split("(?<=from their folders.\n)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))[0]
    return kept + "".join(line for paper in papers() for line in reference(paper))


def citations() -> str:
    """The BibTeX entries that the package contains: the program as in CITATION.cff, and the papers."""
    about = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    def said(key: str) -> str:
        return str(re.search(rf'^(?:  - )?{key}: "?(.*?)"?$', about, re.MULTILINE)[1])  # type: ignore[index]

    fields = {"version": said("version"), "license": "MIT OR Apache-2.0"}
    program = entry("software", PROGRAM, (said("name"),), said("title"), fields)
    return "\n".join([program, *map(bibtex, papers())])


ARTIFACT = """\
# Artifact

<!-- written by tools/pages.py from papers/*/paper.toml and expected.toml; `make docs` writes it again -->

What a referee repeats, with one command each. `make install` prepares everything on Debian 12 with
Python 3.11 and Rust; afterwards, no network, root access or GPU is needed. `make reproduce-quick` is
the smoke test: a small version of all papers.

```
aqmlab paper reproduce KEY                 all of a paper: findings, tables, figures, scorecard
aqmlab paper reproduce KEY --quick         a small version of it, as a test
aqmlab paper reproduce KEY --finding NAME  one finding; --table and --figure likewise
aqmlab paper live KEY                      its experiments between real TCP stacks
aqmlab bundle DIRECTORY                    your own experiment, for others to check and repeat
```

A command runs only the cells that it needs, and keeps their runs in `runs/store`, where later
commands find them. The first table of a paper's README has each finding with its score, the reason,
and the reading that changes it; its `scorecard.md` has the tolerance of each, which was fixed before
the runs, and the measured values.
"""


def cell(text: str) -> str:
    """The text as the content of one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def of_paper(paper: Paper) -> str:
    """The section of one paper."""
    about = [
        f"[{', '.join(paper.authors)}, {paper.year}](papers/{paper.key}/README.md).",
        f"`aqmlab paper reproduce {paper.key}`: {paper.cost.get('full', 'time not measured')}.",
        *([f"`--quick`: {paper.cost['quick']}."] if "quick" in paper.cost else []),
    ]
    rows = [
        ("finding", paper.findings),
        ("table", paper.tables),
        ("figure", paper.figures),
    ]
    listed = "".join(
        f"| `--{option}` | {cell(', '.join(f'`{one.name}`' for one in entries))} |\n"
        for option, entries in rows
        if entries
    )
    return f"\n## {paper.title}\n\n{wrapped(' '.join(about))}\n| option | names |\n|---|---|\n{listed}"


def artifact() -> str:
    """ARTIFACT.md."""
    return ARTIFACT + "".join(map(of_paper, papers()))


SCORE = (
    "<!-- generated by tools/pages.py from scorecard.json, causes.json and expected.toml; do not edit -->\n",
    "<!-- end of the generated part -->\n",
)
"""The lines between which a paper's README has its score."""
SCORE_HEAD = """
| finding | score | why | reading that changes it |
|---|---|---|---|
"""
UNKNOWN = "–"


def score_rows(paper: Paper) -> Iterator[str]:
    """The simulated findings of a paper on one screen, as rows of a table."""
    card = json.loads((paper.path / "scorecard.json").read_text(encoding="utf-8"))
    scored = {entry["name"]: entry for entry in card["findings"]}
    causes = read_causes(paper, paper.path)
    for finding in paper.findings:
        entry = scored.get(finding.name)
        if entry is None or statements_in(entry) != statements_of(finding):
            cells = ("not scored yet", UNKNOWN, UNKNOWN)
        else:
            tried = outcomes(finding, entry["status"], causes)
            holding = [reading_text(one["reading"]) for one in tried if one["status"] == "holds"]
            none = f"none of {len(tried)} tried" if tried else UNKNOWN
            cells = (entry["status"], why(finding, entry["status"]), "; ".join(holding) or none)
        yield f"| {' | '.join(map(cell, (f'{finding.name}: {finding.text}', *cells)))} |\n"


def why(finding: Finding, status: str) -> str:
    """Why a finding does not hold, or what it means that it holds, in a few words."""
    if status == "holds":
        return UNKNOWN if finding.kind == "distinguishes" else finding.kind
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", " ".join(finding.note.split()))[0] or UNKNOWN


def readme(paper: Paper) -> str:
    """A paper's README, in which the score is rewritten and the rest is kept."""
    file = paper.path / "README.md"
    begin, end = SCORE
    before, found, rest = file.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        sys.exit(f"{file}: the lines between which the score stands are missing: {begin}{end}")
    return f"{before}{begin}{SCORE_HEAD}{''.join(score_rows(paper))}\n{end}{after}"


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/metrics.md": metrics_page,
    "CITATION.cff": citation_file,
    str(PACKAGED.relative_to(ROOT)): citations,
    "ARTIFACT.md": artifact,
    **{f"papers/{paper.key}/README.md": partial(readme, paper) for paper in papers()},
}


def main() -> int:
    """Compare or rewrite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args().check
    stale = 0
    for name, page in PAGES.items():
        file, content = ROOT / name, page()
        if file.is_file() and file.read_text(encoding="utf-8") == content:
            continue
        stale += 1
        sys.stdout.write(f"{name}: {'stale: make docs' if check else 'rewritten'}\n")
        if not check:
            file.write_text(content, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
