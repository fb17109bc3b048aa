"""From a discipline in tc's syntax to a scenario's queue with the preset ``linux``."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from aqmlab.arguments import typed
from aqmlab.errors import UsageError
from aqmlab.tc.commands import EXAMPLE, Other, Source, Words, disciplines
from aqmlab.tc.disciplines import CONTAINERS, LINUX_ONLY, NONE_IN_LINUX, READ
from aqmlab.tc.effective import NoCounterpartError, Queue
from aqmlab.tc.grammar import Given, given_words


@dataclass(frozen=True)
class TcQueue:
    """A Linux discipline as a queue of a scenario.

    Attributes
    ----------
    spec
        The words, starting with the discipline's name.
    queue
        The queue in the syntax of scenarios.
    rate_bps
        The link's rate if the words contain it; otherwise ``None``.
    shown
        What ``tc -d qdisc show`` prints of this discipline, without handle and place.
    remarks
        Remarks on values that tc and the kernel change, and on meanings of the words that the queue does not
        express.
    """

    spec: str
    queue: Queue
    rate_bps: int | None
    shown: str
    remarks: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The line of a scenario."""
        import tomlkit

        entries = (f"{name} = {tomlkit.item(value).as_string()}" for name, value in self.queue.items())
        return f"queue = {{ {', '.join(entries)} }}"


@dataclass(frozen=True)
class TcSkipped:
    """A command without a queue for aqmlab, and the reason."""

    spec: str
    reason: str


@typed
def read_tc(text: str) -> TcQueue:
    """Return the queue for ``red limit 400000 avpkt 1000 ecn``, a command, or a line of ``tc qdisc show``.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words, aqmlab has no equivalent discipline or parameter, or there is
        not exactly one discipline.
    """
    found = list(disciplines(text))
    given = [one for one in found if isinstance(one, Words)]
    given = [one for one in given if one.source is not Source.BARE or one.words[0] in READ] or given
    if len(given) > 1:
        raise UsageError(f"there are {len(given)} disciplines; write one as tc does: {EXAMPLE}")
    if given:
        return _read(given[0])
    raise next((one.reason for one in found if isinstance(one, Other)), _nothing())


@typed
def read_tc_script(text: str) -> list[TcQueue | TcSkipped]:
    """Return the queues of a shell script, or of the output of ``tc qdisc show``, in their order.

    Commands without a queue for aqmlab, such as those about classes, are skipped.

    Raises
    ------
    UsageError
        If tc or the kernel refuses the words of a discipline; the message names the lines. Also if there is
        no queue.
    """
    parts = list(disciplines(text))
    if len(parts) <= 1:
        return [read_tc(text)]
    found: list[TcQueue | TcSkipped] = []
    wrong = []
    for one in parts:
        try:
            if isinstance(one, Other):
                raise one.reason
            if one.source is Source.BARE and one.words[0] not in READ:
                raise NoCounterpartError(f"`{one.words[0]}` is neither tc nor a queue discipline of aqmlab")
            found.append(_read(one))
        except NoCounterpartError as error:
            found.append(TcSkipped(one.text, str(error)))
        except UsageError as error:
            wrong.append(f"line {one.line}: {error}")
    if wrong:
        raise UsageError("; ".join(wrong))
    if not any(isinstance(one, TcQueue) for one in found):
        raise UsageError(
            "; ".join(f"`{one.spec}`: {one.reason}" for one in found if isinstance(one, TcSkipped))
        )
    return found


def _nothing() -> UsageError:
    return UsageError(f"there is no discipline; write one as tc does: {EXAMPLE}")


def _read(given: Words) -> TcQueue:
    kind, *rest = given.words
    vocabulary = READ.get(kind)
    if vocabulary is None:
        error = NoCounterpartError if kind in LINUX_ONLY or given.source is Source.SHOWN else UsageError
        raise error(_no_discipline(kind))
    grammar = vocabulary.shown if given.source is Source.SHOWN else vocabulary.given
    words = Given(given_words(kind, rest, grammar))
    reading = grammar.queue(words)
    without = [
        f"`{word}` has no equivalent in aqmlab: {why}"
        for word, why in grammar.refused.items()
        if word in words
    ]
    if without:
        raise NoCounterpartError(f"{kind}: {'; '.join(without)}")
    if given.source is Source.CHANGED:
        reading.remarks.append("`change` keeps the options of the existing discipline that it does not give")
    spec = " ".join(given.words)
    return TcQueue(spec, reading.queue(), reading.rate_bps, reading.shown or spec, tuple(reading.remarks))


def _no_discipline(kind: str) -> str:
    ours = ", ".join(f"`{name}`" for name in READ)
    if kind in NONE_IN_LINUX:
        return f"tc does not know `{kind}`: {NONE_IN_LINUX[kind]}"
    if kind in CONTAINERS:
        what = "has a line for each virtual queue" if kind == "gred" else "may contain others"
        return f"`{kind}` {what}: give all commands of its device to `aqmlab aqm tc --read -`"
    if kind in LINUX_ONLY:
        return f"`{kind}` is a Linux discipline without a counterpart in aqmlab, which has {ours}"
    near = get_close_matches(kind, (*READ, *LINUX_ONLY), 1)
    hint = f" (`{near[0]}`?)" if near else ""
    return f"`{kind}` is not a queue discipline{hint}; aqmlab has {ours}"
