"""A discipline's law, computed by the compiled discipline: its curve, or its response to a step in load."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab.errors import Problem, ScenarioError, UsageError

Floats = npt.NDArray[np.float64]

CURVES = ("red", "ared", "scred")
"""Disciplines with a probability that depends on the average queue."""
RESPONSES = ("pi", "rem", "blue", "pie", "pi2", "dualpi2")
"""Disciplines with a probability that depends on past events."""
_SQUARED = ("pi2", "dualpi2")
"""Those whose packets here, which are not ECN-capable, are dropped with the square of ``p``."""
SAMPLES = 600
"""Points of a response."""
PACKET = "1.5kB"
LONGEST_S = 1e5


@dataclass(frozen=True)
class Bench:
    """The link and, for step responses, the load on it.

    The load consists of evenly spaced datagrams of 1500 B, sent regardless of losses.

    Attributes
    ----------
    rate, delay
        Rate and delay of the link; the base round-trip time is twice the delay.
    load, step_load
        Network-layer load as a share of the rate, outside the step and during it.
    duration_s
        Duration; the step begins after a sixth of it and ends after two thirds of it.
    """

    rate: str = "10Mbit"
    delay: str = "40ms"
    load: float = 0.8
    step_load: float = 1.2
    duration_s: float = 60.0

    @property
    def step_s(self) -> tuple[float, float]:
        """Beginning and end of the step."""
        return self.duration_s / 6, self.duration_s * 2 / 3


@dataclass(frozen=True)
class Curve:
    """Probability before spacing, against average queue."""

    label: str
    unit: str
    """Unit of the average: packets or bytes."""
    avg: Floats
    p: Floats


@dataclass(frozen=True)
class Response:
    """Probability and backlog over time."""

    label: str
    t_s: Floats
    p: Floats
    backlog_packets: Floats


def law_curves(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    presets: bool = False,
    averages: Sequence[float] | None = None,
    bench: Bench | None = None,
) -> list[Curve]:
    """Return the probability against average queue; a ``max_p`` that adapts has its initial value.

    Parameters
    ----------
    name
        One of :data:`CURVES`.
    settings
        Parameters as in a scenario file.
    presets
        Whether to compute the presets, one curve each; ``settings`` are applied to each of them as well.
    averages
        The averages at which to compute the probability; by default from 0 to beyond the average at
        which every packet is dropped or marked.
    bench
        The link for which automatic parameters are computed.

    Raises
    ------
    UsageError
        If the curve is unknown or a parameter is invalid.
    """
    from aqmlab import _core

    _check_name(name, CURVES)
    text, label = bench_scenario(name, _arms(name, settings or {}, presets), bench or Bench())
    try:
        curves = json.loads(_core.law_curves(text, label, averages))
    except ScenarioError as error:
        raise wrong_parameter(name, error) from error
    return [Curve(c["arm"], c["unit"], np.array(c["avg"]), np.array(c["p"])) for c in curves]


def law_responses(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    presets: bool = False,
    seed: int = 1,
    bench: Bench | None = None,
) -> list[Response]:
    """Return the response of the probability to a step in the offered load, in the simulator, without TCP.

    Parameters
    ----------
    name
        One of :data:`RESPONSES`.
    settings, presets
        As for :func:`law_curves`.
    seed
        Seed of the discipline's draws.
    bench
        The link and the load.

    Raises
    ------
    UsageError
        If the response is unknown or a parameter is invalid.
    """
    from aqmlab import experiment as experiments
    from aqmlab.recordings.time_series import run_series

    _check_name(name, RESPONSES)
    text, _ = bench_scenario(name, _arms(name, settings or {}, presets), bench or Bench())
    with TemporaryDirectory(prefix="aqmlab-law-") as directory:
        try:
            experiment = experiments.run(
                tomllib.loads(text), output=Path(directory) / "run", seed=seed, runs=1, report=False
            )
        except ScenarioError as error:
            raise wrong_parameter(name, error) from error
        of_runs = run_series(experiment.tables, experiment.runs, "bottleneck", bins=SAMPLES)
    responses = []
    for of_run in of_runs:
        t_s, p = map(np.asarray, of_run.law["p_classic" if name in _SQUARED else "p"])
        seen = t_s > 0  # the queue has no sample at time 0
        backlog = np.asarray(of_run.queue.values["backlog_packets"])
        responses.append(Response(of_run.run.arm, t_s[seen], p[seen], backlog))
    return responses


def law_warnings(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    presets: bool = False,
    bench: Bench | None = None,
) -> list[str]:
    """Return warnings about allowed but suspicious parameters, such as gains that make the queue unstable.

    The bench's deliberate overload is not included: during the step, the load exceeds the link's
    rate, whatever the queue.

    Parameters
    ----------
    name, settings, presets, bench
        As for :func:`law_curves` and :func:`law_responses`.

    Raises
    ------
    UsageError
        If a parameter is invalid.
    """
    from aqmlab import _core

    arms = _arms(name, settings or {}, presets)
    without_law = {arm: {"kind": "droptail"} for arm in arms}
    try:
        found, of_the_bench = (
            json.loads(_core.plan(*bench_scenario(name, queues, bench or Bench())))["warnings"]
            for queues in (arms, without_law)
        )
    except ScenarioError as error:
        raise wrong_parameter(name, error) from error
    return [warning for warning in found if warning not in of_the_bench]


def parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """Return parameters from ``key=value`` words; a value that is not TOML is a string: ``5p``, ``paper``.

    Raises
    ------
    UsageError
        For a word without a key or a value, and for a repeated key.
    """
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not (key and equals and value):
            raise UsageError(f"`{word}` is not a setting; write key=value, such as `max_p=0.1`")
        if key in settings:
            raise UsageError(f"`{key}` is set twice")
        try:
            settings[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key] = value
    return settings


def _check_name(name: str, possible: Sequence[str]) -> None:
    from aqmlab.disciplines.catalogue import aqm_show

    aqm_show(name)  # reports an unknown name
    if name not in possible:
        curves, responses = (", ".join(f"`{p}`" for p in names) for names in (CURVES, RESPONSES))
        raise UsageError(
            f"`{name}` has no law of this kind to draw; laws against average queue: {curves};"
            f" laws over time: {responses}"
        )


def _arms(name: str, settings: Mapping[str, Any], presets: bool) -> dict[str, dict[str, Any]]:
    """Return a queue per preset, or a single queue named after the discipline."""
    from aqmlab.disciplines.catalogue import aqm_show

    entry = aqm_show(name)
    queue = {"kind": name, **settings}
    if not presets:
        return {entry["title"]: queue}
    return {f"{entry['title']}, {p['name']}": {**queue, "preset": p["name"]} for p in entry["presets"]}


def bench_scenario(name: str, arms: Mapping[str, Mapping[str, Any]], bench: Bench) -> tuple[str, str]:
    """Return a scenario of the bench with one arm per queue: its TOML text, and a name for messages.

    Raises
    ------
    UsageError
        If the bench's load is not a step, or its duration is too long.
    """
    from aqmlab import _core
    from aqmlab.language.scenario import read

    begin, end = bench.step_s
    if not 0 <= bench.load < bench.step_load <= 10:
        step = f"from `{bench.load:g}` to `{bench.step_load:g}` times the rate"
        raise UsageError(f"a load {step} is not a step; let 0 <= load < step <= 10")
    if not 0 < bench.duration_s <= LONGEST_S:
        raise UsageError(
            f"`{bench.duration_s:g}` s is not a valid duration; give more than 0 s and at most"
            f" {LONGEST_S:g} s"
        )
    rate_bps = _core.quantity(bench.rate, "bps")
    extra = bench.step_load - bench.load
    loads = [
        ("base", bench.load, {}),
        ("step", extra, {"start": f"{begin:.6f}s", "stop": f"{end:.6f}s"}),
    ]
    scenario = {
        "title": f"{name}: step in load",
        "duration": f"{bench.duration_s:.6f}s",
        "warmup": "0s",
        "topology": {
            "kind": "dumbbell",
            "rate": bench.rate,
            "delay": bench.delay,
            "access_rate": "none",
            "queue": next(iter(arms.values())),
        },
        "traffic": [
            {"name": label, "kind": "cbr", "rate": f"{share * rate_bps:.0f}bit", "size": PACKET, **when}
            for label, share, when in loads
            if share > 0
        ],
        "record": {"queues": f"{bench.duration_s / SAMPLES:.9f}s", "flows": "0s"},
        "arm": [{"name": arm, "topology.queue": queue} for arm, queue in arms.items()],
    }
    return read(scenario)


def wrong_parameter(name: str, error: ScenarioError) -> UsageError:
    """Return an error that lists the problems of a scenario the user did not write, without locations."""
    messages = dict.fromkeys(_message(problem) for problem in error.errors)
    return UsageError(f"{name}: {'; '.join(messages) or error}")


def _message(problem: Problem) -> str:
    """Return the problem's message, preceded by the parameter's name if the message lacks it."""
    key = problem["path"].rpartition("topology.queue")[2].lstrip(".")
    message = problem["message"]
    return f"{key} {message}" if key and key not in message else message
