"""What every command reports about its runs: verdict, answer, doubts, lateness and claims, in this order.

Runs, live runs, sweeps, merged sweeps and reports all use the same words; for a scenario that ran both
simulated and live, they also report the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from aqmlab.cli.claims import claims_json, end_with, print_claims, scored_claims
from aqmlab.cli.console import Exit, complain, say, tell_json
from aqmlab.cli.tables import (
    MOST_ROWS,
    answer_console,
    print_answer,
    print_doubts,
    print_grid,
    print_left_out,
)
from aqmlab.text.numbers import counted
from aqmlab.text.tables import Column, Grid, Span

if TYPE_CHECKING:
    from aqmlab.claims import Scored
    from aqmlab.recordings.faithfulness import Faithfulness
    from aqmlab.results.answers import Answer
    from aqmlab.results.both import Both
    from aqmlab.results.results import Results


def tell_results(found: Answer, scored: Sequence[Scored] = (), *, as_json: bool) -> None:
    """Print an answer, the evidence for and against it, and the verdicts on the claims."""
    from aqmlab.recordings.faithfulness import verdicts
    from aqmlab.soundness import examine

    if as_json:
        tell_json(found.to_json() | said_json(found.results, scored))
        return
    print_verdict(verdicts(found.results.runs))
    print_answer(found)
    print_left_out(found.results)
    print_doubts(examine(found.results))
    print_lateness(found.results)
    _print_scored(scored)


def tell_experiment(experiment: Results, *, as_json: bool, no_report: bool) -> None:
    """Print the results of an experiment, write its report, and exit as its claims and verdicts require."""
    from aqmlab.recordings.faithfulness import verdicts
    from aqmlab.results.answers import answer

    for warning in experiment.warnings:
        say(f"warning: {warning}")
    scored = scored_claims(experiment)
    tell_results(answer(experiment), scored, as_json=as_json)
    say(f"recording  {experiment.path}")
    found = verdicts(experiment.runs)
    complain_of_lost_packets(found)
    if not no_report:
        from aqmlab.reports import write_report

        say(f"report     {write_report(experiment, scored=scored)}")
    end_unless_faithful(found)
    end_with(scored)
    end_if_skipped(lost.cell.arm for lost in experiment.missing if lost.skipped)


def tell_both(found: Both, scored: Mapping[str, Sequence[Scored]], *, as_json: bool) -> None:
    """Print how live and simulated results of a scenario differ, with the evidence for and against both."""
    from aqmlab.soundness import examine

    if as_json:
        tell_json(both_json(found, scored))
        return
    print_verdict(found.verdicts)
    print_sides(found)
    for name, side in found.sides.items():
        console = answer_console()
        console.print(f"\n{name}", style="bold", markup=False)
        print_doubts(examine(side))
        _print_scored(scored[name])
    print_lateness(found.live)


def both_json(found: Both, scored: Mapping[str, Sequence[Scored]]) -> dict[str, Any]:
    """Return the ``--json`` output for a scenario that ran both simulated and live."""
    about = {"doubts": {name: doubts_json(side) for name, side in found.sides.items()}}
    claims = {name: claims_json(of_side).get("claims") for name, of_side in scored.items()}
    return found.to_json() | about | ({"claims": claims} if any(claims.values()) else {})


def said_json(results: Results, scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the rest of the ``--json`` output, after the metrics: doubts, verdicts on live runs, claims."""
    from aqmlab.recordings.faithfulness import verdicts

    found = verdicts(results.runs)
    about: dict[str, Any] = {"doubts": doubts_json(results)}
    if results.left_out:
        names = [axis.name for axis in results.axes]
        about["left_out"] = [
            {"settings": dict(zip(names, case.labels, strict=True)), "reason": case.reason}
            for case in results.left_out
        ]
    if found:
        about["faithful"] = all(verdict.faithful for verdict in found)
        about["verdicts"] = [verdict.to_json() for verdict in found]
    return about | claims_json(scored)


def doubts_json(results: Results) -> list[dict[str, Any]]:
    """Return the evidence against results, for ``--json``."""
    from aqmlab.soundness import doubts

    return [doubt.to_json() for doubt in doubts(results)]


def _print_scored(scored: Sequence[Scored]) -> None:
    if scored:
        answer_console().print()
        print_claims(scored)


def print_sides(found: Both) -> None:
    """Print a table per arm or metric: simulated value, live value, and their difference."""
    from aqmlab.results.both import grouped

    console = answer_console()
    console.print(found.live.title, style="bold", markup=False)
    if found.live.question:
        console.print(found.live.question, markup=False)
    for title, rows in grouped(found).items():
        console.print()
        print_grid(console, found.comparison.grid_under(title, rows))
    console.print()
    console.print(found.summary, markup=False, soft_wrap=True)
    console.print(found.note, style="dim", markup=False, soft_wrap=True)


def print_verdict(found: Sequence[Faithfulness]) -> None:
    """Print the verdict on live runs; print nothing for simulated runs."""
    if not found:
        return
    from aqmlab.recordings.faithfulness import combined

    style = "green" if all(verdict.faithful for verdict in found) else "bold red"
    console = answer_console()
    console.print(combined(found), style=style, markup=False, soft_wrap=True)
    console.print()


def print_lateness(results: Results) -> None:
    """Print the lateness of packets and the other grounds for the verdict; print nothing for simulated runs.

    There is one row per run; for a sweep, there is one row per cell, with the worst values of its runs.
    """
    from aqmlab.recordings.faithfulness import verdicts
    from aqmlab.text.numbers import shown

    heads = ("p50 [us]", "p99 [us]", "p99.9 [us]", "max [us]", "stalls", "duty [%]", "lost unseen", "")
    title = "faithfulness, worst of each cell's runs" if results.axes else "faithfulness"
    table = Grid(title, *(Column(head, right=True) for head in heads))
    if results.axes:
        rows = [(str(cell), verdicts(results.runs_of(cell))) for cell in results.cells]
    else:
        rows = [(f"{one.arm}, seed {one.seed}", (one,)) for one in verdicts(results.runs)]
    rows = [(name, found) for name, found in rows if found]
    if not rows:
        return
    for name, found in rows[:MOST_ROWS]:
        late = (_worst([one.lateness_s(q) for one in found]) for q in ("p50", "p99", "p999", "max"))
        duty, lost = (_worst([getattr(one, of) for one in found]) for of in ("duty_percent", "lost_unseen"))
        cells = (*(shown(each, 1, 1e6) for each in late), _stalls(found), shown(duty, 1), shown(lost))
        table.add(name, *cells, _word(found))
    console = answer_console()
    console.print()
    print_grid(console, table)
    if (left := len(rows) - MOST_ROWS) > 0:
        console.print(f"{counted(left, 'more cell')} in the report", style="dim", markup=False)


def _worst(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _stalls(found: Sequence[Faithfulness]) -> str:
    """Return ``2 (31.0 ms)``: the number of stalls, and the longest one."""
    from aqmlab.text.numbers import shown

    worst = max(found, key=lambda verdict: (verdict.longest_stall_s or 0.0, verdict.stall_count or 0))
    count = shown(_worst([verdict.stall_count for verdict in found]))
    return f"{count} ({shown(worst.longest_stall_s, 1, 1e3)} ms)" if worst.stall_count else count


def _word(found: Sequence[Faithfulness]) -> Span:
    """Return ``faithful``, or ``NOT FAITHFUL`` with the number of runs that are not."""
    bad = sum(not verdict.faithful for verdict in found)
    if not bad:
        return Span("faithful")
    return Span("NOT FAITHFUL" + (f": {bad} of {len(found)}" if len(found) > 1 else ""), "bold red")


def complain_of_lost_packets(found: Sequence[Faithfulness]) -> None:
    """Warn of runs whose captured packets could not be kept; everything else of such a run is complete."""
    for verdict in found:
        if verdict.capture_failure:
            complain(f"{verdict.arm}, seed {verdict.seed}: {verdict.capture_failure}; the rest is recorded")


def end_unless_faithful(found: Sequence[Faithfulness]) -> None:
    """Exit with 3 if a live run's captured packets could not be kept, with 5 if a run is not faithful."""
    if any(verdict.capture_failure for verdict in found):
        raise typer.Exit(Exit.MACHINE)
    if not all(verdict.faithful for verdict in found):
        raise typer.Exit(Exit.NOT_FAITHFUL)


def end_if_skipped(arms: Iterable[str]) -> None:
    """Exit with 6 if arms were left out because this machine's kernel lacks their queue."""
    if skipped := list(dict.fromkeys(arms)):
        complain(f"{counted(len(skipped), 'arm')} skipped: {', '.join(f'`{arm}`' for arm in skipped)}")
        raise typer.Exit(Exit.SKIPPED)
