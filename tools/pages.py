"""Rewrite the documents that follow from data: docs/metrics.md from the metrics of the package.

.venv/bin/python tools/pages.py            rewrite all
.venv/bin/python tools/pages.py --check    write nothing; ends with 1 if one is stale
"""

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aqmlab.api import metric_list

ROOT = Path(__file__).resolve().parent.parent
BETTER = {"less": ", lower is better", "more": ", higher is better", "": ""}
METRICS = """\
# Metrics

<!-- written by tools/pages.py from the metrics of the package; `make docs` writes it again -->

Each metric is defined in one place, and tables, reports, claims, figures and Python take it from there.
`aqmlab metrics` lists them, `aqmlab metrics NAME` prints one, `--json` gives both to programs.

The name ends in the unit. A formula is over the tables of a [recording](recording.md). In it, `T` is the
length of the measured interval in seconds, `(t1_ns - t0_ns) / 1e9`, and `C` the rate of the queue's link
in bit/s. Sums over `flows` are over the flows whose data cross the queue, of one class if one is asked
for; a row of `summary` is that of the queue and class. Those that take a `window` are computed from samples
in any part of the run other than the measured interval.
"""


def wrapped(text: str) -> str:
    """A paragraph in lines of at most 100 columns."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def of_metric(entry: Mapping[str, Any]) -> Iterator[str]:
    """The section of one metric."""
    yield f"\n## `{entry['name']}`\n\n"
    unit = f" [{entry['unit']}]" if entry["unit"] else ""
    yield wrapped(f"**{entry['label']}**{unit}{BETTER[entry['better']]}: {entry['definition']}.")
    yield f"\n```text\n{entry['formula']}\n```\n\n"
    over, asked = entry["over"].replace(", ", "`, `"), ", ".join(entry["asked_of"])
    yield wrapped(f"Over `{over}`. Asked of: {asked}. Source: {entry['source']}.")
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


PAGES: Mapping[str, Callable[[], str]] = {"docs/metrics.md": metrics_page}


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
