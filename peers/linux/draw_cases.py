"""Draw cases for `single_flow.py` at random: losses, lost acknowledgments, marks, reordering, pauses.

    python3 draw_cases.py SEED COUNT > CASES

Prints a table of COUNT cases for each kind and congestion control. Each copy of a data segment is lost with the
probability of its kind, independently of the others. The same arguments print the same table.
"""

import random
import sys

SEGMENTS, COPIES, ACKS = 120, 8, 200
FIRST = 5  # earlier segments arrive, so that the first round trip is measured
COLUMNS = {"case": "", "congestion": "", "sack": 1, "timestamps": 1, "rack": 1, "tlp": 3, "frto": 2, "dsack": 1}
COLUMNS |= {"ecn": 0, "ack_compression": 44, "nagle": 1, "receive_buffer": 1 << 20, "drop": "", "drop_ack": ""}
COLUMNS |= {"mark": "", "writes": f"0:{SEGMENTS}", "end_s": 60, "late": ""}


def some(draws: random.Random, share: float) -> list[int]:
    """Return some of the segments."""
    return [n for n in range(FIRST, SEGMENTS) if draws.random() < share]


def late(draws: random.Random, share: float) -> list[str]:
    """Return some of the segments, each with a delay in milliseconds."""
    return [f"{n}:{draws.randint(1, 25)}" for n in some(draws, share)]


def pauses(draws: random.Random) -> list[str]:
    """Return writes of a few segments with pauses between them."""
    at, writes = 0.0, []
    for _ in range(14):
        writes.append(f"{at:.3f}:{draws.randint(1, 12)}")
        at += draws.choice((0.02, 0.07, 0.15, 0.4))
    return writes


# For each kind: the probability that a copy of a segment is lost, and the columns that differ from the defaults. A
# function draws its column.
KINDS = {
    "loss10": (0.1, {}),
    "loss20": (0.2, {}),
    "loss30": (0.3, {}),
    "ack": (0.12, {"drop_ack": lambda r: [n for n in range(ACKS) if r.random() < 0.15]}),
    "late": (0.06, {"late": lambda r: late(r, 0.12)}),
    "ecn": (0.08, {"ecn": 1, "mark": lambda r: some(r, 0.15)}),
    "nots": (0.15, {"timestamps": 0}),
    "nosack": (0.08, {"sack": 0}),
    "app": (0.15, {"writes": pauses}),
    "norack": (0.12, {"rack": 0}),
    "notlp": (0.15, {"tlp": 0}),
    "nofrto": (0.15, {"frto": 0, "dsack": 0}),
}


def case(seed: str, kind: str, congestion: str, number: int) -> dict[str, object]:
    """Return one case, as values by column."""
    draws = random.Random(f"{seed} {kind} {congestion} {number}")
    share, values = KINDS[kind]
    copies = [(n, nth) for n in range(FIRST, SEGMENTS) for nth in range(1, COPIES) if draws.random() < share]
    drop = " ".join(f"{n}:{nth}" if nth > 1 else str(n) for n, nth in copies)
    name = f"drawn_{congestion}_{kind}_{number}"
    row: dict[str, object] = COLUMNS | {"case": name, "congestion": congestion, "drop": drop}
    for column, value in values.items():
        row[column] = " ".join(map(str, value(draws))) if callable(value) else value
    return row


if __name__ == "__main__":
    print(",".join(COLUMNS))
    for kind in KINDS:
        for congestion in ("reno", "cubic"):
            for number in range(int(sys.argv[2])):
                print(",".join(map(str, case(sys.argv[1], kind, congestion, number).values())))
