"""The contract kit of the compiled core: random scripts that test every promise that a discipline makes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from aqmlab.arguments import typed
from aqmlab.errors import UsageError

Progress: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Receives the progress ten times per second: ``scripts_done``, ``scripts_total`` (``None`` if a time limit
ends the test) and ``findings``.
"""

ALL = "all"
SEEDS = 200
"""Default number of scripts per preset and option."""
MOST_SEEDS = 10_000_000


@typed
def check(  # noqa: PLR0913 (keyword arguments)
    name: str,
    *,
    seeds: int | None = None,
    for_s: float | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run the contract kit on a discipline, with every preset and every option of its parameters.

    Parameters
    ----------
    name
        The discipline, or ``"all"``.
    seeds
        Number of random scripts per preset and option; 200 if neither this nor ``for_s`` is given.
    for_s
        Alternatively, the number of seconds for which to run scripts.
    seed
        The seed of the first script; by default 0, or with ``for_s`` a random one, so that no two
        searches are the same.
    jobs
        Number of threads; one per processor by default. The findings do not depend on it.
    progress
        Receives the progress of the scripts.

    Returns
    -------
    dict
        ``passed``, ``first_seed``, ``items`` of the contract (``name``, ``counts``: what is
        counted) and ``disciplines``. Each discipline has ``name``, ``variants``, ``scripts``,
        ``checks`` (a count for each item) and ``findings`` (``variant``, ``seed``, ``item``, ``what``,
        ``operation``, ``script``: the shortest script that shows the finding; empty if the discipline
        panicked).

    Raises
    ------
    UsageError
        If the discipline is unknown or an argument is out of range.
    """
    from aqmlab import _core
    from aqmlab.system.machine import job_count

    if seeds is not None and for_s is not None:
        raise UsageError("a number of seeds and a time exclude each other; give one of them")
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise UsageError(f"`{seeds}` seeds: give at least 1 and at most {MOST_SEEDS}")
    if for_s is not None and not for_s > 0:
        raise UsageError("no script can run in zero seconds; give a longer time")
    first = _first_seed(seed, anywhere=for_s is not None)
    count = SEEDS if seeds is None else seeds
    names = [entry["name"] for entry in json.loads(_core.aqm_list())] if name == ALL else [name]
    end = None if for_s is None else time.monotonic() + for_s

    def goes_on(now: Mapping[str, Any]) -> bool:
        if progress is not None:
            progress(now)
        return end is None or time.monotonic() < end

    found = json.loads(
        _core.aqm_check(names, first, count if for_s is None else None, job_count(jobs), goes_on)
    )
    passed = not any(entry["findings"] for entry in found["disciplines"])
    return {"passed": passed, "first_seed": first, **found}


def _first_seed(seed: int | None, *, anywhere: bool) -> int:
    if seed is None:
        if not anywhere:
            return 0
        import secrets

        return secrets.randbelow(2**48)
    if not 0 <= seed < 2**63:
        raise UsageError(f"the seed `{seed}` is outside 0 to 2^63 - 1")
    return seed


def smallest_finding(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a discipline's panic, which has no script, or else its finding with the shortest script."""
    findings: list[dict[str, Any]] = entry["findings"]
    return min(findings, key=lambda f: (len(f["script"]), f["seed"]), default=None)
