"""Programs that are started to receive signals."""

from __future__ import annotations

import signal
import subprocess


def started_with_all_signals(command):
    """A process that handles signals even if we ignore them, as under `nohup` or as a background job."""
    heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ignored = [number for number in heeded if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)  # signals that are ignored remain ignored in a new program
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
