"""Record the decisions of Linux's DualPI2 under chosen loads, as CSV: probability, credit, drops and marks.

    python3 dualpi2.py KERNEL OUT [CASE ...]

This command boots KERNEL (Linux 7.3 or later, with sch_dualpi2) in virtual time as `single_flow.py` does,
runs all cases, or only the named cases, and writes OUT/CASE.csv (`vectors/linux-dualpi2/README.md` explains
the columns) and OUT/cases.csv.

UDP datagrams of chosen sizes and ECN fields go from one network namespace to another through htb, which paces
them, and the discipline behind it. The discipline is set up by netlink, because it is younger than many
versions of tc. Trace points give the instants at which packets arrive, are queued, leave and are dropped, and
at which the probability is updated; the receiver records the packets that reach it, with their ECN fields.
"""

import random
import struct
import sys
import time

from netlink import NLA_F_NESTED, TCA_STATS_APP, Netlink, attribute
from recorder import PACED, PAGE, RATE_KBIT, listening, main, network, payload, received, save, sending, traced
from red_idle import fields, records
from single_flow import batch

POINTS = ARRIVED, QUEUED, SENT, DROPPED, TIMER = (
    "net/net_dev_queue",
    "qdisc/qdisc_enqueue",
    "qdisc/qdisc_dequeue",
    "skb/kfree_skb",
    "timer/hrtimer_expire_entry",
)
# Attributes of dualpi2's options: number and format. Times in microseconds; alpha and beta in Hz / 256.
OPTIONS = {
    "limit": (1, "I"),
    "target": (3, "I"),
    "tupdate": (4, "I"),
    "alpha": (5, "I"),
    "beta": (6, "I"),
    "step_packets": (7, "I"),
    "step_us": (8, "I"),
    "min_qlen_step": (9, "I"),
    "coupling": (10, "B"),
    "drop_overload": (11, "B"),
    "drop_enqueue": (12, "B"),
    "c_protection": (13, "B"),
    "ecn_mask": (14, "B"),
}
# Fields of its statistics: p, the waiting times of the C and the L queue, the packets that have entered each,
# the most that waited, the marks, the marks of the step, and the credit, which is signed.
STATE = struct.Struct("=8Ii")
NOT_ECT, ECT1, ECT0, CE = range(4)
MIX, SCALABLE, CLASSIC = (0.3, 0.45, 0.2, 0.05), (0.0, 0.95, 0.0, 0.05), (0.5, 0.0, 0.5, 0.0)
# The cases, by name: the options; the function below that generates the load; its seed; the shares of the
# four values of the ECN field.
CASES = {
    "mix": ("", "constant", 1, MIX),
    "bursts": ("", "bursts", 2, MIX),
    "scalable": ("", "constant", 3, SCALABLE),
    "classic": ("", "constant", 4, CLASSIC),
    "overload": ("", "flood", 5, MIX),
    "overflow": ("drop_overload=0 limit=150", "flood", 6, MIX),
    "enqueue": ("drop_enqueue=1", "constant", 7, MIX),
    "packets": ("step_packets=5 min_qlen_step=3 coupling=4 c_protection=30", "bursts", 8, MIX),
    "any_ect": ("ecn_mask=3 step_us=20000 min_qlen_step=2", "bursts", 9, MIX),
    "gains": ("target=5000 tupdate=5120 alpha=100 beta=300 coupling=1", "bursts", 10, MIX),
    "stall": ("drop_overload=0", "stalls", 11, (0.0, 0.0, 1.0, 0.0)),
}


def ecn(draws: random.Random, shares) -> int:
    return draws.choices((NOT_ECT, ECT1, ECT0, CE), shares)[0]


def constant(draws: random.Random, shares):
    """Yield packets as (seconds until the next packet, bytes, ECN field), at rates that vary from half to
    twice the link's rate.
    """
    for factor in (1.2, 0.8, 1.1, 0.5, 1.5, 0.9):
        for _ in range(300):
            yield 1514 * 8e-3 / RATE_KBIT / factor, 1514, ecn(draws, shares)


def bursts(draws: random.Random, shares):
    """Yield bursts of different lengths at half to four times the link's rate, with pauses between them."""
    for _ in range(15):
        factor, few = draws.uniform(0.5, 4.0), draws.random() < 0.2
        for _ in range(draws.randrange(5, 30) if few else draws.randrange(50, 200)):
            size = draws.choice((1514, 1514, 1514, 600, 300, 90))
            wait = size * 8e-3 / RATE_KBIT / factor * draws.uniform(0.3, 1.7)
            yield wait, size, ecn(draws, shares)
        yield draws.choice((0.002, 0.02, 0.1, 0.4, 1.0)), 90, NOT_ECT


def flood(draws: random.Random, shares):
    """Yield packets at three times the link's rate until the discipline is overloaded, pause, and repeat."""
    for count in (900, 500):
        for _ in range(count):
            yield 1514 * 8e-3 / RATE_KBIT / 3, 1514, ecn(draws, shares)
        yield 0.3, 90, NOT_ECT


def stalls(draws: random.Random, shares):
    """Yield bursts that arrive at once, so the waiting time falls from that of the last packet to zero
    between two updates.
    """
    for count in (200, 350, 450, 300):
        for _ in range(count):
            yield 0.0, 1514, ecn(draws, shares)
        yield count * 0.0013 + 0.3, 1514, ECT0


class Discipline:
    """DualPI2 below class 1:1 of a device."""

    def __init__(self, ifindex: int, options: str) -> None:
        self.netlink = Netlink()
        given = b""
        for word in options.split():
            name, value = word.split("=")
            kind, form = OPTIONS[name]
            given += attribute(kind, struct.pack("=" + form, int(value)))
        self.netlink.add(ifindex, "dualpi2", given, NLA_F_NESTED)

    def close(self) -> None:
        self.netlink.close()

    def state(self) -> tuple[int, ...]:
        """Return p, the number of packets that the step marked, and the credit."""
        p, *_, steps, credit = STATE.unpack_from(self.netlink.statistics("dualpi2")[TCA_STATS_APP])
        return p, steps, credit


def send(load, discipline: Discipline) -> tuple[list[tuple[int, int]], list[tuple[int, tuple[int, ...]]]]:
    """Offer the load, and read the discipline's state every 4 ms, so at least once between two updates;
    return the sizes and ECN fields of the packets, and the states.
    """
    sockets = [sending(field) for field in range(4)]
    packets, states, due = [], [], time.monotonic_ns() + 10_000_000
    read = due

    def wait(until: int) -> None:
        nonlocal read
        while read < until:
            time.sleep(max(0, read - time.monotonic_ns()) / 1e9)
            begin = time.monotonic_ns()
            values = discipline.state()
            now = time.monotonic_ns()
            assert now - begin < 20_000, "virtual time stands still while a program computes"
            states.append((begin, values))
            read += 4_000_000
        time.sleep(max(0, until - time.monotonic_ns()) / 1e9)

    for gap, size, field in load:
        sockets[field].sendto(payload(len(packets), size), ("10.9.0.2", 9))
        packets.append((size, field))
        due += round(gap * 1e9)
        wait(due)
    wait(due + 1_000_000_000)
    return packets, states


def timer() -> int:
    """Return the address of the function that updates the probability."""
    with open("/proc/kallsyms") as file:
        return next(int(line.split()[0], 16) for line in file if line.split()[2] == "dualpi2_timer")


def history(raw: bytes, ifindex: int, packets, came) -> list[tuple[int, str, str]]:
    """Return the events at the queue, in order."""
    points = {number: (point, at) for point in POINTS for number, at, _ in [fields(point)]}
    function, rows, numbers, arrivals = timer(), [], {}, 0
    for at, record in records(raw, PAGE):
        point, places = points.get(int.from_bytes(record[:2], sys.byteorder), (None, {}))
        if point is None:
            continue
        value = {k: int.from_bytes(record[o : o + s], sys.byteorder) for k, (o, s) in places.items() if s <= 8}
        if point == TIMER:
            if value["function"] == function:
                rows.append((at, "update", ""))
        elif point == ARRIVED:
            start = int.from_bytes(record[places["name"][0] : places["name"][0] + 2], sys.byteorder)
            if record[start : start + 3] == b"va\0":
                numbers[value["skbaddr"]] = arrivals
                size, field = packets[arrivals]
                rows.append((at, "arrived", f"{size} {field}"))
                arrivals += 1
        elif point == SENT:
            if value["ifindex"] == ifindex and value["packets"]:
                number = numbers.pop(value["skbaddr"])
                marked = came[number] == CE and packets[number][1] != CE
                rows.append((at, "marked" if marked else "sent", str(number)))
        elif point == DROPPED and value["skbaddr"] in numbers:
            rows.append((at, "dropped", str(numbers.pop(value["skbaddr"]))))
    assert arrivals == len(packets) and not numbers, (arrivals, len(packets), numbers)
    return rows


def run(name: str, directory: str) -> dict[str, object]:
    """Run one case, and return its row of cases.csv."""
    options, load, seed, shares = CASES[name]
    sender, other, ifindex = network(*PACED)
    receiver = listening(other, sender)
    offered = globals()[load](random.Random(seed), shares)
    (packets, states), raw = traced(lambda: send(offered, Discipline(ifindex, options)))
    rows = history(raw, ifindex, packets, received(receiver))
    rows += [(at, "state", " ".join(map(str, values))) for at, values in states]
    rows.sort(key=lambda row: row[0])
    # One state per update is enough.
    new = [False]
    for _, event, _ in rows:
        new.append(event == "update" or (new[-1] and event != "state"))
    rows = [row for row, keep in zip(rows, new, strict=False) if row[1] != "state" or keep]
    save(directory, name, rows)
    batch("ip", "link del va")
    receiver.close()
    counts = {what: sum(row[1] == what for row in rows) for what in ("dropped", "marked", "update")}
    steps = {"marked_by_step": states[-1][1][1]}
    return {"case": name, "options": options, "packets": len(packets)} | counts | steps


if __name__ == "__main__":
    main(__file__, POINTS, CASES, run)
