"""Write the tables of docs/which-aqm.md from docs/which-aqm.csv.

.venv/bin/python tools/which_aqm.py                 write the tables again
.venv/bin/python tools/which_aqm.py --values FILE   with new data: values.csv of `characterize --links`
.venv/bin/python tools/which_aqm.py --check         write nothing; exit with 1 if a table is stale
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from aqmlab.characterization.queues import LINKS
from aqmlab.characterization.sections import rfc_sections
from aqmlab.metrics import find
from aqmlab.stats.intervals import Estimate
from aqmlab.text.numbers import display_unit, display_value, estimate_text

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, DATA = DOCS / "which-aqm.md", DOCS / "which-aqm.csv"
PING = "response_time_p95_s{class=ping}"
COLUMNS = {
    PING: "ping, p95",
    "page_time_median_s": "pages, median",
    "page_time_p95_s": "pages, p95",
    "frames_in_time_percent{class=call}": "call in",
    "frames_in_time_percent{class=call back}": "call out",
    "frames_in_time_percent{class=game}": "game",
    "goodput_bps{class=download}": "download",
    "goodput_bps{class=upload, queue=reverse}": "upload",
}
ANSWERS = ("FQ-CoDel", "CoDel", "short DropTail", "DropTail")
SHORT = (PING, "page_time_median_s", "frames_in_time_percent{class=call}", "goodput_bps{class=download}")
Row = tuple[str, ...]
_OF = ("seeds", "mean", "half-width")


def values_of(file: Path) -> list[Row]:
    """The rows of a file of values: section, queue, metric, seeds, mean, half-width."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [
            (
                *(row[key] for key in ("section", "cell", "metric", "seeds")),
                *(_short(row[key]) for key in ("mean", "half_width_95")),
            )
            for row in csv.DictReader(lines)
        ]


def _short(number: str) -> str:
    """Five significant digits."""
    return f"{float(number):.5g}" if number else ""


def write_data(rows: Sequence[Row]) -> None:
    """Write the data, a line per section and queue, with seeds, mean and half-width of each metric."""
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for section, cell, metric, *rest in rows:
        lines.setdefault((section, cell), {})[metric] = tuple(rest)
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("section", "queue", *(f"{metric}: {of}" for metric in COLUMNS for of in _OF)))
        for key, of in lines.items():
            writer.writerow((*key, *(value for metric in COLUMNS for value in of.get(metric, ("0", "", "")))))


def data() -> list[Row]:
    """The rows of the data, as :func:`values_of` returns them."""
    with DATA.open(encoding="utf-8", newline="") as lines:
        return [
            (row["section"], row["queue"], metric, *(row[f"{metric}: {of}"] for of in _OF))
            for row in csv.DictReader(lines)
            for metric in COLUMNS
        ]


def table(rows: Sequence[Row], section: str) -> Iterator[str]:
    """The lines of a link's table, the shortest pings first."""
    of = {(cell, metric): rest for where, cell, metric, *rest in rows if where == section}
    every = max((int(seeds) for *_, seeds, _, _ in rows), default=0)
    heads = [f"{label}, {_unit(metric) or 's'}" for metric, label in COLUMNS.items()]
    yield f"| queue | {' | '.join(heads)} |"
    yield f"|---{'|---' * len(heads)}|"

    def text(cell: str, metric: str) -> str:
        seeds, mean, half = of.get((cell, metric), ("0", "", ""))
        # A seed without a p95 of pings lost more than 5 % of them, so the mean of the others would flatter.
        if not mean or (metric == PING and int(seeds) < every):
            return "–"
        found = Estimate(float(mean), float(half) if half else None, int(seeds))
        some = "" if int(seeds) == every else f" ({seeds} of {every} seeds)"
        return estimate_text(found, find(metric).unit if _unit(metric) else "") + some

    def wait(cell: str) -> float:
        return float("inf") if text(cell, PING) == "–" else float(of[cell, PING][1])

    for cell in sorted(dict.fromkeys(cell for cell, _ in of), key=wait):
        yield f"| {cell} | {' | '.join(text(cell, metric) for metric in COLUMNS)} |"


def answers(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the table of short answers: four numbers per link and queue."""
    of = {(where, cell, metric): rest for where, cell, metric, *rest in rows}
    every = max((int(seeds) for *_, seeds, _, _ in rows), default=0)
    yield f"| link | {' | '.join(ANSWERS)} |"
    yield f"|---{'|---' * len(ANSWERS)}|"
    for section in rfc_sections(LINKS):
        cells = []
        for queue in ANSWERS:
            texts = []
            for metric in SHORT:
                seeds, mean, _ = of.get((section.id, queue, metric), ("0", "", ""))
                if not mean or int(seeds) < every:
                    texts.append("lost" if metric == PING else "–")
                    continue
                unit = display_unit(find(metric).unit) if _unit(metric) else "s"
                shown = display_value(float(mean), find(metric).unit) if _unit(metric) else float(mean)
                texts.append(f"{shown:.2g} {unit}" if shown < 10 else f"{shown:.0f} {unit}")
            cells.append(", ".join(texts))
        yield f"| {section.title} | {' | '.join(cells)} |"


def _unit(metric: str) -> str:
    """The unit of a column; empty for pages, whose seconds are not shown as milliseconds."""
    return "" if metric.startswith("page_time") else display_unit(find(metric).unit)


def written(page: str, rows: Sequence[Row]) -> str:
    """The page with current tables between its markers."""
    tables = {section.id: "\n".join(table(rows, section.id)) for section in rfc_sections(LINKS)}
    for name, lines in {**tables, "answers": "\n".join(answers(rows))}.items():
        head, marker, rest = page.partition(f"<!-- {name} -->")
        _, end, tail = rest.partition(f"<!-- /{name} -->")
        if not end:
            raise ValueError(f"{PAGE.name} lacks the markers of `{name}`")
        page = f"{head}{marker}\n\n{lines}\n\n{end}{tail}"
    return page


def main() -> int:
    """Write or check the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--values", type=Path, help="values.csv of a characterization of access links")
    parser.add_argument("--check", action="store_true", help="write nothing")
    wanted = parser.parse_args()
    if wanted.values:
        write_data(values_of(wanted.values))
    page = PAGE.read_text(encoding="utf-8")
    now = written(page, data())
    if wanted.check:
        if page != now:
            sys.stderr.write(f"{PAGE.name} is stale; run tools/which_aqm.py\n")
        return int(page != now)
    PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
