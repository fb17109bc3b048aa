"""Record what one TCP flow of a host gets behind Linux's CAKE, against four of another host, as CSV.

    python3 hosts.py KERNEL DIRECTORY

This command boots KERNEL in virtual time and writes DIRECTORY/hosts.csv. Network, round-trip times and starts are those
of `crowd.py`; the first flow has sender and receiver of its own, and the other four share theirs.
"""

import os
import sys

from crowd import Run
from single_flow import boot, libc, setting

RUNS = 5
CASES = [("cubic", "flows"), ("cubic", "dual-dsthost"), ("cubic", "triple-isolate"), ("reno", "dual-dsthost")]


class Hosts(Run):
    """A run with two pairs of hosts."""

    def __init__(self, congestion: str, isolation: str, seed: int) -> None:
        case = {"congestion": congestion, "flows": "5", "queue": "cake", "ecn": "0", "rate_kbit": "20000", "limit": "0"}
        super().__init__(case | dict.fromkeys(("min", "max", "burst"), "") | {"warmup_s": "15", "measured_s": "50"}, seed)
        self.isolation = isolation

    def host(self, number: int) -> int:
        return 3 if number == 0 else 1

    def shares(self, share: list[int]) -> dict[str, float]:
        return {"share": share[0] / sum(share)}


def inside(directory: str) -> None:
    """Run the cases in the kernel that was booted for them."""
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: a nanosecond
    setting("tcp_mem", "100000 200000 300000")
    with open(os.path.join(directory, "hosts.csv"), "w") as file:
        file.write("congestion,isolation,seed,goodput_mbit,mean_queue,dropped,share\n")
        for congestion, isolation in CASES:
            for seed in range(1, RUNS + 1):
                figures = Hosts(congestion, isolation, seed).run()
                values = ",".join(f"{figures[name]:.6g}" for name in ("goodput_mbit", "mean_queue", "dropped", "share"))
                file.write(f"{congestion},{isolation},{seed},{values}\n")
                file.flush()
                print(congestion, isolation, seed, values, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3])
    else:
        os.makedirs(sys.argv[2], exist_ok=True)
        sys.exit(boot(sys.argv[1], __file__, sys.argv[2], sys.argv[2], []))
