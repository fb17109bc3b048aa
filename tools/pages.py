"""Rewrite the texts that are generated from data: docs/metrics.md, ARTIFACT.md, citations, scores.

.venv/bin/python tools/pages.py            rewrite all
.venv/bin/python tools/pages.py --check    write nothing; exit with 1 if one is stale
"""

import argparse
import json
import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab import _core
from aqmlab.api import metric_list
from aqmlab.papers.causes import read_causes
from aqmlab.papers.citation import PACKAGED, PROGRAM, bibtex, entry, venue
from aqmlab.papers.folder import read_paper
from aqmlab.papers.names import names_of
from aqmlab.papers.paper import Finding, Paper
from aqmlab.papers.required_cells import Question, required_cells
from aqmlab.papers.scoring import claim_of, reading_text
from aqmlab.papers.stored_scorecard import explained_of, statements_in, statements_of

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

This page lists the claims of the folders in [papers](papers/README.md), with the command that
repeats each. `make install` prepares everything on Debian 12 with Python 3.11 and Rust; afterwards,
no network, root access or GPU is needed. `make reproduce-quick` is the smoke test: a small version
of all papers.

A command runs only the cells that its claim needs, and keeps their runs in `runs/store`, where
later commands find them. Minutes are estimates: the time of the whole paper, stated below its
heading, multiplied by the share of the paper's simulated time that the claim needs. Tolerances are
fixed before the runs. The tolerance of a finding is the threshold of its statement, which holds,
fails or is undecided according to 95 % intervals over the seeds; `-` marks a comparison without a
number. The results of all commands are in the scorecard of each folder; a command also prints its
own results.

`aqmlab bundle` puts your own experiment into one file that others can check and repeat
([bundles](docs/bundles.md)).
"""


def cell(text: str) -> str:
    """The text as the content of one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def simulated_s(paper: Paper) -> dict[str, float]:
    """The simulated seconds of one cell with all its seeds, by experiment."""
    found = {}
    for experiment in paper.experiments:
        about = tomllib.loads((paper.path / experiment.file).read_text(encoding="utf-8"))
        found[experiment.file] = about.get("runs", 1) * _core.quantity(about["duration"], "ns") / 1e9
    return found


def minutes(paper: Paper) -> Callable[[Iterable[tuple[str, Question]]], str]:
    """A function that estimates the minutes of (experiment, question) pairs from the paper's minutes."""
    names = {e.file: names_of(paper, e) for e in paper.experiments}
    cell_s = simulated_s(paper)
    whole = re.search(r"(\d+) min", paper.cost.get("full", ""))

    def simulated(questions: Iterable[tuple[str, Question]]) -> float:
        asked: dict[str, list[Question]] = {}
        for file, question in questions:
            asked.setdefault(file, []).append(question)
        return sum(required_cells(names[file], each).count * cell_s[file] for file, each in asked.items())

    whole_s = simulated(questions_of(paper))

    def of(questions: Iterable[tuple[str, Question]]) -> str:
        took = int(whole[1]) * simulated(questions) / whole_s if whole else 0.0
        return "-" if whole is None else "< 1" if took < 1 else f"{took:.0f}"

    return of


def questions_of(paper: Paper) -> Iterator[tuple[str, Question]]:
    """Everything that is scored or shown, each with its experiment."""
    for finding in paper.findings:
        yield from ((part.experiment, claim_of(finding, part)) for part in finding.parts)
    yield from ((table.experiment, table) for table in paper.tables)
    yield from ((figure.experiment, figure) for figure in paper.figures if figure.experiment)


def of_paper(paper: Paper) -> Iterator[str]:
    """The section of one paper."""
    yield f"\n## {paper.title}\n\n"
    whole = (
        f"`aqmlab reproduce {paper.key}` repeats everything: {paper.cost.get('full', 'time not measured')}."
    )
    quick = f" `--quick`: {paper.cost['quick']}." if "quick" in paper.cost else ""
    yield wrapped(f"{', '.join(paper.authors)}, {paper.year}. {whole}{quick}")
    yield "\n| claim, table or figure | command | minutes | tolerance |\n|---|---|---:|---|\n"
    takes = minutes(paper)

    def row(what: str, option: str, asked: Iterable[tuple[str, Question]], tolerance: str) -> str:
        command = f"`aqmlab reproduce {paper.key} {option}`"
        return f"| {cell(what)} | {command} | {takes(asked)} | {cell(tolerance) or '-'} |\n"

    for found in paper.findings:
        asked = [(part.experiment, claim_of(found, part)) for part in found.parts]
        what = f"{found.name} ({found.strength}): {found.text}"
        yield row(what, f"--finding {shlex.quote(found.name)}", asked, found.threshold.what)
    for table in paper.tables:
        named = f"--table {shlex.quote(table.name)}"
        yield row(f"Table {table.name}: {table.title}", named, [(table.experiment, table)], table.tolerance)
    for figure in paper.figures:
        of = [(figure.experiment, figure)] if figure.experiment else []
        named = f"--figure {shlex.quote(figure.name)}"
        yield row(f"Figure {figure.name}: {figure.title}", named, of, "drawn, not scored")


def artifact() -> str:
    """ARTIFACT.md."""
    return ARTIFACT + "".join(line for paper in papers() for line in of_paper(paper))


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
    causes = [one for one in read_causes(paper.path) if one["date"] >= card["date"]]
    for finding in paper.findings:
        entry = scored.get(finding.name)
        if entry is None or statements_in(entry) != statements_of(finding):
            cells = ("not scored yet", UNKNOWN, UNKNOWN)
        else:
            tried = explained_of(finding, entry, causes)
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
