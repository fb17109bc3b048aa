"""A router between two interfaces: `aqmlab router`, between network namespaces with veth."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest
import tomli_w

from living import FAITHFUL, NOT_FAITHFUL, begin_aqmlab, run_aqmlab, the_router_of
from remains import BENCH, began, family, wait_until
from test_programs import NETWORK, flows_of, only_run

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="interfaces are made by root"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="there is no ip"),
]
KILLS = 6
LEFT, RIGHT = "10.77.0.1", "10.77.0.2"


def shell(command):
    subprocess.run(["sh", "-ec", command], check=True, capture_output=True)


@contextmanager
def bench(*, mtu=1500):
    """Two hosts in namespaces of their own; the other ends of their cables are in a third namespace."""
    name = f"{BENCH}{os.getpid()}"
    hosts = {"l": LEFT, "r": RIGHT}
    try:
        shell(f"ip netns add {name}m; ip -n {name}m link set lo up")
        for end, address in hosts.items():
            shell(
                f"ip netns add {name}{end}"
                f"; ip -n {name}m link add {end}0 mtu {mtu} type veth"
                f" peer name eth0 mtu {mtu} netns {name}{end}"
                f"; ip -n {name}m link set {end}0 up; ip -n {name}{end} link set eth0 up"
                f"; ip -n {name}{end} address add {address}/24 dev eth0"
            )
        yield name
    finally:
        for end in (*hosts, "m"):
            subprocess.run(["ip", "netns", "delete", f"{name}{end}"], check=False, capture_output=True)


def inside(name, end):
    return ["ip", "netns", "exec", f"{name}{end}"]


def scenario(folder, **more):
    (folder / "queue.toml").write_text(tomli_w.dumps(NETWORK | more), encoding="utf-8")


@contextmanager
def routed(name, folder, *options):
    """A router between the two cables, which is ended by Ctrl-C."""
    words = ["router", "queue.toml", "--left", "l0", "--right", "r0", "--no-report", "-q", "-o", "out"]
    process = begin_aqmlab("root", *words, *options, cwd=folder, within=inside(name, "m"))
    try:
        ping = ["ping", "-c", "1", "-W", "1", RIGHT]
        until = time.monotonic() + 60
        while subprocess.run([*inside(name, "l"), *ping], check=False, capture_output=True).returncode:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, "the router does not forward"
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="there is no iperf3")
def test_iperf3_between_two_interfaces(live_folder):
    """The oracle is iperf3 at both ends, with the kernel's offloads as veth has them by default."""
    scenario(live_folder)
    with bench() as name:
        server = subprocess.Popen([*inside(name, "r"), "iperf3", "-s"], stdout=subprocess.DEVNULL)
        try:
            with routed(name, live_folder, "--rtt", "30ms") as process:
                command = ["iperf3", "-c", RIGHT, "-t", "3", "-J"]
                ended = subprocess.run(
                    [*inside(name, "l"), *command], check=False, capture_output=True, timeout=60
                )
                ping = subprocess.run(
                    [*inside(name, "l"), "ping", "-c", "3", "-i", "0.2", RIGHT],
                    check=False,
                    capture_output=True,
                    text=True,
                )
            assert process.returncode == 130
        finally:
            server.terminate()
            server.wait(10)
    told = json.loads(ended.stdout)
    assert "error" not in told, told
    told = told["end"]
    run = only_run(live_folder / "out")
    assert run.manifest.live["interrupted"]
    rows = [row for row in flows_of(run) if row["protocol"] == "tcp" and row["to_server_new_bytes"] > 10_000]
    (row,) = rows
    assert (row["client"], row["server"], row["server_port"]) == (LEFT, RIGHT, 5201)
    assert told["sum_received"]["bytes"] <= row["to_server_new_bytes"] <= told["sum_sent"]["bytes"] + 37
    # The link carries 10 Mbit/s, of which headers of 52 bytes take a share.
    assert told["sum_received"]["bits_per_second"] <= 10e6 * 1448 / 1500 * 1.02
    assert 30.0 <= float(ping.stdout.rsplit("= ", 1)[1].split("/")[0]) < 60.0
    counters = run.manifest.live["counters"]["program"]["client"]
    assert counters["wire.arp_passed"] >= 1, "addresses are resolved across the router"
    assert run.manifest.live["frames"]["malformed"]["checksum"] == 0


def interfaces_of(name):
    """The interfaces in the router's namespace, with their flags: a promiscuous one is marked."""
    listed = subprocess.run(
        [*inside(name, "m"), "ip", "-o", "link"], check=True, capture_output=True, text=True
    )
    return [line.split(" mtu ")[0] for line in listed.stdout.splitlines()]


def test_kills_leave_the_interfaces_as_they_were(live_folder):
    """The command or the process of its run is killed while packets cross the router, or during its start."""
    scenario(live_folder)
    chance = random.Random(46)
    with bench() as name:
        before = interfaces_of(name)
        for kill in range(KILLS):
            words = [
                "router",
                "queue.toml",
                "--left",
                "l0",
                "--right",
                "r0",
                "--no-report",
                "-q",
                "-o",
                f"out-{kill}",
            ]
            process = begin_aqmlab("root", *words, cwd=live_folder, within=inside(name, "m"))
            router = the_router_of(process.pid)
            time.sleep(chance.uniform(0.0, 1.0))
            relatives = family(process.pid)
            with suppress(ProcessLookupError):
                os.kill(router if kill % 2 else process.pid, signal.SIGKILL)
            _, said = process.communicate(timeout=60)
            assert process.returncode == (4 if kill % 2 else -signal.SIGKILL), said
            assert wait_until(lambda these=relatives: not any(began(pid) == at for pid, at in these.items()))
            assert wait_until(lambda: interfaces_of(name) == before), interfaces_of(name)
            if kill % 2:
                assert not list((live_folder / f"out-{kill}").rglob("*.parquet"))


def test_a_full_disk_keeps_nothing_but_a_message(live_folder):
    scenario(live_folder)
    place = live_folder / "small"
    place.mkdir()
    with bench() as name:
        # The file system exists only in the mount namespace of the command.
        small = f'mount -t tmpfs -o size=64k none {place} && exec "$@"'
        within = [*inside(name, "m"), "unshare", "-m", "sh", "-c", small, "sh"]
        words = ["router", "queue.toml", "--left", "l0", "--right", "r0", "--no-report", "-q", "--for", "2s"]
        before = interfaces_of(name)
        ended = run_aqmlab("root", *words, "-o", place / "out", cwd=live_folder, within=within)
        assert ended.returncode == 3, ended.stderr
        # The system's words if there is not even room for the directory, ours for what is recorded.
        assert re.search("the disk is full|No space left on device", ended.stderr), ended.stderr
        assert "Traceback" not in ended.stderr
        assert interfaces_of(name) == before


def test_the_run_ends_after_its_time_and_only_ip_crosses_it(live_folder):
    scenario(live_folder)
    words = [
        "router",
        "queue.toml",
        "--left",
        "l0",
        "--right",
        "r0",
        "--no-report",
        "-o",
        "out",
        "--for",
        "3s",
    ]
    strange = (
        "import socket, time\n"
        "raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); raw.bind(('eth0', 0))\n"
        "for _ in range(100):\n"
        " raw.send(b'\\xff' * 6 + b'\\x02' * 6 + b'\\x88\\xb5' + bytes(60))\n"
        " raw.send(b'\\xff' * 6 + b'\\x02' * 6 + b'\\x81\\x00\\x00\\x05\\x08\\x00' + bytes(60))\n"
        " time.sleep(0.03)\n"
    )
    with bench() as name:
        other = subprocess.Popen([*inside(name, "l"), sys.executable, "-c", strange])
        ended = run_aqmlab("root", *words, cwd=live_folder, within=inside(name, "m"))
        other.terminate()
        other.wait(10)
    assert ended.returncode in (FAITHFUL, NOT_FAITHFUL), ended.stderr
    run = only_run(live_folder / "out")
    assert run.t1_ns == 3_000_000_000
    counters = run.manifest.live["counters"]["program"]
    assert counters["client"]["wire.not_forwarded"] >= 20, "unknown types, and frames of a VLAN"
    assert run.manifest.live["frames"]["malformed"]["version"] == 0


def test_what_a_bridge_cannot_do_is_refused(live_folder):
    scenario(live_folder)

    def refused(name, left, right, *options):
        words = ["router", "queue.toml", "--left", left, "--right", right, "--no-report", "-o", "out"]
        ended = run_aqmlab("root", *words, *options, cwd=live_folder, within=inside(name, "m"))
        assert "Traceback" not in ended.stderr
        assert not list(live_folder.rglob("*.parquet"))
        return ended.returncode, ended.stderr

    with bench() as name:
        code, said = refused(name, "l0", "none")
        assert code == 3
        assert "there is no interface `none`" in said
        code, said = refused(name, "lo", "r0")
        assert code == 3
        assert "is not an Ethernet interface" in said
        code, said = refused(name, "l0", "l0")
        assert code == 2
        assert "the same interface" in said
        shell(f"ip -n {name}m link set r0 mtu 1400")
        code, said = refused(name, "l0", "r0")
        assert code == 3
        assert "has an MTU of 1500, but `r0` one of 1400" in said
        shell(f"ip -n {name}m link set r0 mtu 1500; ip -n {name}m address add 10.9.9.9/24 dev r0")
        code, said = refused(name, "l0", "r0")
        assert code == 3
        assert "ip address flush dev r0" in said
        shell(f"ip -n {name}m address flush dev r0; ip -n {name}m link set r0 down")
        code, said = refused(name, "l0", "r0")
        assert code == 3
        assert "`r0` is down" in said
