"""Programs that others have written, behind a queue: what they say agrees with what is recorded."""

from __future__ import annotations

import pytest

from living import run_aqmlab
from real_programs import CASES, counted, flows_of, prepare, words


@pytest.mark.parametrize("user", ["root"], indirect=True)
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_program_and_the_router_count_the_same_bytes(user, name, live_folder):
    """The oracle is the program: what it has received is what the router has seen for the first time."""
    case = CASES[name]
    if case.missing():
        pytest.skip(f"not installed: {', '.join(case.missing())}")
    file = prepare(live_folder)
    ended = run_aqmlab(user, *words(case, file, live_folder / "out"), cwd=live_folder)
    assert ended.returncode == 0, ended.stderr[-2000:]
    told, new = case.told(ended.stdout), counted(case, flows_of(live_folder / "out"))
    # Headers of HTTP and QUIC, and what iperf3 no longer counted, are new bytes as well.
    assert told is not None
    assert told <= new <= case.most * told, (told, new)
