"""Text tables that fit a given width without losing anything.

A table that is too wide first breaks its headers and its prose between words. If that is not
enough, it is transposed, or its columns are folded into blocks, one below the other, each of which
repeats the first columns. As a last resort, each row is printed as a record, one line per column.
Names and numbers are never cut, and a word is broken only if it is longer than the line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

_GAP = 3
_LEAST_WIDTH = 20
_LEAST_PROSE = 12
"""Minimum width of a column of prose, unless its longest word is wider."""


@dataclass(frozen=True)
class Span:
    """A string, and its Rich style on a terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    head
        The column's heading.
    right
        Whether its cells are flush right, as numbers are.
    prose
        Whether its cells may break between words.
    """

    head: str
    right: bool = False
    prose: bool = False


Line = list[Span]


def text_width() -> int | None:
    """The width of the output: ``COLUMNS``, or that of the terminal; ``None`` if there is neither."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdecimal() and int(given):
        return max(int(given), _LEAST_WIDTH)
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, _LEAST_WIDTH)
    except (AttributeError, ValueError, OSError):
        return None


class Grid:
    """A table of text.

    Parameters
    ----------
    columns
        The columns, or their headers.
    keys
        Number of leading columns that identify a row; they are repeated where the table is folded.
        With 0, the table is never folded.
    turns
        Whether the table may be transposed where that takes fewer lines.
    """

    def __init__(self, *columns: Column | str, keys: int = 1, turns: bool = False) -> None:
        self.columns = tuple(Column(c) if isinstance(c, str) else c for c in columns)
        self.keys = min(keys, len(self.columns))
        self.turns = turns and self.keys == 1
        self.rows: list[tuple[Span, ...]] = []

    def add(self, *cells: str | Span) -> None:
        """Add a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells in a table of {len(self.columns)} columns")
        self.rows.append(tuple(Span(cell) if isinstance(cell, str) else cell for cell in cells))

    def lines(self, width: int | None = None) -> list[Line]:
        """The printed lines, none wider than ``width``; if that is not given, one line per row."""
        every = range(len(self.columns))
        if width is None or self._total(full := [self._full(i) for i in every]) <= width:
            return self._block(every, [self._full(i) for i in every])
        least = [self._least(i) for i in every]
        fits = self._total(least) <= width
        whole = self._block(every, self._grown(every, least, full, width)) if fits else None
        if not self.keys or any(column.prose for column in self.columns):
            records = self._records(width)
            # Columns are easier to compare in a table, so records are used only if they save lines.
            return records if whole is None or len(records) + len(self.rows) < len(whole) else whole
        if whole is not None:
            return whole
        folded = self._folded(width, least, full)
        if self.turns:
            turned = self._turned()
            if turned is not None:
                lines = turned.lines(width)
                folded = lines if folded is None or len(lines) < len(folded) else folded
        return self._records(width) if folded is None else folded

    def spelled(self, spell: Callable[[str], str]) -> Grid:
        """Return the table with all its texts replaced by those that ``spell`` returns."""
        columns = (replace(column, head=spell(column.head)) for column in self.columns)
        grid = Grid(*columns, keys=self.keys, turns=self.turns)
        grid.rows = [tuple(replace(span, text=spell(span.text)) for span in row) for row in self.rows]
        return grid

    def __str__(self) -> str:
        return text_of(self.lines(text_width()))

    def html(self) -> str:
        """Return the table as escaped HTML, with its style in attributes of the elements."""
        from html import escape

        def cell(tag: str, text: str, column: Column) -> str:
            side = "right" if column.right else "left"
            wrap = "" if column.prose or tag == "th" else ";white-space:nowrap"
            content = escape(text).replace("\n", "<br>")
            return f'<{tag} style="text-align:{side};vertical-align:top{wrap}">{content}</{tag}>'

        def line(tag: str, texts: Iterable[str]) -> str:
            cells = zip(texts, self.columns, strict=True)
            return f"<tr>{''.join(cell(tag, text, column) for text, column in cells)}</tr>"

        named = any(column.head for column in self.columns)
        head = f"<thead>{line('th', (column.head for column in self.columns))}</thead>" if named else ""
        body = "".join(line("td", (span.text for span in row)) for row in self.rows)
        return f"<table>{head}<tbody>{body}</tbody></table>"

    def _texts(self, column: int) -> Iterator[str]:
        for row in self.rows:
            yield from row[column].text.split("\n")

    def _full(self, column: int) -> int:
        """Return the width of a column at which nothing in it breaks."""
        return max(map(cell_width, (self.columns[column].head, *self._texts(column))))

    def _least(self, column: int, *, words: bool = False) -> int:
        """Return the width of a column at which its header and cells of prose break only between words."""
        head = _longest_word(self.columns[column].head)
        if not (self.columns[column].prose or words):
            return max(head, *map(cell_width, self._texts(column)), 0)
        longest = max(map(_longest_word, self._texts(column)), default=0)
        return max(head, longest, 0 if words else min(self._full(column), _LEAST_PROSE))

    def _grown(
        self, columns: Sequence[int], least: Sequence[int], full: Sequence[int], width: int
    ) -> list[int]:
        """Return widths between ``least`` and ``full``: spare width goes to prose, then to narrow columns."""
        widths = [least[i] for i in columns]
        left = width - self._total(widths)
        while left > 0:
            open_ = [n for n, i in enumerate(columns) if widths[n] < full[i]]
            if not open_:
                break
            n = min(open_, key=lambda n: (not self.columns[columns[n]].prose, widths[n]))
            widths[n] += 1
            left -= 1
        return widths

    @staticmethod
    def _total(widths: Sequence[int]) -> int:
        return sum(widths) + _GAP * max(len(widths) - 1, 0)

    def _folded(self, width: int, least: list[int], full: list[int]) -> list[Line] | None:
        """Return blocks of as many columns as fit; ``None`` if a column does not fit next to the keys."""
        keys = list(range(self.keys))
        least = list(least)
        if self._total([least[i] for i in keys]) > width // 2:
            least[: self.keys] = [self._least(i, words=True) for i in keys]
        blocks: list[list[int]] = []
        for i in range(self.keys, len(self.columns)):
            if blocks and self._total([least[j] for j in (*blocks[-1], i)]) <= width:
                blocks[-1].append(i)
            elif self._total([least[j] for j in (*keys, i)]) <= width:
                blocks.append([*keys, i])
            else:
                return None
        lines: list[Line] = []
        for block in blocks:
            lines += [[]] if lines else []
            lines += self._block(block, self._grown(block, least, full, width))
        return lines or None

    def _turned(self) -> Grid | None:
        """Return the table with rows and columns exchanged; ``None`` if a cell has more than one line."""
        if any("\n" in span.text for row in self.rows for span in row):
            return None
        heads = [Column(row[0].text, right=True) for row in self.rows]
        turned = Grid(self.columns[0].head, *heads)
        for i, column in enumerate(self.columns[1:], start=1):
            turned.add(column.head, *(row[i] for row in self.rows))
        return turned

    def _block(self, columns: Sequence[int], widths: Sequence[int]) -> list[Line]:
        lines: list[Line] = []
        if any(self.columns[i].head for i in columns):
            heads = [_wrapped(self.columns[i].head, w) for i, w in zip(columns, widths, strict=True)]
            most = max(map(len, heads))
            level = [[""] * (most - len(head)) + head for head in heads]
            lines += [
                self._line(columns, widths, texts, ["bold"] * len(level))
                for texts in zip(*level, strict=True)
            ]
            lines.append([Span("─" * self._total(widths))])
        for row in self.rows:
            cells = [_wrapped(row[i].text, w) for i, w in zip(columns, widths, strict=True)]
            styles = [row[i].style for i in columns]
            for texts in zip_longest(*cells, fillvalue=""):
                lines.append(self._line(columns, widths, texts, styles))
        return lines

    def _line(
        self, columns: Sequence[int], widths: Sequence[int], texts: Sequence[str], styles: Sequence[str]
    ) -> Line:
        line: Line = []
        blank = 0
        for i, width, text, style in zip(columns, widths, texts, styles, strict=True):
            pad = width - cell_width(text)
            before, after = (pad, 0) if self.columns[i].right else (0, pad)
            if text:
                line += [Span(" " * (blank + before))] if blank + before else []
                line.append(Span(text, style))
                blank = after + _GAP
            else:
                blank += width + _GAP
        return line

    def _records(self, width: int) -> list[Line]:
        """Return each row separately: its key, then one line per column."""
        heads = [column.head for column in self.columns[self.keys :]]
        wide = min(max(map(cell_width, heads), default=0), max(width // 3, _longest_word(" ".join(heads))))
        wide = min(wide, width // 2)
        lines: list[Line] = []
        for row in self.rows:
            lines += [[]] if lines else []
            lines += self._record_head(row, width)
            for i in range(self.keys, len(self.columns)):
                if not row[i].text:
                    continue
                head = _wrapped(self.columns[i].head, wide)
                indent = 2 + (wide + 2 if wide else 0)
                for text, of_head in zip_longest(_wrapped(row[i].text, width - indent), head, fillvalue=""):
                    blank = " " * (indent - 2 - cell_width(of_head))
                    lines.append([Span(f"  {of_head}{blank}"), Span(text, row[i].style)])
        return lines

    def _record_head(self, row: tuple[Span, ...], width: int) -> list[Line]:
        named = self.keys > 1
        parts = [
            Span(f"{column.head} {span.text}" if named and column.head else span.text, span.style or "bold")
            for column, span in zip(self.columns, row[: self.keys], strict=False)
            if span.text
        ]
        whole = "   ".join(part.text for part in parts)
        if cell_width(whole) > width:
            return [[Span(line, part.style)] for part in parts for line in _wrapped(part.text, width)]
        line: Line = []
        for part in parts:
            line += [Span("   "), part] if line else [part]
        return [line] if line else []


def text_of(lines: Iterable[Line]) -> str:
    """Printed lines as one string, without their styles."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def cell_width(text: str) -> int:
    """Return the width of a string in terminal columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _longest_word(text: str) -> int:
    return max(map(cell_width, text.split()), default=0)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width``, broken between words; words longer than that are broken too."""
    return [line for part in text.split("\n") for line in _wrapped_line(part, max(width, 1))]


def _wrapped_line(text: str, width: int) -> list[str]:
    if cell_width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_width(longer) <= width:
            lines[-1] = longer
            continue
        pieces = _pieces(word, width)
        lines[-1:] = [lines[-1], *pieces] if lines[-1] else pieces
    return lines


def _pieces(word: str, width: int) -> list[str]:
    pieces = [""]
    for sign in word:
        if pieces[-1] and cell_width(pieces[-1]) + cell_width(sign) > width:
            pieces.append("")
        pieces[-1] += sign
    return pieces
