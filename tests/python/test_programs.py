"""Programs behind a queue: `aqmlab exec`, and classes of traffic that are programs."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import duckdb
import pytest
import tomli_w

import aqmlab
from aqmlab.execution import with_program
from aqmlab.recordings.recording import load_run
from living import FAITHFUL, NOT_FAITHFUL, begin_aqmlab, interfaces, run_aqmlab, the_router_of
from remains import Machine, all_namespaces, began, family, namespaces_of, wait_until

NETWORK = {
    "title": "A queue for programs",
    "duration": "4s",
    "topology": {
        "kind": "dumbbell",
        "rate": "10Mbit",
        "delay": "2ms",
        "queue": {"kind": "droptail", "limit": "60p"},
    },
}
SIZE = 1_000_000
HOST = f"""
import socket, sys, threading
listening = socket.create_server(("", 8000))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 8001))
def echo():
    while True:
        data, sender = datagrams.recvfrom(2000)
        datagrams.sendto(data, sender)
threading.Thread(target=echo, daemon=True).start()
while True:
    connection, _ = listening.accept()
    connection.sendall(b"x" * {SIZE})
    connection.close()
"""
FETCH = f"""
import os, socket, sys
server = os.environ["AQMLAB_SERVER"]
with socket.create_connection((server, 8000)) as connection:
    connection.shutdown(socket.SHUT_WR)
    count = 0
    while data := connection.recv(65536):
        count += len(data)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(0.5)
    answers = 0
    while answers < 5:
        datagrams.sendto(b"y" * 100, (server, 8001))
        try:
            answers += datagrams.recv(2000) == b"y" * 100
        except TimeoutError:
            pass  # other traffic has filled the queue
print(count, os.environ["AQMLAB_SEED"], os.environ["AQMLAB_ARM"])
sys.exit(7 if count == {SIZE} else 1)
"""
ANY_VERDICT = {FAITHFUL, NOT_FAITHFUL}


def scenario(folder, **more):
    file = folder / "queue.toml"
    file.write_text(tomli_w.dumps(NETWORK | more), encoding="utf-8")
    file.chmod(0o644)
    return file


def only_run(out):
    (manifest,) = out.rglob("manifest.json")
    return load_run(manifest.parent)


def flows_of(run):
    found = duckdb.read_parquet(str(run.path / "found_flows.parquet"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def script(folder, name, text):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)
    return str(file)


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_a_program_runs_behind_the_queue_and_its_flows_are_found(user, live_folder):
    """The bytes that the program counts are those that the router saw for the first time."""
    scenario(live_folder)
    host, fetch = script(live_folder, "host.py", HOST), script(live_folder, "fetch.py", FETCH)
    python = "/usr/bin/python3"
    ended = run_aqmlab(
        user,
        *("exec", "queue.toml", "--no-report", "-o", "out", "--seed", "5", "--rtt", "20ms"),
        *("--server", f"{python} {host}", "--port", "8000", "--", python, fetch),
        cwd=live_folder,
    )
    assert ended.returncode == 7, ended.stderr
    assert ended.stdout == f"{SIZE} 5 main\n"
    assert "client     198.18.0.1" in ended.stderr
    assert "exit code  7" in ended.stderr
    run = only_run(live_folder / "out")
    programs = run.manifest.live["programs"]
    assert [(p["role"], p["exit_code"], p["signal"]) for p in programs] == [
        ("server", None, signal.SIGTERM),
        ("client", 7, None),
    ]
    assert programs[0]["start_ns"] < 0 < programs[1]["end_ns"] <= 1.5e9 + run.manifest.t1_ns
    tcp, udp = flows_of(run)
    assert (tcp["protocol"], tcp["client"], tcp["server"], tcp["server_port"]) == (
        "tcp",
        "198.18.0.1",
        "198.19.0.1",
        8000,
    )
    assert tcp["to_client_new_bytes"] == SIZE
    assert tcp["to_server_new_bytes"] == 0
    sent = tcp["to_client_packets"]
    lost = tcp["to_client_dropped_packets"] + tcp["to_client_lost_packets"]
    assert sent == tcp["to_client_delivered_packets"] + lost
    assert sent > SIZE // 1500
    assert (udp["protocol"], udp["server_port"]) == ("udp", 8001)
    assert udp["to_server_new_bytes"] == udp["to_client_new_bytes"] == 5 * (100 + 28)
    assert tcp["first_ns"] < tcp["last_ns"]
    assert tcp["first_ns"] < udp["first_ns"] < udp["last_ns"]


def test_a_command_is_arguments_and_not_shell_text():
    hostile = ["/bin/echo", "$(reboot)", "a b", "'; exit 9; \"", "line\nbreak", "{server}", ""]
    text = with_program(NETWORK, hostile, server=["x", "y z"], longest="2s")
    (arm,) = json.loads(aqmlab._core.plan(text, text.file_name))["arms"]
    workload = arm["plan"]["classes"][0]["workload"]
    assert (workload["client"], workload["server"]) == (hostile, ["x", "y z"])


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_hostile_arguments_arrive_as_they_are(user, live_folder):
    scenario(live_folder)
    words = ["$(reboot)", "a b", "'; exit 9; \"", "line\nbreak", ""]
    told = "import sys; print(sys.argv[1:])"
    ended = run_aqmlab(
        user,
        *(
            "exec",
            "queue.toml",
            "--no-report",
            "-q",
            "-o",
            "out",
            "--",
            "/usr/bin/python3",
            "-c",
            told,
            *words,
        ),
        cwd=live_folder,
    )
    assert (ended.returncode, ended.stdout) == (0, f"{words}\n"), ended.stderr


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_wrong_commands_are_refused_in_a_sentence(user, live_folder):
    scenario(live_folder)

    def refused(*words):
        ended = run_aqmlab(user, "exec", "queue.toml", "--no-report", "-o", "out", *words, cwd=live_folder)
        assert "Traceback" not in ended.stderr
        assert not list(live_folder.rglob("*.parquet"))
        return ended.returncode, ended.stderr

    code, said = refused("--", "no-such-program")
    assert code == 2
    assert "no folder of PATH contains a program of that name" in said
    code, said = refused("--", "./none")
    assert code == 2
    assert "there is no file" in said
    code, said = refused("--server", "/bin/false", "--", "/bin/true")
    assert code == 4
    assert "the server of class `program` has ended and did not open a port" in said
    code, said = refused("--server", "'", "--", "/bin/true")
    assert code == 2
    assert "close the quotation" in said
    code, said = refused("--rtt", "1ms", "--", "/bin/true")
    assert code == 2
    assert "below the path's own round-trip propagation delay" in said
    code, said = refused()
    assert code == 2


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_a_program_that_hangs_is_ended_at_the_end_of_the_run(user, live_folder):
    """It ignores the signal that asks it to end, and it has left a daemon behind."""
    scenario(live_folder)
    deaf = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n os.setsid(); time.sleep(1000)\n"
        "print('up', flush=True); time.sleep(1000)"
    )
    begun = time.monotonic()
    ended = run_aqmlab(
        user,
        *("exec", "queue.toml", "--no-report", "-o", "out", "--for", "1s"),
        *("--", "/usr/bin/python3", "-c", deaf),
        cwd=live_folder,
    )
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGKILL, "up\n"), ended.stderr
    assert time.monotonic() - begun < 60
    assert only_run(live_folder / "out").manifest.live["programs"][0]["asked_to_end"]


@pytest.mark.slow
@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_twenty_kills_leave_no_program(user, live_folder):
    """The command or its router is killed; the program has daemons in sessions of their own."""
    scenario(live_folder)
    chance = random.Random(46)
    before, ours = interfaces(), namespaces_of(os.getpid())
    daemons = (
        "import os, time\n"
        "for _ in range(5):\n if os.fork() == 0:\n  os.setsid()\n  time.sleep(1000)\n"
        "time.sleep(1000)"
    )
    seen = 0
    for kill in range(20):
        process = begin_aqmlab(
            user,
            *("exec", "queue.toml", "--no-report", "-q", "-o", f"out-{kill}"),
            *("--", "/usr/bin/python3", "-c", daemons),
            cwd=live_folder,
        )
        router = the_router_of(process.pid)
        time.sleep(chance.uniform(0.0, 2.0))
        relatives = family(process.pid)
        seen += len(relatives) > 4
        theirs = set().union(*map(namespaces_of, relatives)) - ours
        with suppress(ProcessLookupError):
            os.kill(router if chance.random() < 0.5 else process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        left = {pid: at for pid, at in relatives.items() if began(pid) == at}
        assert wait_until(lambda left=left: all(began(pid) != at for pid, at in left.items())), left
        assert wait_until(lambda theirs=theirs: not theirs & all_namespaces()), theirs
        assert interfaces() == before
    assert seen >= 10, "most of these programs had started"


@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
def test_programs_are_a_class_of_traffic(user, live_folder):
    """Two clients and a server, next to traffic of ours; what they write is kept."""
    script(live_folder, "host.py", HOST)
    script(live_folder, "fetch.py", FETCH + "\n")
    python = "/usr/bin/python3"
    program = {
        "name": "fetch",
        "kind": "program",
        "server": [python, str(live_folder / "host.py")],
        "client": [python, str(live_folder / "fetch.py")],
        "port": 8000,
        "count": 2,
        "start": "100ms",
    }
    cbr = {"name": "cbr", "kind": "cbr", "rate": "500kbit", "size": "500B"}
    scenario(live_folder, traffic=[cbr, program], duration="8s")
    ended = run_aqmlab(user, "live", "queue.toml", "--no-report", "-q", "-o", "out", cwd=live_folder)
    assert ended.returncode in ANY_VERDICT, ended.stderr
    run = only_run(live_folder / "out")
    clients = [p for p in run.manifest.live["programs"] if p["role"] == "client"]
    assert [(p["index"], p["exit_code"]) for p in clients] == [(0, 7), (1, 7)]
    assert all(p["start_ns"] >= 100e6 for p in clients)
    for index in (0, 1):
        written = run.path / "programs" / f"fetch-client-{index}.out"
        assert written.read_text(encoding="ascii").split()[0] == str(SIZE)
    rows = flows_of(run)
    assert sorted(row["to_client_new_bytes"] for row in rows if row["protocol"] == "tcp") == [SIZE, SIZE]
    refusal = run_aqmlab(user, "run", "queue.toml", "-o", "sim", cwd=live_folder)
    assert refusal.returncode == 2
    assert "the simulator runs no programs" in refusal.stderr


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="there is no iperf3")
@pytest.mark.parametrize("user", ["ordinary user"], indirect=True)
@pytest.mark.parametrize("way", [[], ["-R"], ["-P", "4"], ["-u", "-b", "4M"]], ids=["up", "down", "4", "udp"])
def test_iperf3_and_the_router_count_the_same_bytes(user, way, live_folder):
    scenario(live_folder)
    ended = run_aqmlab(
        user,
        *("exec", "queue.toml", "--no-report", "-q", "-o", "out", "--server", "iperf3 -s"),
        *("--", "sh", "-c", 'exec iperf3 -c "$AQMLAB_SERVER" -t 3 -J "$@"', "sh", *way),
        cwd=live_folder,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    told = json.loads(ended.stdout)["end"]
    rows = flows_of(only_run(live_folder / "out"))
    direction = "to_client" if way == ["-R"] else "to_server"
    if "-u" in way:
        counted = sum(row[f"{direction}_new_bytes"] for row in rows if row["protocol"] == "udp")
        # Each datagram has 28 bytes of headers; the first asks the server for a stream.
        assert counted == pytest.approx(told["sum"]["bytes"], rel=0.05)
    else:
        data = [row for row in rows if row[f"{direction}_new_bytes"] > 10_000]
        assert len(data) == (4 if "-P" in way else 1)
        counted = sum(row[f"{direction}_new_bytes"] for row in data)
        # The receiver stops counting before all that was sent has arrived. Each stream begins with 37 bytes
        # that belong to no count.
        assert told["sum_received"]["bytes"] <= counted <= told["sum_sent"]["bytes"] + 37 * len(data)


@pytest.mark.skipif(shutil.which("ping") is None, reason="there is no ping")
@pytest.mark.parametrize("user", ["root"], indirect=True)
def test_a_ping_measures_the_round_trip_of_the_scenario(user, live_folder):
    scenario(live_folder)
    ended = run_aqmlab(
        user,
        *("exec", "queue.toml", "--no-report", "-q", "-o", "out", "--rtt", "60ms"),
        *("--", "sh", "-c", 'exec ping -c 5 -i 0.2 "$AQMLAB_SERVER"'),
        cwd=live_folder,
    )
    assert ended.returncode == 0, ended.stderr
    least_ms = float(ended.stdout.rsplit("= ", 1)[1].split("/")[0])
    assert 60.0 <= least_ms < 75.0, ended.stdout
    (flow,) = flows_of(only_run(live_folder / "out"))
    assert (flow["protocol"], flow["to_server_packets"], flow["to_client_packets"]) == ("icmp", 5, 5)


def test_the_arm_must_be_chosen(aqmlab_cli, tmp_path):
    file = scenario(tmp_path, arm=[{"name": "a"}, {"name": "b"}])
    ended = aqmlab_cli("exec", file, "--", sys.executable, "-c", "")
    assert ended.returncode == 2
    assert "choose one with `--arm`: `a`, `b`" in ended.stderr


UPLINK_SERVER = """
import socket, threading
answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answers.bind(("", 0))
listening = socket.create_server(("", 0))
print(listening.getsockname()[1], answers.getsockname()[1], flush=True)
def echo():
    while True:
        data, sender = answers.recvfrom(2000)
        answers.sendto(data[::-1], sender)
threading.Thread(target=echo, daemon=True).start()
while True:
    connection, _ = listening.accept()
    asked = connection.recv(100)
    connection.sendall(asked[::-1] * 20_000)
    connection.close()
"""
UPLINK_CLIENT = """
import pathlib, socket, sys
host, tcp, udp = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.create_connection((host, tcp), timeout=30) as connection:
    connection.sendall(b"abcdefghij")
    connection.shutdown(socket.SHUT_WR)
    got = b""
    while data := connection.recv(65536):
        got += data
assert got == b"jihgfedcba" * 20_000, len(got)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(5)
    datagrams.connect((host, udp))
    for word in (b"one", b"two"):
        datagrams.send(word)
        assert datagrams.recv(100) == word[::-1]
closed = socket.socket()
closed.bind(("", 0))
try:
    with socket.create_connection((host, 1), timeout=30) as connection:
        refused = connection.recv(1) == b""
except ConnectionError:
    refused = True
names = [socket.gethostbyname(name) for name in ("client", "server")]
resolver = [line for line in pathlib.Path("/etc/resolv.conf").read_text().splitlines() if line]
print(len(got), refused, *names, resolver, len(list(pathlib.Path("/proc").glob("[0-9]*"))))
"""


def own_address():
    """An address of this machine that a packet from another host could have as its destination."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no route")
        return probe.getsockname()[0]


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_an_uplink_reaches_servers_of_this_machine(user, live_folder):
    """The server runs outside of the scenario's network; what it sends crosses the queue. Without an uplink,
    it is out of reach."""
    scenario(live_folder)
    fetch = script(live_folder, "fetch.py", UPLINK_CLIENT)
    before, host = Machine.now(), own_address()
    server = subprocess.Popen([sys.executable, "-c", UPLINK_SERVER], stdout=subprocess.PIPE, text=True)
    try:
        ports = server.stdout.readline().split()
        words = ["exec", "queue.toml", "--no-report", "-o", "out", "--rtt", "20ms"]
        command = ["/usr/bin/python3", fetch, host, *ports]
        ended = run_aqmlab(user, *words, "--uplink", "--", *command, cwd=live_folder)
        alone = run_aqmlab(user, *words[:-3], "none", "--", *command, cwd=live_folder)
    finally:
        server.kill()
        server.communicate()
    assert ended.returncode == 0, ended.stderr
    told = "200000 True 198.18.0.1 198.19.0.1 ['nameserver 198.19.0.1'] "
    assert ended.stdout.startswith(told), ended.stdout
    # The program, and the first process of its namespace.
    assert int(ended.stdout.split()[-1]) <= 3
    run = only_run(live_folder / "out")
    found = {(row["protocol"], row["server"], row["server_port"]): row for row in flows_of(run)}
    assert found["tcp", host, int(ports[0])]["to_client_new_bytes"] == 200_000
    assert found["udp", host, int(ports[1])]["to_client_new_bytes"] == 2 * (3 + 28)
    assert not list((run.path / "programs").glob(".*")), "files for programs are gone"
    assert alone.returncode != 0
    assert "timed out" in alone.stderr or "No route" in alone.stderr or "refused" in alone.stderr
    assert Machine.now() == before
