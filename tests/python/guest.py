"""A Linux kernel that runs in virtual time, for tests; `AQMLAB_GUEST_KERNEL` names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = os.environ.get("AQMLAB_GUEST_KERNEL")

needs_guest = pytest.mark.skipif(
    KERNEL is None, reason="no guest: AQMLAB_GUEST_KERNEL names no Linux built with ARCH=um (docs/live.md)"
)


def run_in_guest(scenario: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `aqmlab live` on a scenario in the guest, with its experiment at `out`."""
    assert KERNEL is not None
    command = [sys.executable, str(ROOT / "peers" / "linux" / "live.py"), KERNEL, str(scenario), str(out)]
    return subprocess.run([*command, *options], text=True, capture_output=True, timeout=600, check=False)
