"""Stand-ins for live runs: content for their recordings, and a process that answers as a live run's would.

As a program, this module takes the place of ``python -m aqmlab.live``: ``live_worlds.py MODE``, where
MODE selects what it does with the job. Any recording that the program leaves is that of a simulation,
marked as live.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

US = 1_000
REASON = "p99 lateness 2300 us is above 600 us, half a packet time of `bottleneck`"
Job = dict[str, Any]


def reseal(run: Path, **changes: Any) -> None:
    """Call :func:`resealed.reseal`, imported here because the program's path lacks this folder."""
    sys.path.append(str(Path(__file__).parent))
    from resealed import reseal as change

    change(run, **changes)


def live_object(*, faithful: bool = True, interrupted: bool = False) -> dict[str, Any]:
    """The object ``live`` of a live run's manifest."""
    p99 = 17 * US if faithful else 2_300 * US
    late = f"p99 lateness {p99 // US} us, limit 600 us (half a packet time at `bottleneck`)"
    return {
        "faithful": faithful,
        "interrupted": interrupted,
        "reasons": []
        if faithful
        else ["p99 lateness 2300 us is above 600 us, half a packet time of `bottleneck`"],
        "checks": [
            {
                "name": "lateness",
                "passed": faithful,
                "sentence": late,
                "value": p99 / 1e9,
                "limit": 600e-6,
                "unit": "s",
            },
            {
                "name": "stalls",
                "passed": True,
                "sentence": "no gap above 10 ms between two passes",
                "value": 0.0,
                "limit": 0.01,
                "unit": "s",
            },
            {
                "name": "hidden_drops",
                "passed": faithful,
                "sentence": "no packet lost within a host"
                if faithful
                else "packets lost within hosts: dev.tx_dropped 3, Udp.RcvbufErrors 4",
                "value": 0.0 if faithful else 7.0,
                "limit": 0.0,
                "unit": "packets",
            },
        ],
        "lateness": {
            "count": 1000,
            "p50_ns": 1 * US,
            "p90_ns": 9 * US,
            "p99_ns": p99,
            "p999_ns": 2 * p99,
            "max_ns": 3 * p99,
            "bins": [[0, 999, 490], [1 * US, 9_999, 500], [10 * US, 3 * p99, 10]],
        },
        "stalls": [] if faithful else [{"at_ns": 1_500_000_000, "length_ns": 12_000_000}],
        "stall_count": 0 if faithful else 70,
        "longest_stall_ns": 0 if faithful else 31_000_000,
        "duty_percent": 6.5,
        "policy": "fifo" if faithful else "other",
        "wait": "hybrid",
        "memory_locked": True,
        "without_spin_percent": 0.0 if faithful else 12.5,
        "frames": {"read": 2000, "let_in": 1000, "malformed": {"short": 1000}},
        "drops": {
            "malformed": 1000,
            "oversize": 0,
            "no_slot": 0 if faithful else 10,
            "write_error": 0 if faithful else 20,
            "tun": 0 if faithful else 3,
            "still_held": 500,
        },
        "marks": {"marked": 39, "ce_delivered": 40, "ce_received": 40},
        "remarks": ["tcp.min_rto of `ftp` cannot be set: the kernel's 200ms hold"],
        "stack": {"ftp": {"net.ipv4.tcp_ecn": "1"}},
        "routes": {"ftp": {"mtu": 1500, "initial_window": None}},
        "ping": {
            "count": 100,
            "p50_ns": 41 * US,
            "p90_ns": 60 * US,
            "p99_ns": 83 * US,
            "p999_ns": 90 * US,
            "max_ns": 90 * US,
            "bins": [[0, 90 * US, 100]],
        },
        "capacity": {
            "per_packet_ns": 4_300,
            "per_wake_ns": 9_600,
            "packets_per_s": 53_476.0,
            "limit_packets_per_s": 37_433.0,
            "demand_packets_per_s": 1_666.7,
        },
        "machine": {
            "kernel": "6.18.5",
            "processors": 2,
            "congestion_controls": ["reno", "cubic"],
            "governor": None,
        },
    }


def say_it_was_live(run: Path, *, faithful: bool = True, interrupted: bool = False) -> None:
    """Turn the recording of a simulated run into one of a live run whose kernel does not report timeouts."""
    from aqmlab import _core

    _forget_timeouts(run / "flows.parquet")
    parts = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["parts"]
    del parts["sim"]
    live = live_object(faithful=faithful, interrupted=interrupted)
    reseal(run, host="live", live=live, parts=parts | {"live": _core.PARTS["live"]})


def _forget_timeouts(flows: Path) -> None:
    import duckdb

    partial = flows.with_suffix(".new")
    columns = "* REPLACE (NULL::UBIGINT AS timeouts, NULL::UBIGINT AS measured_timeouts)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM '{flows}') TO '{partial}' (FORMAT parquet)")
    partial.replace(flows)


def interrupt_when_it_runs() -> Callable[[Any, Any], None]:
    """Return an ``update`` for ``ProgressLine`` that interrupts once, like Ctrl-C, at the first progress."""
    sent: list[int] = []

    def update(_line: Any, now: Any) -> None:
        if now.under_way and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    return update


_stopped: list[int] = []


def _tell(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _progress(done_s: float = 0.5) -> None:
    _tell(event="progress", phase="run", done_s=done_s, total_s=6.0, lateness_max_s=1e-4)


def _record(job: Job, *, faithful: bool = True) -> None:
    _record_of(job, faithful=faithful)
    _tell(event="done", answer={"wall_s": 6.0})


def _record_of(job: Job, *, faithful: bool = True) -> None:
    from aqmlab import _core

    _core.run_one(job["toml"], job["file_name"], job["arm"], job["seed"], job["out"])
    say_it_was_live(Path(job["out"]), faithful=faithful)


def _lose_packets(job: Job) -> None:
    """Behave as if the disk had no room for the file of captured packets of the arm with RED."""
    _record_of(job)
    if "RED" in job["arm"]:
        file = Path(job["out"]) / "manifest.json"
        manifest = json.loads(file.read_text(encoding="utf-8"))
        lost = {
            "capture": {"bottleneck": {"packets": 0, "missed": 1234}},
            "capture_failure": {"at_ns": 2_340_000_000, "reason": "the disk is full"},
        }
        reseal(file.parent, live=manifest["live"] | lost)
    _tell(event="done", answer={"wall_s": 6.0})


def _be_killed(job: Job) -> None:
    """Die in the middle of writing the recording."""
    out = Path(job["out"])
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}-0")
    partial.mkdir(parents=True)
    (partial / "summary.parquet").write_bytes(b"PAR1")
    os.kill(os.getpid(), signal.SIGKILL)


def _be_killed_beside_a_file(job: Job) -> None:
    """Be killed after another user has put a file into the directory of an arm."""
    arm = Path(job["out"]).parents[2] / "droptail"
    arm.mkdir()
    (arm / "notes.txt").write_text("mine")
    _be_killed(job)


def _be_killed_the_second_time(job: Job) -> None:
    if job["seed"] > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _record(job)


def _raise(_job: Job) -> None:
    raise OSError("the tunnel is gone")


def _say_what_is_no_message(_job: Job) -> None:
    sys.stdout.write("Segmentation fault\n")
    sys.stdout.flush()
    time.sleep(60)


def _write_without_end(_job: Job) -> None:
    while True:
        sys.stdout.write("x" * 65536)


def _linger(_job: Job) -> None:
    """Finish the work, but do not exit."""
    _tell(event="done", answer={})
    time.sleep(60)


def _hear_nothing(_job: Job) -> None:
    for i in range(600):
        _progress(i / 10)
        time.sleep(0.1)


def _leave_what_there_is(job: Job) -> None:
    """End on request, leaving the part of the run that is finished."""
    from aqmlab import _core

    _obey(job)
    _core.run_one(job["toml"], job["file_name"], job["arm"], job["seed"], job["out"])
    say_it_was_live(Path(job["out"]), interrupted=True)
    _tell(event="error", kind="Interrupted", message="")


def _obey_and_say_so(job: Job) -> None:
    _obey(job)
    _tell(event="error", kind="Interrupted", message="")


def _obey(_job: Job) -> None:
    for i in range(600):
        _progress(i / 10)
        time.sleep(0.05)
        if _stopped:
            return


def _diagnose(name: str, severity: str, remedy: str) -> None:
    ok = {"name": "kernel", "severity": "ok", "finding": "Linux 6.18", "remedy": ""}
    other = {"name": name, "severity": severity, "finding": "refused", "remedy": remedy}
    _tell(event="done", answer={"findings": [ok, other], "machine": {"kernel": "6.18"}})


def _trial(p99_us: int, policy: str) -> dict[str, Any]:
    ns = p99_us * US
    lateness = {"count": 9, "p50_ns": US, "p90_ns": US, "p99_ns": ns, "p999_ns": 2 * ns, "max_ns": 3 * ns}
    told = {"verdict": "faithful", "faithful": True, "reasons": [], "duty_percent": 12.5}
    return {**told, "policy": policy, "lateness": {**lateness, "bins": [[0, ns, 9]]}}


def _test_itself(p99_us: int, policy: str) -> None:
    answer = {
        "rate_bps": 100_000_000,
        "realtime": _trial(p99_us, policy),
        "ordinary": _trial(5000, "other"),
        "capacity": {"packets_per_s": 150_000.0, "limit_packets_per_s": 105_000.0},
        "ping": {"p50_ns": 60 * US, "p99_ns": 115 * US, "bins": []},
        "stolen_percent": None,
        "real_time_share_percent": 95.0,
    }
    _tell(event="done", answer=answer)


def _be_faithful_when_repeated(job: Job) -> None:
    """Be late with seed 2, but only the first time; a file records that this has happened."""
    mark = Path(os.environ["LIVE_WORLDS"]) / f"{job['arm']} {job['seed']}"
    faithful = job["seed"] != 2 or mark.exists()
    mark.touch()
    _record(job, faithful=faithful)


def _lack_the_queue_of_red(job: Job) -> None:
    if "RED" in job["arm"]:
        _tell(event="error", kind="DisciplineError", message="this kernel has no queue discipline `red`")
    else:
        _record(job)


MODES: dict[str, Callable[[Job], object]] = {
    "faithful": _record,
    "unfaithful": lambda job: _record(job, faithful=False),
    "red-unfaithful": lambda job: _record(job, faithful="RED" not in job["arm"]),
    "lacks-red": _lack_the_queue_of_red,
    "faithful-when-repeated": _be_faithful_when_repeated,
    "packets-lost": _lose_packets,
    "killed": _be_killed,
    "leaves-something-else": _be_killed_beside_a_file,
    "second-killed": _be_killed_the_second_time,
    "traceback": _raise,
    "garbage": _say_what_is_no_message,
    "no-kind": lambda _: _tell(event="error"),
    "endless-line": _write_without_end,
    "silent": lambda _: time.sleep(60),
    "exits": lambda _: sys.exit(7),
    "deaf": _hear_nothing,
    "lingering": _linger,
    "obedient": _obey_and_say_so,
    "leaves-a-part": _leave_what_there_is,
    "doctor": lambda _: _diagnose("SCHED_FIFO", "warning", "setcap cap_sys_nice+ep"),
    "punctual": lambda _: _test_itself(30, "fifo"),
    "late": lambda _: _test_itself(601, "other"),
    "hopeless": lambda _: _diagnose("/dev/net/tun", "fail", "modprobe tun"),
}
"""Any other mode has the form ``KIND:MESSAGE``; report that error."""


def main(mode: str) -> None:
    """Process the job according to the mode."""
    # This comes before the first message, because the message's reader may respond with a signal.
    signal.signal(signal.SIGINT, lambda *_: _stopped.append(1))
    job = json.loads(sys.stdin.readline())
    _progress()
    if mode in MODES:
        MODES[mode](job)
    else:
        kind, _, message = mode.partition(":")
        _tell(event="error", kind=kind, message=message)


if __name__ == "__main__":
    main(sys.argv[1])
