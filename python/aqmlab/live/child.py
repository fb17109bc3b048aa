"""The process of one live run, from the inside.

It imports only the standard library and the compiled core, so that it has a single thread when it leaves the
namespaces of its parent. The kernel refuses a new user namespace to a process with several threads.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

from aqmlab.errors import AqmlabError
from aqmlab.live.messages import DEFECT, kind_of
from aqmlab.system.parent import Parent

Tell = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Do the one job that arrives on standard input, and report its progress on standard output."""
    with Parent() as parent:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        parent.tell(_answer(json.loads(sys.stdin.readline()), partial(_progress, parent)))


def _answer(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    try:
        return {"event": "done", "answer": _JOBS[job["do"]](job, tell)}
    except (AqmlabError, KeyboardInterrupt) as error:
        return {"event": "error", "kind": kind_of(error), "message": str(error)}
    except BrokenPipeError:
        raise
    except BaseException as error:  # the supervisor reports it; a traceback would be of no use there
        return {"event": "error", "kind": DEFECT, "message": f"{type(error).__name__}: {error}"}


def _run(job: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ANN401 (plain data)
    from aqmlab import _core

    answer = _core.live_run(
        job["toml"],
        job["file_name"],
        job["arm"],
        job["seed"],
        job["out"],
        force=job["force"],
        pcap=job["pcap"],
        pcap_bytes=job["pcap_bytes"],
        terminal=job.get("terminal"),
        foreground=job.get("foreground", False),
        progress=tell,
    )
    return json.loads(answer)


def _doctor(_job: Mapping[str, Any], _tell: Tell) -> Any:  # noqa: ANN401
    from aqmlab import _core

    return json.loads(_core.doctor())


def _selftest(_job: Mapping[str, Any], tell: Tell) -> Any:  # noqa: ANN401
    from aqmlab import _core

    return json.loads(_core.live_selftest(progress=tell))


_JOBS: dict[str, Callable[[Mapping[str, Any], Tell], Any]] = {
    "run": _run,
    "doctor": _doctor,
    "selftest": _selftest,
}


def _progress(parent: Parent, now: Mapping[str, Any]) -> None:
    parent.check()
    parent.tell({"event": "progress", **now})


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
