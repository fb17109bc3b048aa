"""A drawing of the network: its routers, its links with rate, delay and queue, its senders and receivers.

A row of up to two links goes from left to right, with senders on the left and receivers on the right. A
longer row goes from top to bottom, and each router has its senders on the left and its receivers on the
right. Such a drawing is not wider than a page.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from aqmlab.recordings.plan import Drawn, Link, Plan, TrafficClass, drawn_text, quantity_text
from aqmlab.reports.answer_words import case_text
from aqmlab.reports.svg_canvas import LINE, Area, Canvas, TextLine, around, wrapped
from aqmlab.results.results import Results
from aqmlab.text.numbers import counted

_MOST_ACROSS = 3
"""Largest number of columns of routers for a drawing from left to right."""
_BOX = 216.0
_PADDING = 7.0
_BETWEEN = 10.0
_RADIUS = 13.0
_FAN = 80.0
"""Distance from a router to its boxes."""
_LABEL = 170.0
_STEP = 238.0
_NAME = 150.0
"""Width of a router's name."""
_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78)
"""Possible positions of a link's label along the link."""

_Point = tuple[float, float]


class _End(NamedTuple):
    """The box that shows a class at one end of its flows."""

    lines: tuple[TextLine, ...]
    title: str

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + 2 * _PADDING


class _Ends(NamedTuple):
    senders: dict[str, list[_End]]
    receivers: dict[str, list[_End]]

    def all(self, node: str) -> list[_End]:
        return [*self.senders.get(node, ()), *self.receivers.get(node, ())]


def network_svg(network: Plan, queue_labels: dict[str, str]) -> str:
    """Draw a network.

    Parameters
    ----------
    network
        Plan of one arm.
    queue_labels
        The label of the queue at each link, by link name; by default, the name of the queue's discipline.

    Returns
    -------
    str
        An ``svg`` element that takes its colours from the page.
    """
    columns = _columns(network)
    across = max(columns.values(), default=0) < _MOST_ACROSS
    ends = _Ends(_grouped(network, first=True), _grouped(network, first=False))
    canvas = Canvas()
    layout = _across if across else _downward
    places = layout(canvas, columns, ends)
    for x, y in places.values():
        canvas.node(x, y, _RADIUS)
    for node, at in places.items():
        # At the ends of a row, the name is below the link so that it does not cross the lines to the boxes.
        side = {0: "from", max(columns.values()): "to"}.get(columns[node], "middle")
        _name(canvas, node, at, side if across else "")
    _links(canvas, network, places, queue_labels)
    return canvas.svg(
        f"The network: {counted(len(network.nodes), 'router')}, {counted(len(network.links), 'link')}"
    )


def drawn_network(results: Results) -> dict[str, str] | None:
    """Return the first case in words, and a drawing of its network; ``None`` if no run has finished.

    The label of each link names the disciplines of all arms.
    """
    runs = [results.runs_of(cell)[0] for cell in results.cells if results.runs_of(cell)]
    if not runs:
        return None
    first = next(cell for cell in results.cells if results.runs_of(cell))
    labels: dict[str, dict[str, None]] = {}
    for cell in results.cells:
        if cell.settings == first.settings and results.runs_of(cell):
            for link in results.runs_of(cell)[0].plan.links:
                labels.setdefault(link.name, {})[link.queue] = None
    joined = {name: " / ".join(kinds) for name, kinds in labels.items()}
    return {"drawing": network_svg(runs[0].plan, joined), "case": case_text(first)}


def _columns(network: Plan) -> dict[str, int]:
    """Return the column of each node, counted from the left; the longest path of a class is placed first."""
    columns = dict.fromkeys(network.nodes, 0)
    longest = max((c.path for c in network.classes), key=len, default=())
    steps = [link for link in map(network.link, longest or [link.name for link in network.links[:1]]) if link]
    placed = {steps[0].source} if steps else set(network.nodes[:1])
    for link in steps:
        if link.target not in placed:
            columns[link.target] = columns[link.source] + 1
            placed.add(link.target)
    for _ in network.nodes:
        for link in network.links:
            if link.source in placed and link.target not in placed:
                columns[link.target] = columns[link.source] + 1
                placed.add(link.target)
            elif link.target in placed and link.source not in placed:
                columns[link.source] = columns[link.target] - 1
                placed.add(link.source)
    first = min(columns.values(), default=0)
    used = sorted({column - first for column in columns.values()})
    return {node: used.index(column - first) for node, column in columns.items()}


def _grouped(network: Plan, *, first: bool) -> dict[str, list[_End]]:
    """Return the boxes of classes by the node at which their flows begin (``first``) or end."""
    groups: defaultdict[str, list[_End]] = defaultdict(list)
    for traffic in network.classes:
        link = network.link(traffic.path[0 if first else -1]) if traffic.path else None
        if link is not None:
            groups[link.source if first else link.target].append(_end(traffic, sends=first))
    return groups


def _end(traffic: TrafficClass, *, sends: bool) -> _End:
    head = f"{traffic.members} × {traffic.name}" if sends else f"{traffic.name}: receivers"
    what = traffic.what if sends else (f"base RTT {spread(traffic.access.rtt_ns)}" if traffic.access else "")
    width = _BOX - 2 * _PADDING
    lines = (*wrapped(head, width, "rate"), *wrapped(what, width))
    return _End(lines, f"{head}: {what}" if what else head)


def _across(canvas: Canvas, columns: dict[str, int], ends: _Ends) -> dict[str, _Point]:
    """Place the routers from left to right, with the boxes of inner routers below those routers."""
    last = max(columns.values(), default=0)
    tall = Counter(columns.values())
    # A column with fewer routers than another is centred vertically.
    row_of = {column: (max(tall.values()) - count) // 2 for column, count in tall.items()}
    rows: defaultdict[int, list[str]] = defaultdict(list)
    for node, column in columns.items():
        rows[row_of[column]].append(node)
        row_of[column] += 1
    places: dict[str, _Point] = {}
    bottom: defaultdict[int, float] = defaultdict(float)
    for _, row in sorted(rows.items()):
        stacks = {node: ends.all(node) for node in row}
        beside = {node for node in row if columns[node] in (0, last)}
        room = {node: _height(stacks[node]) / 2 if node in beside else 0.0 for node in row}
        y = max(bottom[columns[node]] + max(room[node], 5 * LINE) + 2 * _BETWEEN for node in row)
        names = max(LINE * len(_name_lines(node)) for node in row)
        for node in row:
            x = columns[node] * _STEP
            places[node] = (x, y)
            if node in beside:
                _stack(canvas, stacks[node], (x, y), -1 if columns[node] == 0 else 1)
                bottom[columns[node]] = y + max(room[node], _RADIUS + 4 * LINE)
            else:
                under = y + _RADIUS + names + 2 * _BETWEEN
                bottom[columns[node]] = _pile(canvas, stacks[node], (x, y), under)
    return places


def _downward(canvas: Canvas, columns: dict[str, int], ends: _Ends) -> dict[str, _Point]:
    """Place routers from top to bottom, with their senders on the left and their receivers on the right."""
    layers: defaultdict[int, list[str]] = defaultdict(list)
    for node, column in columns.items():
        layers[column].append(node)
    places: dict[str, _Point] = {}
    above, bottoms = 0.0, {-1: 0.0, 1: 0.0}
    for column in sorted(layers):
        layer = layers[column]
        name = max(LINE * len(_name_lines(node)) for node in layer)
        y = above + max(_RADIUS + 6 * LINE, name + 4 * LINE)
        for side, groups in ((-1, ends.senders), (1, ends.receivers)):
            tallest = max(_height(groups.get(node, ())) for node in layer)
            if tallest:
                y = max(y, bottoms[side] + 2 * _BETWEEN + tallest / 2)
        reach = {
            node: (
                _NAME + _RADIUS + (_BOX + 2 * _BETWEEN if ends.senders.get(node) else 0.0),
                _LABEL + _RADIUS + (_BOX + 2 * _BETWEEN if ends.receivers.get(node) else 0.0),
            )
            for node in layer
        }
        whole = sum(map(sum, reach.values())) + 2 * _BETWEEN * (len(layer) - 1)
        x = -whole / 2
        for node in layer:
            left, right = reach[node]
            # A router that is alone in its layer is placed on the centre line, however wide its boxes are.
            at = (0.0 if len(layer) == 1 else x + left, y)
            places[node] = at
            x += left + right + 2 * _BETWEEN
            _stack(canvas, ends.senders.get(node, []), at, -1, _NAME + _RADIUS)
            _stack(canvas, ends.receivers.get(node, []), at, 1, _LABEL + _RADIUS)
            for side, groups in ((-1, ends.senders), (1, ends.receivers)):
                if groups.get(node):
                    bottoms[side] = max(bottoms[side], y + _height(groups[node]) / 2)
        above = y
        if len(layer) > 1:
            above = max(y, *bottoms.values()) - 2 * LINE
    return places


def _height(stack: Sequence[_End]) -> float:
    return sum(end.height + _BETWEEN for end in stack) - _BETWEEN if stack else 0.0


def _stack(canvas: Canvas, stack: Sequence[_End], at: _Point, side: int, gap: float = _FAN) -> None:
    """Stack boxes vertically next to a router, to the left (-1) or to the right (1)."""
    x, y = at
    inner = x + side * gap
    top = y - _height(stack) / 2
    for end in stack:
        canvas.curve("access", [at, (inner, top + end.height / 2)])
        left = inner if side > 0 else inner - _BOX
        canvas.box(Area(left, top, left + _BOX, top + end.height), end.lines, end.title)
        top += end.height + _BETWEEN


def _pile(canvas: Canvas, stack: Sequence[_End], at: _Point, top: float) -> float:
    """Draw boxes one below the other under a router, joined by a line; return where they end."""
    x, begin = at
    for end in stack:
        canvas.curve("access", [(x, begin), (x, top)])
        canvas.box(Area(x - _BOX / 2, top, x + _BOX / 2, top + end.height), end.lines, end.title)
        begin = top + end.height
        top = begin + _BETWEEN
    return top


def _name_lines(node: str) -> list[TextLine]:
    return wrapped(node, _NAME, "name")


def _name(canvas: Canvas, node: str, at: _Point, below: str) -> None:
    """Draw a router's name: below the router if ``below`` is given, otherwise above it on the left."""
    x, y = at
    lines = _name_lines(node)
    under = (x + {"from": -_RADIUS, "to": _RADIUS}.get(below, 0.0), y + _RADIUS + 3, below or "middle")
    left = (x - _RADIUS - 4, y - 6 - LINE * len(lines), "to")
    first = [under, left] if below else [left, under]
    others = ((px, py, "middle") for px, py in around(x, y + _RADIUS + 3, LINE / 2))
    canvas.place(lines, (where for places in (first, others) for where in places), node)


def _links(canvas: Canvas, network: Plan, places: dict[str, _Point], labels: dict[str, str]) -> None:
    """Draw lines and their labels; a label that does not fit gets a number and goes below the drawing."""
    between: defaultdict[frozenset[str], int] = defaultdict(int)
    drawn = []
    for link, back in _pairs(network.links):
        number = between[frozenset((link.source, link.target))]
        between[frozenset((link.source, link.target))] += 1
        points = _course(canvas, places, link, number)
        texts = _texts(link, labels)
        title = _title(link, back, labels)
        canvas.curve("link", points, title)
        drawn.append((points, texts, title))
    # A line that spans one step has one place for its label; longer lines have several.
    homeless = [
        (points, title)
        for points, texts, title in sorted(drawn, key=lambda one: _length(one[0]))
        if not canvas.place(texts, _beside(points, LINE * len(texts)), title)
    ]
    key = canvas.bounds
    for i, (points, title) in enumerate(homeless, 1):
        x, y = _at(points, 0.5)
        badge = [TextLine(f"({i})", "rate")]
        canvas.place(badge, ((px, py - LINE / 2, "middle") for px, py in around(x, y, 6)), title)
        below = wrapped(f"({i}) {title}", max(key.right - key.left, 2 * _BOX), most=9)
        canvas.place(below, [(key.left, canvas.bounds.bottom + _BETWEEN, "from")], title)


def _texts(link: Link, labels: dict[str, str]) -> list[TextLine]:
    return [
        *wrapped(link.name, _LABEL, "rate"),
        *wrapped(f"{spaced(link.rate)}/s · {spaced(link.delay)}", _LABEL),
        *wrapped(labels.get(link.name, link.queue), _LABEL, "queue"),
    ]


def _title(link: Link, back: Link | None, labels: dict[str, str]) -> str:
    title = f"{link.name}: {link.rate}/s, {link.delay}, {labels.get(link.name, link.queue)}"
    if back is None:
        return title
    return f"{title}; back {back.name}: {back.rate}/s, {back.delay}, {labels.get(back.name, back.queue)}"


def _pairs(links: Sequence[Link]) -> list[tuple[Link, Link | None]]:
    """Return pairs of a link and its opposite link; the link that is earlier in the plan comes first."""
    left = list(links)
    pairs = []
    while left:
        link = left.pop(0)
        back = next((b for b in left if (b.source, b.target) == (link.target, link.source)), None)
        if back is not None:
            left.remove(back)
        pairs.append((link, back))
    return pairs


def _course(canvas: Canvas, places: dict[str, _Point], link: Link, number: int) -> list[_Point]:
    """Return a link's line, bent if a straight one would cross a router, a box or another link."""
    begin, end = places[link.source], places[link.target]
    length = _length([begin, end]) or 1.0
    across = ((end[1] - begin[1]) / length, -(end[0] - begin[0]) / length)
    middle = _at([begin, end], 0.5)
    others = [at for node, at in places.items() if node not in (link.source, link.target)]
    bends = [0.0, *(side * size * 70.0 for size in range(1, 8) for side in (1, -1))]
    best, least = [begin, end], len(bends) * 1000
    # Parallel links get different bends.
    for bend in bends[number:]:
        bent = [begin, (middle[0] + bend * across[0], middle[1] + bend * across[1]), end]
        course = bent if bend else [begin, end]
        passed = [_at(course, part / 40) for part in range(3, 38)]
        close = sum(_length([point, other]) < 2 * _RADIUS for point in passed for other in others)
        if close + canvas.covered(passed) < least:
            best, least = course, close + canvas.covered(passed)
    return best


def _at(points: Sequence[_Point], part: float) -> _Point:
    """Return the point at a fraction of a line."""
    (x1, y1), (x2, y2) = points[0], points[-1]
    if len(points) == 2:
        return x1 + part * (x2 - x1), y1 + part * (y2 - y1)
    bx, by = points[1]
    a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
    return a * x1 + b * bx + c * x2, a * y1 + b * by + c * y2


def _length(points: Sequence[_Point]) -> float:
    (x1, y1), (x2, y2) = points[0], points[-1]
    return float(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)


def _beside(points: Sequence[_Point], height: float) -> Iterator[tuple[float, float, str]]:
    """Return possible positions of a line's label: above or below a level line, next to a steep one."""
    (x1, y1), (x2, y2) = points[0], points[-1]
    steep = abs(y2 - y1) > abs(x2 - x1)
    for part in _ALONG:
        x, y = _at(points, part)
        sides = [(x + 10, y - height / 2, "from"), (x - 10, y - height / 2, "to")]
        levels = [(x, y - 7 - height, "middle"), (x, y + 8, "middle")]
        yield from (*sides, *levels) if steep else (*levels, *sides)


def spaced(quantity: str) -> str:
    """``10Mbit`` as ``10 Mbit``."""
    return re.sub(r"^([0-9.]+)([A-Za-z])", r"\1 \2", quantity)


def spread(drawn: Drawn) -> str:
    """Return a uniform distribution of times as ``60 ms to 100 ms``, any other without braces and quotes."""
    if isinstance(drawn, Mapping) and "uniform" in drawn:
        return " to ".join(spaced(quantity_text(end, "ns")) for end in drawn["uniform"])
    return spaced(re.sub(r'[{}"\[\]]', "", drawn_text(drawn, "ns")).strip())
