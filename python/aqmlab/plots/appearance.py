"""The look of a figure: its size, font, title and style, and how arms are distinguished."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from aqmlab.errors import UsageError, unknown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

COLORS = ("#046192", "#f39a04", "#069463", "#c34005", "#43d0fd", "#d677ac", "#5c1b79", "#252800")
"""The report's hues, all of different lightness, so they also differ in grey and for colour-blind readers."""

STYLE: dict[str, Any] = {
    "font.size": 8,
    # A dollar sign in a title is literal.
    "text.parse_math": False,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "figure.titlesize": 1.125 * 8,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    # Text stays text, so that it can be searched and edited.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    # Names inside SVG files would otherwise be random.
    "svg.hashsalt": "aqmlab",
}

STYLES: dict[str, dict[str, Any]] = {
    "paper": {},
    "slides": {
        "font.size": 16,
        "lines.linewidth": 2.4,
        "lines.markersize": 9,
        "axes.linewidth": 1.2,
        "grid.linewidth": 0.8,
        "figure.figsize": (11.0, 6.2),
    },
    "gray": {"axes.prop_cycle": ("#000000", "#606060", "#969696")},
}
"""The styles that come with aqmlab; the first is the default."""

_MARKS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "inverted_triangle": "v",
    "star": "*",
    "plus": "P",
    "hex": "h",
    "x": "X",
    "dot": ".",
    "cross": "x",
}
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.0}
_COLUMN, _GUTTER = 3.5, 0.16
_SIZES = (0.5, 100.0)
_LETTERS = (2.0, 100.0)
_ROW = 0.75
_EDGES = 1.2


@dataclass(frozen=True)
class Appearance:
    """The requested look of a figure; ``None`` stands for the figure's default.

    Attributes
    ----------
    width, height
        In inches. If only one is given, the other one follows the figure's proportions.
    font_size
        Font size in points.
    title
        Whether it has a title.
    style
        A name in :data:`STYLES`, the name of a matplotlib style sheet, or the path of one.
    """

    width: float | None = None
    height: float | None = None
    font_size: float | None = None
    title: bool = True
    style: str | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Figures that are made within this context have this look.

        Raises
        ------
        UsageError
            If a size is out of range or the style is unknown.
        """
        import matplotlib as mpl
        from cycler import cycler

        self.check()
        parameters = _parameters(self.style)
        if self.font_size is not None:
            parameters["font.size"] = self.font_size
        style = {**STYLE, "axes.prop_cycle": cycler(color=COLORS), **parameters}
        style["figure.titlesize"] = parameters.get("figure.titlesize", 1.125 * float(style["font.size"]))
        # The caller's own style remains unchanged.
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(style)
            token = _LOOK.set((self, parameters.get("figure.figsize")))
            try:
                yield
            finally:
                _LOOK.reset(token)

    def check(self) -> None:
        """Check that sizes are in range.

        Raises
        ------
        UsageError
            If a size is out of range.
        """
        for name, value in (("width", self.width), ("height", self.height)):
            if value is not None and not _SIZES[0] <= value <= _SIZES[1]:
                raise UsageError(
                    f"a {name} of {value:g} in is out of range; write {_SIZES[0]:g} in to {_SIZES[1]:g} in"
                )
        if self.font_size is not None and not _LETTERS[0] <= self.font_size <= _LETTERS[1]:
            raise UsageError(
                f"a font size of {self.font_size:g} pt is out of range; write {_LETTERS[0]:g} to"
                f" {_LETTERS[1]:g}"
            )


AS_MADE = Appearance()
_LOOK: ContextVar[tuple[Appearance, tuple[float, float] | None]] = ContextVar("look", default=(AS_MADE, None))


def length_in(text: str | float, what: str = "length") -> float:
    """Inches of a length: ``"88mm"``, ``"9cm"``, ``"3.5in"``, ``"252pt"``, ``"1col"``; a number is in inches.

    ``"1col"`` is a column of a two-column paper, 3.5 in, and ``"2col"`` its full width, 7.16 in.

    Raises
    ------
    UsageError
        If the text is not a length.
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*", str(text), flags=re.I)
    number, unit = (float(found[1]), found[2].lower() or "in") if found else (math.nan, "")
    if unit in ("col", "cols", "column", "columns"):
        return number * _COLUMN + max(number - 1, 0.0) * _GUTTER
    if unit not in _INCHES or not math.isfinite(number):
        raise UsageError(
            f"`{text}` is not a {what}; write a number with mm, cm, in, pt or col: `88mm`, `1col`"
        )
    return number * _INCHES[unit]


def _parameters(style: str | None) -> dict[str, Any]:
    """Return the settings of a style.

    Raises
    ------
    UsageError
        If the style is unknown or its file is invalid.
    """
    import matplotlib.style as sheets
    from cycler import cycler

    if style is None:
        return {}
    if style in STYLES:
        found = dict(STYLES[style])
        if "axes.prop_cycle" in found:
            found["axes.prop_cycle"] = cycler(color=found["axes.prop_cycle"])
        return found
    if style in sheets.library:
        return dict(sheets.library[style])
    file = Path(style).expanduser()
    if not file.is_file():
        if file.suffix == ".mplstyle" or "/" in style:
            raise UsageError(f"there is no style sheet `{style}`")
        raise unknown("style", style, [*STYLES, *sheets.available])
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the style sheet `{style}`: {error}") from error
    return _sheet(style, lines)


def _sheet(style: str, lines: Iterable[str]) -> dict[str, Any]:
    """The settings of a style sheet, which has one ``key: value`` per line."""
    import matplotlib as mpl

    found = mpl.RcParams()
    for number, line in enumerate(lines, 1):
        content = line.partition("#")[0].strip() if not re.search(r"['\"]", line) else line.strip()
        if not content or content.startswith("#"):
            continue
        key, colon, value = (part.strip() for part in content.partition(":"))
        try:
            if not colon:
                raise ValueError("write `key: value`")
            found[key] = value.strip("\"'") if key not in _QUOTED else value
        except (KeyError, ValueError) as error:
            reason = f"`{key}` is not a matplotlib setting" if isinstance(error, KeyError) else str(error)
            raise UsageError(f"{style}:{number}: {reason}") from error
    return dict(found)


_QUOTED = frozenset({"axes.prop_cycle"})
"""Settings whose quotes are part of their value."""


def new_figure(width: float, height: float, rows: int = 1) -> Figure:
    """An empty figure of the requested size, laid out for ``width`` and ``height`` in inches.

    If the figure is made narrower, it stays high enough for its stacked ``rows`` of plots to be
    legible.
    """
    from matplotlib.figure import Figure

    look, of_style = _LOOK.get()
    if of_style is not None:
        # A figure designed for many plots remains larger than one designed for a single plot.
        width, height = of_style[0], max(of_style[1], of_style[0] * min(height / width, 1.2))
    wanted = (look.width, look.height)
    if look.width is not None and look.height is None:
        wanted = (look.width, max(height * look.width / width, min(height, _ROW * rows + _EDGES)))
    elif look.height is not None and look.width is None:
        wanted = (width * look.height / height, look.height)
    return Figure(figsize=(wanted[0] or width, wanted[1] or height), layout="constrained")


def width_asked(made: float) -> float:
    """The width of a figure: the requested one, the style's, or else ``made`` inches."""
    look, of_style = _LOOK.get()
    return look.width or (of_style[0] if of_style else made)


def entitle(figure: Figure, title: str) -> None:
    """Write the title above a figure, in as many lines as needed, unless it is disabled."""
    if not title or not _LOOK.get()[0].title:
        return
    size = points_of("figure.titlesize")
    room = 72.0 * figure.get_figwidth() - size
    figure.suptitle("\n".join(_lines(title, size, room)))


def _lines(text: str, size: float, room: float) -> list[str]:
    """A string broken into lines at most ``room`` points wide."""
    most = len(text)
    lines = [text]
    while most > 8 and max(text_width(line, size) for line in lines) > room:
        most = int(most * 0.93)
        lines = wrap(text, most) or [text]
    return lines


def points_of(setting: str) -> float:
    """Return a font size in points, even if it is set by a name, such as ``medium``."""
    import matplotlib as mpl
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=mpl.rcParams[setting]).get_size_in_points())


def text_width(text: str, size: float) -> float:
    """Width of a string in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    width, _, _ = TextToPath().get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)


def mark_size() -> float:
    """Size of the marks along a line, in points."""
    import matplotlib as mpl

    return 0.55 * float(mpl.rcParams["lines.markersize"])


def arm_color(arm: int) -> str:
    """Return the colour of an arm; a style sheet may have its own colours."""
    import matplotlib as mpl

    colors = mpl.rcParams["axes.prop_cycle"].by_key().get("color", COLORS)
    return str(mpl.colors.to_hex(colors[arm % len(colors)]))


def dashes(lengths: Sequence[float]) -> Any:  # noqa: ANN401 (matplotlib's own)
    """The style of a line with these lengths of dashes and gaps; it is solid if there are none."""
    # The lengths are in pixels, for lines almost two pixels wide; here the unit is the line's width.
    return (0, tuple(length / 1.8 for length in lengths)) if lengths else "-"


def mark_of(name: str) -> str:
    """The mark with a name in :data:`aqmlab.figures.looks.UNIT_MARKS`."""
    return _MARKS[name]


def legend_below(figure: Figure, axes: Iterable[Any], more: Mapping[str, Artist] | None = None) -> None:
    """Put a single legend for all plots underneath, with as many columns as fit."""
    handles: dict[str, Artist] = {}
    for one in axes:
        for artist, name in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, artist)
    handles.update(more or {})
    if not handles:
        return
    size = points_of("legend.fontsize")
    room = 72.0 * figure.get_figwidth() - 6.0 * size
    handles = {"\n".join(_lines(name, size, room)): handle for name, handle in handles.items()}
    # The line symbol of an entry and the gap between two columns together take five times the font size.
    widths = [max(text_width(line, size) for line in name.splitlines()) + 5.0 * size for name in handles]
    columns = _columns(widths, 72.0 * figure.get_figwidth() - size)
    rows = math.ceil(len(handles) / columns)
    if _LOOK.get()[0].height is None:
        # The figure grows, so that a long legend takes no space from the plots.
        figure.set_figheight(figure.get_figheight() + (rows - 1) * 1.6 * size / 72.0)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)


def _columns(widths: Sequence[float], room: float) -> int:
    """Return how many columns of a legend fit, each as wide as its widest entry, but not more than needed."""
    for rows in range(1, len(widths)):
        columns = math.ceil(len(widths) / rows)
        # Matplotlib fills the columns in order; the first ones may have one entry more than the others.
        least, longer = divmod(len(widths), columns)
        ends = [(i + 1) * least + min(i + 1, longer) for i in range(columns)]
        if sum(max(widths[begin:end]) for begin, end in pairwise([0, *ends])) <= room:
            return columns
    return 1
