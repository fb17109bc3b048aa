"""The completions that the shell offers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent / "aqmlab"


def offered(line, shell="bash"):
    """The names that are offered at the end of a command line."""
    words = line.split(" ")
    given = {"_AQMLAB_COMPLETE": f"complete_{shell}"}
    given |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    ended = subprocess.run([BIN], check=False, capture_output=True, text=True, env={**os.environ, **given})
    assert ended.stderr == ""
    return [line for line in ended.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("line", "some", "others"),
    [
        ("aqmlab paper re", {"reproduce"}, {"live", "list"}),
        ("aqmlab new x --template ", {"dumbbell", "parking-lot", "web", "live", "sweep"}, set()),
        ("aqmlab aqm show co", {"codel"}, {"red"}),
        ("aqmlab metrics queueing_delay_p9", {"queueing_delay_p95_s"}, {"goodput_bps"}),
        ("aqmlab report {path} --metric jain", {"jain_index"}, {"goodput_bps"}),
        ("aqmlab run {small} --arm ", {"DropTail", r"RED\ +\ ECN"}, {"CoDel"}),
        ("aqmlab run {small} --arm D", {"DropTail"}, {r"RED\ +\ ECN"}),
        ("aqmlab plot {path} series --arm ", {"DropTail", r"RED\ +\ ECN"}, set()),
        ("aqmlab plot {path} ", {"series", "ladder", "box"}, {"heat"}),
        ("aqmlab paper reproduce ", {"blue", "weigle"}, set()),
        ("aqmlab run none.toml --arm ", set(), {"DropTail"}),
        ("aqmlab plot none ", {"series"}, {"heat"}),
    ],
)
def test_names_are_offered(line, some, others, small_file, experiment):
    found = set(offered(line.format(small=small_file, path=experiment.path)))
    assert some <= found
    assert not others & found
    assert some or not found


def test_a_sweep_has_its_own_kinds_of_figures(tmp_path):
    (tmp_path / "sweep.json").write_text('{"arms": ["A", "B"]}', encoding="utf-8")
    assert {"heat", "lines"} <= set(offered(f"aqmlab plot {tmp_path} "))
    assert offered(f"aqmlab plot {tmp_path} heat --arm ") == ["A", "B"]


@pytest.mark.parametrize("text", ["arm = 3\n", 'arm = [{ label = "x" }]\n', "[[arm", "\0"])
def test_a_file_that_is_no_scenario_offers_nothing(tmp_path, text):
    (tmp_path / "bad.toml").write_text(text, encoding="utf-8")
    assert offered(f"aqmlab run {tmp_path}/bad.toml --arm ") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("typed", ["RED", "R", "RED\\ +", "'RED +"])
def test_bash_itself_completes_an_arm(small_file, typed):
    script = f"""
    eval "$(_AQMLAB_COMPLETE=source_bash '{BIN}')"
    COMP_WORDS=(aqmlab run '{small_file}' --arm "$1") COMP_CWORD=4
    $(complete -p aqmlab | sed 's/.*-F \\([^ ]*\\) .*/\\1/') aqmlab
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{BIN.parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", script, "-", typed],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert (ended.stdout, ended.stderr) == ("RED\\ +\\ ECN\n", "")
