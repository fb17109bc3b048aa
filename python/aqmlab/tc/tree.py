"""From the disciplines and classes of one device, as in tc, to a scenario's queue with queues inside."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.recordings.plan import quantity_text
from aqmlab.tc import gred, numbers
from aqmlab.tc.commands import parts, split
from aqmlab.tc.disciplines import CONTAINERS
from aqmlab.tc.effective import NoCounterpartError, Queue
from aqmlab.tc.grammar import HEADERS
from aqmlab.tc.linux import FULL_FRAME
from aqmlab.tc.spec import read_tc

DEFAULT_LIMIT = 1000
"""Packets in the FIFO that Linux puts into a leaf without a discipline: the `txqueuelen` of most devices."""
_OF_FILTERS = ("clsact", "ingress")
"""Disciplines that hold filters, and no packets."""
BURST = 1600
"""Bytes that tc writes if the burst of a class is not given (with high-resolution timers)."""
ETHERNET = 14
"""Bytes of an Ethernet header, which Linux counts in each packet."""
R2Q = 10
"""The `r2q` of htb if none is given."""


@dataclass(frozen=True)
class TcTree:
    """The disciplines of a device as one queue of a scenario.

    Attributes
    ----------
    dev
        The device.
    queue
        The queue in the syntax of scenarios, with the queues inside it.
    remarks
        Remarks on values that tc and the kernel change, and on meanings of the words that the queue does not
        express.
    """

    dev: str
    queue: Queue
    remarks: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The lines of a scenario."""
        import tomlkit

        def text(value: object) -> str:
            if isinstance(value, Mapping):
                return "{ " + ", ".join(f"{key} = {text(one)}" for key, one in value.items()) + " }"
            if isinstance(value, list) and value and isinstance(value[0], Mapping):
                return "[\n" + "".join(f"  {text(one)},\n" for one in value) + "]"
            return tomlkit.item(value).as_string()

        return "[topology.queue]\n" + "".join(f"{key} = {text(value)}\n" for key, value in self.queue.items())


@dataclass
class _Node:
    """A discipline or a class."""

    line: int
    what: str
    kind: str
    handle: str
    parent: str | None
    options: list[str]
    shown: bool
    children: list[_Node] = field(default_factory=list)
    changes: list[_Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.what} {self.handle or self.kind}"


@typed
def read_tc_trees(text: str) -> list[TcTree]:
    """Return the trees of disciplines in a script, or in what ``tc qdisc show`` and ``tc class show`` print.

    A device has a tree if its root discipline contains others.

    Raises
    ------
    UsageError
        If the lines of a device are no tree, tc or the kernel refuses words of a discipline, or aqmlab has
        no equivalent; the message names the line.
    """
    devices: dict[str, list[_Node]] = {}
    for number, part in parts(text):
        try:
            words = split(part)
        except UsageError:
            continue  # a line of a script, but not of tc
        if (placed := _placed(number, words)) is not None:
            dev, node = placed
            if node.kind in _OF_FILTERS:
                continue
            nodes = devices.setdefault(dev, [])
            if node.kind == "gred" and not node.shown and node.options[:1] != ["setup"]:
                _changed(node, nodes).changes.append(node)
            else:
                nodes.append(node)
    found = []
    for dev, nodes in devices.items():
        root = _tree(nodes)
        if root is not None and root.kind in CONTAINERS:
            remarks: list[str] = []
            queue = _queue(root, remarks)
            found.append(TcTree(dev, queue, tuple(dict.fromkeys(remarks))))
    return found


def _changed(node: _Node, nodes: Sequence[_Node]) -> _Node:
    """Return the table to which a virtual queue of gred belongs."""
    for table in nodes:
        if table.kind == "gred" and (table.parent == node.parent or node.handle in (table.handle, "")):
            return table
    raise _wrong(
        node, "no line before this one sets up the table of gred; write `gred setup vqs 3 default 2`"
    )


def _placed(line: int, words: Sequence[str]) -> tuple[str, _Node] | None:
    """Return the device and the discipline or class that a command adds, or that tc shows."""
    rest = list(words)
    if len(rest) > 3 and rest[0] in ("qdisc", "class") and re.fullmatch(r"[0-9a-f]*:[0-9a-f]*", rest[2]):
        what, kind, handle = rest[:3]
        return _options(_Node(line, what, kind, handle.lower(), None, rest[3:], shown=True))
    at = next((i for i, word in enumerate(rest) if word.rpartition("/")[2] == "tc"), None)
    rest = rest[at + 1 :] if at is not None else rest
    while rest and rest[0].startswith("-"):
        rest.pop(0)
    if len(rest) < 2 or rest[0] not in ("qdisc", "class") or rest[1] not in ("add", "replace", "change"):
        return None
    return _options(_Node(line, rest[0], "", "", None, rest[2:], shown=False))


def _options(node: _Node) -> tuple[str, _Node]:
    """Take the place of a discipline or class from its options."""
    rest, dev = node.options, ""
    while rest:
        word = rest.pop(0)
        if word == "root":
            # A class at the root of its discipline: tc shows the discipline's handle in its own.
            node.parent = f"{node.handle.partition(':')[0]}:" if node.what == "class" else "root"
        elif word in ("dev", "parent", "handle", "classid", "leaf", "refcnt"):
            value = rest.pop(0) if rest else ""
            if word == "dev":
                dev = value
            elif word == "parent":
                node.parent = value.lower()
            elif word in ("handle", "classid"):
                node.handle = value.lower() if ":" in value else f"{value.lower()}:"
        elif node.shown:
            rest.insert(0, word)
            break
        else:
            node.kind = word
            break
    if node.parent is None and not (node.kind == "gred" and node.handle) and node.kind not in _OF_FILTERS:
        raise _wrong(node, f"{node.name} has neither `root` nor `parent`")
    if not node.kind:
        raise _wrong(node, f"{node.name} names no discipline")
    return dev, node


def _wrong(node: _Node, message: str, error: type[UsageError] = UsageError) -> UsageError:
    return error(f"line {node.line}: {message}")


def _tree(nodes: Sequence[_Node]) -> _Node | None:
    """Connect the disciplines and classes of a device, and return the discipline at its root."""
    # tc also shows the bands of disciplines such as ets as classes, which say nothing more.
    nodes = [node for node in nodes if node.what == "qdisc" or node.kind in ("htb", "drr")]
    roots = [node for node in nodes if node.parent == "root"]
    places: dict[str, _Node] = {}
    for node in nodes:
        if not node.handle:
            continue
        if (other := places.get(node.handle)) is not None:
            message = (
                f"`{node.handle}` is already the {other.what} of line {other.line}; write another number"
            )
            raise _wrong(node, message)
        places[node.handle] = node
    if not roots:
        return None
    if len(roots) > 1:
        message = (
            f"the device already has a root discipline (line {roots[0].line}); write `parent` and its class"
        )
        raise _wrong(roots[1], message)
    under: dict[str, _Node] = {}
    for node in nodes:
        if node is roots[0]:
            continue
        parent = places.get(str(node.parent))
        if parent is None:
            parent = _band(places, str(node.parent))
        if parent is None:
            known = ", ".join(f"`{handle}`" for handle in places if places[handle] is not node)
            message = f"{node.name} has the parent `{node.parent}`, which no line adds; there are {known}"
            raise _wrong(node, message)
        if node.what == "qdisc":
            if (other := under.get(str(node.parent))) is not None:
                message = f"`{node.parent}` already has the discipline of line {other.line}"
                raise _wrong(node, message)
            under[str(node.parent)] = node
        parent.children.append(node)
    for node in nodes:
        _check_line(node, places)
    return roots[0]


def _band(places: Mapping[str, _Node], parent: str) -> _Node | None:
    """Return the discipline whose band or only class this is: its classes have no lines of their own."""
    owner = places.get(f"{parent.partition(':')[0]}:")
    return owner if owner is not None and owner.kind in ("tbf", "prio", "ets", "netem") else None


def _check_line(node: _Node, places: Mapping[str, _Node]) -> None:
    """Check that the line of parents of a discipline or class ends at the root."""
    way, at = [node], node
    while at.parent != "root":
        at = places.get(str(at.parent)) or _band(places, str(at.parent)) or at
        if at in way:
            names = " in ".join(f"`{one.handle}`" for one in [*way, at])
            raise _wrong(node, f"{node.name} is its own ancestor: {names}")
        way.append(at)


def _queue(node: _Node, remarks: list[str]) -> Queue:
    if node.kind in _READERS:
        return _READERS[node.kind](node, remarks)
    if node.kind not in CONTAINERS:
        words = [node.kind, *node.options]
        place = "root refcnt 2 " if node.shown else ""
        text = f"qdisc {node.kind} 1: {place}{' '.join(node.options)}" if node.shown else " ".join(words)
        try:
            read = read_tc(text)
        except UsageError as error:
            raise _wrong(node, str(error), type(error)) from None
        remarks.extend(f"{node.handle or node.parent} {node.kind}: {remark}" for remark in read.remarks)
        return read.queue
    raise AssertionError(node.kind)


def _leaf(node: _Node, remarks: list[str]) -> Queue:
    """Return the queue of a class without children."""
    inner = [child for child in node.children if child.what == "qdisc"]
    if inner:
        return _queue(inner[0], remarks)
    remarks.append(
        f"{node.handle}: without a discipline, Linux gives a class a FIFO of the device's txqueuelen, here"
        f" {DEFAULT_LIMIT} packets"
    )
    return {"kind": "droptail", "limit": f"{DEFAULT_LIMIT}p"}


def _values(node: _Node, names: Mapping[str, str], flags: Sequence[str] = ()) -> dict[str, str]:
    """Return the values of the options by their first names."""
    found: dict[str, str] = {}
    rest = list(node.options)
    while rest:
        word = rest.pop(0)
        if word in flags:
            continue
        if word not in names:
            raise _wrong(node, f"{node.kind}: `{word}` is no option that aqmlab reads", NoCounterpartError)
        if not rest:
            raise _wrong(node, f"{node.kind} {word} has no value")
        found.setdefault(names[word], rest.pop(0))
    return found


def _kept(node: _Node, name: str, text: str, read: Callable[[str], numbers.Kept]) -> numbers.Kept:
    try:
        return read(text.partition("/")[0])
    except UsageError as error:
        raise _wrong(node, f"{node.kind} {name}: {error}") from None


def _rate(node: _Node, name: str, text: str, remarks: list[str]) -> str:
    """Return a rate in the notation of scenarios; Linux keeps whole bytes per second."""
    kept = _kept(node, name, text, numbers.rate)
    bps = int(kept.value) * 8
    if kept.changed:
        remarks.append(
            f"{node.handle} {name}: Linux keeps {quantity_text(bps, 'bps')}, in whole bytes per second"
        )
    if bps == 0:
        raise _wrong(node, f"{node.kind} {name}: `{text}` is no rate; write one such as `10mbit`")
    return quantity_text(bps, "bps")


def _size(node: _Node, name: str, text: str) -> int:
    return int(_kept(node, name, text, numbers.size).value)


def _framing(node: _Node, given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("overhead", "mpu"):
        if name in given and (value := _size(node, name, given[name])):
            found[name] = value
    layer = given.get("linklayer", "ethernet")
    if layer in ("atm", "adsl"):
        found["framing"] = "atm"
    elif layer != "ethernet":
        raise _wrong(node, f"{node.kind} linklayer: `{layer}` is not `ethernet`, `atm` or `adsl`")
    return found


_FRAMING = {"overhead": "overhead", "mpu": "mpu", "linklayer": "linklayer"}
_TBF = _FRAMING | {
    "rate": "rate",
    **dict.fromkeys(("burst", "buffer", "maxburst"), "burst"),
    **dict.fromkeys(("limit",), "limit"),
    **dict.fromkeys(("latency", "lat"), "latency"),
    "peakrate": "peakrate",
    **dict.fromkeys(("mtu", "minburst"), "mtu"),
}


def _tbf(node: _Node, remarks: list[str]) -> Queue:
    given = _values(node, _TBF)
    for name in ("rate", "burst"):
        if name not in given:
            raise _wrong(node, f"tbf: `{name}` must be given")
    if "limit" in given and "latency" in given:
        raise _wrong(node, "tbf: tc refuses `limit` together with `latency`; write one of them")
    if "limit" not in given and "latency" not in given:
        raise _wrong(node, "tbf: either `limit` or `latency` must be given")
    if ("peakrate" in given) != ("mtu" in given):
        raise _wrong(node, "tbf: `peakrate` and `mtu` are given together")
    queue: dict[str, Any] = {
        "kind": "tbf",
        "preset": "linux",
        "rate": _rate(node, "rate", given["rate"], remarks),
    }
    queue["burst"] = quantity_text(_size(node, "burst", given["burst"]), "bytes")
    if "peakrate" in given:
        queue["peakrate"] = _rate(node, "peakrate", given["peakrate"], remarks)
        queue["mtu"] = quantity_text(_size(node, "mtu", given["mtu"]), "bytes")
    queue |= _framing(node, given)
    if node.children:
        queue["queue"] = dict(_queue(node.children[0], remarks))
        remarks.append(
            f"{node.handle} tbf: its `limit` or `latency` is that of its FIFO, which the discipline replaces"
        )
    elif "limit" in given:
        queue["limit"] = quantity_text(_size(node, "limit", given["limit"]), "bytes")
        remarks.append(HEADERS)
    else:
        us = _kept(node, "latency", given["latency"], numbers.time_us)
        queue["latency"] = quantity_text(int(us.value) * 1000, "ns")
        remarks.append(HEADERS)
    return queue


_HTB = {"default": "default", "r2q": "r2q", "direct_qlen": "direct_qlen"}
_HTB_SHOWN = _HTB | {"direct_packets_stat": "stat", "ver": "ver", "offload": "offload"}
_CLASS = _FRAMING | {
    **{name: name for name in ("rate", "ceil", "cburst", "prio", "quantum")},
    **dict.fromkeys(("burst", "buffer", "maxburst"), "burst"),
    **dict.fromkeys(("cbuffer", "cmaxburst"), "cburst"),
    "mtu": "mtu",
    "level": "level",
}


def _htb(node: _Node, remarks: list[str]) -> Queue:
    given = _values(node, _HTB_SHOWN if node.shown else _HTB)
    major = node.handle.partition(":")[0]
    minor = given.get("default", "0").removeprefix("0x")
    default = f"{major}:{minor.lstrip('0') or '0'}"
    classes: list[_Node] = []

    def collect(at: _Node) -> None:
        for child in at.children:
            if child.what == "class":
                classes.append(child)
                collect(child)

    collect(node)
    if not classes:
        raise _wrong(node, "htb has no class, so Linux sends all packets unshaped; add one")
    # Linux serves classes in the order of their numbers.
    classes.sort(key=lambda one: int(one.handle.partition(":")[2], 16))
    leaves = [one for one in classes if not any(child.what == "class" for child in one.children)]
    if default not in [leaf.handle for leaf in leaves]:
        message = f"packets without a class go to `{default}`, which is no leaf, so Linux sends them unshaped"
        raise _wrong(node, f"{message}; write a leaf as `default`", NoCounterpartError)
    queue: dict[str, Any] = {"kind": "htb", "preset": "linux"}
    if "r2q" in given and (r2q := int(_kept(node, "r2q", given["r2q"], numbers.count).value)) != R2Q:
        queue["r2q"] = r2q
    tables = [_class(one, one in leaves, default, remarks) for one in classes]
    framings = {repr(framing): framing for _, framing in tables}
    if len(framings) > 1:
        message = "classes have different `overhead`, `mpu` or `linklayer`; in aqmlab, a tree has one"
        raise _wrong(node, message, NoCounterpartError)
    queue |= next(iter(framings.values()))
    queue["class"] = [table for table, _ in tables]
    if len(leaves) > 1:
        remarks.append(
            "filters are not read: `traffic` of a leaf names the traffic that belongs to it; write yours,"
            " or `dscp` or `port`"
        )
    return queue


def _class(
    node: _Node, is_leaf: bool, default: str, remarks: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    if node.kind != "htb":
        raise _wrong(node, f"class {node.handle} is of {node.kind}, and its discipline of htb")
    given = _values(node, _CLASS)
    if "rate" not in given:
        raise _wrong(node, f"class {node.handle}: `rate` must be given")
    table: dict[str, Any] = {"name": node.handle.replace(":", "-")}
    parent = str(node.parent)
    if not parent.endswith(":"):
        table["parent"] = parent.replace(":", "-")
    table["rate"] = _rate(node, "rate", given["rate"], remarks)
    if "ceil" in given and (ceil := _rate(node, "ceil", given["ceil"], remarks)) != table["rate"]:
        table["ceil"] = ceil
    for name in ("burst", "cburst"):
        if name in given and (size := _size(node, name, given[name])) != BURST:
            table[name] = quantity_text(size, "bytes")
    if is_leaf:
        if node.handle != default:
            table["traffic"] = [table["name"]]
        if "prio" in given and (prio := int(_kept(node, "prio", given["prio"], numbers.count).value)):
            if prio > 7:
                raise _wrong(node, f"class {node.handle}: `prio` {prio} is more than 7")
            table["prio"] = prio
        if "quantum" in given:
            table["quantum"] = quantity_text(_size(node, "quantum", given["quantum"]), "bytes")
        table["queue"] = dict(_leaf(node, remarks))
    return table, _framing(node, given)


def _bands(node: _Node, count: int, remarks: list[str]) -> list[Queue]:
    """Return the queue of each band."""
    major = node.handle.partition(":")[0]
    queues = []
    for band in range(1, count + 1):
        inner = [child for child in node.children if child.parent == f"{major}:{band:x}"]
        stand_in = _Node(
            node.line, "class", node.kind, f"{major}:{band:x}", node.handle, [], node.shown, inner
        )
        queues.append(_leaf(stand_in, remarks))
    return queues


def _band_tables(queues: Sequence[Queue], first: int) -> list[dict[str, Any]]:
    names = [f"band{first + number}" for number in range(len(queues))]
    tables = [
        {"name": name, "traffic": [name], "queue": dict(queue)}
        for name, queue in zip(names, queues, strict=True)
    ]
    del tables[-1]["traffic"]
    return tables


BANDS = "`priomap` and filters are not read: `traffic` of a band names the traffic that belongs to it"


def _prio(node: _Node, remarks: list[str]) -> Queue:
    options = list(node.options)
    if "priomap" in options:
        del options[options.index("priomap") : options.index("priomap") + 17]
    count = int(options[options.index("bands") + 1]) if "bands" in options[:-1] else 3
    remarks.append(BANDS)
    return {"kind": "classes", "scheduler": "strict", "class": _band_tables(_bands(node, count, remarks), 1)}


def _ets(node: _Node, remarks: list[str]) -> Queue:
    words: dict[str, list[str]] = {}
    name = ""
    for word in node.options:
        if word.isalpha():
            name = word
            words[name] = []
        else:
            words.setdefault(name, []).append(word)
    if unknown := sorted(set(words) - {"bands", "strict", "quanta", "priomap"}):
        raise _wrong(node, f"ets: `{unknown[0]}` is no option that aqmlab reads", NoCounterpartError)
    quanta = [_size(node, "quanta", text) for text in words.get("quanta", [])]
    strict = int(words.get("strict", ["0"])[0])
    count = int(words.get("bands", [str(strict + len(quanta))])[0])
    if not 1 <= count <= 16 or strict + len(quanta) > count:
        raise _wrong(node, "ets: `bands` is 1 to 16, and at least those that are strict or have quanta")
    quanta += [FULL_FRAME] * (count - strict - len(quanta))
    queues = _bands(node, count, remarks)
    remarks.append(BANDS)
    shared = _band_tables(queues[strict:], strict + 1) if quanta else []
    unit = gcd(*quanta) or 1
    for table, quantum in zip(shared, quanta, strict=True):
        table["weight"] = quantum // unit
    rest: dict[str, Any] = {"kind": "classes", "scheduler": "drr", "quantum": f"{unit}B", "class": shared}
    if not strict:
        return rest
    bands = _band_tables(queues[:strict], 1)
    if shared:
        bands[-1]["traffic"] = [bands[-1]["name"]]
        bands.append({"name": "rest", "queue": rest})
    return {"kind": "classes", "scheduler": "strict", "class": bands}


def _drr(node: _Node, remarks: list[str]) -> Queue:
    tables: list[dict[str, Any]] = []
    quanta = []
    for child in (child for child in node.children if child.what == "class"):
        given = _values(child, {"quantum": "quantum"})
        name = child.handle.replace(":", "-")
        quanta.append(_size(child, "quantum", given["quantum"]) if "quantum" in given else FULL_FRAME)
        tables.append({"name": name, "traffic": [name], "queue": dict(_leaf(child, remarks))})
    if not tables:
        raise _wrong(node, "drr has no class, so Linux drops all packets; add one")
    unit = gcd(*quanta)
    for table, quantum in zip(tables, quanta, strict=True):
        table["weight"] = quantum // unit
    remarks.append("filters are not read: `traffic` of a class names the traffic that belongs to it")
    return {"kind": "classes", "scheduler": "drr", "quantum": f"{unit}B", "class": tables}


_NETEM = {
    "delay": "the delay of a path: write it into the `rtt` of the traffic, which counts both directions, or"
    " into a `[[delay]]` stage",
    "distribution": "the distribution of a `[[delay]]` stage",
    "loss": "loss outside queues: write `loss` of the traffic or of a `[[delay]]` stage",
    "rate": "the rate of a link: write it into the `rate` of the topology",
}
"""What the scenario has in place of netem's words."""
_NOT_NETEM = frozenset({"limit", "ecn", "seed"})
_NETEM_ALONE = ("duplicate", "corrupt", "reorder", "gap", "slot")
_NETEM_LIMIT = 1000


def _netem(node: _Node, remarks: list[str]) -> Queue:
    words: dict[str, list[str]] = {}
    name = ""
    for written in node.options:
        word = {"latency": "delay", "drop": "loss"}.get(written, written)
        if word in {*_NETEM, *_NOT_NETEM, *_NETEM_ALONE}:
            name = word
            words[name] = []
        elif name:
            words[name].append(word)
        else:
            raise _wrong(node, f"netem: `{word}` is no option of netem")
    if alone := [word for word in _NETEM_ALONE if word in words]:
        raise _wrong(node, f"netem: `{alone[0]}` has no counterpart in aqmlab", NoCounterpartError)
    for word, instead in _NETEM.items():
        if word in words:
            remarks.append(f"{node.handle} netem {' '.join([word, *words[word]])}: {instead}")
    if node.children:
        return _queue(node.children[0], remarks)
    text = words.get("limit", [])
    limit = int(_kept(node, "limit", text[0], numbers.count).value) if text else _NETEM_LIMIT
    if node.parent != "root":
        remarks.append(
            f"{node.handle} netem: nothing manages this queue: behind what shapes it, packets wait in netem's"
            f" FIFO of {limit} packets; write the discipline inside netem, or netem on another device"
        )
    return {"kind": "droptail", "limit": f"{limit}p"}


def _gred(node: _Node, remarks: list[str]) -> Queue:
    setup, queues = node.options, [change.options for change in node.changes]
    lines = node.changes
    if node.shown:
        setup, queues = gred.virtual_queues(node.options)
        lines = [node] * len(queues)

    def place(index: int) -> Callable[[UsageError], UsageError]:
        return lambda error: _wrong(lines[index], str(error), type(error))

    try:
        queue, found = gred.read(setup, queues, place, shown=node.shown)
    except UsageError as error:
        raise error if str(error).startswith("line ") else _wrong(node, str(error), type(error)) from None
    remarks.extend(f"{node.handle or node.parent} gred: {remark}" for remark in found)
    return queue


_READERS: Mapping[str, Callable[[_Node, list[str]], Queue]] = {
    "tbf": _tbf,
    "netem": _netem,
    "htb": _htb,
    "gred": _gred,
    "prio": _prio,
    "ets": _ets,
    "drr": _drr,
}
