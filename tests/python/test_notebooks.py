"""The notebooks run from the first cell to the last, and show what their texts describe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"


def printed(name: str, folder: Path) -> str:
    """The output of a notebook that is run as a program, in a separate folder that contains the papers."""
    (folder / "papers").symlink_to(ROOT / "papers")
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(NOTEBOOKS / name)],
        cwd=folder, check=False, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_first_steps(tmp_path):
    shown = printed("first-steps.py", tmp_path)
    fell, sure = map(float, re.search(r"falls by (\d+) ± (\d+) ms", shown).groups())
    assert fell > 50 > sure
    assert {file.name for file in tmp_path.glob("runs/*/*.svg")} == {"series.svg", "delay.svg"}


def test_the_redrawn_figure_shows_the_difference_that_its_text_names(tmp_path):
    shown = printed("redraw-a-figure.py", tmp_path)
    varies = {arm: float(share) for arm, share in re.findall(r"(\w+) +arrivals vary by (\d+) %", shown)}
    assert varies["RED"] > 1.5 * varies["BLUE"]
    (figure,) = tmp_path.glob("runs/*/*.svg")
    assert figure.stat().st_size > 10_000


def test_outside_a_clone_the_redrawn_figure_says_what_it_needs(tmp_path):
    words = [sys.executable, str(NOTEBOOKS / "redraw-a-figure.py")]
    ended = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "run this inside a clone of the repository: `papers/blue` is needed\n"


@pytest.mark.parametrize("name", sorted(file.name for file in NOTEBOOKS.iterdir()))
def test_cells_are_those_of_the_percent_form(name):
    text = (NOTEBOOKS / name).read_text(encoding="utf-8")
    assert text.startswith("# ---\n# jupyter:\n#   jupytext:\n")
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)[1:]
    assert {cell.partition("\n")[0] for cell in cells} == {"", " [markdown]"}
    for cell in cells:
        head, _, body = cell.partition("\n")
        lines = [line for line in body.splitlines() if line]
        assert lines, "a cell is empty"
        if head:
            assert all(line.startswith("#") for line in lines)
