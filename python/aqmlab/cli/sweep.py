"""The commands for many runs: ``sweep``, ``merge``, ``query``."""

from __future__ import annotations

import csv
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.claims import end_with
from aqmlab.cli.console import interruptible, refuse_damage, say, set_quiet, tell_json
from aqmlab.cli.live import tell_stopping
from aqmlab.cli.options import (
    AsJson,
    Jobs,
    NoReport,
    Pcap,
    PcapBytes,
    Quiet,
    Runs,
    ScenarioFile,
    Seed,
    StorePath,
    Where,
    on_executors,
    ports_of,
)
from aqmlab.cli.outcome import (
    both_json,
    complain_of_lost_packets,
    end_if_skipped,
    end_unless_faithful,
    print_sides,
    print_verdict,
    said_json,
    tell_results,
)
from aqmlab.cli.progress import ProgressLine
from aqmlab.cli.tables import short_answer
from aqmlab.errors import AqmlabError, DamageError, HostError, RecordingError, RunError, UsageError

if TYPE_CHECKING:
    from aqmlab.recordings.faithfulness import Faithfulness
    from aqmlab.sweeps.forecast import Forecast
    from aqmlab.sweeps.progress import Progress
    from aqmlab.sweeps.sweep import Sweep

EVENTS_VERSION = 1
_SECONDS_BETWEEN_EVENTS = 1.0


@on_executors
def sweep(
    scenario: ScenarioFile,
    store: StorePath = None,
    seed: Seed = None,
    runs: Runs = None,
    jobs: Jobs = None,
    executor: Where = "local",
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="sim, or live: runs between this machine's TCP stacks, one at a time, in real time.",
        ),
    ] = "sim",
    and_live: Annotated[
        bool, typer.Option("--both", help="Run live, then simulate, and compare the results cell by cell.")
    ] = False,
    pcap: Pcap = None,
    pcap_bytes: PcapBytes = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Run only the K-th of N parts of the runs.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Repeat runs that are already in the store.")
    ] = False,
    faithful: Annotated[
        bool, typer.Option("--faithful", help="Repeat live runs in the store that are not faithful.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the remaining runs and their expected cost; run nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print events as JSON, one object per line, instead of a table.")
    ] = False,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Run every cell of a scenario's [sweep] with every seed that the store lacks; print the results.

    Exits with 1 if a firm claim of the scenario fails, with 4 if runs fail, with 5 if a live run is not
    faithful, and with 6 if an arm of live runs was skipped. Repeat an interrupted command to resume it.
    """
    from aqmlab.sweeps.where import cluster_of

    set_quiet(quiet)
    cluster_of(executor, jobs)  # refuse a bad executor before live runs begin
    asked: dict[str, Any] = {"store": store, "seed": seed, "runs": runs, "jobs": jobs, "shard": shard}
    hosts = ("live", "sim") if and_live else (host,)
    if faithful and ("live" not in hosts or dry_run):
        raise UsageError("`--faithful` repeats live runs; add --host live or --both, and leave out --dry-run")
    if dry_run:
        for each in hosts:
            _forecast(scenario, as_json, host=each, **asked)
        return
    asked |= {"force": force, "pcap": ports_of(pcap), "pcap_bytes": pcap_bytes, "report": not no_report}
    ended = []
    for each in hosts:
        # Live runs use this machine, whatever executor the simulations use.
        on: dict[str, Any] = {"host": each, "faithful": faithful and each == "live"}
        on["executor"] = "local" if and_live and each == "live" else executor
        ended.append(_ended(scenario, {**asked, **on}, as_json=as_json, quiet=quiet, whole=shard is None))
    if and_live and shard is None:
        _tell_beside(*ended, as_json=as_json, report=not no_report)
    end_unless_faithful([verdict for under_way in ended for verdict in _verdicts(under_way)])
    end_with([claim for under_way in ended for claim in under_way.claims])
    end_if_skipped(arm for under_way in ended for arm in under_way.skipped)


def _ended(scenario: Path, asked: Mapping[str, Any], *, as_json: bool, quiet: bool, whole: bool) -> Sweep:
    """Run a sweep and print its results."""
    from aqmlab.sweeps.sweep import sweep as begin

    events = _Events(enabled=as_json)
    failure: AqmlabError | None = None
    with interruptible(), ProgressLine(enabled=not quiet) as line:

        def watch(now: Progress) -> None:
            line.update(now)
            events.progress(now)

        under_way = begin(scenario, **asked, progress=watch, interrupted=tell_stopping)
        _say_what_begins(under_way)
        with under_way:
            events.begin(under_way)
            if as_json:
                for ended in under_way:
                    events.run(ended)
            try:
                under_way.wait()
            except HostError:
                raise
            except (RunError, RecordingError) as error:
                failure = error
    for warning in under_way.cases.about["warnings"]:
        say(f"warning: {warning}")
    for remark in under_way.remarks:
        say(f"remark: {remark}")
    events.end(under_way)
    if not as_json:
        _print(under_way, whole=whole)
    say(f"sweep      {under_way.path}")
    if under_way.report is not None:
        say(f"report     {under_way.report}")
    complain_of_lost_packets(_verdicts(under_way))
    if failure is not None:
        raise failure
    return under_way


def _say_what_begins(under_way: Sweep) -> None:
    from aqmlab.cli.progress import duration_text

    for reason in dict.fromkeys(r for reasons in under_way.damaged.values() for r in reasons):
        say(f"repeated: {reason}")
    if under_way.lasts_s:
        say(f"live runs: {duration_text(under_way.lasts_s)} in real time, one after the other")


def _tell_beside(live: Sweep, simulated: Sweep, *, as_json: bool, report: bool) -> None:
    """Print how live results differ from simulated ones, cell by cell."""
    from aqmlab.sweeps.beside import beside

    found = beside(simulated.results, live.results, report=report)
    if as_json:
        scored = dict(zip(found.sides, (simulated.claims, live.claims), strict=True))
        tell_json({"event": "both", **both_json(found, scored)}, indent=None)
    else:
        print()
        print_sides(found)
    say(f"sweep      {found.path}")
    if report:
        say(f"report     {found.path / 'report.html'}")


def _print(under_way: Sweep, *, whole: bool) -> None:
    results = under_way.results
    if whole or not results.missing:
        tell_results(short_answer(results), under_way.claims, as_json=False)
    else:
        from aqmlab.text.numbers import counted

        print_verdict(_verdicts(under_way))
        asked = len(results.cells) * len(results.seeds)
        say(
            f"{asked - len(results.missing)} of {counted(asked, 'run')} are present; once all shards are"
            " complete, `aqmlab merge` writes the tables"
        )


def _verdicts(under_way: Sweep) -> tuple[Faithfulness, ...]:
    """Return the verdicts on the sweep's live runs."""
    if under_way.cases.host != "live":
        return ()
    from aqmlab.recordings.faithfulness import verdicts

    return verdicts(under_way.results.runs)


def _forecast(scenario: Path, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (the types of the options)
    from aqmlab.sweeps.forecast import forecast

    found = forecast(scenario, **asked)
    if as_json:
        tell_json({"format_version": 1, **found.to_json()})
    else:
        _print_forecast(found)
    for warning in found.warnings:
        say(f"warning: {warning}")


def _print_forecast(found: Forecast) -> None:
    """Print the work to do, and its expected cost."""
    from aqmlab.cli.progress import duration_text
    from aqmlab.cli.tables import answer_console, print_grid
    from aqmlab.text.numbers import counted
    from aqmlab.text.tables import Column, Grid

    console = answer_console()
    table = Grid("", Column("", prose=True))
    product = " × ".join(
        [counted(found.cases, "case"), counted(found.arms, "arm"), counted(found.seeds, "seed")]
    )
    table.add("sweep", f"{product} = {counted(found.cases * found.arms * found.seeds, 'run')}")
    if found.runs != found.cases * found.arms * found.seeds:
        table.add("asked for", counted(found.runs, "run"))
    if found.left_out:
        table.add("left out", counted(found.left_out, "case"))
    table.add("host", "live" if found.host == "live" else "simulator")
    table.add("in the store", str(found.present))
    table.add("to do", str(found.runs - found.present))
    if found.wall_s is not None:
        table.add("time", f"about {duration_text(found.wall_s)}")
    if found.bytes is not None:
        table.add("disk", f"about {found.bytes / 1e6:.3g} MB")
    if found.memory_bytes:
        table.add("memory", f"{found.memory_bytes / 1e6:.3g} MB at least")
    print_grid(console, table)
    console.print(found.how, style="dim", markup=False)


class _Events:
    """Prints events, one JSON object per line on stdout, from two threads."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._lock = threading.Lock()
        self._told_s = 0.0
        self._begun = time.monotonic()

    def begin(self, under_way: Sweep) -> None:
        about = under_way.cases.about
        self._tell(
            "begin",
            lambda: {
                "format_version": EVENTS_VERSION,
                "title": about["title"],
                "path": str(under_way.path),
                "cells": len(under_way.cases.cells),
                "seeds": under_way.cases.seeds,
                "workers": under_way.workers,
                **under_way.progress.to_json(),
            },
        )

    def run(self, ended: Any) -> None:  # noqa: ANN401 (a dataclass)
        from dataclasses import asdict

        self._tell("run", lambda: asdict(ended))

    def progress(self, now: Progress) -> None:
        if now.elapsed_s - self._told_s >= _SECONDS_BETWEEN_EVENTS:
            self._told_s = now.elapsed_s
            self._tell("progress", now.to_json)

    def end(self, under_way: Sweep) -> None:
        now = under_way.progress
        self._tell(
            "end",
            lambda: {
                "path": str(under_way.path),
                "workers": under_way.workers,
                **now.to_json(),
                "missing": [
                    {
                        "settings": dict(missing.cell.settings),
                        "arm": missing.cell.arm,
                        "seed": missing.seed,
                        "reason": missing.reason,
                    }
                    for missing in under_way.results.missing
                ],
                **said_json(under_way.results, under_way.claims),
                "overhead_ms_a_run": self._overhead_ms(now, under_way.workers),
            },
        )

    def _overhead_ms(self, now: Progress, workers: int) -> float | None:
        """Return the overhead per run in ms: the wall time of all workers minus the runs' processor time."""
        if not now.runs_done:
            return None
        wall_s = time.monotonic() - self._begun
        return round((wall_s * workers - now.cpu_s) / now.runs_done * 1e3, 1)

    def _tell(self, event: str, content: Callable[[], dict[str, Any]]) -> None:
        if self._enabled:
            told = {"event": event, **content()}
            with self._lock:
                tell_json(told, indent=None)
                sys.stdout.flush()


def merge(
    stores: Annotated[list[Path], typer.Argument(metavar="DIR...", help="The stores to merge.")],
    store: StorePath = None,
    as_json: AsJson = False,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> None:
    """Merge the runs of several stores into one and write the tables of their sweeps.

    Exits with 1 if a firm claim of any of these sweeps fails.
    """
    from aqmlab.sweeps.merge import merge as bring_together
    from aqmlab.text.numbers import counted

    set_quiet(quiet)
    merged = bring_together(stores, store, report=not no_report)
    if as_json:
        tell_json(
            {
                "format_version": 1,
                "store": str(merged.store.path),
                "added": merged.added,
                "present": merged.present,
                "sweeps": [
                    {
                        "path": str(found.results.path),
                        "missing": len(found.results.missing),
                        **said_json(found.results, found.claims),
                    }
                    for found in merged.sweeps
                ],
            }
        )
    else:
        for found in merged.sweeps:
            tell_results(short_answer(found.results), found.claims, as_json=False)
    say(
        f"store      {merged.store.path}: {counted(merged.added, 'run')} added, "
        f"{merged.present} already present"
    )
    for found in merged.sweeps:
        lacking = len(found.results.missing)
        say(f"sweep      {found.results.path}" + (f": {counted(lacking, 'run')} missing" if lacking else ""))
        if found.report is not None:
            say(f"report     {found.report}")
    if merged.damaged:
        from aqmlab.text.numbers import left_out

        count = left_out(len({Path(reason.split("`")[1]).parent for reason in merged.damaged}), "recording")
        raise DamageError([f"{count}: {merged.damaged[0]}", *merged.damaged[1:]])
    refuse_damage(*(found.results for found in merged.sweeps))
    end_with([claim for found in merged.sweeps for claim in found.claims])


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One read-only statement.")],
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A store, or the directory of a sweep, an experiment or a run.", show_default=False
        ),
    ] = None,
    store: StorePath = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Query all recordings of a store in SQL; tables are `runs`, `cells`, `summary`, `flows`, ..."""
    from aqmlab.sweeps.query import query as ask

    set_quiet(quiet)
    answer = ask(sql, path or store)
    if as_json:
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        tell_json({"format_version": 1, "rows": rows, "skipped": list(answer.skipped)})
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        from aqmlab.cli.tables import answer_console, print_grid

        print_grid(answer_console(), answer.grid())
    if answer.skipped:
        from aqmlab.text.numbers import left_out

        for reason in answer.skipped:
            say(f"left out: {reason}")
        raise RecordingError(left_out(len(answer.skipped), "file"))
