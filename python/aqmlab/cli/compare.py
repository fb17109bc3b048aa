"""The command that compares two results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from aqmlab.cli.console import refuse_damage, tell_json
from aqmlab.cli.options import AsJson, ClassName, Metrics, Queue

if TYPE_CHECKING:
    from aqmlab.results.comparison import Comparison

_FEW = 16
"""Largest number of comparisons that are also printed as sentences; with more, only the table is printed."""

SideText = Annotated[
    str,
    typer.Argument(
        metavar="PATH[:WHICH]",
        help="A recording or a sweep, with an arm or cell labels: runs/demo:RED, sweeps/x:RED,rate=5Mbit."
        " If the second begins with a colon, it uses the path of the first.",
        show_default=False,
    ),
]


def compare(
    first: SideText,
    second: SideText,
    metric: Metrics = None,
    queue: Queue = None,
    class_name: ClassName = "*",
    as_json: AsJson = False,
) -> None:
    """Print how the second result differs from the first, paired by seed where both ran the same traffic."""
    from aqmlab.paths import side
    from aqmlab.results.comparison import compare_sides

    one = side(first)
    other = side(second, one)
    found = compare_sides(one, other, metrics=metric, queue=queue, class_name=class_name)
    if as_json:
        tell_json(found.to_json())
    else:
        print_comparison(found)
    refuse_damage(one.results, other.results)


def print_comparison(found: Comparison) -> None:
    """Print tables of differences, the differences in words, and the number of comparisons."""
    from aqmlab.cli.tables import answer_console, print_grid

    console = answer_console()
    console.print(f"{found.second} against {found.first}", style="bold", markup=False)
    for table in found.grids():
        console.print()
        print_grid(console, table)
    console.print()
    for line in _remarks(found):
        console.print(line, markup=False, soft_wrap=True)


def _remarks(found: Comparison) -> Iterator[str]:
    if len(found.compared) <= _FEW:
        for one in found.compared:
            yield f"{one.case}: {one.sentence}" if one.case else one.sentence
        yield ""
    if found.unpaired:
        yield f"runs are not paired by seed: {'; '.join(found.unpaired)}"
    else:
        yield "runs are paired by seed: both sides carry the same traffic for each seed"
    # A metric that one side lacks for every seed does not exclude any seed: there is nothing to compare.
    left_out = sorted({s for one in found.compared if one.found.estimate for s in one.found.alone})
    if left_out:
        yield f"left out because only one side has a value for them: seeds {', '.join(map(str, left_out))}"
    if found.multiple.note:
        yield found.multiple.note
    if any(one.unclear for one in found.compared):
        yield "n.s.: not significant at 95 %" + (
            ", corrected for all comparisons" if found.multiple.count > 1 else ""
        )
    if found.unmatched:
        yield f"only on one side, and left out: {'; '.join(found.unmatched)}"
