"""The measurements: a list of items, each with a name and a function that returns a JSON object."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hotspots import hotspots
from measure import ROOT, BenchError, Loop, between, build, counted, last_json, loop, target, timed
from scene import arguments, scene

PEERS = Path(__file__).resolve().parent / "peers"
NS2 = ROOT / "peers" / "ns2"
PAIRS = 5
Item = tuple[str, Callable[[], dict]]

# simulated seconds of the short and of the long run; many flows take longer to start
SPANS = {10: (5, 25), 100: (5, 25), 1000: (5, 25), 10_000: (10, 20), 100_000: (20, 30)}
# What is sampled; "10ms-queues" is for many flows, because samples of each flow would outnumber the packets.
RECORD = {
    "off": {},
    "10ms": {"record_ms": 10, "record_flows_ms": 500},
    "10ms-queues": {"record_ms": 10},
    "10ms-all": {"record_ms": 10, "record_flows_ms": 10},
}

# Variants of TCP, as arguments of the driver.
VARIANTS = {
    "newreno": {},
    "reno": {"recovery": "reno"},
    "sack": {"recovery": "sack"},
    "sack, rack-tlp, prr": {"recovery": "segments"},
    "cubic": {"congestion": "cubic"},
    "cubic, sack, rack-tlp, prr": {"recovery": "segments", "congestion": "cubic"},
    "profile linux, cubic, an ACK per segment": {
        "recovery": "segments",
        "congestion": "cubic",
        "profile": "linux",
    },
}
# Losses on the dumbbell: either none (windows of 20 segments, which the buffer can hold) or those that RED
# causes.
LOSSES = {
    "none": (100, "droptail", {"max_window": 20, "limit": 10_000}),
    "light": (100, "red", {}),
    "heavy": (1000, "red", {}),
}

# The activity of the flows whose memory is measured. With windows of one segment and a buffer that holds them
# all, nothing is lost.
MEMORY = {
    "idle": {"times": 100, "idle": 1},
    "sending": {"times": 200, "limit": 200_000, "max_window": 1},
    "losing one packet in six": {"times": 100, "limit": 10_000},
}

# for each peer and number of flows: the simulated times, in seconds, between which a run is timed
PEER_SPANS = {"ns2": {100: (5, 25), 1000: (5, 25)}, "ns3": {100: (5, 10), 1000: (3, 5)}}
TOTAL_S = 20  # simulated time of the comparison that includes set-up
LOT_S = (60, 300)  # the parking lot under web traffic: when measurement begins, when the run ends

# Courses of a rate with the same mean as the scene's, as a scenario writes them; the first one is constant.
COURSES = {
    "constant": '"{rate}Mbit"',
    "a new rate every 10 ms": '{{ kind = "steps", steps = [["0s", "{more}Mbit"], ["10ms", "{less}Mbit"]], repeat = "20ms" }}',
    "fading, every 10 ms": '{{ kind = "fading", mean = "{rate}Mbit", deviation_db = 3, coherence = "100ms" }}',
    "chances": '{{ kind = "steps", steps = [["0s", "{rate}Mbit"]], clock = "chances" }}',
}
COURSE_S = (3, 7)  # simulated seconds of the short and of the long run
CHANGING = """\
duration = "{seconds}s"
runs = 1

[topology]
kind = "dumbbell"
rate = {course}
reverse_rate = "{rate}Mbit"
delay = "{delay_ms}ms"
access_rate = "{access_mbit}Mbit"
queue = {{ kind = "red", limit = "{limit}p", min_th = "{min_th}p", max_th = "{max_th}p", max_p = {max_p}, w_q = {w_q}, gentle = true }}

[[traffic]]
name = "flow"
kind = "bulk"
count = {flows}
rtt = {{ uniform = ["{rtt_low_ms}ms", "{rtt_high_ms}ms"] }}
start = {{ uniform = ["0s", "{start_s}s"] }}
tcp = {{ profile = "ns2", mss = "{mss}B", min_rto = "{min_rto_ms}ms", ack_every = 1 }}

[record]
queues = "0s"
flows = "0s"
"""

DISCIPLINES = ("droptail", "red", "ared")
STARTS = 10
SEED_PAIRS = 5


class Campaign:
    """The items of a full or a quick measurement."""

    def __init__(self, how: str, quick: bool):
        self.how = how
        self.quick = quick
        # Copied, because a build during the campaign must not change the measured programs.
        self.folder = tempfile.TemporaryDirectory()
        self.driver = self.copy("aqmlab-sim", "bench_dumbbell")
        self.scenario_driver = self.copy("aqmlab-sim", "run_once")
        self.discipline_driver = self.copy("aqmlab-qdisc", "discipline_bench")

    def copy(self, package: str, example: str) -> str:
        return shutil.copy2(build(package, example), self.folder.name)

    def items(self) -> Iterator[Item]:
        """All items, the most important first."""
        yield from self.dumbbells()
        yield from self.recoveries()
        yield "series/red/100/off", lambda: self.hops(scene(100, "red", bottlenecks=2), (5, 15))
        for course in COURSES:
            yield f"changing/{course}", lambda c=course: self.changing(c)
        yield "allocations/red/100", self.allocations
        yield "hotspots/red/100", lambda: hotspots([self.driver, *arguments(scene(100, "red")), "seconds=25"])
        yield from self.disciplines()
        yield "memory", self.memory
        yield from self.peers()
        yield from self.starts()

    # --- our event loop -----------------------------------------------------------------------------------

    def dumbbells(self) -> Iterator[Item]:
        """The items of the dumbbell, by number of flows, discipline and recording setting; with many
        flows, also with a faster link."""
        most = 1000 if self.quick else 100_000
        for flows, (begin, end) in SPANS.items():
            if flows > most:
                continue
            span = (begin, begin + 5) if self.quick else (begin, end)
            for discipline in ("droptail", "red"):
                for record, changes in RECORD.items():
                    if record not in recorded(flows):
                        continue
                    values = scene(flows, discipline, **changes)
                    yield f"hops/{discipline}/{flows}/{record}", lambda v=values, s=span: self.hops(v, s)
                if flows > 1000:
                    values = scene(flows, discipline, times=flows // 1000, start_s=2)
                    yield f"hops-fast/{discipline}/{flows}/off", lambda v=values: self.hops(v, (4, 6))

    def recoveries(self) -> Iterator[Item]:
        """The cost of a delivered segment on the dumbbell, by variant of TCP and by amount of loss."""
        for loss, (flows, discipline, changes) in LOSSES.items():
            for variant, keys in VARIANTS.items():
                values = scene(flows, discipline, **changes, **keys)
                yield f"recovery/{variant}/{loss}", lambda v=values: self.hops(v, (5, 10))

    def hops(self, values: dict, span: tuple[float, float]) -> dict:
        """Cost of a packet-hop in the event loop."""
        return loop_figures(loop([self.driver, *arguments(values)], *span, self.how), span)

    def changing(self, course: str) -> dict:
        """Cost of a packet-hop if the bottleneck's rate follows a course; the scene is that of the dumbbell."""
        values = scene(100, "red")
        rate = values["rate_mbit"]
        text = COURSES[course].format(rate=rate, more=rate * 3 // 2, less=rate // 2)
        runs = []
        for seconds in COURSE_S:
            file = Path(self.folder.name) / f"changing-{seconds}.toml"
            file.write_text(CHANGING.format(**values | {"rate": rate, "course": text, "seconds": seconds}))
            runs.append(counted([self.scenario_driver, str(file)], self.how))
        return loop_figures(between(*runs), COURSE_S)

    def allocations(self) -> dict:
        """Allocations, as counted by valgrind, and packet-hops in two simulated seconds of steady state."""
        if not shutil.which("valgrind"):
            return {"skipped": "valgrind is not installed"}
        command = [self.driver, *arguments(scene(100, "red"))]
        counts = []
        for seconds in (3, 5):
            done = subprocess.run(
                ["nice", "-n", "5", "valgrind", *command, f"seconds={seconds}"],
                capture_output=True,
                text=True,
                check=True,
            )
            found = re.search(r"total heap usage: ([\d,]+) allocs", done.stderr)
            counts.append((int(found[1].replace(",", "")), last_json(done.stdout)["packet_hops"]))
        (few, hops), (many, more_hops) = counts
        return {"allocations": many - few, "packet_hops": more_hops - hops}

    # --- parts --------------------------------------------------------------------------------------------

    def disciplines(self) -> Iterator[Item]:
        """The items that measure each discipline without the simulator, both on its own and inside a port."""
        for name in DISCIPLINES:
            for where in ("", "port/"):
                for backlog in (100, 10_000):
                    yield (
                        f"discipline/{where}{name}/{backlog}",
                        lambda n=where + name, b=backlog: self.discipline(n, b),
                    )

    def discipline(self, name: str, backlog: int) -> dict:
        """Instructions of one enqueue and one dequeue, excluding those of the program that drives them."""
        driver = self.discipline_driver

        def per_packet(of: str) -> tuple[float, float]:
            few, many = 200_000, 1_200_000
            runs = [counted([driver, of, str(backlog), str(n)], self.how) for n in (few, many)]
            marks = runs[1].output["marks"] - runs[0].output["marks"]
            return (runs[1].instructions - runs[0].instructions) / (many - few), marks / (many - few)

        instructions, marked = per_packet(name)
        return {"instructions": round(instructions - per_packet("nothing")[0], 1), "marked": round(marked, 4)}

    def memory(self) -> dict:
        """Resident memory of live flows: both endpoints, their timers, and their packets in the network."""
        return {what: self.memory_of(changes) for what, changes in MEMORY.items()}

    def memory_of(self, changes: dict) -> dict:
        rss, established = {}, {}
        for flows in (10_000, 100_000):
            values = scene(flows, "droptail", start_s=4, rss=1, **changes)
            seconds = 5 if self.quick else 8
            output = timed([self.driver, *arguments(values), f"seconds={seconds}"]).output
            rss[flows], established[flows] = output["rss_running"], output["established"]
        return {
            "rss_10k": rss[10_000],
            "rss_100k": rss[100_000],
            "bytes_per_flow": round((rss[100_000] - rss[10_000]) / 90_000, 1),
            "established_10k": established[10_000],
            "established_100k": established[100_000],
        }

    # --- peers --------------------------------------------------------------------------------------------

    def peers(self) -> Iterator[Item]:
        """The items that compare us with the peers: processor time, and evidence of the same work."""
        for peer, spans in PEER_SPANS.items():
            for flows, span in spans.items():
                yield f"work/{peer}/red/{flows}", lambda p=peer, f=flows, s=span: self.same_work(p, f, s)
                yield f"ratio/{peer}/red/{flows}", lambda p=peer, f=flows, s=span: self.ratio(p, f, s)
            yield f"instructions/{peer}/red/100", lambda p=peer: self.peer_instructions(p)
        yield "ratio-with-setup/ns2/red/1000", self.ratio_with_setup
        for queue in ("DT", "REM"):
            yield f"ratio-lot/ns2/{queue}", lambda q=queue: self.ratio_of_lot(q)

    def peer(self, name: str, values: dict) -> list[str] | None:
        """The command line of a peer, or None if the peer is not installed."""
        if name == "ns2":
            return (
                ["ns", str(PEERS / "dumbbell.tcl"), *arguments(values), "setup=linear"]
                if shutil.which("ns")
                else None
            )
        program = target() / "ns3-dumbbell"
        source = PEERS / "dumbbell.cc"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            if not Path("/usr/include/ns3/core-module.h").exists():
                return None
            subprocess.run([str(PEERS / "build.sh"), str(program)], check=True)
        return [str(program), *arguments(values)]

    def same_work(self, peer: str, flows: int, span: tuple[float, float]) -> dict:
        """Packet-hops, delivered segments and drops of both simulators in the same simulated time."""
        values = scene(flows, "red")
        command = self.peer(peer, values)
        if command is None:
            return {"skipped": f"{peer} is not installed"}
        theirs = timed([*command, f"mark_s={span[0]}", f"seconds={span[1]}", "count=1"]).output
        ours = self.timed_loop(values, span)
        keys = ("packet_hops", "delivered", "dropped")
        return {
            "ours": {k: ours[k] for k in keys},
            "theirs": {k: theirs[k] for k in keys},
            "simulated_s": span[1] - span[0],
        }

    def timed_loop(self, values: dict, span: tuple[float, float]) -> dict:
        """The counts and the processor time of our event loop between two simulated times."""
        short, long = (timed([self.driver, *arguments(values), f"seconds={s}"]).output for s in span)
        return {key: long[key] - short[key] for key in long}

    def ratio(self, peer: str, flows: int, span: tuple[float, float]) -> dict:
        """Compares event loops: processor time for the same simulated time, in alternating pairs of runs."""
        values = scene(flows, "red")
        command = self.peer(peer, values)
        if command is None:
            return {"skipped": f"{peer} is not installed"}
        # We simulate a longer span, so that our run, too, takes at least tenths of a second; its time is
        # then scaled to the peer's span.
        ours_span = (span[0], span[0] + max(20, span[1] - span[0]))
        stretch = (ours_span[1] - ours_span[0]) / (span[1] - span[0])
        pairs = []
        for _ in range(2 if self.quick else PAIRS):
            ours = self.timed_loop(values, ours_span)["cpu_s"] / stretch
            theirs = timed([*command, f"mark_s={span[0]}", f"seconds={span[1]}"]).output["cpu_s"]
            pairs.append((ours, theirs))
        return ratio_figures(pairs)

    def peer_instructions(self, peer: str) -> dict:
        """Instructions per packet-hop of a peer: a long run minus a short one, divided by hops counted
        separately."""
        if self.how != "perf":
            return {"skipped": "without perf this would take hours"}
        command = self.peer(peer, scene(100, "red"))
        if command is None:
            return {"skipped": f"{peer} is not installed"}
        span = (5, 7) if peer == "ns3" else (5, 15)
        runs = [counted([*command, "mark_s=1", f"seconds={s}"], self.how) for s in span]
        counting = timed([*command, f"mark_s={span[0]}", f"seconds={span[1]}", "count=1"]).output
        return {"per_hop": round((runs[1].instructions - runs[0].instructions) / counting["packet_hops"], 1)}

    def ratio_with_setup(self) -> dict:
        """Compares the processor time of whole processes, set-up included."""
        values = scene(1000, "red")
        command = self.peer("ns2", values)
        if command is None:
            return {"skipped": "ns2 is not installed"}
        pairs = []
        for _ in range(2 if self.quick else PAIRS):
            ours = timed([self.driver, *arguments(values), f"seconds={TOTAL_S}"]).cpu_s
            theirs = timed([*command, "mark_s=1", f"seconds={TOTAL_S}"]).cpu_s
            pairs.append((ours, theirs))
        return ratio_figures(pairs) | {"simulated_s": TOTAL_S}

    def ratio_of_lot(self, queue: str) -> dict:
        """Compares whole processes on the parking lot; each simulator draws web users with its own
        PackMime-HTTP."""
        program = aqmlab()
        if program is None or not shutil.which("ns"):
            return {"skipped": "aqmlab is not installed in .venv (tools/install.sh), or ns-2 is not"}
        begin, end = LOT_S
        theirs = ["ns", str(NS2 / "lot.tcl"), f"queues={queue}", f"warmup_s={begin}", f"end_s={end}"]
        pairs = []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "lot.toml"
            command = [sys.executable, str(NS2 / "lot.py"), "scenario", str(begin), str(end)]
            file.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            ours = [program, "run", str(file), "--arm", queue, "--jobs", "1", "--no-report", "-q", "-o"]
            for i in range(2 if self.quick else PAIRS):
                pairs.append((timed([*ours, f"{folder}/{i}"]).cpu_s, timed(theirs).cpu_s))
        return ratio_figures(pairs) | {"simulated_s": end}

    # --- the command line ---------------------------------------------------------------------------------

    def starts(self) -> Iterator[Item]:
        """The items that measure start-up and two seeds on two processors."""
        yield "start-up", self.start_up
        yield "two-seeds", self.two_seeds

    def start_up(self) -> dict:
        """Processor time of `aqmlab --help` and of a minimal run, without and with its report."""
        program = aqmlab()
        if program is None:
            return {"skipped": "aqmlab is not installed in .venv (tools/install.sh)"}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "empty.toml"
            file.write_text(EMPTY)
            run = [program, "run", str(file), "-q", "-o"]
            helps, runs, reports = [], [], []
            for i in range(STARTS):
                helps.append(timed([program, "--help"]).cpu_s)
                runs.append(timed([*run, f"{folder}/{i}", "--no-report"]).cpu_s)
                reports.append(timed([*run, f"{folder}/{i}-reported"]).cpu_s)
        return {
            "help_cpu_s": round(statistics.median(helps), 3),
            "empty_run_cpu_s": round(statistics.median(runs), 3),
            "empty_report_cpu_s": round(statistics.median(reports), 3),
        }

    def two_seeds(self) -> dict:
        """Wall time of two parallel seeds divided by that of one."""
        program = aqmlab()
        if program is None:
            return {"skipped": "aqmlab is not installed in .venv (tools/install.sh)"}
        ratios = []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "seeds.toml"
            file.write_text(SEEDS)
            for i in range(SEED_PAIRS):
                walls = []
                for n in (1, 2):
                    command = [
                        program,
                        "run",
                        str(file),
                        "--no-report",
                        "-q",
                        "--runs",
                        str(n),
                        "--jobs",
                        str(n),
                    ]
                    begun = time.monotonic()
                    timed([*command, "-o", f"{folder}/{i}-{n}"])
                    walls.append(time.monotonic() - begun)
                ratios.append(walls[1] / walls[0])
        return {
            "median": round(statistics.median(ratios), 3),
            "least": round(min(ratios), 3),
            "most": round(max(ratios), 3),
        }


EMPTY = """
duration = "1s"
topology = { kind = "dumbbell", rate = "10Mbit", delay = "10ms" }
[[traffic]]
kind = "cbr"
rate = "100kbit"
size = "500B"
"""

SEEDS = """
duration = "200s"
topology = { kind = "dumbbell", rate = "100Mbit", delay = "10ms", queue = { kind = "red", min_th = "100p" } }
[[traffic]]
kind = "bulk"
count = 100
rtt = { uniform = ["40ms", "200ms"] }
start = { uniform = ["0s", "1s"] }
"""


def recorded(flows: int) -> tuple[str, ...]:
    """Return the recording settings that are measured with this number of flows."""
    if flows > 1000:
        return ("off", "10ms-queues")
    return ("off", "10ms", "10ms-all") if flows == 100 else ("off", "10ms")


def aqmlab() -> str | None:
    """The installed command."""
    program = Path(os.environ.get("AQMLAB", ROOT / ".venv" / "bin" / "aqmlab"))
    return str(program) if program.exists() else None


def loop_figures(found: Loop, span: tuple[float, float]) -> dict:
    """Return the figures of an event loop for the tables."""
    if found.packet_hops == 0:
        raise BenchError("the long run has no more packet-hops than the short one")
    return {
        "per_hop": round(found.per_hop, 1),
        "per_segment": round(found.instructions / max(1, found.delivered), 1),
        "cpu_ns_per_hop": round(found.cpu_s * 1e9 / found.packet_hops, 1),
        "events_per_hop": round(found.events / found.packet_hops, 3),
        "packet_hops": found.packet_hops,
        "delivered": found.delivered,
        "dropped": found.dropped,
        "simulated_s": span[1] - span[0],
    }


def ratio_figures(pairs: list[tuple[float, float]]) -> dict:
    """Median and range of the ratio of the peer's processor time to ours."""
    ratios = sorted(theirs / ours for ours, theirs in pairs)
    return {
        "median": round(statistics.median(ratios), 1),
        "least": round(ratios[0], 1),
        "most": round(ratios[-1], 1),
        "pairs": len(pairs),
        "ours_cpu_s": round(statistics.median(ours for ours, _ in pairs), 4),
        "theirs_cpu_s": round(statistics.median(theirs for _, theirs in pairs), 4),
    }
