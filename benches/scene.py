"""The network of the benches: one bottleneck, TCP NewReno flows that always have something to send.

Every number is defined here and passed to our driver and to the peers as KEY=VALUE.

    python3 benches/scene.py flows=1000 discipline=droptail   prints the arguments, for runs by hand
"""

import sys

SCENE = {
    "rate_mbit": 100,
    "delay_ms": 5,  # of the bottleneck, one way
    "access_mbit": 1000,
    "rtt_low_ms": 20,  # base round-trip times are spread evenly over the flows, from this value
    "rtt_high_ms": 200,  # to this value
    "start_s": 1,  # the flows start evenly spread over this time
    "mss": 1448,
    "min_rto_ms": 1000,  # RFC 6298, 2.4
    "limit": 1000,  # packets of buffer
    "min_th": 100,
    "max_th": 300,
    "max_p": 0.1,
    "w_q": 0.002,
}

# Values that scale with the bottleneck's rate, so that delays do not change.
BY_RATE = ("rate_mbit", "access_mbit", "limit", "min_th", "max_th")


def scene(flows: int, discipline: str, *, times: int = 1, **changes: object) -> dict[str, object]:
    """The scene for this number of flows, with a bottleneck `times` times as fast; `changes` replace or add
    values."""
    values = dict(SCENE, flows=flows, discipline=discipline)
    for key in BY_RATE:
        values[key] *= times
    return values | changes


def arguments(values: dict[str, object]) -> list[str]:
    """The scene as command-line arguments."""
    return [f"{key}={value}" for key, value in values.items()]


if __name__ == "__main__":
    given = dict(text.split("=", 1) for text in sys.argv[1:])
    chosen = scene(
        int(given.pop("flows", 100)),
        given.pop("discipline", "red"),
        times=int(given.pop("times", 1)),
        **given,
    )
    print(*arguments(chosen))
