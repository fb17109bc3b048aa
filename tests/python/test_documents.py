"""What the documents show is what comes out today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_documents_made_of_data_are_current():
    command = [sys.executable, "tools/pages.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_outputs_in_the_documents_are_those_of_today():
    command = [sys.executable, "tools/outputs.py", "--check"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
