"""Record the requests that tc sends to the kernel: the options of its netlink messages, as JSON.

    python3 tc_options.py > ../../vectors/tc-options/options.json

This command needs iproute2, strace and user namespaces; the kernel need not have the disciplines, because tc
computes the options before it sends them. Nothing outside the command's own namespace is changed.
"""

import json
import re
import struct
import subprocess

SPECS = """
red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 10Mbit
red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn
red limit 400000 avpkt 1000
red limit 400000 avpkt 1500 ecn harddrop
red limit 100kb avpkt 1kb probability 0.1
red limit 1mbit avpkt 1000
red limit 1e6 avpkt 1000 bandwidth 1gbit
red limit 2mb avpkt 1514 bandwidth 100mbit
red limit 100k min 10K max 30K avpkt 500 burst 30 ecn harddrop
red limit 400000 min 30000 max 90000 avpkt 1000 burst 31
red limit 400000 min 30000 max 90000 avpkt 1000 burst 40
red limit 400000 min 30000 max 90000 avpkt 1000 burst 100
red limit 400000 min 30000 max 90000 avpkt 1000 burst 300
red limit 4000000 min 300000 max 900000 avpkt 1500 burst 333
red limit 400000 max 30000 avpkt 1000
red limit 400000 min 30000 avpkt 1000
red limit 60000 min 5000 max 15000 avpkt 1000 burst 0x10 probability .02
red limit 400000 limit 300000 avpkt 1000
red limit 400000 bandwidth 1mbps avpkt 1500
red limit 400000 bandwidth 1mibit avpkt 1500
red limit 150000 min 22500 max 67500 avpkt 1500 burst 91 probability 0.1 bandwidth 10000000bit ecn harddrop
red limit 400000
red min 30000 max 90000 avpkt 1000
red limit 0 min 30000 max 90000 avpkt 1000
red limit 400000 min 30000 max 90000 avpkt 1000 burst 20
red limit 400000 min 90000 max 30000 avpkt 1000 burst 91
red limit 10 avpkt 1000
red limit 400000 probability 0 avpkt 1000
red limit 400000 avpkt 1000 burst 1.5
red limit -5 avpkt 1000
red limit 5000000000 avpkt 1000
red limit abc avpkt 1000
red limit 400000 avpkt 1000 foo
red limit 400000 avpkt
codel limit 100 target 4ms interval 30ms ecn
codel limit 0x10 target 0.005s
codel limit 010
codel target 500 interval 100000 noecn
codel target 5000us interval 1sec ecn noecn
codel target 1.5us
codel limit 10.5
codel limit 100p
codel target 5m
codel interval 1ns
pfifo limit 100
pfifo limit 010
pfifo limit 1k
bfifo limit 10k
bfifo limit 10kb
bfifo limit 150000
bfifo limit 100p
foo limit 3
"""


def attributes(octets: bytes) -> dict[int, bytes]:
    """Return the attributes of a netlink message, keyed by number (rtnetlink(7))."""
    found, at = {}, 0
    while at + 4 <= len(octets):
        length, number = struct.unpack_from("<HH", octets, at)
        found[number] = octets[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


def asked(spec: str) -> dict:
    """Return the options that tc sends for a discipline; they are None if tc itself refuses the arguments."""
    command = ["unshare", "-rn", "strace", "-x", "-s", "4096", "-e", "trace=sendmsg"]
    command += ["tc", "qdisc", "add", "dev", "lo", "root", *spec.split()]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    sent = re.search(r'nla_type=TCA_OPTIONS\}, "((?:\\x..)*)"', text)
    options = None
    if sent:
        octets = bytes.fromhex(sent[1].replace("\\x", ""))
        if spec.startswith(("pfifo", "bfifo")):
            options = {"limit": struct.unpack("<I", octets)[0]}
        elif spec.startswith("codel"):
            names = {1: "target_us", 2: "limit", 3: "interval_us", 4: "ecn"}
            options = {names[n]: struct.unpack("<I", value)[0] for n, value in attributes(octets).items()}
        else:
            options = red(attributes(octets))
    return {"spec": spec, "options": options}


def red(found: dict[int, bytes]) -> dict:
    """Return the options of RED, without the table of shifts (attribute 2)."""
    limit, low, high, w_log, _, scell_log, _ = struct.unpack("<IIIBBBB", found[1])
    (max_p,) = struct.unpack("<I", found[3])
    (flags,) = struct.unpack("<I", found[4][:4])
    sizes = {"limit": limit, "min": low, "max": high}
    return sizes | {"w_log": w_log, "scell_log": scell_log, "max_p": max_p, "flags": flags}


if __name__ == "__main__":
    lines = [json.dumps(asked(spec)) for spec in SPECS.strip().splitlines()]
    print("[\n" + ",\n".join(lines) + "\n]")
