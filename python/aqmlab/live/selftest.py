"""A self-test of five seconds: how accurately this machine keeps time, and what follows from that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab.live import supervisor

PACKET_BITS = 8 * 1500
"""The size of a full packet, in bits; most links carry mainly such packets."""

MOST_DUTY_PERCENT = 70.0
"""The largest share of a processor that the router may take in a faithful run."""

LEAST_RATE_BPS = 10e6
"""A machine that is not faithful at this rate is unfit for live runs; a full packet then takes 1.2 ms."""


@dataclass(frozen=True)
class Trial:
    """A short run of two flows through RED.

    Attributes
    ----------
    name
        ``"real-time"`` or ``"ordinary"`` scheduling.
    run
        The core's report: ``verdict``, ``faithful``, ``policy``, ``lateness``, ``duty_percent``.
    """

    name: str
    run: Mapping[str, Any]

    def lateness_s(self, quantile: str) -> float:
        """Return a quantile of the lateness of packets [s]: ``"p50"``, ``"p99"``, ``"p999"`` or ``"max"``."""
        return int(self.run["lateness"][f"{quantile}_ns"]) / 1e9

    @property
    def timely_bps(self) -> float:
        """The highest rate at which packets are on time: sending a full one takes twice the p99 lateness."""
        return 0.5 * PACKET_BITS / max(self.lateness_s("p99"), 1e-9)


@dataclass(frozen=True)
class SelfTest:
    """The findings.

    Attributes
    ----------
    trials
        The runs with real-time scheduling, if that is permitted, and without it.
    content
        Everything that the core reports, including ``capacity``, ``ping``, ``stolen_percent``.
    """

    trials: tuple[Trial, ...]
    content: Mapping[str, Any]

    @property
    def virtual_time(self) -> bool:
        """Whether the kernel runs in virtual time, in which work takes no time."""
        return bool(self.content.get("virtual_time"))

    @property
    def carried_bps(self) -> float:
        """The rate at which the router's thread would need its largest permitted share of a processor.

        Processor time is proportional to the number of packets. The run with the lowest share is
        used, because it spent the least time spinning.
        """
        if self.virtual_time:
            return math.inf
        duty = min(float(trial.run["duty_percent"]) for trial in self.trials)
        return float(self.content["rate_bps"]) * MOST_DUTY_PERCENT / max(duty, 0.1)

    def faithful_up_to_bps(self, trial: Trial) -> float:
        """Return the approximate highest bottleneck rate at which runs are faithful.

        Up to this rate, packets are on time and the router's thread needs no more than its permitted
        share of a processor.
        """
        return min(trial.timely_bps, self.carried_bps)

    @property
    def passed(self) -> bool:
        """Whether this machine is fit for live runs of 10 Mbit/s, with the scheduling that it permits."""
        return self.faithful_up_to_bps(self.trials[0]) >= LEAST_RATE_BPS

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data, as printed by ``--json``."""
        rates = {trial.name: self.faithful_up_to_bps(trial) for trial in self.trials}
        return {
            "format_version": 1,
            "passed": self.passed,
            "faithful_up_to_bps": rates,
            **{key: _without_bins(value) for key, value in self.content.items()},
        }


def _without_bins(value: Any) -> Any:  # noqa: ANN401 (plain data)
    if isinstance(value, dict):
        return {key: _without_bins(inner) for key, inner in value.items() if key != "bins"}
    return value


def selftest(
    progress: supervisor.Progress | None = None, interrupted: Callable[[], object] | None = None
) -> SelfTest:
    """Test this machine; nothing is kept.

    Raises
    ------
    HostError
        If this machine cannot do live runs at all.
    RunError
        If the process of the self-test died.
    """
    content = supervisor.ask({"do": "selftest"}, progress=progress, interrupted=interrupted)
    trials = (Trial("real-time", content["realtime"]), Trial("ordinary", content["ordinary"]))
    return SelfTest(trials, content)
