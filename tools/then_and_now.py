"""Score the findings of scenarios/then_and_now, and write the tables of docs/then-and-now.md.

.venv/bin/python tools/then_and_now.py --store STORE   run what is missing, and score; `blue web`: these alone
.venv/bin/python tools/then_and_now.py                 write the tables again from results.json
.venv/bin/python tools/then_and_now.py --check         write nothing; exit with 1 if a table is stale
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aqmlab
from aqmlab.claims import Claim, score
from aqmlab.metrics import find
from aqmlab.results.results import Results
from aqmlab.stats import estimate
from aqmlab.stats.differences import defined
from aqmlab.text.numbers import display_unit, estimate_text

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "scenarios" / "then_and_now"
STORED = FOLDER / "results.json"
PAGE = ROOT / "docs" / "then-and-now.md"
TIMES = ("then", "today")
CASES = [(queues, hosts) for queues in TIMES for hosts in TIMES]
_ONE = re.compile(r"'[^']*'|[^,]+")


def experiments() -> list[dict[str, Any]]:
    """The experiments with their findings."""
    return list(tomllib.loads((FOLDER / "findings.toml").read_text(encoding="utf-8"))["experiment"])


def queues_of(experiment: Mapping[str, Any], finding: Mapping[str, Any], time: str) -> dict[str, str]:
    """What stands for QUEUES and the other words in a finding at a time."""
    words = dict(experiment[time])
    return {**words, "QUEUES": finding[time]} if time in finding else words


def claims_of(expect: str, words: Mapping[str, str]) -> dict[str, str]:
    """The expression with all queues under the empty name, and with each queue alone under its name."""

    def written(chosen: Mapping[str, str]) -> str:
        text = expect
        for word, queues in chosen.items():
            text = text.replace(f"({word})", f"({queues})").replace(f", {word})", f", {queues})")
        return text

    every = {"": written(words)}
    lists = {word: [one.strip() for one in _ONE.findall(queues)] for word, queues in words.items()}
    used = next((word for word in lists if re.search(rf"\b{word}\)", expect)), None)
    if used is not None and len(lists[used]) > 1:
        every |= {one.strip("'"): written({**words, used: one}) for one in lists[used]}
    return every


def scored(results: Results, experiment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The scores of an experiment's findings, in each case and for each queue."""
    found = []
    for finding in experiment["finding"]:
        scores: dict[str, dict[str, str]] = {}
        for queues, hosts in CASES:
            if queues == "today" and not finding.get("queues", True):
                continue
            where = {**finding.get("where", {}), "hosts": hosts}
            written = claims_of(finding["expect"], queues_of(experiment, finding, queues))
            claims = [Claim(f"{finding['id']} {name}", expect, "", where) for name, expect in written.items()]
            statuses = [one.verdict.status for one in score(results, claims)]
            scores[f"{queues}/{hosts}"] = dict(zip(written, statuses, strict=True))
        found.append({"id": finding["id"], "scores": scores})
    return found


def measured(results: Results, experiment: Mapping[str, Any]) -> list[list[str]]:
    """The rows of an experiment's table: a queue, and each column with the hosts of then and of today."""
    rows = []
    for arm in results.arms:
        row = [arm]
        for column in experiment.get("column", ()):
            for hosts in TIMES:
                labels = {**column["where"], "hosts": hosts}
                cell = next(
                    one
                    for one in results.cells
                    if one.arm == arm and all(one.label(axis) == label for axis, label in labels.items())
                )
                values = defined(results.values(column["metric"], cell)).values()
                row.append(estimate_text(estimate(values), find(column["metric"]).unit))
        rows.append(row)
    return rows


def evaluate(store: str, stored: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Run what is missing of the named experiments, all by default; return the results with theirs."""
    for experiment in experiments():
        name = experiment["scenario"]
        if not names or name in names:
            results = aqmlab.sweep(FOLDER / f"{name}.toml", store=store, report=False, jobs=1).wait()
            stored[name] = {
                "findings": scored(results, experiment),
                "values": measured(results, experiment),
            }
    return stored


def said(scores: Mapping[str, str] | None) -> str:
    """The score of one case; if queues differ, those that agree with the finding."""
    if scores is None:
        return "–"
    every, alone = scores[""], [name for name, status in scores.items() if name and status == "holds"]
    if every == "holds" or not alone:
        return every
    return f"{every}; holds for {', '.join(alone)}"


def score_table(experiment: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """The findings of an experiment and their scores."""
    heads = [f"{queues}'s queues, {hosts}'s hosts" for queues, hosts in CASES]
    lines = [f"| finding | {' | '.join(heads)} |", "|---" * (1 + len(CASES)) + "|"]
    texts = {finding["id"]: finding["text"] for finding in experiment["finding"]}
    for one in stored["findings"]:
        cells = [said(one["scores"].get(f"{queues}/{hosts}")) for queues, hosts in CASES]
        lines.append(f"| {one['id']}: {texts[one['id']]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def value_table(experiment: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """The measured values of an experiment."""
    heads = []
    for column in experiment.get("column", ()):
        unit = display_unit(find(column["metric"]).unit)
        heads += [f"{column['label']}{f', {unit}' if unit else ''}: {hosts}'s hosts" for hosts in TIMES]
    lines = [f"| queue | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in stored["values"])])


def written(page: str, stored: Mapping[str, Any]) -> str:
    """The page with current tables between its markers."""
    for experiment in experiments():
        name = experiment["scenario"]
        if name not in stored:
            continue
        for kind, table in (("scores", score_table), ("values", value_table)):
            marker = f"<!-- {kind} of {name} -->"
            end = f"<!-- /{kind} of {name} -->"
            if marker not in page or end not in page:
                raise ValueError(f"{PAGE.name} lacks `{marker}` or `{end}`")
            head, _, rest = page.partition(marker)
            tail = rest.partition(end)[2]
            page = f"{head}{marker}\n\n{table(experiment, stored[name])}\n\n{end}{tail}"
    return page


def main() -> int:
    """Write or check the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--store", help="the store of runs; what it lacks is run")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("names", nargs="*", help="the experiments to score; all by default")
    wanted = parser.parse_args()
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if wanted.store:
        stored = evaluate(wanted.store, stored, wanted.names)
        STORED.write_text(f"{json.dumps(stored, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    now = written(page, stored)
    if wanted.check:
        if page != now:
            sys.stderr.write(f"{PAGE.name} is stale; run tools/then_and_now.py\n")
        return int(page != now)
    PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
