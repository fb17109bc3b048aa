"""Record the answers of tc and of the kernel to tc commands, as JSON.

    python3 tc_answers.py [KERNEL] < COMMANDS > ANSWERS

COMMANDS has one command per line, such as `tc qdisc add dev lo root red limit 400000 avpkt 1000`, without
options of tc. It runs in a network namespace without other queue disciplines, and its discipline is then
deleted. With KERNEL, a Linux built with `ARCH=um`, the commands run in that kernel, with this machine's tc.
Without it, they run on this machine, in a namespace of their own; its kernel must have the disciplines.

Each answer has these entries:

`command`   the command
`refused`   `tc` or `kernel`, or null if the command is accepted
`says`      the messages, without those about the syntax
`options`   the options that the kernel reports (`vectors/tc-answers/README.md` explains them)
`shown`     what `tc -d qdisc show` prints, without the discipline's handle and place
"""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile

from crowd import TCA_RED_PARMS
from netlink import NETLINK_ROUTE, TCA_KIND, TCA_OPTIONS, Netlink, attributes
from single_flow import boot

TCA_RED_STAB, TCA_RED_MAX_P, TCA_RED_FLAGS = 2, 3, 4
TCA_CHOKE_MAX_P = 3
CODEL = ("target_us", "limit", "interval_us", "ecn", "ce_threshold_us")
PIE = ("target_us", "limit", "tupdate_us", "alpha", "beta", "ecn", "bytemode", "dq_rate_estimator")
CHOKE = ("limit", "min", "max", "w_log", "p_log", "scell_log", "flags")
SFB = ("rehash_ms", "db_ms", "max", "target", "increment", "decrement", "limit", "penalty_rate", "penalty_burst")
FQ_PIE = (
    *("limit", "flows", "target_us", "tupdate_us", "alpha", "beta", "quantum", "memory_limit", "ecn_prob"),
    *("ecn", "bytemode", "dq_rate_estimator"),
)
# Those of `struct tc_sfq_qopt_v1` before its counters.
SFQ = (
    *("quantum", "perturb_s", "limit", "divisor", "flows", "depth", "headdrop"),
    *("redflowlimit", "min", "max", "w_log", "p_log", "scell_log", "flags", "max_p"),
)
# The attributes of fq, from 1.
FQ = (
    *("limit", "flow_limit", "quantum", "initial_quantum", "pacing", "defrate", "maxrate", "buckets_log"),
    *("refill_delay_us", "orphan_mask", "low_rate_threshold", "ce_threshold_us", "timer_slack_ns"),
    *("horizon_us", "horizon_drop"),
)
# The attributes of cake, from 2.
CAKE = (
    *("bandwidth", "diffserv", "atm", "flow", "overhead", "rtt_us", "target_us", "autorate", "memory", "nat", "raw"),
    *("wash", "mpu", "ingress", "ack_filter", "split_gso", "fwmark"),
)
KERNEL_SAYS = re.compile(r"RTNETLINK answers|Error: (?!\")")
LOOPBACK = 1  # its index in every namespace
RTM_DELQDISC, NLM_F_REQUEST_ACK, TC_H_ROOT = 37, 5, 0xFFFF_FFFF


def red(found: dict[int, bytes]) -> dict[str, int]:
    """Return the options of RED."""
    limit, low, high, w_log, p_log, scell_log, flags = struct.unpack("<IIIBBBB", found[TCA_RED_PARMS])
    (max_p,) = struct.unpack("<I", found[TCA_RED_MAX_P])
    if TCA_RED_FLAGS in found:
        (flags,) = struct.unpack("<I", found[TCA_RED_FLAGS][:4])
    sizes = {"limit": limit, "min": low, "max": high}
    return sizes | {"w_log": w_log, "p_log": p_log, "scell_log": scell_log, "max_p": max_p, "flags": flags}


def reported() -> dict[str, int] | None:
    """Return the options of the discipline at the loopback device, as the kernel reports them."""
    netlink = Netlink()
    found = [attrs for device, attrs in netlink.disciplines() if device == LOOPBACK]
    netlink.close()
    return options(found[0][TCA_KIND].rstrip(b"\0").decode(), found[0][TCA_OPTIONS]) if found else None


def options(name: str, raw: bytes) -> dict[str, int] | None:
    """Return the options of a discipline of this name."""
    if name in ("pfifo", "bfifo"):
        return {"limit": struct.unpack("<I", raw)[0]}
    if name == "sfq":
        return dict(zip(SFQ, struct.unpack_from("<Ii8I4BI", raw), strict=True))
    values = attributes(raw)
    if name == "red":
        return red(values)
    if name == "choke":
        (max_p,) = struct.unpack("<I", values[TCA_CHOKE_MAX_P])
        return dict(zip(CHOKE, struct.unpack("<IIIBBBB", values[1]), strict=True)) | {"max_p": max_p}
    if name == "sfb":
        return dict(zip(SFB, struct.unpack("<9I", values[1]), strict=True))
    if name == "cake":
        return {CAKE[n - 2]: int.from_bytes(value, "little") for n, value in values.items() if n > 1}
    if name == "fq":
        return {FQ[n - 1]: int.from_bytes(value, "little") for n, value in values.items()}
    known = {"codel": CODEL, "pie": PIE, "fq_pie": FQ_PIE}.get(name)
    return known and {known[n - 1]: struct.unpack("<I", value)[0] for n, value in values.items()}


class Batch:
    """A tc that reads commands from a pipe, because this kernel starts programs slowly.

    It ends at some errors, and is then started again.
    """

    def __init__(self) -> None:
        self.tc = None

    def start(self) -> subprocess.Popen[str]:
        command = ["stdbuf", "-oL", "tc", "-d", "-force", "-batch", "-"]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )

    def run(self, words: str) -> tuple[list[str], str | None]:
        """Run a command without `tc`; return its messages, and what tc then shows (None if tc ended)."""
        self.tc = self.tc or self.start()
        self.tc.stdin.write(f"{words}\nqdisc show dev lo\n")
        messages = []
        for line in self.tc.stdout:
            if line.startswith("qdisc "):
                return messages, line
            messages.append(line.rstrip())
        self.tc.wait()
        self.tc = None
        return messages, None


def delete() -> None:
    """Delete the discipline at the loopback device."""
    body = struct.pack("=BBHiIII", 0, 0, 0, LOOPBACK, 0, TC_H_ROOT, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE) as netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), RTM_DELQDISC, NLM_F_REQUEST_ACK, 1, 0) + body)
        netlink.recv(1 << 16)


def answer(batch: Batch, command: str) -> dict[str, object]:
    """Run a command and return the answer."""
    messages, shown = batch.run(command.removeprefix("tc "))
    messages = [part for line in messages for part in line.split("\\n")]  # tc escapes some line ends
    failed = shown is None or any(line.startswith("Command failed") for line in messages)
    says = [line for line in messages if line and not re.match(r"Usage|\s|Command failed", line)]
    found: dict[str, object] = {
        "command": command,
        "refused": None,
        "says": says,
        "options": None,
        "shown": None,
    }
    if failed:
        return found | {"refused": "kernel" if any(map(KERNEL_SAYS.match, says)) else "tc"}
    found["options"] = reported()
    kind, words = re.match(r"qdisc (\S+) \S+ root refcnt \d+ ([^\n]*)", shown).groups()
    delete()
    return found | {"shown": f"{kind} {words.strip()}"}


def answers(commands: list[str]) -> list[dict[str, object]]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    batch = Batch()
    return [answer(batch, command) for command in commands]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        cases, directory = arguments[1:3]
        with open(cases) as file:
            commands = file.read().splitlines()
        with open(os.path.join(directory, "answers.json"), "w") as out:
            json.dump(answers(commands), out)
        return 0
    commands = [line for line in sys.stdin.read().splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as directory:
        cases, written = (os.path.join(directory, name) for name in ("commands", "answers.json"))
        with open(cases, "w") as file:
            file.write("\n".join(commands))
        if arguments:
            with contextlib.redirect_stdout(sys.stderr):
                failed = boot(arguments[0], __file__, cases, directory, [])
            if failed:
                return failed
        if not arguments:
            command = ["unshare", "-rn", sys.executable, __file__, "--inside", cases, directory]
            subprocess.run(command, check=True)
        with open(written) as file:
            found = json.load(file)
    print("[\n" + ",\n".join(map(json.dumps, found)) + "\n]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
