"""The Linux kernel's tests of its queues, as scenarios: the kernel's limits are their claims."""

from pathlib import Path

import pytest

import aqmlab
from aqmlab.stats.verdict import HOLDS

FILES = sorted((Path(__file__).parents[2] / "scenarios" / "kernel").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_test_of_the_kernel_passes(file, tmp_path):
    aqmlab.run(file, output=tmp_path / "out", report=False)
    scores = aqmlab.score_claims(tmp_path / "out")
    assert [score.claim.name for score in scores if score.verdict.status != HOLDS] == []
    assert scores
