"""Folders of papers: where they are, and how a paper is read from its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab.errors import UsageError, unknown
from aqmlab.papers.inference_spec import read_inference
from aqmlab.papers.paper import (
    ARM,
    CAUSE_SEEDS,
    DESIGNS,
    KINDS,
    MARKS,
    RESPONSES,
    SCATTER,
    SCENARIO_ENDING,
    SCORED_MARKS,
    STRENGTHS,
    THRESHOLD_BASES,
    Finding,
    Multiverse,
    Paper,
    PaperExperiment,
    PaperFigure,
    Part,
    PublishedTable,
    Setting,
    Thinned,
    Threshold,
)
from aqmlab.papers.toml_tables import TomlTable, read_toml
from aqmlab.stats.verdict import LEAST_SEEDS


def papers_folder() -> Path:
    """Return ``AQMLAB_PAPERS``, else ``papers`` in the current directory, else next to the source."""
    chosen = os.environ.get("AQMLAB_PAPERS")
    if chosen:
        return Path(chosen)
    here = Path("papers")
    return here if here.is_dir() else Path(__file__).resolve().parents[3] / "papers"


def papers() -> tuple[Paper, ...]:
    """All papers, by key.

    Raises
    ------
    UsageError
        If the folder contains no papers.
    ScenarioError
        If a paper's folder is invalid.
    """
    return tuple(map(read_paper, _folders()))


def _folders() -> list[Path]:
    folder = papers_folder()
    found = sorted(file.parent for file in folder.glob("*/paper.toml"))
    if not found:
        raise UsageError(
            f"there are no papers in `{folder}`: the installed package has none; run in a clone of the"
            " repository, or set AQMLAB_PAPERS to the path of its folder `papers`"
        )
    return found


def find_paper(key: str) -> Paper:
    """Return one paper, by its key or by the path of its folder.

    Raises
    ------
    UsageError
        If the paper is unknown (the message gives the nearest key), or if there are no papers.
    ScenarioError
        If the paper's folder is invalid.
    """
    if (Path(key) / "paper.toml").is_file():
        return read_paper(Path(key))
    known = {folder.name: folder for folder in _folders()}
    if key not in known:
        raise unknown("paper", key, sorted(known))
    return read_paper(known[key])


def read_paper(path: Path) -> Paper:
    """Read a folder.

    Raises
    ------
    ScenarioError
        If something is missing, has the wrong kind, or refers to something unknown.
    """
    about, expected = read_toml(path / "paper.toml"), read_toml(path / "expected.toml")
    about.only(
        *("key", "title", "authors", "year", "published", "summary", "cost", "citation"),
        *("experiment", "setting", "reading", "multiverse", "infer", "figure"),
    )
    expected.only("finding", "table")
    experiments = tuple(_experiment(e, path) for e in about.tables("experiment", "file"))
    files = [e.file for e in experiments]
    settings = tuple(_setting(e, files) for e in about.tables("setting", "name"))
    findings = tuple(_finding(e, expected, files, settings) for e in expected.tables("finding", "id"))
    tables = tuple(_table(e, files) for e in expected.tables("table", "id"))
    reading = about.section("reading")
    reading.only("fixed", "fixed_live")
    live = {experiment.file for experiment in experiments if experiment.live}
    for entry, finding in zip(expected.tables("finding", "id"), findings, strict=True):
        if len({part.experiment in live for part in finding.parts}) > 1:
            raise entry.error("a finding must be about live experiments only, or about no live experiment")
    for entry, setting in zip(about.tables("setting", "name"), settings, strict=True):
        if not live.isdisjoint(setting.experiments) and not live.issuperset(setting.experiments):
            raise entry.error("a setting must be about live experiments only, or about no live experiment")
    paper = Paper(
        path=path,
        key=about.need("key", str),
        title=about.need("title", str),
        authors=about.texts("authors"),
        year=about.need("year", int),
        published=about.get("published", str, ""),
        summary=about.need("summary", str),
        fixed=str(reading.content.get("fixed", "")),
        cost={str(k): str(v) for k, v in about.get("cost", dict, {}).items()},
        experiments=experiments,
        settings=settings,
        findings=findings,
        tables=tables,
        figures=tuple(_figure(e, files) for e in about.tables("figure", "id")),
        multiverse=_multiverse(about.section("multiverse")),
        inference=read_inference(
            about.section("infer"),
            [setting for setting in settings if live.isdisjoint(setting.experiments)],
            [finding for finding in findings if finding.parts[0].experiment not in live],
            [table for table in tables if table.experiment not in live],
        ),
        citation={str(k): str(v) for k, v in about.get("citation", dict, {}).items()},
    )
    return paper.parted(str(reading.content.get("fixed_live", "")))


def _experiment(entry: TomlTable, path: Path) -> PaperExperiment:
    entry.only("file", "title", "figures", "tables", "quick", "live")
    file = entry.need("file", str)
    if not (path / file).is_file():
        raise entry.error("there is no such file in the folder")
    quick = _thinned(TomlTable(entry.get("quick", dict, {}), f"{entry.place}: quick"))
    title = entry.get("title", str, file)
    live = entry.get("live", bool, False)
    return PaperExperiment(file, title, entry.texts("figures"), entry.texts("tables"), quick, live)


def _thinned(entry: TomlTable, *others: str) -> Thinned:
    entry.only("runs", "keep", *others)
    keep = entry.get("keep", dict, {})
    if not all(isinstance(labels, list) and labels for labels in keep.values()):
        raise entry.error("`keep` must have a list of labels for each axis it names")
    runs = entry.get("runs", int, 0)
    if runs < 0:
        raise entry.error(f"`runs` is {runs}; give at least 1, or leave it out")
    return Thinned(runs, {str(axis): tuple(map(str, labels)) for axis, labels in keep.items()})


def _setting(entry: TomlTable, files: list[str]) -> Setting:
    entry.only("name", "mark", "source", "why", "experiments", "arms", "chosen", "candidates", "test")
    candidates = entry.need("candidates", dict)
    for label, keys in candidates.items():
        if not isinstance(keys, dict):
            raise entry.error(
                "a candidate must be a table of scenario keys; an empty one keeps the files as they are"
            )
        _candidate(entry, label, keys, files)
    experiments = entry.texts("experiments")
    for file in experiments:
        _known_file(entry, file, files)
    mark, chosen = entry.choice("mark", MARKS), entry.choice("chosen", candidates)
    test = entry.get("test", bool, False)
    others = [f"`{label}`" for label in candidates if label != chosen]
    if mark == "given" and others and not test:
        raise entry.error(
            f"the paper gives `{chosen}`, which excludes the candidates {', '.join(others)}; leave them out,"
            " or write `test = true`: they then run only as a `cause` and are no readings"
        )
    return Setting(
        entry.need("name", str),
        mark,
        entry.need("why", str),
        experiments,
        entry.texts("arms"),
        chosen,
        candidates,
        test,
        _source(entry, mark),
    )


_PLACE = re.compile(
    r"\b(abstract|captions?|equations?|figures?|footnotes?|lines?|pages?|sections?|slides?|tables?)\b", re.I
)


def _source(entry: TomlTable, mark: str) -> str:
    """Read where the paper states something, which everything that is given must name."""
    source = entry.get("source", str, "")
    own = source == "ours" and not entry.has("mark")  # a finding that a reader has added
    if mark == "given" and not own and not _PLACE.search(source):
        found = f"; `{source}` is none" if source else ""
        raise entry.error(
            "a given value must name its place: write `source` with the section, table, figure, slide or"
            f" line of the text{found}"
        )
    return source


def _candidate(entry: TomlTable, label: str, keys: Mapping[str, Any], files: list[str]) -> None:
    """Raise an error unless a candidate's entries for scenario files and arms are tables of scenario keys."""
    for key, value in keys.items():
        if key.endswith(SCENARIO_ENDING):
            _known_file(entry, key, files)
        elif key != ARM:
            continue
        what = f"candidate `{label}`: `{key}`"
        if not isinstance(value, dict):
            raise entry.error(f"{what} must be a table of {'arms' if key == ARM else 'scenario keys'}")
        if key != ARM:
            _candidate(entry, label, value, [])
        elif not all(isinstance(of_arm, dict) for of_arm in value.values()):
            raise entry.error(f"{what} must have a table of scenario keys for each arm")


def _finding(
    entry: TomlTable, expected: TomlTable, files: list[str], settings: tuple[Setting, ...]
) -> Finding:
    entry.only(
        *("id", "text", "strength", "kind", "source", "mark", "threshold", "published"),
        *("experiment", "where", "expect", "part", "cause", "cause_seeds", "note"),
    )
    mark = entry.choice("mark", MARKS, "given")
    if mark not in SCORED_MARKS:
        raise entry.error("a finding that is only recalled, or unknown, is never scored; leave it out")
    stated = entry.get("part", list, [])
    if bool(stated) == entry.has("expect"):
        raise entry.error("write either `expect` with its `experiment`, or [[finding.part]]s")
    parts = [TomlTable(part, f"{entry.place}: part {i}") for i, part in enumerate(stated, 1)] or [entry]
    name = entry.need("id", str)
    return Finding(
        name,
        entry.need("text", str),
        entry.choice("strength", STRENGTHS),
        entry.choice("kind", KINDS),
        _source(entry, mark),
        _threshold(entry, mark),
        tuple(_part(part, expected, name, files, whole=part is entry) for part in parts),
        _causes(entry, settings),
        entry.choice("cause_seeds", CAUSE_SEEDS) if entry.has("cause_seeds") else "",
        entry.get("note", str, ""),
        mark,
        _published(entry),
    )


def _published(entry: TomlTable) -> str:
    """Read how far the published result lies from the thresholds: words, or a number without a unit."""
    value = entry.content.get("published", "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise entry.error('`published` must be a number, or a string with its unit, such as "0.08 %"')
    return str(value)


_STATED = " or ".join(f'"{basis}: ..."' for basis in THRESHOLD_BASES)


def _threshold(entry: TomlTable, mark: str) -> Threshold:
    """Read a threshold such as ``ours: 95 %``; if there is none, the finding's mark is its basis."""
    if not entry.has("threshold"):
        return Threshold(mark)
    text = entry.need("threshold", str)
    basis, _, what = (part.strip() for part in text.partition(":"))
    if basis not in THRESHOLD_BASES or not what:
        raise entry.error(f"`threshold` is `{text}`; write its origin and its meaning: {_STATED}")
    return Threshold(basis, what)


def _part(entry: TomlTable, expected: TomlTable, name: str, files: list[str], *, whole: bool) -> Part:
    if not whole:
        entry.only("experiment", "where", "expect")
    file = entry.need("experiment", str)
    _known_file(entry, file, files)
    expect = entry.need("expect", str)
    return Part(file, expect, entry.labels("where"), expected.origin_of(name, expect))


def _causes(entry: TomlTable, settings: tuple[Setting, ...]) -> tuple[dict[str, str], ...]:
    """Read the readings named as causes: one is written as a table, several as a list of tables."""
    stated = entry.content.get("cause", [])
    tables = stated if isinstance(stated, list) else [stated]
    if not all(isinstance(table, dict) for table in tables):
        raise entry.error("`cause` must be a table of settings and candidates, or a list of such tables")
    causes = tuple({str(name): str(label) for name, label in table.items()} for table in tables)
    for cause in causes:
        for name, label in cause.items():
            setting = next((s for s in settings if s.name == name), None)
            if setting is None:
                raise entry.error(f"cause: {unknown('setting', name, [s.name for s in settings])}")
            if label not in setting.candidates:
                raise entry.error(f"cause: {unknown('candidate', label, setting.candidates)}")
    return causes


def _table(entry: TomlTable, files: list[str]) -> PublishedTable:
    entry.only(
        *("id", "title", "source", "experiment", "mark", "kind", "value", "unit"),
        *("tolerance", "both_below", "branches", "rows", "columns", "published"),
    )
    rows, columns = (_sides(entry, key) for key in ("rows", "columns"))
    published = entry.need("published", list)
    if len(published) != len(rows) or any(len(row) != len(columns) for row in published):
        raise entry.error(f"`published` must have {len(rows)} rows of {len(columns)} numbers")
    file = entry.need("experiment", str)
    _known_file(entry, file, files)
    mark = entry.choice("mark", MARKS, "given")
    if entry.has("tolerance") and mark not in SCORED_MARKS:
        raise entry.error(f"a table that is {mark} is never scored; leave out `tolerance`")
    return PublishedTable(
        entry.need("id", str),
        entry.need("title", str),
        _source(entry, mark),
        file,
        mark,
        entry.choice("kind", KINDS, "distinguishes"),
        entry.need("value", str),
        entry.get("unit", str, ""),
        entry.get("tolerance", str, ""),
        float(entry.content.get("both_below", 0.0)),
        entry.get("branches", str, ""),
        rows,
        columns,
        tuple(tuple(_number(entry, cell) for cell in row) for row in published),
    )


def _number(entry: TomlTable, cell: object) -> float | None:
    """Read a published number; ``""`` means that there is none."""
    if cell == "":
        return None
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise entry.error(f'`published` has {cell!r}; write a number, or "" where there is none')
    return float(cell)


def _sides(entry: TomlTable, key: str) -> tuple[dict[str, str], ...]:
    sides = entry.need(key, list)
    if not all(isinstance(side, dict) and "label" in side for side in sides):
        raise entry.error(f"`{key}` must be a list of tables, each with a `label`")
    return tuple({str(name): str(value) for name, value in side.items()} for side in sides)


_FIGURE_KEYS = {
    "sweep": ("x", "y", "curves", "arms", "where", "x_label", "y_label", "log_x", "log_y", "linear_below"),
    "series": ("arms", "where", "seed", "queue", "rows", "laws", "from", "until"),
    "cumulative": ("arms", "where", "seed"),
    **dict.fromkeys(RESPONSES, ("arms", "where", "curves", "class", "until", "reference")),
    SCATTER: ("arms", "where", "curves", "class", "until", "below"),
    "law": ("law", "settings", "presets"),
}
"""The keys that each kind of figure accepts.

In this order, the kinds show: a metric against an axis; one run per arm over time; cumulative ACKs; response
times as curves; response times as dots; a law.
"""


def _figure(entry: TomlTable, files: list[str]) -> PaperFigure:
    kind = entry.choice("kind", _FIGURE_KEYS)
    entry.only("id", "title", "kind", *(() if kind == "law" else ("experiment",)), *_FIGURE_KEYS[kind])
    file = "" if kind == "law" else entry.need("experiment", str)
    if file:
        _known_file(entry, file, files)
    return PaperFigure(entry.need("id", str), entry.need("title", str), file, kind, entry.content)


def _multiverse(entry: TomlTable) -> Multiverse:
    thinned = _thinned(entry, "design", "cause_seeds")
    if 0 < thinned.runs < LEAST_SEEDS:
        raise entry.error(
            f"`runs` is {thinned.runs}, and no finding is decided with fewer than {LEAST_SEEDS} seeds;"
            f" give at least {LEAST_SEEDS}, or leave it out to use as many as are scored"
        )
    return Multiverse(
        entry.choice("design", DESIGNS, "one_at_a_time"),
        thinned,
        entry.choice("cause_seeds", CAUSE_SEEDS, "multiverse"),
    )


def _known_file(entry: TomlTable, file: str, files: list[str]) -> None:
    if file not in files:
        raise entry.error(str(unknown("experiment", file, files)))
