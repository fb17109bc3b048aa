"""The network drawn: routers from left to right, links with rate, delay and queue, traffic at its end."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from aqmlab.plan import Link, Network, TrafficClass

_BOX_WIDTH = 190
_BOX_HEIGHT = 44
_STEP_X = 250
_STEP_Y = 160
_MARGIN = 16
_RADIUS = 13


def network_svg(network: Network, queue_labels: dict[str, str]) -> str:
    """Draw a network.

    Parameters
    ----------
    network
        Of one arm.
    queue_labels
        What to write at the queue of a link, by link name, where arms differ; else the discipline's name.

    Returns
    -------
    str
        An ``svg`` element that takes its colours from the page.
    """
    columns = _columns(network)
    places = _places(network, columns)
    senders = _grouped(network, first=True)
    receivers = _grouped(network, first=False)
    left = _MARGIN + _BOX_WIDTH + 60
    parts: list[str] = []
    for pair in _pairs(network.links):
        parts.append(_draw_pair(pair, places, left, queue_labels))
    height = max((y for _, y in places.values()), default=0.0) + 56
    last = max(columns.values(), default=0)
    below: defaultdict[str, int] = defaultdict(int)
    for groups, side in ((senders, -1), (receivers, 1)):
        for node, classes in groups.items():
            outside = columns[node] == (0 if side < 0 else last)
            drawn, low = _draw_ends(classes, places[node], left, side, None if outside else below[node])
            below[node] += 0 if outside else len(classes)
            parts.append(drawn)
            height = max(height, low)
    for node, (column, y) in places.items():
        parts.append(
            f'<circle class="node" cx="{left + column * _STEP_X:.0f}" cy="{y:.0f}" r="{_RADIUS}"/>'
            f'<text class="name" x="{left + column * _STEP_X:.0f}" y="{y + _RADIUS + 16:.0f}">'
            f"{escape(_short(node, 14))}</text>"
        )
    width = left + max(columns.values(), default=0) * _STEP_X + 60 + _BOX_WIDTH + _MARGIN
    return (
        f'<svg class="network" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
        f' aria-label="The network: {len(network.nodes)} routers, {len(network.links)} links">'
        f"{''.join(parts)}</svg>"
    )


def _columns(network: Network) -> dict[str, int]:
    """Column of each node: how many links a class has passed when it gets there, at the most."""
    columns = dict.fromkeys(network.nodes, 0)
    forward = [network.link(name) for c in network.classes for name in c.path]
    # Traffic in both directions would push columns up for ever: as many rounds as there are nodes.
    first_paths = [[network.link(name) for name in c.path] for c in network.classes[:1]]
    steps = [link for path in first_paths for link in path] or forward
    for link in steps:
        if link is not None:
            columns[link.target] = max(columns[link.target], columns[link.source] + 1)
    placed = {node for link in steps if link is not None for node in (link.source, link.target)}
    for _ in network.nodes:
        for link in network.links:
            if link.source in placed and link.target not in placed:
                columns[link.target] = columns[link.source] + 1
                placed.add(link.target)
            elif link.target in placed and link.source not in placed:
                columns[link.source] = max(columns[link.target] - 1, 0)
                placed.add(link.source)
    return columns


def _places(network: Network, columns: dict[str, int]) -> dict[str, tuple[int, float]]:
    """Column and height of each node; nodes of one column stand below each other."""
    rows: defaultdict[int, int] = defaultdict(int)
    places = {}
    for node in network.nodes:
        column = columns[node]
        places[node] = (column, 70.0 + rows[column] * _STEP_Y)
        rows[column] += 1
    return places


def _pairs(links: Sequence[Link]) -> list[tuple[Link, Link | None]]:
    """Links with their opposite, the one named first in front."""
    left = list(links)
    pairs = []
    while left:
        link = left.pop(0)
        back = next((b for b in left if (b.source, b.target) == (link.target, link.source)), None)
        if back is not None:
            left.remove(back)
        pairs.append((link, back))
    return pairs


def _draw_pair(
    pair: tuple[Link, Link | None], places: dict[str, tuple[int, float]], left: float, labels: dict[str, str]
) -> str:
    link, back = pair
    (c1, y1), (c2, y2) = places[link.source], places[link.target]
    x1, x2 = left + c1 * _STEP_X, left + c2 * _STEP_X
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    title = f"{link.name}: {link.rate}/s, {link.delay}, {labels.get(link.name, link.queue)}"
    if back is not None:
        title += f"; back {back.name}: {back.rate}/s, {back.delay}, {labels.get(back.name, back.queue)}"
    return (
        f"<g><title>{escape(title)}</title>"
        f'<line class="link" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>'
        f'<text class="rate" x="{middle_x:.0f}" y="{middle_y - 30:.0f}">{escape(link.name)}</text>'
        f'<text x="{middle_x:.0f}" y="{middle_y - 12:.0f}">'
        f"{escape(spaced(link.rate))}/s · {escape(spaced(link.delay))}</text>"
        f'<text class="queue" x="{middle_x:.0f}" y="{middle_y + 20:.0f}">'
        f"{escape(_short(labels.get(link.name, link.queue), 34))}</text></g>"
    )


def _grouped(network: Network, *, first: bool) -> dict[str, list[TrafficClass]]:
    """Classes by the node where they begin, or end."""
    groups: defaultdict[str, list[TrafficClass]] = defaultdict(list)
    for traffic in network.classes:
        link = network.link(traffic.path[0 if first else -1]) if traffic.path else None
        if link is not None:
            groups[link.source if first else link.target].append(traffic)
    return groups


def _draw_ends(
    classes: list[TrafficClass], place: tuple[int, float], left: float, side: int, below: int | None
) -> tuple[str, float]:
    """Boxes beside a node or, under ``below`` others, beneath it; and how far down they reach."""
    column, y = place
    node_x = left + column * _STEP_X
    parts = []
    low = y
    for i, traffic in enumerate(classes):
        if below is None:
            top = y - _BOX_HEIGHT / 2 + (i - (len(classes) - 1) / 2) * (_BOX_HEIGHT + 10)
            inner = node_x + side * 60
            box_x = inner if side > 0 else inner - _BOX_WIDTH
        else:
            top = y + 46 + (below + i) * (_BOX_HEIGHT + 10)
            inner, box_x = node_x, node_x - _BOX_WIDTH / 2
        begin_y = top - 10 if below is not None and below + i > 0 else y
        middle = box_x + _BOX_WIDTH / 2
        end_y = top + _BOX_HEIGHT / 2 if below is None else top
        what = traffic.what if side < 0 else (f"base RTT {spread(traffic.rtt)}" if traffic.rtt else "")
        head = f"{traffic.count} × {traffic.name}" if side < 0 else f"{traffic.name}: receivers"
        parts.append(
            f'<g><line class="access" x1="{node_x:.0f}" y1="{begin_y:.0f}"'
            f' x2="{inner:.0f}" y2="{end_y:.0f}"/>'
            f'<rect class="end" x="{box_x:.0f}" y="{top:.0f}"'
            f' width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6"/>'
            f'<text class="rate" x="{middle:.0f}" y="{top + 18:.0f}">{escape(_short(head, 26))}</text>'
            f'<text x="{middle:.0f}" y="{top + 35:.0f}">{escape(_short(what, 30))}</text></g>'
        )
        low = max(low, top + _BOX_HEIGHT + 12)
    return "".join(parts), low


def spaced(quantity: str) -> str:
    """``10Mbit`` as ``10 Mbit``."""
    return re.sub(r"^([0-9.]+)([A-Za-z])", r"\1 \2", quantity)


def spread(distribution: str) -> str:
    """``{ uniform = ["60ms", "100ms"] }`` as ``60 ms to 100 ms``; other distributions without their signs."""
    uniform = re.search(r'uniform\s*=\s*\["([^"]*)",\s*"([^"]*)"\]', distribution)
    if uniform:
        return f"{spaced(uniform[1])} to {spaced(uniform[2])}"
    return spaced(re.sub(r'[{}"\[\]]', "", distribution).strip())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
