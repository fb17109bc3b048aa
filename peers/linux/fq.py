"""Record what Linux's fq does with the packets of several flows, as CSV.

    python3 fq.py KERNEL OUT [CASE ...]

This command boots KERNEL in virtual time as `single_flow.py` does, runs all cases, or only the named cases,
and writes OUT/CASE.csv (`vectors/linux-fq/README.md` explains the columns) and OUT/cases.csv.

The load and the trace points are those of `flow_decisions.py`. Without a rate per flow, fq is behind htb, which paces
the link; with one, it is at the root of a link that takes no time.
"""

import os
import random
import re

from flow_decisions import PLAN, POINTS, history, load, send
from recorder import PACED, listening, main, network, received, save, traced
from single_flow import batch

# Many hashes, so that the flows do not collide; timers do not wait for one another.
HASHES = "orphan_mask 65535 timer_slack 0"
PHASES = {1: 0.5, 2: 0.2, 3: 0.12, 4: 0.08, 5: 0.06, 6: 0.04}
SHORT = ((1.5, 150, 0.5), (0.3, 60, 0.03), (4.0, 200, 2.0), (1.0, 200, 0.1), (0.2, 100, 0.5), (2.0, 200, 0))
# The cases, by name: the discipline; whether it is at the root; the phases of the load; its seed.
CASES = {
    "rounds": (f"fq {HASHES}", False, PLAN, 1),
    "quantum": (f"fq {HASHES} quantum 1514 initial_quantum 3000 refill_delay 400ms", False, PLAN, 2),
    "limits": (f"fq {HASHES} limit 60 flow_limit 20 quantum 600 initial_quantum 600", False, PLAN, 3),
    "ce": (f"fq {HASHES} ce_threshold 10ms", False, PLAN, 4),
    "maxrate": (f"fq {HASHES} maxrate 2mbit", True, SHORT, 5),
    "maxrate_quantum": (f"fq {HASHES} maxrate 1mbit quantum 9000 initial_quantum 1000", True, SHORT, 6),
    "maxrate_low": (f"fq {HASHES} maxrate 400kbit", True, SHORT, 7),
    "maxrate_threshold": (f"fq {HASHES} maxrate 2mbit low_rate_threshold 3mbit flow_limit 30", True, SHORT, 8),
    "maxrate_ce": (f"fq {HASHES} maxrate 2mbit ce_threshold 1ms", True, SHORT, 9),
    "maxrate_slow": (f"fq {HASHES} maxrate 8kbit flow_limit 10", True, SHORT, 10),
}


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    spec, root, phases, seed = CASES[name]
    place = "root handle 2:" if root else "parent 1:1 handle 2:"
    lines = [f"qdisc add dev va {place} {spec}"]
    sender, other, ifindex = network(*([] if root else PACED), *lines)
    receiver = listening(other, sender)
    shown = os.popen("tc -d qdisc show dev va").read()
    offered = load(random.Random(seed), PHASES, phases)
    (packets, _), raw = traced(lambda: send(offered, None, 0, REST_S))
    rows = history(raw, ifindex, packets, [], received(receiver))
    save(directory, name, rows)
    print(re.sub(r"\s+", " ", os.popen("tc -s qdisc show dev va").read()))
    batch("ip", "link del va")
    receiver.close()
    counts = {what: sum(row[1] == what for row in rows) for what in ("dropped", "marked")}
    (text,) = [line for line in shown.splitlines() if line.startswith("qdisc fq ")]
    return {"case": name, "discipline": spec, "packets": len(packets)} | counts | {"shown": text.strip()}


REST_S = 60
"""Seconds after which the last packet has left at the slowest rate."""

if __name__ == "__main__":
    main(__file__, POINTS, CASES, run)
