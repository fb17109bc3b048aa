"""Sweeps: each requested run is executed once, and the tables depend on nothing but the runs."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

import aqmlab
from aqmlab.metrics import Scope, all_metrics
from aqmlab.paths import load
from aqmlab.results.answers import HEADLINE
from aqmlab.results.cells import Cell
from aqmlab.sweeps import worker
from aqmlab.sweeps.cases import Cases, Shard
from aqmlab.sweeps.executor import LocalExecutor
from aqmlab.sweeps.process import Keeper
from aqmlab.sweeps.store import Store
from aqmlab.sweeps.task import Task
from sweeping import RUNS, TINY, left_over, manifests, tables, tiny


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """A finished sweep, which tests must not change."""
    sweep = aqmlab.sweep(tiny(), report=False, store=tmp_path_factory.mktemp("swept") / "store", jobs=2)
    sweep.wait()
    return sweep


@pytest.fixture
def store_of(swept):
    return swept.path.parent.parent


def test_every_run_is_done_once_and_named_by_its_digest(swept, store_of):
    assert (len(swept.cases), swept.progress.runs_done, swept.progress.runs_present) == (RUNS, RUNS, 0)
    done = list(swept)
    assert len({ended.digest for ended in done}) == RUNS
    assert {ended.status for ended in done} == {"finished"}
    assert {ended.digest for ended in done} == set(Store(store_of).digests())
    for ended in done:
        manifest = json.loads((Store(store_of).path_of(ended.digest) / "manifest.json").read_text())
        parts = "".join(f"{name} {version}\n" for name, version in sorted(manifest["parts"].items()))
        named = f"{manifest['plan_digest']}\n{manifest['seed']}\n{parts}"
        assert sha256(named.encode()).hexdigest() == ended.digest
        assert (manifest["arm"], manifest["seed"]) == (ended.arm, ended.seed)
    assert left_over(store_of) == []


def test_results_are_by_cell_in_the_order_of_the_scenario(swept):
    results = load(swept.path)
    assert [axis.short for axis in results.axes] == ["rate", "count"]
    assert [(*(label for _, label in cell.settings), cell.arm) for cell in results.cells] == [
        (rate, count, arm) for rate in ("2Mbit", "4Mbit") for count in "24" for arm in ("DropTail", "RED")
    ]
    assert (results.seeds, results.missing, results.question) == ((1, 2, 3), (), "Which queue?")
    (cell,) = results.select("RED", {"rate": "4Mbit", "count": "2"})
    assert [run.seed for run in results.runs_of(cell)] == [1, 2, 3]
    assert {run.plan.links[0].rate_bps for run in results.runs_of(cell)} == {4_000_000}


def test_a_cell_has_the_same_values_as_an_experiment_of_its_own(swept, tmp_path):
    alone = tiny()
    del alone["sweep"], alone["claim"]
    alone["topology"]["rate"] = "4Mbit"
    experiment = aqmlab.run(alone, output=tmp_path / "alone", report=False)
    results = swept.results
    for arm in ("DropTail", "RED"):
        (cell,) = results.select(arm, {"rate": "4Mbit", "count": "2"})
        table = aqmlab.answer(experiment, HEADLINE)
        for name in HEADLINE:
            assert results.values(name, cell) == table.by_seed(arm, name), name


def test_tables_have_a_row_a_run_and_a_row_a_cell(swept):
    rows, answer = (
        list(csv.DictReader((swept.path / name).read_text().splitlines()))
        for name in ("results.csv", "answer.csv")
    )
    assert (len(rows), len(answer)) == (RUNS, RUNS // 3)
    assert list(rows[0])[:4] == ["rate", "count", "arm", "seed"]
    results = swept.results
    for i, cell in enumerate(results.cells):
        values = results.values("goodput_bps", cell)
        assert [float(row["goodput_bps"]) for row in rows[3 * i : 3 * i + 3]] == list(values.values())
        assert float(answer[i]["goodput_bps"]) == pytest.approx(sum(values.values()) / 3, rel=1e-15)
        assert answer[i]["goodput_bps_n"] == "3"
    assert {row["mark_percent"] for row in rows} == {""}  # no packet can be marked, so the share is undefined
    assert {row["mark_percent_n"] for row in answer} == {"0"}


def test_metrics_in_the_tables_are_counted_unless_the_scenario_asks(swept, experiment):
    """Metrics that read samples must declare it; otherwise, tables of a thousand runs take minutes."""

    class Unread:
        def arrays(self, *_):
            raise AssertionError("samples are read")

    for run in experiment.measured():
        for metric in all_metrics():
            if not metric.from_samples:
                metric.compute(replace(run, tables=Unread()), Scope("bottleneck"))
    columns = (swept.path / "results.csv").read_text().splitlines()[0].split(",")
    assert set(HEADLINE) < set(columns)
    assert "hurst" not in columns


def test_a_metric_that_the_scenario_names_is_in_the_tables(tmp_path):
    sweep = aqmlab.sweep(tiny(runs=1, metrics=["backlog_settling_s"]), report=False, store=tmp_path / "store")
    sweep.wait()
    assert "backlog_settling_s" in (sweep.path / "results.csv").read_text().splitlines()[0]


def test_what_is_there_is_not_done_again_unless_forced(swept, store_of, tmp_path):
    before = tables(swept.path)
    store_of = Path(shutil.copytree(store_of, tmp_path / "store"))
    stamps = {path: path.stat().st_mtime_ns for path in store_of.glob("runs/*/*/manifest.json")}
    again = aqmlab.sweep(tiny(), report=False, store=store_of, jobs=2)
    again.wait()
    assert (again.progress.runs_done, again.progress.runs_present) == (0, RUNS)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    more = aqmlab.sweep(
        tiny(runs=4), report=False, store=store_of, jobs=2
    )  # another sweep, which shares most of its runs
    more.wait()
    assert (more.progress.runs_done, more.progress.runs_present) == (RUNS // 3, RUNS)
    forced = aqmlab.sweep(tiny(), report=False, store=store_of, jobs=2, force=True)
    forced.wait()
    assert forced.progress.runs_done == RUNS
    assert all(path.stat().st_mtime_ns > stamp for path, stamp in stamps.items())
    assert tables(forced.path) == before
    assert left_over(store_of) == []


def test_tables_do_not_depend_on_workers_shards_or_the_store(swept, tmp_path):
    whole = tables(swept.path)
    for shard in ("2/3", "1/3", "3/3"):
        part = aqmlab.sweep(tiny(), report=False, store=tmp_path / "parts", jobs=1, shard=shard)
        part.wait()
    assert tables(part.path) == whole
    assert part.path.name == swept.path.name


def test_two_at_once_in_one_store_do_every_run_once_in_the_end(swept, tmp_path):
    """Both sweeps may execute the same run; one of the two recordings is kept."""
    both = [aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=2) for _ in range(2)]
    for sweep in both:
        sweep.wait()
        assert tables(sweep.path) == tables(swept.path)
    assert manifests(tmp_path / "store") == manifests(swept.path.parent.parent)
    assert left_over(tmp_path / "store") == []
    ended = [ended.status for sweep in both for ended in sweep]
    assert len(ended) <= 2 * RUNS
    assert set(ended) <= {"finished", "present"}


def test_a_sweep_can_be_looked_at_while_it_grows(tmp_path):
    told = []
    sweep = aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=1, progress=told.append)
    assert len(sweep.results.missing) == RUNS or not sweep.done
    seen = []
    for ended in sweep:
        seen.append(ended)
        if len(seen) == 5:
            partial = sweep.results
            assert 5 <= RUNS - len(partial.missing) <= RUNS
            assert {missing.reason for missing in partial.missing} <= {"not run"}
    results = sweep.wait()
    assert sweep.done
    assert len(seen) == RUNS
    assert results.missing == ()
    assert [now.runs_done for now in told] == sorted(now.runs_done for now in told)
    assert told[-1].runs_total == RUNS


def test_the_widest_interval_is_that_of_the_cell_with_most_spread(swept):
    from aqmlab.stats import estimate
    from aqmlab.sweeps.progress import WATCHED, Intervals

    results = swept.results
    relative = {}
    for cell in results.cells:
        for metric in WATCHED:
            found = estimate(results.values(metric, cell).values())
            relative[metric, cell] = found.half_width / found.mean
    widest = Intervals().look(results)
    assert (widest.metric, widest.cell) == max(relative, key=relative.get)
    assert widest.relative == max(relative.values())


def test_a_cancelled_sweep_keeps_what_is_done_and_goes_on_from_there(swept, tmp_path):
    sweep = aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=1)
    for done, _ in enumerate(sweep, 1):
        if done == 3:
            sweep.cancel()
            break
    assert sweep.done
    kept = len(Store(tmp_path / "store").digests())
    assert 3 <= kept < RUNS
    assert left_over(tmp_path / "store") == []
    again = aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=2)
    again.wait()
    assert again.progress.runs_done == RUNS - kept
    assert tables(again.path) == tables(swept.path)


def test_leaving_the_block_by_an_exception_cancels(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=1) as sweep,
    ):
        _ = 1 / 0
    assert sweep.done
    assert len(Store(tmp_path / "store").digests()) < RUNS


def failing(**changes):
    """A scenario in which the runs of one arm reach the limit of their trace."""
    scenario = tiny(**changes)
    scenario["arm"][1]["record.trace"] = ["ftp"]
    scenario["arm"][1]["record.limit"] = 5
    return scenario


def test_runs_that_fail_are_listed_by_cause_and_the_others_kept(tmp_path):
    sweep = aqmlab.sweep(failing(), report=False, store=tmp_path / "store", jobs=2)
    with pytest.raises(
        aqmlab.RunError,
        match=r"12 of 24 runs failed; the others are kept in `.*store`; the first: RED, rate 2Mbit, count 2,",
    ):
        sweep.wait()
    assert sweep.progress.failures == {"RunError": 12}
    results = sweep.results
    assert {missing.cell.arm for missing in results.missing} == {"RED"}
    assert all("reached its limit of 5 rows" in missing.reason for missing in results.missing)
    assert len((sweep.path / "results.csv").read_text().splitlines()) == 13
    assert load(sweep.path).missing == results.missing
    before = tables(sweep.path)
    with pytest.raises(aqmlab.RunError, match="12 of 12 runs failed"):
        aqmlab.sweep(failing(), report=False, store=tmp_path / "store", jobs=1).wait()
    assert tables(sweep.path) == before


def test_who_comes_second_throws_his_own_away(store_of, tmp_path):
    store = Store.made(tmp_path / "store")
    digest = Store(store_of).digests()[0]
    with store.staging() as directory:
        for first in (True, False):
            staged = directory / digest
            shutil.copytree(Store(store_of).path_of(digest), staged)
            (staged / "writer").write_text(str(first))
            assert store.put(staged, digest) is first
            assert not staged.exists()
        assert (store.path_of(digest) / "writer").read_text() == "True"
        shutil.copytree(Store(store_of).path_of(digest), directory / digest)
        assert store.put(directory / digest, digest, replace=True)
        assert not (store.path_of(digest) / "writer").exists()
    assert store.digests() == [digest]
    assert left_over(store.path) == []


def outcome_of(executor, patience_s=30):
    until = time.monotonic() + patience_s
    while (outcome := executor.outcome(0.1)) is None:
        assert time.monotonic() < until
    return outcome


def some_tasks(count, **changes):
    cases = Cases(tiny(**changes))
    return [cases.task(cell, seed) for cell, seed, _ in cases][:count]


def test_a_task_survives_its_journey_as_json():
    (task,) = some_tasks(1)
    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task
    assert "[sweep]" not in task.toml


def test_a_task_that_makes_no_sense_costs_itself_only(tmp_path):
    good, bad = some_tasks(2)
    bad = Task(**(bad.to_json() | {"toml": bad.toml.replace("droptail", "dropfrog")}))
    Store.made(tmp_path / "store")
    executor = LocalExecutor(tmp_path / "store", 1)
    try:
        executor.submit(bad)
        executor.submit(good)
        first, second = outcome_of(executor), outcome_of(executor)
    finally:
        executor.close(now=False)
    assert (first.task, first.status, first.cause) == (bad, "failed", "ScenarioError")
    assert "dropfrog" in first.reason
    assert (second.task, second.status) == (good, "finished")
    assert second.cpu_s > 0
    assert executor.pids() == []


def test_a_run_that_outgrows_its_memory_cap_fails_alone(tmp_path):
    (task,) = some_tasks(1, duration="300s")  # the cap is checked every 65,536 events
    Store.made(tmp_path / "store")
    executor = LocalExecutor(tmp_path / "store", 1, memory_cap=1)
    executor.submit(task)
    outcome = outcome_of(executor)
    executor.close(now=False)
    assert (outcome.status, outcome.cause) == ("failed", "memory")
    assert "memory cap" in outcome.reason


def test_a_worker_that_dies_each_time_fails_its_run_with_its_last_words(tmp_path):
    (task,) = some_tasks(1)
    executor = LocalExecutor(tmp_path / "no store", 1)
    executor.submit(task)
    outcome = outcome_of(executor)
    executor.close(now=False)
    assert (outcome.status, outcome.cause) == ("failed", "crash")
    assert "the worker ended with 1" in outcome.reason
    assert "no store at" in outcome.reason


def stop_in_a_run(worker, store):
    """Stop a worker while it has an incomplete file in the store."""
    for _ in range(1000):
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.01)
        if list((store / "tmp").glob("*.lock")):
            return
        os.kill(worker, signal.SIGCONT)
        time.sleep(0.001)
    raise AssertionError("the worker is never in a run")


def test_a_worker_that_is_killed_is_replaced_and_its_run_done(tmp_path):
    tasks = some_tasks(6)
    Store.made(tmp_path / "store")
    executor = LocalExecutor(tmp_path / "store", 1)
    for task in tasks:
        executor.submit(task)
    outcomes = [outcome_of(executor)]
    (worker,) = executor.pids()
    stop_in_a_run(worker, tmp_path / "store")
    os.kill(worker, signal.SIGKILL)
    outcomes += [outcome_of(executor) for _ in tasks[1:]]
    executor.close(now=False)
    assert [outcome.status for outcome in outcomes] == ["finished"] * len(tasks)
    assert set(Store(tmp_path / "store").digests()) == {task.digest for task in tasks}
    assert Store(tmp_path / "store").sweep_out() == 1  # the killed worker's directory
    assert left_over(tmp_path / "store") == []


def test_a_worker_that_stands_still_is_ended_and_its_run_done(tmp_path):
    first, second = some_tasks(2)
    Store.made(tmp_path / "store")
    executor = LocalExecutor(tmp_path / "store", 1, silence_s=3.0)
    executor.submit(first)
    assert outcome_of(executor).status == "finished"
    (stopped,) = executor.pids()
    os.kill(stopped, signal.SIGSTOP)
    executor.submit(second)
    outcome = outcome_of(executor)
    assert stopped not in executor.pids()
    executor.close(now=False)
    assert outcome.status == "finished"


def test_a_run_shows_that_it_lives_while_its_events_grow(monkeypatch):
    said, now_s = [], [0.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(worker, "_SECONDS_BETWEEN_SIGNS", 1.0)
    look = worker._signs(SimpleNamespace(check=lambda: None, tell=said.append))
    for at_s, events in [(0.5, 10), (1.1, 20), (1.2, 30), (2.2, 30), (9.9, 30), (10.0, 31)]:
        now_s[0] = at_s
        look({"events": events})
    assert said == [{"alive": {"events": events}} for events in (20, 30, 31)]


def test_signs_of_life_keep_a_process_from_being_ended(tmp_path, monkeypatch):
    """A run is ended after 2 s of silence; the stand-in answers after 2.5 s, with or without progress
    messages."""
    script = tmp_path / "python"
    script.write_text(
        "#!/bin/sh\nwhile read request; do for i in 1 2 3 4 5; do sleep 0.5; "
        'case $request in *alive*) echo "{\\"alive\\": $i}";; esac; done; '
        'echo "{\\"status\\": \\"done\\"}"; done\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    keeper, heard = Keeper(tmp_path, silence_s=2.0), []
    assert keeper.answer({"be": "alive"}, heard.append) == {"status": "done"}
    assert heard == [1, 2, 3, 4, 5]
    found = keeper.answer({"be": "still"})
    assert found["reason"] == "the worker made no progress for 2 s and was killed"
    assert keeper.pid is None


def test_a_worker_that_has_nothing_to_do_ends_and_is_replaced(tmp_path):
    first, second = some_tasks(2)
    store = Store.made(tmp_path / "store")
    keeper = Keeper(store.path, idle_s=0.2)
    request = {"memory_cap": 0, "replace": False}
    assert keeper.answer({"task": first.to_json(), **request})["status"] == "finished"
    idle = keeper.pid
    os.waitid(os.P_PID, idle, os.WEXITED | os.WNOWAIT)
    assert keeper.answer({"task": second.to_json(), **request})["status"] == "finished"
    assert keeper.pid != idle
    keeper.close()
    assert left_over(store.path) == []


def test_a_recording_of_another_plan_does_not_enter_the_store(tmp_path):
    task, other = some_tasks(2, runs=1)
    assert task.arm != other.arm
    store = Store.made(tmp_path / "store")
    executor = LocalExecutor(store.path, 1)
    executor.submit(replace(task, digest=other.digest))
    outcome = outcome_of(executor)
    executor.submit(other)
    assert outcome_of(executor).status == "finished"
    executor.close(now=False)
    assert outcome.status == "failed"
    assert "plan of the scenario, or a version of its parts" in outcome.reason
    assert outcome.reason.endswith(f"does not match the digest `{other.digest}`")
    assert store.digests() == [other.digest]
    assert left_over(store.path) == []


def test_shards_are_a_partition_by_digest():
    digests = [sha256(str(i).encode()).hexdigest() for i in range(1000)]
    shards = [Shard(k, 7) for k in range(1, 8)]
    parts = [[digest for digest in digests if shard.has(digest)] for shard in shards]
    assert sorted(digest for part in parts for digest in part) == sorted(digests)
    assert min(map(len, parts)) > 100
    assert Shard.parse("2/7") == shards[1]
    for text, message in (
        ("0/3", "no shard `0/3`"),
        ("4/3", "no shard"),
        ("1", "is not a shard"),
        ("-1/2", "is no"),
    ):
        with pytest.raises(aqmlab.UsageError, match=message):
            Shard.parse(text)


def test_a_scenario_without_a_sweep_has_one_case(tmp_path):
    plain = tiny(runs=1)
    del plain["sweep"], plain["claim"]
    results = aqmlab.sweep(plain, report=False, store=tmp_path / "store").wait()
    assert results.cells == (Cell((), "DropTail"), Cell((), "RED"))
    assert results.axes == ()


def test_a_wrong_value_in_any_case_is_told_before_anything_is_written(tmp_path):
    wrong = tiny()
    wrong["sweep"]["topology.rate"] = ["2Mbit", "frog"]
    with pytest.raises(aqmlab.ScenarioError, match="frog"):
        aqmlab.sweep(wrong, report=False, store=tmp_path / "store")
    with pytest.raises(aqmlab.UsageError, match="goodput_bp"):
        aqmlab.sweep(tiny(metrics=["goodput_bp"]), report=False, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_the_clock_of_the_wall_decides_nothing(tmp_path, monkeypatch, swept):
    """A clock that jumps back a day at each reading, as may happen when a clock is set."""
    now = [4e9]

    def jumping():
        now[0] -= 86400
        return now[0]

    monkeypatch.setattr(time, "time", jumping)
    sweep = aqmlab.sweep(tiny(), report=False, store=tmp_path / "store", jobs=2)
    sweep.wait()
    assert tables(sweep.path) == tables(swept.path)
    assert sweep.progress.elapsed_s > 0


def test_no_thread_or_process_is_left(tmp_path):
    before = threading.active_count()
    aqmlab.sweep(tiny(runs=1), report=False, store=tmp_path / "store", jobs=2).wait()
    assert threading.active_count() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_forecast_counts_and_writes_nothing(tmp_path, store_of):
    fresh = aqmlab.forecast(tiny(), store=tmp_path / "store", jobs=2)
    assert (fresh.cases, fresh.arms, fresh.seeds, fresh.runs, fresh.present) == (4, 2, 3, RUNS, 0)
    assert not (tmp_path / "store").exists()
    known = aqmlab.forecast(tiny(), store=store_of)
    assert (known.present, known.wall_s, known.bytes) == (RUNS, None, None)
    sizes = [sum(f.stat().st_size for f in run.iterdir()) for run in store_of.glob("runs/*/*")]
    assert RUNS * min(sizes) <= fresh.bytes <= RUNS * max(sizes)
    assert 0 < fresh.wall_s < 60
    needs = sorted(cell.memory_bytes for cell, *_ in Cases(tiny()))
    assert fresh.memory_bytes == sum(needs[-2:]) > 0
    assert known.memory_bytes == 0
    part = aqmlab.forecast(tiny(), store=tmp_path / "store", shard="1/2")
    assert part.runs == sum(Shard(1, 2).has(digest) for *_, digest in Cases(tiny()))


def test_the_forecast_lies_on_the_line_between_its_trials():
    from aqmlab.sweeps.forecast import _between, _Trial

    trials = [_Trial(10.0, 1.0, None), _Trial(30.0, 2.0, None)]
    assert [_between(trials, weight) for weight in (10.0, 20.0, 30.0)] == [1.0, 1.5, 2.0]
    assert _between(trials[:1], 10.0) == 1.0


def test_a_dict_is_not_changed_by_sweeping_it():
    assert tiny() == TINY


def test_claims_are_scored_at_the_end_and_the_report_is_made(tmp_path):
    sweep = aqmlab.sweep(tiny(runs=5), store=tmp_path / "store", shard="1/2")
    sweep.wait()
    assert (sweep.claims, sweep.report) == ((), None)
    assert not (sweep.path / "claims.json").exists()
    sweep = aqmlab.sweep(tiny(runs=5), store=tmp_path / "store", shard="2/2")
    sweep.wait()
    assert [(claim.claim.name, claim.status) for claim in sweep.claims] == [("short", "holds")]
    assert json.loads((sweep.path / "claims.json").read_text())["counts"]["soft"]["holds"] == 1
    assert sweep.report == sweep.path / "report.html"
    assert "RED keeps it short" in sweep.path.joinpath("claims.json").read_text()
    without = tiny(runs=5)
    del without["claim"]
    again = aqmlab.sweep(without, store=tmp_path / "store", report=False)
    again.wait()
    assert again.path == sweep.path
    assert not (sweep.path / "claims.json").exists()


def test_a_claim_that_makes_no_sense_is_told_before_the_runs(tmp_path):
    wrong = tiny()
    wrong["claim"][0]["expect"] = "queueing_delay_mean_s{arm=RAD} < 1"
    with pytest.raises(aqmlab.ScenarioError, match="RAD"):
        aqmlab.sweep(wrong, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
