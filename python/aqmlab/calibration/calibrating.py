"""The calibration as its callers see it: the request, and the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from aqmlab.arguments import names, typed, whole
from aqmlab.calibration.arithmetic import tail_index
from aqmlab.calibration.fit import SHARES, needed, spread
from aqmlab.calibration.network import Case, Uncongested, cases, the_same
from aqmlab.calibration.places import COUNTS, REQUESTS, RESPONSES, WIRE, Load, measured_link, target_bps
from aqmlab.calibration.population import Population, populations
from aqmlab.calibration.result import Calibration
from aqmlab.calibration.search import Found, search
from aqmlab.calibration.trials import MOST_BUSY, Trials, Watcher
from aqmlab.calibration.writing import arms_with_their_own, check_destination
from aqmlab.errors import UsageError, unknown
from aqmlab.language.scenario import DICT_NAME, Scenario, read
from aqmlab.text.numbers import change_text, number

RUNS = 10
_ROUNDING = 0.01
"""Largest relative difference from the target that needs no remark.

Rounding to whole users causes such differences.
"""
FASTER = 10.0


@typed
def calibrate(  # noqa: PLR0913 (keyword arguments)
    scenario: Scenario,
    classes: str | Sequence[str],
    target: str,
    on: str,
    *,
    direction: str = RESPONSES,
    count: str = WIRE,
    faster: float = FASTER,
    keep: str | Sequence[str] = (),
    others: str | Sequence[str] = (),
    runs: int = RUNS,
    seed: int | None = None,
    duration: str | None = None,
    warmup: str | None = None,
    arm: str | None = None,
    where: Mapping[str, str] | None = None,
    allow_overload: bool = False,
    output: Path | str | None = None,
    store: Path | str | None = None,
    jobs: int | None = None,
    progress: Watcher | None = None,
) -> Calibration:
    """Find the rate of connections, or the number of users, that offers a load on uncongested links.

    Parameters
    ----------
    scenario
        A TOML file, or its content as a dict.
    classes
        A class of connections that open at a given rate, or of users who open them; or several such
        classes, whose numbers keep their ratio.
    target
        Their total load: a share of the link's rate (``"35 %"``), or a rate (``"3.5Mbit"``).
    on
        The link on which the load is measured, in either direction.
    direction
        ``"responses"`` or ``"requests"``: the direction of the classes' responses or of their requests;
        or ``"named"``: the direction of exactly the link that ``on`` names.
    count
        ``"wire"``: bytes with headers, acknowledgments and the link's overhead; or ``"payload"``.
    faster
        Factor by which the links are made faster.
    keep
        Links that keep their rates, such as shared access links; ``"access*"`` means all whose names begin
        with ``access``.
    others
        Classes that also send but whose load does not count; all others are left out.
    runs, seed
        Number of seeds per value, at least two; the first seed, by default the scenario's.
    duration, warmup
        The times at which the run ends and at which measurement begins, such as ``"300s"``; as in
        the scenario if not given.
    arm, where
        The arm, and the labels by axis, where the load depends on them.
    allow_overload
        Whether the target may exceed the link's capacity.
    output
        The file to which a copy of the scenario with the value is written; if it is the scenario's
        own file, that file is changed in place.
    store, jobs
        As in :func:`aqmlab.sweep`: an interrupted calibration is resumed.
    progress
        Receives the current run and its progress.

    Returns
    -------
    Calibration
        The value with its interval, and the variation of the load between seeds.

    Raises
    ------
    ScenarioError
        If the scenario is wrong.
    UsageError
        If the request is inconsistent or the load cannot be reached; nothing is written then.
    RunError, HostError, RecordingError
        As for :func:`aqmlab.sweep`.
    """
    runs = whole(runs, "`runs`")
    if runs < 2:
        raise UsageError(f"an interval needs at least 2 seeds, not `{runs}`")
    if count not in COUNTS:
        raise unknown("count", count, COUNTS)
    text, name = read(scenario)
    source = None if name == DICT_NAME else Path(name)
    found = list(cases(text, name, arm, where or {}))
    if output is not None:
        check_destination(text, source, Path(output))
    first = found[0]
    chosen = populations(first.plan, names(classes) or ())
    _check_not_swept(first, chosen)
    link = measured_link(first.plan, on, direction, [one.of for one in chosen])
    bps = target_bps(target, link, allow_overload=allow_overload)
    asked = Load(bps, link, count, direction != REQUESTS)
    network = Uncongested(
        chosen,
        _known("class", names(others) or (), [one.name for one in first.plan.classes]),
        faster,
        names(keep) or (),
        *_interval(first, warmup, duration),
        Path() if source is None else source.parent,
    )
    _check_links(network, first, asked)
    scenarios = [(case, network.scenario(case)) for case in found]
    the_same(scenarios, "name one with `--arm`, or a label with `--where`")
    begin = first.seed if seed is None else whole(seed, "`seed`")
    trials = Trials(scenarios[0][1], network, asked, begin, store, jobs, progress)
    answer = search(trials, runs)
    own = arms_with_their_own(text, [one.path for one in chosen], arm)
    calibration = _result(trials, first, answer, own)
    if output is not None:
        # Line endings stay unchanged.
        calibration.write(text if source is None else source.read_bytes().decode(), arm, Path(output))
    return calibration


def _known(what: str, given: Sequence[str], there: Sequence[str]) -> Sequence[str]:
    for name in given:
        if name not in there:
            raise unknown(what, name, there)
    return given


def _check_not_swept(case: Case, chosen: Sequence[Population]) -> None:
    for one in chosen:
        if any(fnmatchcase(one.path, path) for path in case.swept):
            raise UsageError(
                f"the sweep sets `{one.path}` itself; calibrate a copy of the scenario without that axis"
            )


def _interval(case: Case, warmup: str | None, duration: str | None) -> tuple[int, int]:
    from aqmlab import _core

    begin = case.plan.warmup_ns if warmup is None else _core.quantity(warmup, "ns")
    end = case.plan.end_ns if duration is None else _core.quantity(duration, "ns")
    if begin >= end:
        raise UsageError("nothing is measured: the warm-up ends at the end of the run or later")
    return begin, end


def _check_links(network: Uncongested, case: Case, asked: Load) -> None:
    """Check that links can be made this fast, and that the load is a small enough share of their rates."""
    if not (math.isfinite(network.faster) and network.faster >= 1):
        raise UsageError(
            f"links cannot be made `{network.faster:g}` times as fast; give a finite factor of at least 1"
        )
    for pattern in network.keep:
        if not any(fnmatchcase(each.name, pattern) for each in case.plan.links):
            raise unknown("link", pattern, [each.name for each in case.plan.links])
    link = asked.link
    rate_bps = network.rate_bps(link)
    if network.is_kept(link.name):
        if asked.bps > rate_bps:
            raise UsageError(
                f"`{link.name}` keeps its rate, which is below the target; leave it out of `--keep`"
            )
    elif asked.bps > MOST_BUSY * rate_bps:
        least = math.ceil(asked.bps / MOST_BUSY / link.rate_bps)
        raise UsageError(
            f"the target is {number(100 * asked.bps / rate_bps, 3)} % of the rate of `{link.name}`, even"
            f" if the link is {network.faster:g} times as fast; a link counts as uncongested up to"
            f" {100 * MOST_BUSY:.0f} % load;"
            f" give `--faster {least}` or more"
        )


def _result(trials: Trials, case: Case, answer: Found, own: str) -> Calibration:
    chosen, network = trials.network.populations, trials.network
    seeds = spread(list(answer.loads[answer.value].values()))
    interval_s = (network.end_ns - network.warmup_ns) / 1e9
    tails = [tail_index(one, trials.asked) for one in chosen]
    tail = min((each for each in tails if each is not None), default=None)
    numbers = trials.others_at(answer.value)
    return Calibration(
        classes=tuple(chosen),
        values={one.name: number_of for one, number_of in zip(chosen, numbers, strict=True)},
        asked=trials.asked,
        fit=answer.fit,
        proportional=answer.wide.proportional,
        spread=seeds,
        needed=tuple(needed(share, seeds, interval_s, tail) for share in SHARES),
        tail=tail,
        runs=len(answer.loads[answer.value]),
        interval_s=interval_s,
        loads=answer.loads,
        differences=network.differences(case),
        remarks=(*([own] if own else []), *_remarks(chosen[0], answer, trials.asked)),
        runs_done=trials.runs_done,
    )


def _remarks(first: Population, answer: Found, asked: Load) -> Iterator[str]:
    """Return remarks about the value of the first class."""
    wide = answer.wide
    if not wide.proportional:
        one = "one user" if first.closed else "one connection per second"
        yield (
            f"The load is not proportional to the value: the load of {one} of `{first.name}` changes by"
            f" {change_text(wide.change.mean)} from {first.digits(wide.least)} to {first.text(wide.most)};"
            " the value is valid for this target only."
        )
    off = answer.fit.slope.mean * answer.value / asked.bps - 1
    if first.closed and abs(off) > _ROUNDING:
        yield (
            f"The number of users must be whole: the load of {first.text(answer.value)} differs from"
            f" the target by {change_text(off)}."
        )
