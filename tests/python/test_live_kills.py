"""Live runs that are killed, and hosts that send garbage: nothing remains, and everything is counted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from aqmlab.paths import load
from living import FAITHFUL, NOT_FAITHFUL, begin_aqmlab, interfaces, the_router_of
from remains import all_namespaces, began, family, namespaces_of, wait_until

pytestmark = pytest.mark.slow

KILLS = 20
JUNK = 100_000


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_twenty_kills_leave_no_process_namespace_or_interface(user, live_folder):
    """The command or its router receives SIGKILL at a random moment, which may be right after the start."""
    chance = random.Random(8)
    before, ours = interfaces(), namespaces_of(os.getpid())
    caught = []
    for kill in range(KILLS):
        process = begin_aqmlab(
            user, "live", "live.toml", "-q", "-o", f"out-{kill}", "--pcap", "all", cwd=live_folder
        )
        # Half of the kills come during the router's three seconds of work, the other half at any moment.
        if at_work := kill % 2 == 1:
            the_router_of(process.pid)
        time.sleep(chance.uniform(0.0, 2.0 if at_work else 4.0))
        relatives = family(process.pid)
        theirs = set().union(*map(namespaces_of, relatives)) - ours
        victims = [pid for pid in relatives if pid != process.pid] if chance.random() < 0.5 else []
        for victim in victims or [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=60)
        # Either the command was killed, or its router was, or the command had already finished.
        assert process.returncode in (-signal.SIGKILL, 4, FAITHFUL, NOT_FAITHFUL), process.returncode
        left = {pid: at for pid, at in relatives.items() if began(pid) == at}
        assert wait_until(lambda left=left: all(began(pid) != at for pid, at in left.items())), left
        assert wait_until(lambda theirs=theirs: not theirs & all_namespaces()), theirs
        assert interfaces() == before
        if victims:
            # The command survives to clean up after its router.
            partial = live_folder / f"out-{kill}"
            assert not list(partial.rglob(".*partial*")), sorted(partial.rglob("*"))
        caught.append(len(theirs))
    # These commands were killed while their hosts had namespaces.
    assert all(count >= 3 for count in caught[1::2]), caught
    # Finished recordings are complete, and nothing else has the name of a recording.
    for path in live_folder.glob("out-*/*/seed-1"):
        assert load(path).runs


# This runs inside each host's namespace and sends garbage through the host's own interface to the router.
SENDER = """
import ctypes, os, random, socket, sys
pid, count, user = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "user"
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER, CLONE_NEWNET, ETH_P_ALL = 0x10000000, 0x40000000, 3

def enter(path, kind):
    if libc.setns(os.open(path, os.O_RDONLY), kind):
        raise OSError(ctypes.get_errno(), f"setns {path}")

if user:
    enter(f"/proc/{pid}/ns/user", CLONE_NEWUSER)
folder, doors = f"/proc/{pid}/fd", []
held = [f"{folder}/{n}" for n in os.listdir(folder)]
for path in [p for p in held if os.readlink(p).startswith("net:")]:
    enter(path, CLONE_NEWNET)
    try:
        door = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        door.bind(("aqmlab0", ETH_P_ALL))
    except OSError:
        continue
    doors.append(door)
chance = random.Random(1)
good = bytes.fromhex("4500002100004000401100000a0000010a000002000100020000000041")
sent = 0
while sent < count:
    kind = chance.randrange(4)
    size = chance.randrange(1, 1400)
    if kind == 0:
        packet = chance.randbytes(size)
    elif kind == 1:
        packet = bytes([0x45]) + chance.randbytes(size)
    elif kind == 2:
        packet = bytes([0x60]) + chance.randbytes(size)
    else:
        packet = good[: chance.randrange(1, len(good))]
    try:
        chance.choice(doors).send(packet)
    except OSError:
        continue
    sent += 1
print(len(doors), sent)
"""


@pytest.mark.parametrize("user", ["ordinary user", "root"], indirect=True)
def test_a_hundred_thousand_packets_of_junk_are_counted_and_do_no_harm(user, live_folder):
    text = (live_folder / "live.toml").read_text(encoding="utf-8").replace('"3s"', '"12s"')
    (live_folder / "live.toml").write_text(text, encoding="utf-8")
    process = begin_aqmlab(user, "live", "live.toml", "-o", "out", "--no-report", cwd=live_folder)
    router = the_router_of(process.pid)
    time.sleep(1.0)
    theirs, ours = (Path(f"/proc/{who}/ns/user").readlink() for who in (router, "self"))
    owner = "root" if theirs == ours else "user"
    sender = subprocess.run(
        [sys.executable, "-c", SENDER, str(router), str(JUNK), owner],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert sender.returncode == 0, sender.stderr
    doors, sent = map(int, sender.stdout.split())
    assert doors == 4, "two classes of two hosts each"
    assert sent == JUNK
    _, err = process.communicate(timeout=60)
    # The books balance; otherwise there would be no recording. The run may be NOT FAITHFUL because
    # processing garbage takes time.
    assert process.returncode in (FAITHFUL, NOT_FAITHFUL), err
    assert "Traceback" not in err
    (run,) = load(live_folder / "out").runs
    live = run.manifest.live
    drops = live["drops"]
    # All garbage was read and refused, except for packets that were valid by chance or found the queue full.
    assert drops["malformed"] > 0.9 * (JUNK - drops["tun"])
    assert drops["malformed"] <= JUNK
    # Garbage may happen to be a packet with CE, which no host accepts as its own.
    assert live["marks"]["ce_delivered"] >= live["marks"]["ce_received"] > 0
    frames = live["frames"]
    assert frames["of_no_flow"] > 0, "some of it happens to be a packet"
    assert sum(frames["malformed"].values()) == drops["malformed"]
    assert {kind for kind, count in frames["malformed"].items() if count} >= {"short", "version", "checksum"}
    (sent_packets,) = load(live_folder / "out").tables.rows("run", "sent_packets", runs=[run])[0]
    assert sent_packets > 1000, "and the flows went on"
