"""The resources of this machine: processors and memory."""

from __future__ import annotations

import os
from pathlib import Path

from aqmlab.arguments import whole
from aqmlab.errors import UsageError
from aqmlab.system.memory import address_space

SHARE_OF_MEMORY = 0.8


def job_count(jobs: int | None, called: str = "jobs") -> int:
    """The number of parallel runs; by default one per available processor.

    Raises
    ------
    UsageError
        If the given number is out of range.
    """
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = whole(jobs, f"`{called}`")
    if jobs < 1:
        raise UsageError(f"`{jobs}` is not a valid number of {called}; give at least 1")
    return jobs


def memory_cap(jobs: int) -> int:
    """Return how many bytes each of ``jobs`` runs may use (a fifth of free memory is kept); 0 if unknown.

    A limit on the address space holds for each process separately.
    """
    caps = [cap for cap in (_free(jobs), address_space()) if cap]
    return min(caps, default=0)


def _free(jobs: int) -> int:
    """Return the share of free memory for each run; 0 if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(int(line.split()[1]) * 1024 * SHARE_OF_MEMORY / jobs)
    return 0
