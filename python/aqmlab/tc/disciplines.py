"""The disciplines of Linux whose words are read and written, and those without an equivalent."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.tc import cake, choke, codel, dualpi2, fifo, fq, fq_codel, fq_pie, pie, red, sfb, sfq
from aqmlab.tc.grammar import Vocabulary, Writer

READ: Mapping[str, Vocabulary] = {
    "red": red.VOCABULARY,
    "codel": codel.VOCABULARY,
    "fq": fq.VOCABULARY,
    "fq_codel": fq_codel.VOCABULARY,
    "fq_pie": fq_pie.VOCABULARY,
    "sfq": sfq.VOCABULARY,
    "pie": pie.VOCABULARY,
    "dualpi2": dualpi2.VOCABULARY,
    "cake": cake.VOCABULARY,
    "choke": choke.VOCABULARY,
    "sfb": sfb.VOCABULARY,
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
    "fq": fq.write,
    "fq_codel": fq_codel.write,
    "fq_pie": fq_pie.write,
    "sfq": sfq.write,
    "dualpi2": dualpi2.write,
    "cake": cake.write,
    "choke": choke.write,
    "sfb": sfb.write,
}
"""What writes the words for a discipline, by its name in aqmlab."""
CONTAINERS = ("htb", "tbf", "prio", "drr", "ets", "netem", "gred")
"""The disciplines of Linux that take several lines and have a counterpart in aqmlab."""
LINUX_ONLY = (
    *("cbs", "drr", "etf", "ets", "hfsc", "hhf", "htb", "mq", "mqprio", "multiq"),
    *("netem", "noqueue", "pfifo_fast", "plug", "prio", "qfq", "skbprio", "taprio", "tbf"),
    *("ingress", "clsact"),
)
"""Linux disciplines whose options aqmlab does not read in a single line."""
NONE_IN_LINUX = {
    "scred": "Linux has no Self-Configuring RED; its `red adaptive` moves max_p by the rule of 2001",
    "blue": "Linux has no BLUE; its `sfb` runs a BLUE for each group of flows",
    "pi": "Linux has no PI; its `pie` (RFC 8033), which aqmlab has as `pie`, controls the delay",
    "pi2": "Linux has no PI2 in one queue; its `dualpi2` has two",
    "rem": "Linux has no REM",
    "avq": "Linux has no AVQ; the nearest is `pie`, which also controls by the rate, through the delay",
    "fred": "Linux has no FRED",
    "redpd": "Linux has no RED-PD",
    "cobalt": "Linux has no COBALT alone; the nearest is `cake unlimited besteffort flowblind`, one queue"
    " with one COBALT, whose limit is one of memory",
    "spare": "Linux spares no short flows; its `fq_codel` and `cake` serve them first",
    "policer": "tc polices in filters (`action police`), not in a queue discipline",
    "classes": "tc divides links with `prio` or `drr` and filters that choose the class, which takes more"
    " than one line",
}
"""The reason why a discipline has no line, by discipline."""
