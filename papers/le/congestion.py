"""Find out which findings of the UNC web study hold on a more congested link: lab.toml with more users.

    python papers/le/congestion.py [STORE [FACTOR ...]]

scores the findings of lab.toml with FACTOR times the users (by default 1.134) at each load, with five seeds and
runs of 500 s, of which 350 s are measured, and prints two tables; those in README.md are without framing, with
1.2 times the users. If it is interrupted, call it
again to resume.
"""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from aqmlab.papers.folder import read_paper
from aqmlab.papers.reproduce import Reproduction, Wanted, reproduce

HERE = Path(__file__).parent
SHOWN = ("response_time_cdf_area_percent", "drop_percent")


def scored(factor: float, folder: Path, store: str | None) -> Reproduction:
    """Scores the findings of lab.toml with ``factor`` times its users, in a copy of this folder."""
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("figures", "*.py"))
    lab = folder / "lab.toml"
    text = lab.read_text(encoding="utf-8")
    for old, new in (('duration = "1500s"', 'duration = "500s"'), ('warmup = "300s"', 'warmup = "150s"')):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    swept = r'^("traffic\.(?:right|left)\.users" = )\[(.*)\]$'
    text, lines = re.subn(swept, lambda line: line[1] + str(times(factor, line[2])), text, flags=re.MULTILINE)
    assert lines == 2, lines
    lab.write_text(text, encoding="utf-8")
    paper = read_paper(folder)
    findings = tuple(replace(f, causes=()) for f in paper.findings)
    asked = [f.name for f in findings if all(part.experiment == "lab.toml" for part in f.parts)]
    return reproduce(replace(paper, findings=findings), wanted=Wanted(findings=asked), store=store)


def times(factor: float, users: str) -> list[int]:
    """Returns the numbers of users in a line of the sweep, each multiplied by ``factor``."""
    return [round(factor * int(number)) for number in users.split(",")]


def main() -> None:
    """Executes the runs that are missing and prints the tables."""
    store = sys.argv[1] if len(sys.argv) > 1 else None
    factors = [float(factor) for factor in sys.argv[2:]] or [1.134]
    with TemporaryDirectory() as folder:
        by_factor = {f: scored(f, Path(folder) / str(f) / "le", store) for f in factors}
    heads = [f"{factor:g} times the users" for factor in factors]
    print("| finding |", " | ".join(heads), "|")
    print("|---|" + "---|" * len(heads))
    for row in zip(*(made.findings for made in by_factor.values()), strict=True):
        print(f"| {row[0].finding.name}: {row[0].finding.text} |", " | ".join(f.status for f in row), "|")
    print("\n| load: arm |", " | ".join(heads), "|")
    print("|---|" + "---|" * len(heads))
    for cells in zip(*(made.results["lab.toml"].cells for made in by_factor.values()), strict=True):
        shown = []
        for cell, made in zip(cells, by_factor.values(), strict=True):
            values = [made.results["lab.toml"].values(metric, cell).values() for metric in SHOWN]
            known = [[value for value in seeds if value is not None] for seeds in values]
            # Cells that no finding needs are not run.
            shown += [f"{fmean(known[0]):.1f} ({fmean(known[1]):.2f})"] if all(known) else []
        if shown:
            print(f"| {', '.join(value for _, value in cells[0].settings)}: {cells[0].arm} |", *shown, "|")


if __name__ == "__main__":
    main()
