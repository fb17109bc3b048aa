"""Random tc commands and random queues, and the comparison of what aqmlab reads with a kernel's answers."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from aqmlab import TcQueue
from aqmlab.tc.effective import effective
from aqmlab.tc.grammar import DEFAULT_RATE_BPS
from aqmlab.tc.linux import weight_log

ECN, HARDDROP, ADAPTIVE = 1, 2, 4
CODEL_UNIT = 1024
SFB_STEPS = 65_535
ETHERNET = 14
# In the order of linux/pkt_sched.h.
CAKE_TINS = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")
CAKE_ISOLATIONS = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows"),
    *("dual-srchost", "dual-dsthost", "triple-isolate"),
)
CAKE_CELLS = ("none", "atm", "ptm")
CAKE_NOTHING = ("autorate", "nat", "raw", "split_gso", "fwmark")
PIE_UNIT = 64
SFQ = ("limit", "quantum", "perturb_s", "headdrop", "depth", "flows", "divisor")
ODD_NUMBERS = [
    "0",
    "-0",
    "-1",
    "1",
    "inf",
    "nan",
    "1p",
    "4294967295",
    "4294967296",
    "1e9",
    "5e9",
    "1g",
    "2gbit",
    "0x",
    "08",
    "1e",
    "1.5.2",
    "1_000",
    "abc",
    "1kk",
    "0x1p12",
    "0x1.8p4k",
]
BURSTS = ["0", "1", "-1", "1.5", "0x20", "010", "09", "+5", "1e2", "4294967295", "4294967296"]
PROBABILITIES = [
    "0.02",
    "0.1",
    "1",
    "1.0",
    ".5",
    "0",
    "1e-3",
    "1e-5",
    "1e-7",
    "0.99",
    "2",
    "1.5",
    "-0.5",
    "nan",
    "inf",
    "0.5x",
    "abc",
    "0x1p-3",
    "4",
]
RATES = [
    "10mbit",
    "1gbit",
    "100Mbit",
    "10kbit",
    "2kbit",
    "1kbps",
    "1mbps",
    "1mibit",
    "34359738367",
    "34359738368",
    "34gbit",
    "40gbit",
    "1tbit",
    "8bit",
    "7",
    "0",
    "1000",
    "50kibps",
    "1e6",
    "-1",
    "10m",
    "1.5gbit",
    "100",
    "33bit",
]
TIMES = [
    "5ms",
    "100ms",
    "1ms",
    "500us",
    "20ms",
    "1s",
    "1.5us",
    "0.5us",
    "0",
    "10",
    "5000",
    "100000",
    "1msec",
    "2msecs",
    "3usec",
    "1secs",
    "1m",
    "4294967296",
    "5000s",
    "-1",
    "1e3",
    "1e3us",
    "0x10us",
    "0.0015s",
    "nan",
    "inf",
    "99.9ms",
    "1023us",
    "1024us",
    "1025us",
    "12.3456ms",
]
LIMITS = ["100", "1000", "0", "0x10", "010", "1", "09", "1.5", "100p", "-1", "4294967295", "4294967296", "+7"]
PLACES = (
    *["add dev lo root"] * 24,
    *(
        "replace dev lo root",
        "replace dev lo handle 10: root",
        "add root dev lo",
        "add dev lo handle 1: root",
    ),
    *("add dev lo root handle ffff:", "add dev lo root handle 1234", "add dev lo root handle 12345:"),
    *(
        "add dev lo root handle 0:",
        "add dev lo root handle g:",
        "add dev lo dev lo root",
        "add dev lo root root",
    ),
    *("add dev lo root parent 1:1", "a dev lo root", "repl dev lo root", "add dev lo", "add root"),
    *("add dev lo root estimator 1s 8s", "adx dev lo root", "add dev lo root handle none"),
    *("add dev lo root handle 1:1", "add dev lo root handle 10: handle 11:"),
)


def commands(seed: int, number: int) -> list[str]:
    """Random commands; about half of them are refused by tc or by the kernel."""
    draws = random.Random(seed)
    kinds = [_red, _codel, _fifo, _cake, _choke, _sfb, _fq_pie, _sfq]
    shares = [0.3, 0.1, 0.1, 0.12, 0.1, 0.08, 0.1, 0.1]
    disciplines = draws.choices(kinds, shares, k=number)
    words = [f"tc {draws.choice(['qdisc'] * 9 + ['q'])} {draws.choice(PLACES)}" for _ in disciplines]
    return [f"{place} {of(draws)}" for place, of in zip(words, disciplines, strict=True)]


def _number(draws: random.Random, low: float, high: float) -> str:
    """A number in one of the forms that strtod(3) and tc read, and sometimes in one that they refuse."""
    x = math.exp(draws.uniform(math.log(low), math.log(high)))
    forms = (
        *[f"{int(x)}"] * 6,
        *(f"{x:.3f}", f"{x:.2e}", f"{int(x):#x}", f"+{int(x)}", f"{int(x)}b", f"{x / 128:.4g}kbit"),
        *(f"{x / 1024:.4g}{draws.choice(['k', 'kb', 'K', 'Kb'])}", f"{x / 2**20:.4g}m"),
    )
    return draws.choice(ODD_NUMBERS) if draws.random() < 0.03 else draws.choice(forms)


def _red(draws: random.Random) -> str:
    def some(share: float, usual: str, other: str) -> str:
        return usual if draws.random() < share else other

    packet = draws.choice([1000, 1500, 1514, 500, 1024, 9000, 64, int(10 ** draws.uniform(0, 5))])
    low = int(packet * 10 ** draws.uniform(-0.1, 2.5))
    high = int(low * 10 ** draws.uniform(-0.01, 1)) if draws.random() < 0.9 else low
    limit = int(high * 10 ** draws.uniform(-0.1, 1))
    guideline = (2 * low + high) // (3 * packet)
    burst = int(guideline * draws.choice([1, 1, 1, 0.9, 1.2, 2, 5]))
    odd_burst = some(0.5, _number(draws, 1, 1e4), draws.choice(BURSTS))
    chance = draws.choice([f"{draws.random():.4f}", f"{10 ** -draws.uniform(0, 9):.3g}"])
    words = [
        (0.98, f"limit {some(0.85, str(limit), _number(draws, 10, 3e9))}"),
        (0.98, f"avpkt {some(0.9, str(packet), _number(draws, 1, 1e5))}"),
        (0.7, f"min {some(0.9, str(low), _number(draws, 10, 1e9))}"),
        (0.7, f"max {some(0.9, str(high), _number(draws, 10, 3e9))}"),
        (0.6, f"burst {some(0.9, str(burst), odd_burst)}"),
        (0.6, f"probability {some(0.5, chance, draws.choice(PROBABILITIES))}"),
        (0.5, f"bandwidth {some(0.5, str(int(10 ** draws.uniform(0, 11))), draws.choice(RATES))}"),
        *((0.3, "ecn"), (0.2, "harddrop"), (0.08, "adaptive"), (0.04, "adaptative"), (0.05, "nodrop")),
        (0.03, draws.choice(["foo", "noecn", "limit", "limit 300000", "avpkt 100", "ECN", "flowid 1:1"])),
    ]
    return _shuffled(draws, "red", words)


def _codel(draws: random.Random) -> str:
    def time() -> str:
        drawn = [f"{draws.uniform(0, 200):.3f}ms", f"{int(10 ** draws.uniform(0, 8))}us"]
        return draws.choice(drawn if draws.random() < 0.5 else TIMES)

    limit = str(int(10 ** draws.uniform(0, 9))) if draws.random() < 0.4 else draws.choice(LIMITS)
    words = [
        *((0.6, f"limit {limit}"), (0.6, f"target {time()}"), (0.6, f"interval {time()}")),
        (0.4, draws.choice(["ecn", "noecn", "ecn noecn", "noecn ecn"])),
        *((0.06, f"ce_threshold {time()}"), (0.03, draws.choice(["foo", "target", "harddrop"]))),
    ]
    return _shuffled(draws, "codel", words)


def _fifo(draws: random.Random) -> str:
    more = [(0.05, draws.choice(["limit 5", "foo", "limit"]))]
    words = [(0.95, f"limit {_number(draws, 1, 5e9)}"), *more]
    return _shuffled(draws, draws.choice(["pfifo", "bfifo"]), words)


LINKS = (
    *("raw", "conservative", "atm", "ptm", "noatm", "via-ethernet", "docsis", "ethernet", "ether-vlan"),
    *("pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap", "pppoe-ptm"),
    *("bridged-vcmux", "bridged-llcsnap", "bridged-ptm", "ipoa-vcmux", "ipoa-llcsnap"),
)


def _cake(draws: random.Random) -> str:
    rate = draws.choice([f"{int(10 ** draws.uniform(0, 12))}bit", draws.choice(RATES)])
    times = (f"{int(10 ** draws.uniform(0, 7))}us", draws.choice(TIMES), f"{draws.uniform(0, 900):.2f}ms")
    words = [
        *((0.6, f"bandwidth {rate}"), (0.1, "unlimited"), (0.03, "autorate-ingress")),
        *((0.4, draws.choice(CAKE_TINS)), (0.5, draws.choice(CAKE_ISOLATIONS))),
        (0.3, f"rtt {draws.choice(times)}"),
        (0.2, draws.choice(["datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite"])),
        *((0.3, draws.choice(LINKS)) for _ in range(3)),
        (0.3, f"overhead {draws.choice([draws.randint(-70, 300), draws.randint(0, 60), '0x3', '1.5'])}"),
        (0.2, f"mpu {draws.choice([draws.randint(-2, 300), 64, 84])}"),
        (0.2, f"memlimit {_number(draws, 1e3, 5e9)}"),
        *((0.2, "wash"), (0.1, "nowash"), (0.2, "ingress"), (0.1, "egress"), (0.1, "no-split-gso")),
        *((0.05, "ack-filter"), (0.1, "no-ack-filter"), (0.1, f"fwmark {draws.choice(LIMITS)}")),
        (0.03, draws.choice(["foo", "target 5ms", "bandwidth", "diffserv", "limit 5"])),
    ]
    return _shuffled(draws, "cake", words)


def _choke(draws: random.Random) -> str:
    low = int(10 ** draws.uniform(0, 3.5))
    high = int(low * 10 ** draws.uniform(-0.02, 1))
    limit = int(high * 10 ** draws.uniform(-0.05, 1))
    guideline = (2 * low + high) // 3
    words = [
        (0.97, f"limit {draws.choice([limit, limit, limit, draws.choice(LIMITS)])}"),
        (0.97, f"bandwidth {draws.choice([f'{int(10 ** draws.uniform(1, 10))}bit', draws.choice(RATES)])}"),
        *((0.7, f"min {low}"), (0.7, f"max {high}"), (0.2, f"avpkt {int(10 ** draws.uniform(0, 4))}")),
        (0.4, f"burst {int(guideline * draws.choice([0.9, 1, 1.3, 3]))}"),
        (0.5, f"probability {draws.choice([f'{draws.random():.3f}', draws.choice(PROBABILITIES)])}"),
        *((0.4, "ecn"), (0.03, draws.choice(["foo", "harddrop", "noecn", "limit"]))),
    ]
    return _shuffled(draws, "choke", words)


def _sfb(draws: random.Random) -> str:
    def count(high: float) -> str:
        return draws.choice([str(int(10 ** draws.uniform(0, high))), draws.choice(LIMITS)])

    shares = [f"{10 ** -draws.uniform(0, 5):.3g}" for _ in range(2)]
    words = [
        *((0.6, f"limit {count(5)}"), (0.5, f"max {count(4)}"), (0.5, f"target {count(4)}")),
        *((0.5, f"increment {shares[0]}"), (0.5, f"decrement {shares[1]}")),
        *((0.3, f"penalty_rate {count(5)}"), (0.3, f"penalty_burst {count(5)}")),
        *((0.3, f"rehash {draws.randint(0, 10**6)}"), (0.3, f"db {draws.randint(0, 10**5)}")),
        (0.03, draws.choice(["foo", "ecn", "max", "increment 1.5"])),
    ]
    return _shuffled(draws, "sfb", words)


def _fq_pie(draws: random.Random) -> str:
    def time() -> str:
        return draws.choice([f"{draws.uniform(0, 200):.3f}ms", draws.choice(TIMES)])

    words = [
        *((0.5, f"limit {_count(draws, 5)}"), (0.4, f"flows {_count(draws, 4.9)}")),
        *((0.4, f"target {time()}"), (0.4, f"tupdate {time()}")),
        *((0.4, f"alpha {draws.randint(0, 34)}"), (0.4, f"beta {draws.randint(0, 34)}")),
        (0.4, f"quantum {_number(draws, 10, 1e5)}"),
        (0.4, f"memory_limit {_number(draws, 1e3, 5e9)}"),
        (0.3, f"ecn_prob {draws.randint(0, 102)}"),
        *((0.4, "ecn"), (0.2, "noecn"), (0.3, "bytemode"), (0.1, "nobytemode")),
        *((0.2, "dq_rate_estimator"), (0.1, "no_dq_rate_estimator"), (0.03, "foo")),
    ]
    return _shuffled(draws, "fq_pie", words)


def _sfq(draws: random.Random) -> str:
    divisor = draws.choice([str(2 ** draws.randint(0, 18)), str(2 ** draws.randint(0, 16)), _count(draws, 5)])
    words = [
        *((0.6, f"limit {_count(draws, 5)}"), (0.4, f"flows {_count(draws, 5)}")),
        *((0.4, f"depth {_count(draws, 3)}"), (0.4, f"divisor {divisor}")),
        *((0.4, f"perturb {_count(draws, 7)}"), (0.4, f"quantum {_number(draws, 10, 1e6)}")),
        *((0.3, "headdrop"), (0.03, "foo")),
    ]
    if draws.random() < 0.6:
        low = int(10 ** draws.uniform(2.5, 5))
        high = int(low * 10 ** draws.uniform(-0.01, 1))
        burst = int((2 * low + high) / 3000 * draws.choice([0.9, 1, 1.5, 4]))
        chance = draws.choice([f"{draws.random():.3f}", draws.choice(PROBABILITIES)])
        words += [
            (0.95, f"redflowlimit {int(high * 10 ** draws.uniform(-0.02, 1))}"),
            *((0.6, f"min {low}"), (0.7, f"max {high}"), (0.3, f"burst {burst}")),
            (0.3, f"avpkt {draws.choice([500, 1000, 1500, '1kb', 0])}"),
            *((0.5, f"probability {chance}"), (0.4, "ecn"), (0.3, "harddrop")),
        ]
    return _shuffled(draws, "sfq", words)


def _count(draws: random.Random, digits: float) -> str:
    """A whole number of up to so many digits, and sometimes an odd one."""
    return draws.choice([str(int(10 ** draws.uniform(0, digits)))] * 3 + [draws.choice(LIMITS)])


def _shuffled(draws: random.Random, kind: str, words: list[tuple[float, str]]) -> str:
    """The discipline with each of these words, in random order, with its probability."""
    chosen = [word for share, word in words if draws.random() < share]
    draws.shuffle(chosen)
    return " ".join([kind, *chosen])


def scenario(draws: random.Random) -> dict[str, Any]:
    """A random queue on a link of 1 kbit/s to 100 Gbit/s, which need not be a valid one."""
    kind = draws.choice(["red", "red", "red", "ared", "codel", "droptail"])
    packet = draws.choice([1500, 1500, 1500, 576, 200, 64, 9000])
    queue: dict[str, Any] = {"kind": kind}

    def size(low: float, high: float) -> str:
        packets = math.exp(draws.uniform(math.log(low), math.log(high)))
        return f"{max(1, int(packets))}p" if draws.random() < 0.5 else f"{int(packets * packet)}B"

    if draws.random() < 0.8 or kind == "droptail":
        queue["limit"] = size(1, 1e4)
    if kind in ("red", "ared"):
        _draw_red(draws, queue, size)
    elif kind == "codel":
        _draw_codel(draws, queue)
    elif draws.random() < 0.4:
        queue["limit_rule"] = draws.choice(["fits", "reached", "below"])
    return {
        "title": "Random",
        "duration": "1s",
        "topology": {
            "kind": "dumbbell",
            "rate": f"{int(10 ** draws.uniform(3, 11))}bit",
            "delay": f"{draws.uniform(0.01, 200):.3f}ms",
            "access_rate": "none",
            "queue": queue,
        },
        "traffic": [{"name": "cbr", "kind": "cbr", "rate": "1kbit", "size": f"{packet}B"}],
    }


def _draw_red(draws: random.Random, queue: dict[str, Any], size: Any) -> None:
    given = {
        "preset": (0.6, draws.choice(["linux", "linux", "ns2"])),
        "min_th": (0.5, size(1, 1e3)),
        "max_th": (0.4, size(3, 3e3)),
        "max_p": (
            0.6,
            draws.choice([1.0, 0.1, 0.02, 0.5, draws.random() or 1.0, 10 ** -draws.uniform(0, 8)]),
        ),
        "w_q": (0.2, 10 ** -draws.uniform(0.1, 6)),
        "burst": (0.2, int(10 ** draws.uniform(0, 3))),
        "ecn": (0.4, True),
        "ecn_region": (0.2, draws.choice(["rfc3168", "feng", "linux"])),
        "gentle": (0.2, draws.random() < 0.5),
        "mean_packet": (0.2, f"{draws.choice([1000, 1500, 500, 64])}B"),
    }
    queue |= {name: value for name, (share, value) in given.items() if draws.random() < share}


def _draw_codel(draws: random.Random, queue: dict[str, Any]) -> None:
    interval = 10 ** draws.uniform(3.1, 10)
    given = {
        "preset": (0.6, draws.choice(["linux", "rfc8289"])),
        "target": (0.7, f"{int(interval * draws.uniform(0.0, 1.0)) + 1}ns"),
        "interval": (1.0, f"{int(interval) + 1}ns"),
        "ecn": (0.5, True),
    }
    queue |= {name: value for name, (share, value) in given.items() if draws.random() < share}


def _sfb_options(_read: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rehash_ms": ours["rehash_ns"] // 10**6,
        "db_ms": ours["warmup_ns"] // 10**6,
        "limit": ours["limit_packets"],
        "max": ours["bin_max"],
        "target": ours["bin_size"],
        **{name: round(ours[name] * SFB_STEPS) for name in ("increment", "decrement")},
        **{name: ours[name] for name in ("penalty_rate", "penalty_burst")},
    }


def _cake_options(read: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bandwidth": (ours.get("bandwidth_bps") or 0) // 8,
        "diffserv": CAKE_TINS.index(ours["tins"]),
        "flow": CAKE_ISOLATIONS.index(ours["isolation"]),
        "ack_filter": ("none", "on", "aggressive").index(ours["ack_filter"]),
        "atm": CAKE_CELLS.index(ours["framing"]),
        "overhead": ours["overhead"],
        "rtt_us": ours["interval_ns"] // 1000,
        "target_us": ours["target_ns"] // 1000,
        "memory": ours["memory_limit_bytes"] if "memory_limit" in read.queue else 0,
        **{name: ours[name] for name in ("mpu", "wash", "ingress")},
    }


def _choke_options(_read: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    sizes = (("limit", "limit"), ("min", "min_th"), ("max", "max_th"))
    return {
        **{name: ours[f"{key}_packets"] for name, key in sizes},
        "weight": ours["w_q"],
        "max_p": int(ours["max_p"] * 2**32),
        "flags": ECN * ours["ecn"],
    }


def _fq_pie_options(_read: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_pie_options(ours),
        "flows": ours["flows"],
        "quantum": ours["quantum_bytes"],
        "memory_limit": ours["memory_limit_bytes"],
        "ecn_prob": round(100 * ours["mark_ecnth"]),
    }


def _sfq_options(_read: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    queues = {
        "limit": ours["limit_packets"],
        "quantum": ours["quantum_bytes"],
        "perturb_s": (ours.get("perturb_ns") or 0) / 1e9,
        "headdrop": int(ours["head_drop"]),
        **{name: ours[name] for name in ("depth", "flows", "divisor")},
    }
    if ours.get("redflowlimit_bytes") is None:
        return queues
    low, high = (ours[f"{name}_th_bytes"] for name in ("min", "max"))
    w_log = weight_log(low, ours["burst"], ours["mean_packet_bytes"])
    assert w_log is not None
    return {
        **queues,
        "min": low,
        "max": high,
        "weight": 2.0**-w_log,
        "max_p": int(ours["max_p"] * 2**32),
        "flags": (ECN + HARDDROP * (ours["ecn_region"] == "rfc3168")) * ours["ecn"],
    }


def _pie_options(ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "limit": ours["limit_packets"],
        "target_us": ours["target_ns"] // PIE_UNIT * PIE_UNIT // 1000,
        "tupdate_us": ours["t_update_ns"] // 1000 - 1000,
        "alpha": round(16 * ours["alpha"]),
        "beta": round(16 * ours["beta"]),
        "ecn": int(ours["ecn"]),
        "bytemode": int(ours["byte_mode"]),
        "dq_rate_estimator": int(ours["delay"] == "rate"),
    }


def _fq(_: TcQueue, ours: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "limit": ours["limit_packets"],
        "flow_limit": ours["flow_limit"],
        "quantum": ours["quantum_bytes"],
        "initial_quantum": ours["initial_quantum_bytes"],
        "maxrate": ours["maxrate_bps"] // 8 if ours.get("maxrate_bps") else -1,
        "low_rate_threshold": ours["low_rate_threshold_bps"] // 8,
        "refill_delay_us": ours["refill_delay_ns"] // 1000,
        "ce_threshold_us": ours["ce_threshold_ns"] // 1000 if ours.get("ce_threshold_ns") else -1,
        "flows": ours["flows"],
    }


TODAYS = {
    "fq": _fq,
    "fq_pie": _fq_pie_options,
    "sfq": _sfq_options,
    "sfb": _sfb_options,
    "cake": _cake_options,
    "choke": _choke_options,
}


def read_as(read: TcQueue) -> dict[str, Any]:
    """The options of the kernel that a queue stands for, named as in the recorded answers."""
    ours = effective(read.queue, read.rate_bps or DEFAULT_RATE_BPS)
    if read.queue["kind"] == "droptail":
        return {"limit": ours["limit_bytes" if read.spec.startswith("bfifo") else "limit_packets"]}
    if read.queue["kind"] == "codel":
        times = {
            f"{name}_us": ours[f"{name}_ns"] // CODEL_UNIT * CODEL_UNIT // 1000
            for name in ("target", "interval", "ce_threshold")
            if ours.get(f"{name}_ns") is not None
        }
        return {"limit": ours["limit_packets"], "ecn": int(ours["ecn"]), **times}
    if read.queue["kind"] == "pie":
        return _pie_options(ours)
    if read.queue["kind"] in TODAYS:
        return TODAYS[read.queue["kind"]](read, ours)
    flags = ECN * ours["ecn"] + HARDDROP * (ours["ecn_region"] == "rfc3168")
    return {
        **{
            name: ours[f"{key}_bytes"]
            for name, key in (("limit", "limit"), ("min", "min_th"), ("max", "max_th"))
        },
        "weight": ours["w_q"],
        "max_p": int(ours["max_p"] * 2**32),
        "flags": flags + ADAPTIVE * (read.queue["kind"] == "ared"),
    }


def _fq_kept(options: Mapping[str, int]) -> dict[str, Any]:
    none = 2**32 - 1
    names = ("limit", "quantum", "initial_quantum", "refill_delay_us")
    maxrate, threshold = options["maxrate"], options["ce_threshold_us"]
    return {name: options[name] for name in names} | {
        "flow_limit": min(options["flow_limit"], options["limit"]),
        "maxrate": -1 if maxrate == none or not options["pacing"] else maxrate,
        "low_rate_threshold": max(1, options["low_rate_threshold"]),
        "ce_threshold_us": -1 if threshold == none else threshold,
        "flows": 2 ** options["orphan_mask"].bit_count(),
    }


def ethernets(quantum: int) -> int:
    """The quantum on Ethernet: if none is given, Linux takes a full packet, longer on the loopback."""
    return 1514 if quantum == 65_536 + ETHERNET else quantum


def shown_on_ethernet(answer: Mapping[str, Any]) -> str:
    """What tc shows; where it shows the quantum of the loopback interface, that of Ethernet instead."""
    quantum = answer["options"].get("quantum", 0)
    ours, shown = ethernets(quantum), str(answer["shown"])
    return shown if ours == quantum else shown.replace("quantum 64Kb", f"quantum {ours}b")


def kept(options: Mapping[str, int]) -> dict[str, Any]:
    """The same from the kernel's options, without those that mean nothing in aqmlab."""
    if "orphan_mask" in options:
        return _fq_kept(options)
    if "split_gso" in options:
        same = {name: options[name] for name in options if name not in CAKE_NOTHING}
        overhead = (options["overhead"] + 2**31) % 2**32 - 2**31  # with a sign
        return same | {"overhead": overhead + ETHERNET * ("raw" in options)}
    if "quantum" in options:
        options = {**options, "quantum": ethernets(options["quantum"])}
    if options.get("w_log") == 0:  # SFQ without RED
        return {name: options[name] for name in SFQ}
    if "w_log" not in options:
        return dict(options)
    flags = options["flags"] if options["flags"] & ECN else options["flags"] & ~HARDDROP
    names = ("limit", "min", "max", "max_p", *(SFQ if "divisor" in options else ()))
    same = {name: options[name] for name in names}
    return {**same, "weight": 2.0 ** -options["w_log"], "flags": flags}
