"""Every command of the tutorials runs, and prints what the tutorial shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import outputs  # noqa: E402

from aqmlab.cli.console import Exit  # noqa: E402

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(tutorial, tmp_path):
    text = tutorial.read_text(encoding="utf-8")
    assert outputs.session(text, tmp_path, without=outputs.LIVE) == text, "stale: make docs"


def test_a_stale_tutorial_is_found(tmp_path):
    shown = "    aqmlab --version\n\n<!-- printed by the last command -->\n```text\nwrong\n```\n"
    assert "wrong" not in outputs.session(shown, tmp_path)


def test_a_command_that_fails_is_found(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        outputs.session("    aqmlab run missing.toml\n", tmp_path)


def test_the_rust_tutorial_shows_the_example_that_is_compiled():
    example = (ROOT / "crates" / "aqmlab-qdisc" / "examples" / "own_discipline.rs").read_text(
        encoding="utf-8"
    )
    tutorial = (ROOT / "docs" / "tutorials" / "own-discipline.md").read_text(encoding="utf-8")
    assert f"```rust\n{example}```\n" in tutorial


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="live runs need Linux")
def test_the_live_tutorial_runs(tmp_path):
    doctor = subprocess.run([sys.executable, "-m", "aqmlab", "doctor"], check=False, capture_output=True)
    if doctor.returncode:
        pytest.skip("this machine lacks something for live runs: aqmlab doctor")
    tutorial = ROOT / "docs" / "tutorials" / "simulated-and-live.md"
    try:
        outputs.session(tutorial.read_text(encoding="utf-8"), tmp_path)
    except subprocess.CalledProcessError as ended:
        if ended.returncode != Exit.NOT_FAITHFUL:
            raise
        pytest.skip("a live run was not faithful: this machine stalled")
