"""Sweeps on a Dask cluster give the same bytes as on this machine, whether or not workers see the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import tomli_w

import aqmlab
from aqmlab.paths import load
from aqmlab.sweeps import remote
from aqmlab.sweeps.parcel import COURSES
from clustered import dask_cluster, hidden
from sweeping import RUNS, left_over, manifests, tables, tiny

pytest.importorskip("distributed", reason="the package distributed is not installed")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The directory of the sweep, executed on this machine."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "tiny.toml").write_text(tomli_w.dumps(tiny()), encoding="utf-8")
    sweep = aqmlab.sweep(folder / "tiny.toml", report=False, store=folder / "store", jobs=2)
    sweep.wait()
    return sweep.path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers that see every store."""
    with dask_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def secluded(tmp_path_factory):
    """Two workers that do not see the directory ``out_of_sight``."""
    folder = tmp_path_factory.mktemp("secluded")
    (folder / "unseen").mkdir()
    with dask_cluster(folder / "cluster", before=hidden(folder / "unseen")) as found:
        found.out_of_sight = folder / "unseen"
        yield found


@pytest.fixture
def scenario(undisturbed):
    return undisturbed / "scenario.toml"


def swept(where, store, scenario, **more):
    sweep = aqmlab.sweep(scenario, store=store, executor=where, report=False, **more)
    sweep.wait()
    return sweep


def test_workers_that_see_the_store_leave_there_what_local_ones_do(cluster, scenario, undisturbed, tmp_path):
    sweep = swept(aqmlab.Cluster(cluster.address), tmp_path / "store", scenario)
    assert sweep.workers == 2
    assert sweep.progress.runs_done == RUNS
    assert sweep.remarks == ()
    assert tables(sweep.path) == tables(undisturbed)
    assert manifests(tmp_path / "store") == manifests(undisturbed.parent.parent)


def test_what_is_there_is_not_done_again(cluster, scenario, tmp_path):
    first = swept(aqmlab.Cluster(cluster.address), tmp_path / "store", scenario, runs=1)
    again = swept(aqmlab.Cluster(cluster.address), tmp_path / "store", scenario, runs=2)
    assert (first.progress.runs_done, again.progress.runs_present, again.progress.runs_done) == (8, 8, 8)


def test_the_command_takes_an_address_a_file_or_the_environment(cluster, scenario, tmp_path):
    def command(store, *options, **environment):
        words = [sys.executable, "-m", "aqmlab", "sweep", str(scenario), "--no-report", "--runs", "1"]
        done = subprocess.run(
            [*words, "--store", str(store), "--executor", "dask", *options],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | environment,
        )
        assert done.returncode == 0, done.stderr
        (path,) = (store / "sweeps").iterdir()
        return tables(path)

    here = tables(swept("local", tmp_path / "here", scenario, runs=1).path)
    assert command(tmp_path / "a", "--scheduler", cluster.address) == here
    assert command(tmp_path / "b", "--scheduler-file", str(cluster.file)) == here
    assert command(tmp_path / "c", DASK_SCHEDULER_ADDRESS=cluster.address) == here


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--scheduler", "tcp://127.0.0.1:1"],
            "`--scheduler` applies to a Dask cluster; add `--executor dask`",
        ),
        (["--executor", "dask"], "give `--scheduler tcp://HOST:8786`"),
        (
            ["--executor", "dask", "--scheduler", "tcp://a:1", "--jobs", "2"],
            "`--jobs 2` applies to this machine",
        ),
        (["--executor", "dusk"], "there is no executor `dusk`; did you mean `dask`?"),
        (["--executor", "dask", "--scheduler", "tcp://a:1", "--bring", "all"], "there is no choice `all`"),
        (["--executor", "dask", "--scheduler", "tcp://a:1", "--tls-key", "/no/key"], "no file `/no/key`"),
        (
            ["--executor", "dask", "--scheduler", "tcp://a:1", "--scheduler-file", "x"],
            "give only one of them",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(scenario, tmp_path, options, message):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "aqmlab",
            "sweep",
            str(scenario),
            "--store",
            str(tmp_path / "store"),
            *options,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("DASK")},
    )
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_scheduler_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("aqmlab.sweeps.connection._CONNECT_S", 0.5)
    with pytest.raises(aqmlab.HostError, match=r"cannot reach the scheduler `tcp://127.0.0.1:1`"):
        swept(aqmlab.Cluster("tcp://127.0.0.1:1"), tmp_path / "store", tiny())


def test_without_a_shared_store_summaries_come_back_and_give_the_same_tables(secluded, scenario, undisturbed):
    store = secluded.out_of_sight / "summaries"
    sweep = swept(aqmlab.Cluster(secluded.address), store, scenario)
    assert sweep.remarks == (f"{RUNS} runs came back as summaries: the workers do not see `{store}`",)
    assert tables(sweep.path) == tables(undisturbed)
    whole = manifests(undisturbed.parent.parent)
    assert manifests(store) == {
        run: {name: digest for name, digest in of.items() if name not in COURSES} for run, of in whole.items()
    }
    assert any("flow_series" in of for of in whole.values())
    assert left_over(store) == []
    results = load(sweep.path)
    assert results.damage() is None
    (run, *_) = results.runs_of(results.cells[0])
    with pytest.raises(aqmlab.RecordingError, match="`flow_series` was not brought from the cluster"):
        run.file("flow_series")
    # If summaries suffice, no run is repeated; if recordings are requested, they replace the
    # summaries.
    again = swept(aqmlab.Cluster(secluded.address), store, scenario)
    assert again.progress.runs_done == 0
    brought = swept(aqmlab.Cluster(secluded.address, bring="recordings"), store, scenario)
    assert brought.progress.runs_done == RUNS
    assert manifests(store) == whole
    assert tables(brought.path) == tables(undisturbed)


def recorded(directory):
    """The names of an experiment's files, the digests of each recording's tables, and `experiment.json`."""
    files = {file.relative_to(directory) for file in directory.rglob("*")}
    tables = {
        file.parent.relative_to(directory): [*json.loads(file.read_text())["tables"].items()]
        for file in directory.glob("*/*/manifest.json")
    }
    return files, tables, (directory / "experiment.json").read_bytes()


@pytest.mark.parametrize("kind", ["cluster", "secluded"])
def test_a_run_on_a_cluster_is_the_same_directory(kind, secluded, cluster, tmp_path):
    one = tiny(runs=2, claim=[])
    del one["sweep"]
    (tmp_path / "one.toml").write_text(tomli_w.dumps(one))
    here = aqmlab.run(tmp_path / "one.toml", output=tmp_path / "here", report=False)
    found = {"cluster": cluster, "secluded": secluded}[kind]
    parent = tmp_path if kind == "cluster" else secluded.out_of_sight
    words = ["run", str(tmp_path / "one.toml"), "--no-report", "--executor", "dask", "--json"]
    words += ["-o", str(parent / "there"), "--scheduler", found.address]
    done = subprocess.run(
        [sys.executable, "-m", "aqmlab", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert recorded(parent / "there") == recorded(tmp_path / "here")
    there = aqmlab.load(parent / "there")
    assert str(aqmlab.answer(there)) == str(aqmlab.answer(here))
    # When the command is repeated, only the damaged run is executed again.
    (parent / "there" / "red" / "seed-1" / "queues.parquet").write_bytes(b"?")
    again = aqmlab.run(
        tmp_path / "one.toml",
        output=parent / "there",
        resume=True,
        report=False,
        executor=aqmlab.Cluster(found.address),
    )
    assert again.damage() is None
    assert recorded(parent / "there") == recorded(tmp_path / "here")


def test_a_run_without_a_scheduler_leaves_no_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("aqmlab.sweeps.connection._CONNECT_S", 0.5)
    one = tiny()
    del one["sweep"]
    one["claim"][0].pop("where")
    with pytest.raises(aqmlab.HostError, match="cannot reach the scheduler"):
        aqmlab.run(one, output=tmp_path / "one", executor=aqmlab.Cluster("tcp://127.0.0.1:1"))
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("does", [aqmlab.run, aqmlab.run_both, aqmlab.sweep])
def test_a_number_of_jobs_is_refused_with_a_cluster(does):
    with pytest.raises(aqmlab.UsageError, match="`--jobs 2` applies to this machine"):
        does(tiny(), executor=aqmlab.Cluster("tcp://127.0.0.1:1"), jobs=2)


def test_merging_prefers_whole_recordings_to_summaries(secluded, scenario, undisturbed):
    store = secluded.out_of_sight / "part"
    swept(aqmlab.Cluster(secluded.address), store, scenario, runs=1)
    whole = manifests(undisturbed.parent.parent)
    into = secluded.out_of_sight / "merged"
    merged = aqmlab.merge([store], into, report=False)
    assert (merged.added, merged.present) == (8, 0)
    merged = aqmlab.merge([undisturbed.parent.parent], into, report=False)
    assert (merged.added, merged.present) == (RUNS, 0)
    merged = aqmlab.merge([store], into, report=False)
    assert (merged.added, merged.present) == (0, 8)
    assert manifests(into) == whole


def test_files_that_a_scenario_names_are_carried(secluded):
    folder = secluded.out_of_sight / "traced"
    (folder / "lists").mkdir(parents=True)
    (folder / "lists" / "web.csv").write_text(
        "start_s,request_bytes,response_bytes\n0.1,500,20000\n0.2,400,9000\n"
    )
    traced = tiny(runs=1, claim=[], sweep={"topology.rate": ["2Mbit", "4Mbit"]})
    traced["traffic"] = [{"name": "web", "kind": "trace", "rtt": "30ms", "file": "lists/web.csv"}]
    (folder / "traced.toml").write_text(tomli_w.dumps(traced))
    here = swept("local", folder / "here", folder / "traced.toml")
    there = swept(aqmlab.Cluster(secluded.address), folder / "there", folder / "traced.toml")
    assert there.progress.runs_done == 4
    assert tables(there.path) == tables(here.path)
    traced["traffic"][0]["file"] = str(folder / "lists" / "web.csv")
    (folder / "absolute.toml").write_text(tomli_w.dumps(traced))
    with pytest.raises(
        aqmlab.UsageError, match="which cannot be sent to a cluster: put it in the scenario's folder"
    ):
        swept(aqmlab.Cluster(secluded.address), folder / "there", folder / "absolute.toml", force=True)


def test_a_task_names_a_function_and_no_code():
    """Dask pickles only the function's name, not its code."""
    from distributed.protocol.pickle import dumps

    pickled = dumps(remote.attempt)
    assert b"aqmlab.sweeps.remote" in pickled
    assert len(pickled) < 100


def shim(folder, **parts):
    """The environment of a worker that reports other versions of some parts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"from aqmlab.sweeps import remote\nothers = {{**remote.parts(), **{parts!r}}}\n"
        "remote.parts = lambda: others\nremote.release = lambda: '0.0.9'\n"
    )
    return {"PYTHONPATH": str(folder)}


def test_a_worker_whose_versions_differ_does_the_runs_that_do_not_need_them(scenario, undisturbed, tmp_path):
    needed = f"qdisc.red {remote.parts()['qdisc.red']} (aqmlab {remote.release()})"
    with dask_cluster(tmp_path / "cluster", workers=0) as found:
        found.start_worker(environment=shim(tmp_path / "shim", **{"qdisc.red": 99, "qdisc.pi": 99}))
        found.wait_workers(1)
        with pytest.raises(aqmlab.HostError) as refused:
            swept(aqmlab.Cluster(found.address), tmp_path / "store", scenario)
        assert "no worker of the scheduler" in str(refused.value)
        assert f"it has qdisc.red 99 (aqmlab 0.0.9); install what is needed: {needed}" in str(refused.value)
        done = {run.arm for run in aqmlab.load(refused_sweep(tmp_path / "store")).runs}
        assert done <= {"DropTail"}
        droptail = tiny(arm=[{"name": "DropTail"}], claim=[])
        alone = swept(aqmlab.Cluster(found.address), tmp_path / "store", droptail)
        assert alone.remarks == ()
        assert len(alone.results.runs) == RUNS / 2
        found.start_worker()
        found.wait_workers(2)
        sweep = swept(aqmlab.Cluster(found.address), tmp_path / "store", scenario)
    (remark,) = sweep.remarks
    assert remark.startswith("worker tcp://127.0.0.1:")
    assert "was given no more incompatible runs: it has qdisc.red 99" in remark
    assert tables(sweep.path) == tables(undisturbed)


def refused_sweep(store):
    (path,) = (store / "sweeps").iterdir()
    return path


def test_a_worker_that_reads_requests_of_another_form_is_refused_by_name(scenario, tmp_path):
    environment = shim(tmp_path / "shim")
    with (tmp_path / "shim" / "sitecustomize.py").open("a") as more:
        more.write("remote.FORMAT += 1\n")
    with dask_cluster(tmp_path / "cluster", workers=0) as found:
        found.start_worker(environment=environment)
        found.wait_workers(1)
        with pytest.raises(aqmlab.HostError, match=f"it has aqmlab 0.0.9; install {remote.release()}"):
            swept(aqmlab.Cluster(found.address), tmp_path / "store", scenario)


def test_how_far_a_run_is_comes_from_the_worker_while_it_goes_on(tmp_path):
    environment = shim(tmp_path / "shim")
    with (tmp_path / "shim" / "sitecustomize.py").open("a") as more:
        more.write("remote._SECONDS_BETWEEN_NEWS = 0\n")
    one = {**tiny(runs=1, claim=[], duration="40000s", arm=[{"name": "DropTail"}])}
    del one["sweep"], one["record"]
    seen = []
    with dask_cluster(tmp_path / "cluster", workers=0) as found:
        found.start_worker(environment=environment)
        found.wait_workers(1)
        where = aqmlab.Cluster(found.address)
        aqmlab.run(one, output=tmp_path / "one", executor=where, report=False, progress=seen.append)
    shares = [run.share for now in seen for run in now.under_way]
    assert shares, "no progress of the run was reported"
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1


def certificates(folder):
    """Write the files of two certificate authorities, each with a certificate that it has signed and the key
    of that certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("the command openssl is not installed")

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    for authority in ("ours", "theirs"):
        ca = ["-keyout", f"{authority}-ca.key", "-out", f"{authority}-ca.pem", "-subj", f"/CN={authority}"]
        openssl("req", "-x509", *key, *ca)
        own = ["-keyout", f"{authority}.key", "-out", f"{authority}.csr", "-subj", "/CN=127.0.0.1"]
        openssl("req", *key[:-2], *own)
        signed = ["-CA", f"{authority}-ca.pem", "-CAkey", f"{authority}-ca.key", "-CAcreateserial"]
        openssl("x509", "-req", "-in", f"{authority}.csr", *signed, "-out", f"{authority}.pem", "-days", "2")


def test_tls_with_certificates_of_ones_own(scenario, undisturbed, tmp_path, monkeypatch):
    certificates(tmp_path)
    names = {"tls_ca_file": "ours-ca.pem", "tls_cert": "ours.pem", "tls_key": "ours.key"}
    files = {name: str(tmp_path / file) for name, file in names.items()}
    options = [word for name, file in files.items() for word in (f"--{name.replace('_', '-')}", file)]
    monkeypatch.setattr("aqmlab.sweeps.connection._CONNECT_S", 3.0)
    with dask_cluster(tmp_path / "cluster", options=options) as found:
        assert found.address.startswith("tls://")
        sweep = swept(aqmlab.Cluster(found.address, **files), tmp_path / "store", scenario)
        assert tables(sweep.path) == tables(undisturbed)
        strangers = {name: file.replace("ours", "theirs") for name, file in files.items()}
        for wrong in (
            aqmlab.Cluster(found.address, **strangers),
            aqmlab.Cluster(found.address.replace("tls", "tcp")),
        ):
            with pytest.raises(aqmlab.HostError, match="cannot reach the scheduler"):
                swept(wrong, tmp_path / "other", scenario)
