"""Runs and measures programs: instructions in user space, processor time, and their JSON output."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BenchError(Exception):
    """The measured program failed, or this machine cannot measure."""


@dataclass(frozen=True)
class Measured:
    """One run of a program."""

    output: dict
    cpu_s: float
    instructions: int | None = None


def target() -> Path:
    """The directory in which cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def build(package: str, example: str) -> Path:
    """Builds an example in the same way as a release; returns its path."""
    command = ["cargo", "build", "--release", "--quiet", "--package", package, "--example", example]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise BenchError(f"{' '.join(command)} failed")
    return target() / "release" / "examples" / example


def counter() -> str:
    """`perf` if it can count instructions in user space, otherwise `callgrind`."""
    if shutil.which("perf"):
        command = ["perf", "stat", "-x", ",", "-e", "instructions:u", "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and re.match(r"\d+,", done.stderr):
            return "perf"
    if shutil.which("valgrind"):
        return "callgrind"
    raise BenchError("no way to count instructions: install perf (linux-perf), or valgrind")


def timed(command: list[str]) -> Measured:
    """Runs a program that prints one JSON object; processor time is that of the whole process."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before = os.times()
        done = subprocess.run(["nice", "-n", "5", *command], stdout=out, stderr=err, check=False)
        after = os.times()
        out.seek(0)
        err.seek(0)
        text, complaint = out.read().decode(), err.read().decode()
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: exit {done.returncode}\n{complaint.strip() or text.strip()}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(last_json(text), cpu_s)


def last_json(text: str) -> dict:
    """The JSON object on the last line that has one; an empty dict if no line has one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return {}


def counted(command: list[str], how: str) -> Measured:
    """Like `timed`, with instructions counted by `how`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        if how == "perf":
            wrapped = ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", str(report), *command]
            pattern = r"^(\d+),"
        else:
            wrapped = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={report}", *command]
            pattern = r"^(?:summary|totals): (\d+)"
        run = timed(wrapped)
        found = re.search(pattern, report.read_text(), re.MULTILINE)
    if not found:
        raise BenchError(f"{how} counted nothing for {' '.join(command)}")
    return Measured(run.output, run.cpu_s, int(found[1]))


@dataclass(frozen=True)
class Loop:
    """A long run minus a short one: the event loop without set-up, over the simulated time between them."""

    instructions: int
    packet_hops: int
    delivered: int
    dropped: int
    events: int
    cpu_s: float

    @property
    def per_hop(self) -> float:
        """Instructions per packet-hop."""
        return self.instructions / self.packet_hops


def loop(command: list[str], short_s: float, long_s: float, how: str) -> Loop:
    """Measures our driver's event loop between two simulated times."""
    return between(*(counted([*command, f"seconds={s}"], how) for s in (short_s, long_s)))


def between(short: Measured, long: Measured) -> Loop:
    """The difference between a long run and a short one."""
    assert short.instructions is not None
    assert long.instructions is not None
    differences = {
        key: long.output[key] - short.output[key]
        for key in ("packet_hops", "delivered", "dropped", "events", "cpu_s")
    }
    return Loop(instructions=long.instructions - short.instructions, **differences)
