"""The disciplines of Linux whose words are read and written, and those without an equivalent."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.tc import codel, dualpi2, fifo, fq_codel, pie, red
from aqmlab.tc.grammar import Vocabulary, Writer

READ: Mapping[str, Vocabulary] = {
    "red": red.VOCABULARY,
    "codel": codel.VOCABULARY,
    "fq_codel": fq_codel.VOCABULARY,
    "pie": pie.VOCABULARY,
    "dualpi2": dualpi2.VOCABULARY,
    "pfifo": fifo.PACKETS,
    "bfifo": fifo.BYTES,
}
"""The words of disciplines, by their name in Linux."""
WRITTEN: Mapping[str, Writer] = {
    "droptail": fifo.write,
    "red": red.write,
    "ared": red.write,
    "codel": codel.write,
    "pie": pie.write,
    "fq_codel": fq_codel.write,
    "dualpi2": dualpi2.write,
}
"""What writes the words for a discipline, by its name in aqmlab."""
LINUX_ONLY = (
    *("cake", "cbs", "choke", "drr", "etf", "ets", "fq", "fq_pie", "gred", "hfsc", "hhf", "htb"),
    *("mq", "mqprio", "multiq", "netem", "noqueue", "pfifo_fast", "plug", "prio", "qfq", "sfb", "sfq"),
    *("skbprio", "taprio", "tbf", "ingress", "clsact"),
)
"""Linux disciplines whose options aqmlab does not read."""
NOT_READ = {"cake", "choke", "sfb"}
"""Those of them that aqmlab has."""

NONE_IN_LINUX = {
    "scred": "Linux has no Self-Configuring RED; its `red adaptive` moves max_p by the rule of 2001",
    "blue": "Linux has no BLUE; its `sfb` runs a BLUE for each group of flows",
    "pi": "Linux has no PI; its `pie` (RFC 8033), which aqmlab has as `pie`, controls the delay",
    "pi2": "Linux has no PI2 in one queue; its `dualpi2` has two",
    "rem": "Linux has no REM",
    "avq": "Linux has no AVQ",
    "fred": "Linux has no FRED",
    "redpd": "Linux has no RED-PD",
    "cobalt": "Linux has no COBALT alone; its `cake` has one in each queue",
    "cake": "Linux has `cake`, but aqmlab does not write its options yet",
    "choke": "Linux has `choke`, but aqmlab does not write its options yet",
    "sfb": "Linux has `sfb`, but aqmlab does not write its options yet",
    "policer": "tc polices in filters (`action police`), not in a queue discipline",
    "classes": "tc divides links with `prio` or `drr` and filters that choose the class, which takes more"
    " than one line",
}
"""The reason why a discipline has no line, by discipline."""

__all__ = ["LINUX_ONLY", "NONE_IN_LINUX", "NOT_READ", "READ", "WRITTEN"]
