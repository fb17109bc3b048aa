"""Record what Linux's gred does with the packets of several classes, as CSV.

    python3 gred.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, runs all cases, or only the named cases,
and writes OUT/CASE.csv (`vectors/linux-gred/README.md` explains the columns) and OUT/cases.csv.

The link, the load and the trace points are those of `flow_decisions.py`. gred finds a packet's virtual queue in a field
of the kernel's packet, the traffic control index. Here, filters at the device's egress set it from the source port:
the kernel puts the minor number of the class into it that a filter selects.
"""

import os
import random
import re
import struct

from decisions import TCA_GRED_PARMS, State
from flow_decisions import PLAN, POINTS, history, load, send
from netlink import TCA_OPTIONS, attributes
from recorder import PACED, listening, main, network, received, save, traced
from single_flow import batch

AVERAGING = "avpkt 1000 bandwidth 10Mbit"
PARAMETERS = struct.Struct("=6I 28x")  # of a virtual queue: limit, min, max, its number, backlog, average


def virtual(
    number: int, low: int, high: int, burst: int, limit: int, probability: float, prio: int = 0
) -> str:
    """Return tc's words for a virtual queue."""
    words = (
        f"limit {limit} min {low} max {high} {AVERAGING} burst {burst} probability {probability} DP {number}"
    )
    return f"{words} prio {prio}" if prio else words


THREE = (
    virtual(1, 4000, 16000, 8, 60000, 0.1),
    virtual(2, 3000, 12000, 6, 60000, 0.05),
    virtual(3, 5000, 20000, 10, 60000, 0.02),
)
PRIORITIES = (
    virtual(1, 12000, 36000, 20, 100000, 0.1, 1),
    virtual(2, 12000, 30000, 20, 100000, 0.1, 2),
    virtual(3, 12000, 24000, 20, 100000, 0.1, 3),
)
EQUAL = (
    virtual(1, 20000, 40000, 30, 100000, 0.02, 4),
    virtual(2, 15000, 30000, 30, 100000, 0.05, 4),
    virtual(3, 10000, 20000, 30, 100000, 0.1, 4),
)
FULL = (
    virtual(1, 30000, 60000, 40, 9000, 0.1),
    virtual(2, 3000, 30000, 6, 12000, 0.0001),
    virtual(3, 30000, 60000, 40, 90000, 0.1),
)
SETUP = "DPs 4 default 3"
# The cases, by name: the words of `setup`; those of each virtual queue; the seed of the load.
CASES = {
    "classes": (SETUP, THREE, 1),
    "ecn": (SETUP, [f"{words} ecn" for words in THREE], 2),
    "harddrop": (SETUP, [THREE[0], f"{THREE[1]} ecn", f"{THREE[2]} ecn harddrop"], 3),
    "limits": (f"{SETUP} limit 20000", FULL, 4),
    "priorities": (f"{SETUP} grio", PRIORITIES, 5),
    "priorities_ecn": (f"{SETUP} grio", [f"{words} ecn" for words in PRIORITIES], 6),
    "equal": (f"{SETUP} grio", EQUAL, 7),
    "equal_ecn": (f"{SETUP} grio", [f"{words} ecn" for words in EQUAL], 8),
}
CLASSES = {1: 1, 2: 2, 3: 2, 4: 1}
"""The virtual queue of each flow; those of flows 5 and 6 do not exist (0, 7), so they are in the default one."""


def lines(setup: str, queues) -> list[str]:
    """Return tc's lines."""
    select = [f"{1000 + flow} 0xffff classid :{queue:x}" for flow, queue in {**CLASSES, 5: 0, 6: 7}.items()]
    return [
        *PACED,
        f"qdisc add dev va parent 1:1 handle 2: gred setup {setup}",
        *(f"qdisc change dev va parent 1:1 handle 2: gred {words}" for words in queues),
        "qdisc add dev va clsact",
        *(f"filter add dev va egress protocol ip pref 1 u32 match ip sport {words}" for words in select),
    ]


def offered(draws: random.Random):
    """Yield packets of six flows, in phases at 0.6 to 4 times the link's rate; some flows pause in each phase."""
    for factor, count, pause in PLAN:
        weights = {flow: draws.choice((0, 0.05, 0.3, 1.0)) for flow in range(1, 7)}
        weights[draws.randrange(1, 7)] = 1.0
        yield from load(draws, weights, ((factor, count, pause),))


class Averages(State):
    """A reader of the averages of gred's virtual queues."""

    def values(self, attrs: dict[int, bytes]) -> tuple[int, ...]:
        """Return the averages of the virtual queues 1 to 3, in bytes."""
        table = attributes(attrs[TCA_OPTIONS])[TCA_GRED_PARMS]
        found = [PARAMETERS.unpack_from(table, number * PARAMETERS.size) for number in range(16)]
        return tuple(average for *_, average in found[1:4])


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    setup, queues, seed = CASES[name]
    sender, other, ifindex = network(*lines(setup, queues))
    receiver = listening(other, sender)
    shown = os.popen("tc -d qdisc show dev va parent 1:1").read()
    (packets, states), raw = traced(lambda: send(offered(random.Random(seed)), Averages("gred"), 4))
    rows = history(raw, ifindex, packets, states, received(receiver))
    save(directory, name, rows)
    print(re.sub(r"\s+", " ", os.popen("tc -s qdisc show dev va parent 1:1").read()))
    batch("ip", "link del va")
    receiver.close()
    counts = {what: sum(row[1] == what for row in rows) for what in ("dropped", "marked", "state")}
    text = re.sub(r"\s+", " ", shown).strip()
    return (
        {"case": name, "setup": setup, "queues": "; ".join(queues), "packets": len(packets)}
        | counts
        | {"shown": text}
    )


# Lines about gred alone: what tc computes from few words, and what it or the kernel refuses.
FEW = "limit 60000 min 9000 max 27000 avpkt 1000"
LINES = (
    ("DPs 4 default 3", f"{FEW} DP 1"),
    ("DPs 4 default 3", f"{FEW} DP 1 ecn harddrop"),
    ("DPs 4 default 3", f"{FEW} DP 1 burst 20 probability 0.05 bandwidth 100mbit"),
    ("DPs 4 default 3", f"{FEW} DP 1 probability 1"),
    ("DPs 4 default 3", f"{FEW} DP 1 prio 3"),
    ("vqs 4 default 3 grio", f"{FEW} DP 1 prio 3"),
    ("vqs 4 default 3 grio", f"{FEW} vq 1"),
    ("vqs 4 default 3 grio", f"{FEW} DP 1 prio 3", f"{FEW} DP 2", f"{FEW} DP 3 prio 2"),
    ("vqs 4 default 3 grio", f"{FEW} DP 3 prio 5", f"{FEW} DP 2", f"{FEW} DP 1 prio 0"),
    ("DPs 4 default 3 limit 30000", f"{FEW} DP 1"),
    ("DPs 4 default 3 limit 0", f"{FEW} DP 1"),
    ("DPs 4 default 3 ecn", f"{FEW} DP 1"),
    ("DPs 4 default 3", FEW),
    ("DPs 4 default 3", "limit 60000 min 9000 avpkt 1000 DP 1"),
    ("DPs 4 default 3", f"{FEW} DP 5"),
    ("DPs 4 default 3", f"{FEW} DP 1 burst 5"),
    ("DPs 4 default 3", "limit 60000 min 27000 max 9000 avpkt 1000 DP 1"),
    ("DPs 4 default 3", "limit 0 min 9000 max 27000 avpkt 1000 DP 1"),
    ("DPs 17 default 3",),
    ("DPs 4 default 4",),
    ("DPs 4",),
    ("DPs 4 default 1 loud",),
    ("default 0 DPs 1 grio", f"{FEW} DP 0"),
)


def written(directory: str) -> None:
    """Write what tc reports after the lines of each case and of `LINES`, and what is refused."""
    with open(os.path.join(directory, "shown.txt"), "w") as file:
        for setup, *queues in [(setup, *queues) for setup, queues, _ in CASES.values()] + list(LINES):
            network()
            for line in [f"add dev va root handle 1: gred setup {setup}"] + [
                f"change dev va root handle 1: gred {words}" for words in queues
            ]:
                file.write(f"# tc qdisc {line}\n")
                said = os.popen(f"tc qdisc {line} 2>&1").read().splitlines()
                said = [words for words in said if words.strip() and not words.startswith("GRED: set")]
                file.writelines(f"! {words}\n" for words in said[:1])
            file.write(os.popen("tc -d qdisc show dev va | grep gred -A 20").read() + "\n")
            batch("ip", "link del va")


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run, (written,))
