"""Record how Linux's DCTCP echoes marks (RFC 8257, section 3.2), through a small network with chosen marks.

    python3 dctcp_receiver.py KERNEL CASES DIRECTORY [CASE ...]

This is used as `single_flow.py`, whose network it shares. `vectors/linux-dctcp-receiver/README.md` explains the
columns of CASES and of the recordings.
"""

from accurate_ecn import AccurateRun
from single_flow import SYSCTLS, main

del SYSCTLS["option"]  # a setting of AccECN, which older kernels do not have

if __name__ == "__main__":
    main(__file__, AccurateRun)
