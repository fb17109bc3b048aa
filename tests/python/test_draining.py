"""The time for which a queue is slow, compared with answers found by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from aqmlab.metrics import Measured, Samples, Scope, Window, find


@dataclass(frozen=True)
class Scripted(Measured):
    """A run whose queue was sampled once per second: these bytes waited, and the link could send these."""

    backlog: tuple[float, ...] = ()
    capacity: tuple[float, ...] = field(default=())

    def samples(self, table, name, queue):
        assert queue == "bottleneck"
        values = {("queues", "backlog_bytes"): self.backlog, ("capacity", "capacity_bytes"): self.capacity}
        return Samples(np.arange(1.0, len(self.backlog) + 1), np.array(values[table, name], dtype=float))


def scripted(backlog, capacity=()):
    run = SimpleNamespace(
        t0_ns=0,
        t1_ns=len(backlog) * 10**9,
        changes=lambda _queue: bool(capacity),
        rate_bps=lambda _queue: 8000,  # 1000 bytes per second
        plan=SimpleNamespace(elsewhere=lambda _queue: frozenset(), links=[], classes=[]),
    )
    return Scripted(run, {}, [], backlog=tuple(backlog), capacity=tuple(capacity))


def value(name, run, window=None, **parameters):
    return find(name).compute(run, Scope("bottleneck", "*", window, parameters))


def test_at_a_constant_rate_the_limit_is_a_number_of_bytes():
    # Of the ten samples, the last tells nothing about the second after it. 1000 bytes take exactly the limit.
    run = scripted([0, 999, 1000, 1001, 5000, 0, 0, 2000, 0, 0])
    assert value("slow_percent", run, limit=1) == pytest.approx(100 * 3 / 9)
    assert value("slow_percent", run, Window(3, 5), limit=1) == pytest.approx(100)
    assert value("slow_until_s", run, limit=1, hold=2) == 0
    assert value("slow_until_s", run, Window(3, 9), limit=1, hold=2) == 2
    assert value("slow_until_s", run, Window(3, 9), limit=1, hold=3) is None


def test_what_counts_is_the_rate_from_then_on():
    # The link stops in the fourth and fifth second. 500 bytes wait at the end of the third until the sixth.
    run = scripted([500, 500, 500, 500, 500, 500], [1000, 1000, 1000, 0, 0, 1000])
    assert value("slow_percent", run, limit=1) == pytest.approx(100 * 2 / 5)
    # Within two seconds, the link sends at least 1000 bytes but for those that begin with the standstill.
    assert value("slow_percent", run, limit=2) == pytest.approx(100 * 1 / 4)
    # Half of the limit lies in the second before the standstill, or in the one after it.
    assert value("slow_percent", scripted([600] * 4, [1000, 1000, 0, 1000]), limit=1.5) == pytest.approx(50)


def test_an_empty_queue_is_never_slow_and_nothing_is_known_without_samples():
    assert value("slow_percent", scripted([0, 0, 0], [0, 0, 0]), limit=1) == 0
    assert value("slow_percent", scripted([5.0]), limit=1) is None
    assert value("slow_until_s", scripted([5.0]), limit=1) is None
