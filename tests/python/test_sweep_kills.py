"""A sweep that is killed, or lacks disk space or permission, keeps its finished runs; the others run
later."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w

import aqmlab
from aqmlab.sweeps.store import Store
from aqmlab.system.files import write_whole
from sweeping import RUNS, left_over, manifests, tables, tiny


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    file = folder / "tiny.toml"
    file.write_text(tomli_w.dumps(tiny()), encoding="utf-8")
    sweep = aqmlab.sweep(file, report=False, store=folder / "store", jobs=2)
    sweep.wait()
    return file, sweep.path


def command(file, store, *options):
    return [
        sys.executable,
        "-m",
        "aqmlab",
        "sweep",
        str(file),
        "--store",
        str(store),
        "-q",
        "-j",
        "2",
        "--no-report",
        *options,
    ]


def workers_of(store):
    """Process ids of the workers that write to a store."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            if "aqmlab.sweeps.worker" in words and str(store) in words:
                found.append(int(entry.name))
    return found


def wait_until(true, patience_s=20):
    until = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def check_whole(store, undisturbed):
    file, path = undisturbed
    done = subprocess.run(command(file, store), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tables(store / "sweeps" / path.name) == tables(path)
    assert manifests(store) == manifests(path.parent.parent)
    assert left_over(store) == []


def kill_at_random(store, undisturbed, seed):
    """Start the sweep; kill it, or one of its workers, after a random number of runs."""
    draw = random.Random(seed)
    before = len(manifests(store))
    process = subprocess.Popen(
        command(undisturbed[0], store), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    after = before + draw.randrange(0, max(RUNS - before, 1))
    wait_until(lambda: process.poll() is not None or len(list(store.glob("runs/*/*"))) >= after)
    time.sleep(draw.uniform(0, 0.05))
    workers = workers_of(store)
    victim = "parent" if draw.random() < 0.5 or not workers else "worker"
    target = process.pid if victim == "parent" else draw.choice(workers)
    try:
        os.kill(target, signal.SIGKILL)
    except ProcessLookupError:
        victim = "nobody"
    _, errors = process.communicate(timeout=60)
    wait_until(lambda: not workers_of(store))
    if victim == "worker":
        assert process.returncode == 0, errors
    return victim


def kills(store, undisturbed, seeds):
    """Kill the sweep at random times, and restart it each time."""
    found = []
    for seed in seeds:
        if len(manifests(store)) == RUNS:
            check_whole(store, undisturbed)
            shutil.rmtree(store)
        victim = kill_at_random(store, undisturbed, seed)
        found.append(victim)
        sys.stdout.write(f"seed {seed}: {victim} killed, {len(manifests(store))} of {RUNS} runs are there\n")
    check_whole(store, undisturbed)
    return found


def test_five_random_kills_lose_nothing(undisturbed, tmp_path):
    kills(tmp_path / "store", undisturbed, range(5))


@pytest.mark.slow
def test_fifty_random_kills_lose_nothing(undisturbed, tmp_path):
    found = kills(tmp_path / "store", undisturbed, range(100, 150))
    assert {"parent", "worker"} <= set(found)


@pytest.mark.parametrize(
    ("number", "code", "options"),
    [(signal.SIGINT, 130, ()), (signal.SIGTERM, 143, ()), (signal.SIGINT, 130, ("--json",))],
)
def test_an_interrupted_sweep_ends_soon_and_goes_on(undisturbed, tmp_path, number, code, options):
    store = tmp_path / "store"
    process = subprocess.Popen(
        command(undisturbed[0], store, "-j", "1", *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: len(list(store.glob("runs/*/*/manifest.json"))) >= 2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == code
    assert "finished runs are kept" in errors
    assert "Traceback" not in errors
    assert workers_of(store) == []
    assert 2 <= len(manifests(store)) < RUNS
    assert left_over(store) == []
    check_whole(store, undisturbed)


def in_a_namespace(script, **variables):
    """Run a shell script that may mount file systems; skip if the system forbids it."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("user namespaces are not allowed here")
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    return subprocess.run(
        [*inside, script], check=False, capture_output=True, text=True, env=environment | {"NO_COLOR": "1"}
    )


def test_a_full_disk_ends_the_sweep_and_what_is_done_is_kept(undisturbed, tmp_path):
    """Only some of the runs fit into the file system. When it has more space, the sweep continues."""
    (tmp_path / "disk").mkdir()
    file, path = undisturbed
    done = in_a_namespace(
        'mount -t tmpfs -o size=700k none "$DISK"; set +e\n'
        '$SWEEP; echo "code $?"; ls -A "$DISK/store/tmp"\n'
        'find "$DISK/store/runs" -name manifest.json | wc -l\n'
        'mount -o remount,size=100m "$DISK"; $SWEEP >/dev/null; echo "code $?"; cp -r "$DISK/store" "$KEPT"',
        DISK=tmp_path / "disk",
        SWEEP=" ".join(command(file, tmp_path / "disk" / "store")),
        KEPT=tmp_path / "kept",
    )
    words = done.stdout.split()
    assert words[:2] == ["code", "3"], done.stderr
    assert 0 < int(words[2]) < RUNS
    assert words[3:] == ["code", "0"]
    assert "the disk is full" in done.stderr
    assert "finished runs are kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert tables(tmp_path / "kept" / "sweeps" / path.name) == tables(path)


def test_a_read_only_store_is_refused_in_a_sentence_and_can_be_read(undisturbed, tmp_path):
    file, path = undisturbed
    store = path.parent.parent
    done = in_a_namespace(
        'mount --bind "$STORE" "$STORE"; mount -o remount,bind,ro "$STORE"; set +e\n'
        '$SWEEP; echo "code $?"; $QUERY "from cells"; echo "code $?"; $REPORT >/dev/null; echo "code $?"',
        STORE=store,
        SWEEP=" ".join(command(file, store)),
        QUERY=f"{sys.executable} -m aqmlab query --csv --store {store}",
        REPORT=f"{sys.executable} -m aqmlab report {path} -q -o {tmp_path}/report.html",
    )
    assert done.stdout.startswith("code 3\n"), done.stderr
    assert "cannot write the store" in done.stderr
    assert "Read-only file system" in done.stderr
    assert "it can still be read" in done.stderr
    assert done.stdout.endswith("code 0\ncode 0\n")
    assert len(done.stdout.splitlines()) == 4 + RUNS
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_files_that_may_not_grow_are_a_limit_of_the_machine(undisturbed, tmp_path):
    """If mounting is impossible, a limit on the size of files stands in for a full disk."""
    import resource

    done = subprocess.run(
        command(undisturbed[0], tmp_path / "store"),
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
    )
    assert done.returncode == 3
    assert "File too large" in done.stderr
    assert manifests(tmp_path / "store") == {}
    assert left_over(tmp_path / "store") == []


def test_what_dead_processes_left_is_swept_out_and_what_is_in_use_stays(tmp_path):
    store = Store.made(tmp_path / "store")
    script = (
        "import os, sys, time; from aqmlab.sweeps.store import Store\n"
        "with Store(sys.argv[1]).staging() as directory:\n"
        "    (directory / 'half').write_text('x'); print(directory, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, store.path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    directory = Path(process.stdout.readline().strip())
    assert store.sweep_out() == 0
    assert (directory / "half").exists()
    process.kill()
    process.communicate()
    with store.staging() as own:
        assert store.sweep_out() == 1
        assert not directory.exists()
        assert own.exists()
    assert left_over(store.path) == []


def test_what_another_kernel_writes_stays_until_it_has_been_unchanged_for_a_day(tmp_path):
    # A host does not see the locks of its guests.
    store, guest = Store.made(tmp_path / "store"), "0123abcd-17-89abcdef"
    with store.staging() as own:
        assert own.name.split("-")[1] == str(os.getpid())
        directory, lock = own.with_name(guest), own.with_name(f"{guest}.lock")
    half, file = directory / "run" / "half", tmp_path / f".table.csv.{guest}"
    half.parent.mkdir(parents=True)
    for path in (half, lock, file):
        path.write_text("x")
    paths = (lock, directory, half.parent, half, file)
    for days, stays in ((0.9, True), (1.1, False)):
        for path in paths:
            os.utime(path, times=(time.time() - days * 86400,) * 2)
        assert store.sweep_out() == (0 if stays else 1)
        write_whole(tmp_path / "table.csv", "y")
        assert [path.exists() for path in (half, lock, file)] == [stays] * 3
    assert left_over(store.path) == []


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "store.json").write_text("{}")
    with pytest.raises(aqmlab.RecordingError, match=r"store.json` is corrupt"):
        Store(tmp_path / "broken")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("Dear")
    with pytest.raises(aqmlab.UsageError, match="is not a store, and not empty"):
        aqmlab.sweep(tiny(), report=False, store=tmp_path / "other")
    with pytest.raises(aqmlab.RecordingError, match="no store at"):
        Store(tmp_path / "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "other"]


def test_a_recording_that_is_not_whole_is_made_again(undisturbed, tmp_path):
    path = undisturbed[1]
    store = Path(shutil.copytree(path.parent.parent, tmp_path / "store"))
    digest = Store(store).digests()[3]
    (Store(store).path_of(digest) / "manifest.json").unlink()
    check_whole(store, undisturbed)


def test_a_corrupt_recording_is_named_and_made_anew(undisturbed, tmp_path):
    file, path = undisturbed
    store = Path(shutil.copytree(path.parent.parent, tmp_path / "store"))
    digest = Store(store).digests()[3]
    broken = Store(store).path_of(digest) / "summary.parquet"
    broken.write_bytes(broken.read_bytes()[:100])
    said = [word for word in command(file, store) if word != "-q"]
    done = subprocess.run(said, check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "repeated: " in done.stderr
    assert str(Path(digest) / "summary.parquet") in done.stderr
    assert tables(store / "sweeps" / path.name) == tables(path)


def test_many_may_make_a_store_at_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        for i in range(20):
            made = list(pool.map(Store.made, [tmp_path / str(i)] * 8))
            assert {store.path for store in made} == {tmp_path / str(i)}
            assert sorted(path.name for path in made[0].path.iterdir()) == ["runs", "store.json", "tmp"]
            assert left_over(made[0].path) == []


def test_a_store_is_made_in_a_directory_that_can_be_made(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(
            aqmlab.UsageError, match="is a file, or inside one, not a store: name a directory"
        ):
            Store.made(path)
    with pytest.raises(aqmlab.HostError, match="cannot create the store `/proc/here`: No such file"):
        Store.made("/proc/here")
