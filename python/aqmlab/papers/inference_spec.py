"""``[infer]`` of ``paper.toml``: the published values to fit, and those withheld from the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from aqmlab.errors import unknown
from aqmlab.papers.paper import DISTANCES, SCORED_MARKS, Finding, Inference, PublishedTable, Setting, Target
from aqmlab.papers.toml_tables import TomlTable

HALVES = (
    "the findings in the order of expected.toml: the first, third, fifth and so on are fitted, the others are"
    " not seen"
)
LEAST_SEEDS = 2
"""With fewer than two seeds, there is no estimate of the noise."""
_PARTS = ("fit", "test")
_LENGTH = "length of the search's runs"
SHORTER = {_LENGTH: "shorter"}
"""The setting of a reading that makes its runs shorter."""


def read_inference(
    entry: TomlTable,
    settings: Sequence[Setting],
    findings: Sequence[Finding],
    tables: Sequence[PublishedTable],
) -> Inference:
    """Return the contents of ``[infer]``; if it names nothing to fit, every second finding is fitted.

    Raises
    ------
    ScenarioError
        If it names something unknown, if the two parts overlap or are of different kinds, or if the
        distance of a cell is undefined.
    """
    entry.only(*_PARTS, "rule", "settings", "distance", "seeds", "final_seeds", "minutes", "seed", "shorter")
    named = any(entry.has(key) for key in _PARTS)
    fit, test = (
        tuple(dict.fromkeys(_targets(entry, key, findings, tables)))
        if named
        else tuple(Target(finding=finding.name) for finding in findings[i::2])
        for i, key in enumerate(_PARTS)
    )
    if named:
        _check_parts(entry, fit, test, tables)
    seeds = _seeds(entry, "seeds", Inference.seeds)
    return Inference(
        fit,
        test,
        entry.get("rule", str, "") if named else HALVES,
        _settings(entry, settings),
        entry.choice("distance", DISTANCES, Inference.distance),
        seeds,
        max(_seeds(entry, "final_seeds", Inference.final_seeds), seeds),
        entry.number("minutes", Inference.minutes),
        entry.get("seed", int, Inference.seed),
        entry.get("shorter", dict, {}),
    )


def length_settings(spec: Inference) -> tuple[Setting, ...]:
    """Return the changes in ``shorter`` as a setting, if there are any."""
    candidates = {"whole": {}, SHORTER[_LENGTH]: spec.shorter}
    return (Setting(_LENGTH, "given", "", (), (), "whole", candidates, test=True),) if spec.shorter else ()


def target_name(target: Target, tables: Sequence[PublishedTable]) -> str:
    """``table I, f1, DropTail``; for a finding, its number."""
    if target.finding:
        return target.finding
    table = table_of(target, tables)
    return f"table {table.name}, {table.rows[target.row]['label']}, {table.columns[target.column]['label']}"


def table_of(target: Target, tables: Sequence[PublishedTable]) -> PublishedTable:
    """Return the table to which a cell belongs."""
    return next(table for table in tables if table.name == target.table)


def _seeds(entry: TomlTable, key: str, default: int) -> int:
    seeds = entry.get(key, int, default)
    if seeds < LEAST_SEEDS:
        raise entry.error(
            f"`{key}` is {seeds}; give at least {LEAST_SEEDS}: the noise is estimated from their spread"
        )
    return seeds


def _settings(entry: TomlTable, settings: Sequence[Setting]) -> tuple[str, ...]:
    """Return the named settings, or by default all that are not marked `test`."""
    known = [setting.name for setting in settings if not setting.test]
    if not entry.has("settings"):
        return tuple(known)
    names = entry.texts("settings")
    for name in names:
        if name not in known:
            raise entry.error(f"settings: {unknown('setting', name, known)}")
    return tuple(name for name in known if name in names)


def _targets(
    entry: TomlTable, key: str, findings: Sequence[Finding], tables: Sequence[PublishedTable]
) -> Iterator[Target]:
    """Return the targets of one part: one TOML table or several, each about a published table or findings."""
    content = entry.content.get(key)
    contents = [content] if isinstance(content, Mapping) else content
    if not isinstance(contents, list) or not contents or not all(isinstance(c, dict) for c in contents):
        raise entry.error(f"`{key}` must be {{ table = ... }}, {{ findings = [...] }}, or a list of these")
    for number, inner in enumerate(contents, 1):
        part = TomlTable(inner, f"{entry.place}: {key} {number}")
        part.only("table", "rows", "columns", "findings")
        if part.has("table") == part.has("findings"):
            raise part.error("write either `table` with its `rows` and `columns`, or `findings`")
        yield from _findings(part, findings) if part.has("findings") else _cells(part, tables)


def _findings(part: TomlTable, findings: Sequence[Finding]) -> Iterator[Target]:
    part.only("findings")
    known = [finding.name for finding in findings]
    for name in part.texts("findings"):
        if name not in known:
            raise part.error(str(unknown("finding", name, known)))
        yield Target(finding=name)


def _cells(part: TomlTable, tables: Sequence[PublishedTable]) -> Iterator[Target]:
    """The cells of a table that have a published number."""
    name = part.need("table", str)
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        raise part.error(str(unknown("table", name, [table.name for table in tables])))
    if table.mark not in SCORED_MARKS:
        raise part.error(f"table `{name}` is only {table.mark}: nothing is fitted to it or tested against it")
    rows, columns = (_places(part, key, getattr(table, key)) for key in ("rows", "columns"))
    for row, column in product(rows, columns):
        if table.published[row][column] is not None:
            yield Target(table=name, row=row, column=column)


def _places(part: TomlTable, key: str, sides: Sequence[Mapping[str, str]]) -> list[int]:
    """Return positions of rows or columns: all of them, every second one, or those with certain labels."""
    labels = [side["label"] for side in sides]
    if not part.has(key):
        return list(range(len(labels)))
    wanted = part.content[key]
    if wanted in ("odd", "even"):
        return list(range(0 if wanted == "odd" else 1, len(labels), 2))
    if isinstance(wanted, str):
        raise part.error(f'`{key}` is `{wanted}`; write "odd", "even" or a list of labels')
    for label in part.texts(key):
        if label not in labels:
            raise part.error(str(unknown(key.removesuffix("s"), label, labels)))
    return [i for i, label in enumerate(labels) if label in wanted]


def _check_parts(
    entry: TomlTable, fit: Sequence[Target], test: Sequence[Target], tables: Sequence[PublishedTable]
) -> None:
    for key, part in zip(_PARTS, (fit, test), strict=True):
        if not part:
            raise entry.error(f"`{key}` has no published number and no finding")
    if len({bool(target.finding) for target in (*fit, *test)}) > 1:
        raise entry.error("`fit` and `test` must both consist of cells, or both of findings")
    both = [target_name(target, tables) for target in fit if target in test]
    if both:
        raise entry.error(f"{both[0]} is in `fit` and in `test`; what is tested must not be fitted")
    for target in (*fit, *test):
        if target.finding:
            continue
        table = table_of(target, tables)
        if not table.published[target.row][target.column] and not table.both_below:
            raise entry.error(
                f"{target_name(target, tables)}: the published value is 0, so a relative distance"
                " from it is undefined; add the key `both_below` to its table (values below it count as"
                " equal)"
            )
