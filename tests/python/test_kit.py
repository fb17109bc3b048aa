"""A congestion controller in Python, judged by the kit."""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path

import pytest

import aqmlab
from aqmlab.errors import UsageError
from aqmlab.kit import Controller, RoundTrips, situations

ROOT = Path(__file__).parents[2]


def example():
    spec = importlib.util.spec_from_file_location("kit_python", ROOT / "examples" / "kit_python.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.NewReno


class Fixed(Controller):
    """A window that never changes."""

    def __init__(self, _opened, datagram):
        self.bytes = 300 * datagram

    def on_congestion_event(self, now, sent, persistent, lost):
        pass

    def window(self):
        return self.bytes


def test_new_reno_of_the_appendix_is_the_new_reno_of_the_sender():
    """The limit is that of the same controller in Rust (``crates/aqmlab-kit/tests/seam.rs``)."""
    judgment = aqmlab.judge(example(), situations=["single", "random_loss", "short_flows"], name="appendix B")
    assert len(judgment.comparisons) == 6
    for comparison in judgment.comparisons:
        reno = comparison.references["reno"]
        assert comparison.own == pytest.approx(reno, abs=0.05 * max(reno, 1)), comparison
    assert str(judgment).startswith("situation")
    assert "appendix B" in str(judgment)


def test_the_same_controller_gives_the_same_judgment():
    once, again = (aqmlab.judge(example(), situations="codel") for _ in range(2))
    assert once == again
    assert once.name == "NewReno"


def test_a_window_that_ignores_losses_is_outside_the_bands():
    judgment = aqmlab.judge(Fixed, situations=["with_reno", "codel"])
    assert sum(comparison.position == "above" for comparison in judgment.comparisons) >= 3
    assert {comparison.sections for comparison in judgment.comparisons} == {"5.2.1", "7.1"}


def test_the_calls_are_those_of_the_sender():
    """Numbers count up, and what is acknowledged has left before.

    The sets hold times, because debug builds process acknowledgments twice, once with a copy of it.
    """
    left, acked, ends = [], set(), set()

    class Watching(Fixed):
        def on_sent(self, now, size, number):
            left.append((now, number))
            assert 0 < size <= 1500

        def on_ack(self, now, sent, _size, _app_limited, rtt):
            assert type(rtt) is RoundTrips
            assert sent < now
            assert 0.04 <= rtt.least <= rtt.latest
            acked.add(sent)

        def on_end_acks(self, now, in_flight, _app_limited, largest):
            assert in_flight >= 0
            assert largest <= left[-1][1]
            ends.add(now)

        def pacing_rate(self):
            return 1_250_000

    judgment = aqmlab.judge(Watching, situations=["single"])
    assert left == sorted(left)
    assert acked <= {now for now, _ in left}
    assert 0 < len(ends) <= len(left)
    goodput = next(comparison.own for comparison in judgment.comparisons if comparison.measure == "goodput")
    assert 9 < goodput < 10, "the pacing rate of 10 Mbit/s, less headers, is half of the link"


def test_an_exception_of_a_controller_reaches_the_caller_with_its_place():
    class Broken(Fixed):
        def on_end_acks(self, *_arguments):
            self.bytes = {}["nothing"]

    with pytest.raises(KeyError, match="nothing") as caught:
        aqmlab.judge(Broken, situations=["single"])
    assert "on_end_acks" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": lambda _self: 1.5}, "`window` must return a whole number of bytes; it has returned 1.5"),
        ({"window": lambda _self: -1}, "it has returned -1"),
        (
            {"pacing_rate": lambda _self: "fast"},
            "`pacing_rate` must return a whole number of bytes per second",
        ),
    ],
)
def test_what_a_controller_returns_is_checked(wrong, message):
    with pytest.raises(TypeError, match=message):
        aqmlab.judge(type("Wrong", (Fixed,), wrong), situations=["single"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"situations": ["sinlge"]}, 'there is no situation "sinlge"; the situations are high_loss, single'),
        ({"runs": 0}, "`runs` is 0; it must be at least 1"),
        ({"controller": lambda _opened, _datagram: 5}, "the factory must return an `aqmlab.kit.Controller`"),
    ],
)
def test_what_cannot_be_judged_is_refused(given, message):
    arguments = {"controller": Fixed, "situations": ["single"]} | given
    with pytest.raises(UsageError, match=message):
        aqmlab.judge(**arguments)


def test_the_situations_are_those_of_the_rfc():
    known = situations()
    assert len(known) == 22
    assert {situation.sections[0] for situation in known} == {"5", "6", "7"}
    assert all('profile = "quic"' in situation.scenario for situation in known)
