"""The drawing of the network: in a browser, nothing is clipped, and no text overlaps a box or other text."""

from __future__ import annotations

import re

import pytest

from aqmlab.recordings.plan import Access, Link, Plan, TrafficClass
from aqmlab.reports.network_svg import network_svg
from aqmlab.reports.page import resource
from aqmlab.reports.svg_canvas import text_width, wrapped
from browser import ask, needs_chromium

TAIL = "-abcdefghijk_lmnopqrstuvwxyz01"
BURSTS = {"burst_bytes": 100_000, "off_ns": {"exponential": 10**9}}
GREEDY = {"bytes": None}


def names(long):
    return (lambda name: (name + TAIL)[:30]) if long else (lambda name: name)


def duplex(name, begin, end):
    return [
        Link(name, begin, end, 10_000_000, 20_000_000, "droptail", {}),
        Link(f"{name}-reverse", end, begin, 10_000_000, 20_000_000, "droptail", {}),
    ]


def traffic(name, *path, workload=GREEDY, rtt=90_000_000):
    kind, access = "bulk" if workload is GREEDY else "on_off_tcp", rtt and Access(10**8, rtt)
    names = tuple(link.name for link in path)
    return TrafficClass(name, 100, kind, names, (), workload, {"ecn": kind != "bulk"}, access)


def dumbbell(classes, back=0, *, long=False):
    """Classes that send from the left, and some that send in the other direction."""
    named = names(long)
    there, reverse = duplex(named("bottleneck"), named("left"), named("right"))
    uniform = {"uniform": [60_000_000, 100_000_000]}
    of = [traffic(named(f"class{i}"), there, workload=BURSTS, rtt=uniform) for i in range(classes)]
    of += [traffic(named(f"back{i}"), reverse, rtt=None) for i in range(back)]
    return Plan((there.source, there.target), (there, reverse), tuple(of))


def parking_lot(hops, classes, *, long=False):
    """Classes that cross all links and, for each link, the same number of classes that cross only this
    link."""
    named = names(long)
    nodes = tuple(named(f"r{i}") for i in range(hops + 1))
    pairs = [duplex(named(f"hop{i}"), *nodes[i : i + 2]) for i in range(hops)]
    forward = [there for there, _ in pairs]
    of = [traffic(named(f"long{i}"), *forward) for i in range(classes)]
    of += [
        traffic(named(f"cross{j}_{i}"), link, workload=BURSTS)
        for j, link in enumerate(forward)
        for i in range(classes)
    ]
    return Plan(nodes, tuple(link for pair in pairs for link in pair), tuple(of))


def graph(pairs, *, long=False, classes=1):
    """Links between numbered nodes, parallel if a pair occurs twice; one class per link."""
    named = names(long)
    nodes = tuple(dict.fromkeys(named(f"n{i}") for pair in pairs for i in pair))
    links = [
        link
        for i, (a, b) in enumerate(pairs)
        for link in duplex(named(f"link{i}"), named(f"n{a}"), named(f"n{b}"))
    ]
    of = [traffic(named(f"c{i}_{j}"), link) for i, link in enumerate(links[::2]) for j in range(classes)]
    return Plan(nodes, tuple(links), tuple(of))


MESH = [(a, b) for a in range(5) for b in range(a + 1, 5)]
NETWORKS = {
    **{f"dumbbell of {n}{', long' * long}": dumbbell(n, long=long) for n in range(1, 13) for long in (0, 1)},
    **{f"dumbbell of {n} and back": dumbbell(n, n, long=True) for n in (1, 3, 12)},
    **{
        f"parking lot of {hops}{', long' * long}": parking_lot(hops, 1, long=long)
        for hops in range(1, 11)
        for long in (0, 1)
    },
    **{f"parking lot of {hops}, 4 classes": parking_lot(hops, 4, long=True) for hops in (2, 3, 4, 10)},
    "ring": graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], long=True),
    "diamond": graph([(0, 1), (0, 2), (1, 3), (2, 3)], classes=3),
    "star": graph([(0, i) for i in range(1, 7)], long=True),
    "tree": graph([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)], long=True, classes=2),
    "mesh": graph(MESH, long=True, classes=2),
    "parallel links": graph([(0, 1), (0, 1), (0, 1), (1, 2), (1, 2)]),
    "chain with a bypass": graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4)], long=True),
    "two islands": graph([(0, 1), (2, 3)]),
    "capitals": Plan(("W" * 30, "漢" * 30), tuple(duplex("M" * 30, "W" * 30, "漢" * 30)), ()),
}

MEASURE = """(() => {
  const apart = (a, b) =>
    a.right <= b.left + 0.5 || b.right <= a.left + 0.5 || a.bottom <= b.top + 0.5 || b.bottom <= a.top + 0.5;
  const inside = (a, b) =>
    a.left >= b.left - 0.5 && a.right <= b.right + 0.5 && a.top >= b.top - 0.5 && a.bottom <= b.bottom + 0.5;
  const found = {};
  document.querySelectorAll("svg.network").forEach((svg) => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")];
    const shapes = [...svg.querySelectorAll("rect, circle")];
    const of = new Map([...texts, ...shapes].map((each) => [each, each.getBoundingClientRect()]));
    const wrong = [];
    const told = (each) => each.textContent || each.outerHTML;
    const say = (what, ...which) => wrong.push([what, ...which.map(told)]);
    const lines = [...svg.querySelectorAll("path")].map((each) => [each, each.getBoundingClientRect()]);
    for (const [each, area] of [...of, ...lines]) if (!inside(area, frame)) say("leaves the picture", each);
    texts.forEach((text, i) => {
      texts.slice(i + 1).forEach((other) =>
        apart(of.get(text), of.get(other)) || say("overlaps", text, other));
      shapes.forEach((shape) => {
        const own = shape.localName === "rect" && shape.parentNode === text.parentNode;
        if (!(own ? inside : apart)(of.get(text), of.get(shape))) say("on", text, shape);
      });
    });
    shapes.forEach((shape, i) => shapes.slice(i + 1).forEach((other) =>
      apart(of.get(shape), of.get(other)) || say("overlaps", shape, other)));
    const scale = frame.width / svg.viewBox.baseVal.width;
    found[svg.dataset.of] = { wrong, texts: texts.length, scale, page: document.documentElement.scrollWidth };
  });
  return found;
})()"""


def page_of(networks):
    drawings = {
        name: network_svg(of, {}).replace("<svg", f'<svg data-of="{name}"', 1)
        for name, of in networks.items()
    }
    drawn = "".join(f'<div class="scroll">{drawing}</div>' for drawing in drawings.values())
    ready = "<script>window.aqmlab = { ready: Promise.resolve() };</script>"
    return (
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<style>{resource('style.css')}</style><body><main>{drawn}</main>{ready}</body>"
    )


@needs_chromium
@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_overlaps_or_leaves_the_picture(tmp_path, width):
    found = ask(page_of(NETWORKS), MEASURE, tmp_path, width)
    assert found.keys() == NETWORKS.keys()
    assert {name: of["wrong"] for name, of in found.items() if of["wrong"]} == {}
    for name, network in NETWORKS.items():
        # One arrowhead per end of a class, one name per node, and three texts per pair of opposite links.
        least = 2 * len(network.classes) + len(network.nodes) + 3 * len(network.links) // 2
        assert found[name]["texts"] >= least, name
        # Letters of 13 pixels remain at least 8 pixels high, and no drawing makes the page itself wider than
        # the screen.
        assert found[name]["scale"] > 0.6 or "mesh" in name or "tree" in name, name
        assert found[name]["page"] <= max(width, 500)


def test_every_link_and_class_is_named():
    for network in (graph(MESH), parking_lot(10, 2), dumbbell(12, 12)):
        texts = " ".join(re.findall(r">([^<>]+)</text>", network_svg(network, {})))
        for name in (
            *network.nodes,
            *(c.name for c in network.classes),
            *(x.name for x in network.links[::2]),
        ):
            assert name in texts


def test_ten_links_in_a_row_are_no_wider_than_a_page():
    widths = {
        hops: float(re.search(r'viewBox="\S+ \S+ (\d+)', network_svg(parking_lot(hops, 1), {}))[1])
        for hops in range(1, 11)
    }
    assert max(widths.values()) <= 1100
    assert widths[10] <= 900


def test_lines_are_as_wide_as_they_may_be_and_lose_no_letter():
    for text in ("a-b_c.d " * 6, "W" * 30, "漢字" * 12, "one two  three", "x" * 90):
        lines = wrapped(text, 150, "rate", most=99)
        assert "".join(line.text for line in lines).replace(" ", "") == text.replace(" ", "")
        assert all(text_width(*line) <= 150 for line in lines)
    shortened = wrapped("word " * 50, 150)
    assert len(shortened) == 3
    assert shortened[-1].text.endswith("…")
    assert text_width(*shortened[-1]) <= 150
