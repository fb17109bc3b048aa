"""Draw cases for `short_flows.py` at random: lost and late SYNs, SYN-ACKs, first flights and last segments.

    python3 draw_short_cases.py SEED COUNT > CASES

Prints a table of COUNT cases of each kind. The same arguments print the same table.
"""

import random
import sys

COLUMNS = {
    "case": "",
    "congestion": "reno",
    "sack": 1,
    "timestamps": 1,
    "delay_ms": 30,
    "exchanges": "",
    "think_ms": 0,
}
COLUMNS |= {"short_of_full": 0, "drop_client": "", "late_client": "", "drop_server": "", "late_server": ""}
COLUMNS |= {"start_us": 0, "end_s": 20}
FIRST_FLIGHT = 10


def some(draws: random.Random, names: list[str], share: float) -> str:
    """Return some of the names, each with this probability."""
    return " ".join(name for name in names if draws.random() < share)


def copies(draws: random.Random, numbers: range, share: float, most: int) -> str:
    """Return some of the copies of these segments, each with this probability."""
    names = [f"{n}:{c}" if c > 1 else str(n) for n in numbers for c in range(1, most + 1)]
    return some(draws, names, share)


def first_flight(draws: random.Random) -> str:
    """Return at least one segment of the first flight, or all of them."""
    if draws.random() < 0.3:
        return " ".join(map(str, range(FIRST_FLIGHT)))
    return some(draws, [str(n) for n in range(FIRST_FLIGHT)], 0.5) or "0"


def last(draws: random.Random, row: dict[str, object]) -> str:
    """Return the last one to three segments of the only response."""
    size = int(str(row["exchanges"]).split("/")[1])
    return " ".join(str(n) for n in range(max(0, size - draws.randint(1, 3)), size))


def several(draws: random.Random) -> str:
    return " ".join(f"{draws.randint(1, 4)}/{draws.randint(1, 20)}" for _ in range(draws.randint(2, 5)))


def all_late(draws: random.Random) -> str:
    """Return the same delay of more than one timeout for each copy of the SYN-ACK."""
    ms = draws.choice((1200, 1500, 3300))
    return " ".join(f"S:{n}={ms}" if n > 1 else f"S={ms}" for n in range(1, 7))


def acks(draws: random.Random) -> str:
    return some(draws, [f"A{n}" for n in range(20)], 0.3) or "A0"


# For each kind, the columns that differ from the defaults; a function draws its column, given the columns before it.
KINDS = {
    "none": {},
    "syn": {"drop_client": lambda r, _: "S"},
    "syn2": {"drop_client": lambda r, _: "S S:2"},
    "synack": {"drop_server": lambda r, _: "S"},
    "synack2": {"drop_server": lambda r, _: "S S:2"},
    "synack3": {"drop_server": lambda r, _: "S S:2 S:3"},
    "both": {"drop_client": lambda r, _: "S", "drop_server": lambda r, _: "S"},
    "synack_late": {"late_server": lambda r, _: f"S={r.randint(50, 900)}"},
    "synack_too_late": {"late_server": lambda r, _: f"S={r.randint(1000, 1900)}"},
    "syn_too_late": {"late_client": lambda r, _: f"S={r.randint(1000, 1900)}"},
    "synacks_too_late": {"late_server": lambda r, _: all_late(r)},
    "ack": {"drop_client": lambda r, _: "A0"},
    "request": {"drop_client": lambda r, _: r.choice(("0", "0 1", "0 0:2", "A0 0"))},
    "flight": {"drop_server": lambda r, _: first_flight(r)},
    "late_flight": {
        "late_server": lambda r, _: f"S={r.randint(50, 900)}",
        "drop_server": lambda r, _: first_flight(r),
    },
    "synack_flight": {"drop_server": lambda r, _: "S " + first_flight(r)},
    "last": {"drop_server": last},
    "acks": {"drop_client": lambda r, _: acks(r)},
    "late": {"late_server": lambda r, _: " ".join(f"{n}={r.randint(20, 400)}" for n in range(20) if r.random() < 0.2)},
    "loss": {
        "drop_server": lambda r, _: copies(r, range(20), 0.25, 4),
        "drop_client": lambda r, _: copies(r, range(4), 0.25, 3),
    },
    "several": {
        "exchanges": lambda r, _: several(r),
        "think_ms": lambda r, _: r.choice((0, 40, 400, 1500)),
        "drop_server": lambda r, _: copies(r, range(60), 0.05, 2),
        "drop_client": lambda r, _: copies(r, range(12), 0.1, 2),
    },
    "several_synack": {
        "exchanges": lambda r, _: several(r),
        "think_ms": lambda r, _: r.choice((0, 40, 400, 1500)),
        "drop_server": lambda r, _: "S",
    },
    "nots": {
        "timestamps": 0,
        "drop_server": lambda r, _: r.choice(("S", "S S:2", "")) + " " + copies(r, range(20), 0.1, 2),
        "drop_client": lambda r, _: r.choice(("S", "S S:2", "")),
    },
    "cubic": {"congestion": "cubic", "drop_server": lambda r, _: copies(r, range(20), 0.2, 3)},
}


def case(seed: str, kind: str, number: int) -> dict[str, object]:
    """Return one case, as values by column."""
    draws = random.Random(f"{seed} {kind} {number}")
    row: dict[str, object] = COLUMNS | {"case": f"{kind}_{number}"}
    row["delay_ms"] = draws.choice((4, 30, 30, 100))
    row["exchanges"] = f"{draws.randint(1, 3)}/{draws.randint(1, 20)}"
    row["short_of_full"] = draws.choice((0, 500))
    row["start_us"] = draws.randrange(512_000)
    for column, value in KINDS[kind].items():
        row[column] = value(draws, row) if callable(value) else value
    return row


if __name__ == "__main__":
    print(",".join(COLUMNS))
    for kind in KINDS:
        for number in range(int(sys.argv[2])):
            print(",".join(map(str, case(sys.argv[1], kind, number).values())))
