"""Draws a ladder diagram: two time lines, and the arrows between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab.figures.model import Ladder
from aqmlab.plots.appearance import dashes, points_of, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTERS = 0.7
"""Font size of an arrow's text, relative to that of the figure."""


def draw_ladder(axes: Axes, ladder: Ladder) -> None:
    """Draw the time lines, the arrows and their texts."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    times = [at for arrow in ladder.arrows for _, at in (arrow.begin, arrow.end)]
    begin, end = min(times), max(times)
    for x, host in ((0.0, "sender"), (1.0, "receiver")):
        axes.axvline(x, color="black", linewidth=0.8)
        axes.text(x, 1.01, host, transform=axes.get_xaxis_transform(), ha="center", va="bottom")
    size = _LETTERS * points_of("font.size")
    room = (end - begin) / max(ladder.height / 0.1, 1)
    labelled = {0.0: float("-inf"), 1.0: float("-inf")}
    for arrow in ladder.arrows:
        x, sent = arrow.begin
        if arrow.begin != arrow.end:
            look = {"color": str(arrow.look.hue), "linewidth": arrow.look.width}
            look |= {"linestyle": dashes(arrow.look.dash)}
            shape = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, "mutation_scale": 5}
            axes.annotate("", arrow.end, arrow.begin, arrowprops={**look, **shape})
        # The texts of a burst's packets would overlap, so only the first packet has one.
        if sent - labelled[x] >= room:
            labelled[x] = sent
            place, side = (-0.02, "right") if x == 0.0 else (1.02, "left")
            axes.text(place, sent, arrow.text, ha=side, va="center", fontsize=size)
    words = max(text_width(arrow.text, size) for arrow in ladder.arrows) + 8
    beside = max(words / max(72.0 * (figure.get_figwidth() - 0.8) - 2 * words, 36.0), 0.2)
    axes.set(xlim=(-beside, 1 + beside), ylim=(end + room, begin - room))
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
