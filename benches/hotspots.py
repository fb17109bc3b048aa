"""Instructions by function, after inlining."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

LINE = re.compile(r"^\s*([\d.]+)%\s+\[\.\]\s+(\S.*)$")
SHOWN = 12
# The number of instructions per sample: a prime, so that sampling never stays in step with a loop.
PERIOD = 200_003


def hotspots(command: list[str]) -> dict:
    """The functions that execute the most instructions, with their shares in percent, measured by perf."""
    if not shutil.which("perf"):
        return {"skipped": "perf is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data")
        record = ["nice", "-n", "5", "perf", "record", "-q", "-e", "instructions:u", "-c", str(PERIOD)]
        subprocess.run([*record, "-o", data, *command], stdout=subprocess.DEVNULL, check=True)
        report = ["perf", "report", "-i", data, "--stdio", "--no-children", "-F", "overhead,symbol"]
        text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    found = [match for line in text.splitlines() if (match := LINE.match(line))]
    return {short(match[2]): float(match[1]) for match in found[:SHOWN]}


def short(symbol: str) -> str:
    """`<a::b::Wheel as a::c::EventQueue>::push` as `Wheel::push`."""
    symbol = re.sub(r"<impl ([^<>]*)>", r"\1", symbol)
    symbol = re.sub(r"<(\S+) as [^<>]*(?:<[^<>]*>)?>", r"\1", symbol)
    symbol = re.sub(r"<[^<>]*>", "", symbol)
    return "::".join(symbol.split("::")[-2:])
