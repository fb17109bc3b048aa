"""Draining times, and the time for which a queue is slow, compared with answers found by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from aqmlab.metrics import Measured, Samples, Scope, Window, find
from aqmlab.recordings.draining import draining_times


@dataclass(frozen=True)
class Scripted(Measured):
    """A run whose queue was sampled once per second: these bytes waited, and the link could send these."""

    backlog: tuple[float, ...] = ()
    packets: tuple[float, ...] = ()
    capacity: tuple[float, ...] = field(default=())

    def samples(self, table, name, queue):
        assert queue == "bottleneck"
        values = {
            ("queues", "backlog_bytes"): self.backlog,
            ("queues", "backlog_packets"): self.packets,
            ("capacity", "capacity_bytes"): self.capacity,
        }
        return Samples(np.arange(1.0, len(self.backlog) + 1), np.array(values[table, name], dtype=float))


def scripted(backlog, capacity=(), packets=(), overhead=0):
    link = SimpleNamespace(overhead_bytes=overhead)
    run = SimpleNamespace(
        t0_ns=0,
        t1_ns=len(backlog) * 10**9,
        changes=lambda _queue: bool(capacity),
        rate_bps=lambda _queue: 8000,  # 1000 bytes per second
        plan=SimpleNamespace(elsewhere=lambda _queue: frozenset(), link=lambda _queue: link),
    )
    return Scripted(run, {}, [], backlog=tuple(backlog), packets=tuple(packets), capacity=tuple(capacity))


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


def test_bytes_that_the_link_adds_count():
    waiting, packets = [900] * 4, [1, 2, 3, 1]
    assert value("slow_percent", scripted(waiting, packets=packets, overhead=40), limit=1) == pytest.approx(
        100 / 3
    )
    assert value("slow_percent", scripted(waiting, packets=packets), limit=1) == 0


def test_draining_times_follow_the_rate():
    ends, sent = [1.0, 2.0, 3.0, 4.0], [1000.0, 0.0, 500.0, 1000.0]
    # 500 bytes at 0.5 s: the rest of the first second. 600: the standstill, and a fifth of the third second.
    assert draining_times(ends, sent, [0.5, 0.5], [500, 600]) == pytest.approx([0.5, 1.7])
    # Nothing waits during the standstill; one byte waits until it is over.
    assert draining_times(ends, sent, [1.5, 1.5], [0, 1]) == pytest.approx([0.0, 0.502])
    # After two seconds, 1500 bytes take all that follows; one more is not known, or sent at 8 bit/s.
    assert draining_times(ends, sent, [2.0, 2.0, 2.0], [1500, 1501, 0]) == pytest.approx([2.0])
    assert draining_times(ends, sent, [2.0, 2.0, 4.0], [1500, 1501, 2], 8.0) == pytest.approx([2.0, 3.0, 2.0])


def test_draining_times_are_the_inverse_of_what_is_sent():
    drawn = np.random.default_rng(1)
    ends = np.cumsum(drawn.uniform(0.05, 0.2, 200))
    sent = drawn.integers(0, 3, 200) * 1000.0
    instants = np.sort(drawn.uniform(0, ends[-1], 500))
    waiting = drawn.uniform(0, 20_000, 500)
    found = draining_times(ends, sent, instants, waiting, 1e6)
    total = np.concatenate([[0.0], np.cumsum(sent)])
    at = np.concatenate([[0.0], ends])
    known = instants + found < ends[-1]
    assert 400 < known.sum() < 500
    came = np.interp(instants + found, at, total) - np.interp(instants, at, total)
    assert came[known] == pytest.approx(waiting[known])
