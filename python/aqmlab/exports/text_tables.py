"""The table of an answer as Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from aqmlab.results.answers import answer
from aqmlab.results.results import Results
from aqmlab.text.tables import Grid

TEXTS: Mapping[str, str] = MappingProxyType({"markdown": ".md", "latex": ".tex"})
"""The formats of answers, and the extensions of their files."""
_SIGNS, _AS_IT_STANDS = re.compile(r"[|\\`*_<\[\]]"), r"\\\g<0>"
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    **{sign: f"${sign}$" for sign in "|<>"},  # in text mode, LaTeX's default fonts render these wrongly
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def answer_text(results: Results, to: str, metrics: Sequence[str] | None, queue: str | None) -> str:
    """Return the answer's table with its title and a footnote that says what the numbers refer to.

    Raises
    ------
    UsageError
        For an unknown metric or queue.
    RecordingError
        If no run has finished.
    """
    found = answer(results, metrics, queue=queue)
    make: Callable[[str, Grid, str], str] = _markdown if to == "markdown" else _latex
    return make(results.title, found.grid(), found.footnote())


def _markdown(title: str, grid: Grid, note: str) -> str:
    def plain(text: str) -> str:
        return _SIGNS.sub(_AS_IT_STANDS, text)

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(map(plain, cells))} |\n"

    rule = "|".join("---:" if column.right else "---" for column in grid.columns)
    rows = "".join(line(span.text for span in row) for row in grid.rows)
    heads = line(column.head for column in grid.columns)
    return f"**{plain(title)}**\n\n{heads}|{rule}|\n{rows}\n{plain(note)}\n"


def _latex(title: str, grid: Grid, note: str) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"  {' & '.join(map(_escaped, cells))} \\\\\n"

    columns = "".join("r" if column.right else "l" for column in grid.columns)
    rows = "".join(line(span.text for span in row) for row in grid.rows)
    heads = line(column.head for column in grid.columns)
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{_escaped(title)}. {_escaped(note)}.}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{heads}\\hline\n{rows}\\hline\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)
