"""Record Linux TCP flows behind an htb whose rate is changed while they run, as CSV.

    python3 changing_rate.py KERNEL DIRECTORY

This command boots KERNEL in virtual time and writes DIRECTORY/runs.csv. Network, round-trip times and starts are those
of `crowd.py`, with htb in place of cbs; tc changes the rate of its only class at the instants in STEPS.
"""

import os
import sys

from crowd import BUCKET, FRAME, Run
from single_flow import batch, boot, enter, libc, setting

RUNS, FLOWS = 5, 4
STEPS = [(25.0, 4000), (40.0, 16000), (52.0, 8000)]  # seconds, kbit/s; 10 Mbit/s before
CASES = [("cubic", "pfifo"), ("cubic", "codel"), ("cubic", "pie"), ("cubic", "fq_codel"), ("reno", "codel")]


class Changing(Run):
    """A run whose rate changes."""

    def __init__(self, congestion: str, queue: str, seed: int) -> None:
        case = {"congestion": congestion, "flows": str(FLOWS), "queue": f"htb_{queue}", "ecn": "0", "limit": "100"}
        case |= dict.fromkeys(("min", "max", "burst"), "") | {"rate_kbit": "10000", "warmup_s": "15", "measured_s": "50"}
        super().__init__(case, seed)
        self.due = list(STEPS)

    def step(self, now: float) -> None:
        while self.due and self.due[0][0] <= now:
            rate = self.due.pop(0)[1] * FRAME // (FRAME - 14)
            enter(self.spaces["r"])
            batch(
                "tc",
                f"class change dev rd parent 1: classid 1:1 htb rate {rate}kbit burst {BUCKET} cburst {BUCKET}",
            )
            enter(self.spaces["s"])


def inside(directory: str) -> None:
    """Run the cases in the kernel that was booted for them."""
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: a nanosecond
    setting("tcp_mem", "100000 200000 300000")
    with open(os.path.join(directory, "runs.csv"), "w") as file:
        file.write("congestion,queue,seed,goodput_mbit,mean_queue,dropped\n")
        for congestion, queue in CASES:
            for seed in range(1, RUNS + 1):
                figures = Changing(congestion, queue, seed).run()
                values = ",".join(f"{figures[name]:.6g}" for name in ("goodput_mbit", "mean_queue", "dropped"))
                file.write(f"{congestion},{queue},{seed},{values}\n")
                file.flush()
                print(congestion, queue, seed, values, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3])
    else:
        os.makedirs(sys.argv[2], exist_ok=True)
        sys.exit(boot(sys.argv[1], __file__, sys.argv[2], sys.argv[2], []))
