"""A Dask cluster on this machine, of real processes that tests may kill."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PATIENCE_S = 60


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def hidden(directory: Path) -> list[str]:
    """A prefix that hides a directory's contents from a command; skips the test if that is not allowed."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("user namespaces are not allowed here")
    return [*inside, f'mount -t tmpfs none "{directory}"; exec "$@"', "sh"]


class DaskProcesses:
    """A scheduler and workers, each a process with a file for its output.

    Parameters
    ----------
    folder
        The folder of these files and of the workers' scratch directories.
    environment
        Environment variables of all processes.
    options
        Options of the scheduler and of the workers: ``["--tls-ca-file", ...]``.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.address = f"{'tls' if options else 'tcp'}://127.0.0.1:{free_port()}"
        self.file = folder / "scheduler.json"
        self._options = list(options)
        self._environment = os.environ | {
            "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
            # Timeouts for machines that do not respond are shorter than on a real cluster.
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
            **(environment or {}),
        }
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self._started = 0

    def start_scheduler(self) -> None:
        self.file.unlink(missing_ok=True)
        host, _, port = self.address.rpartition("/")[2].partition(":")
        words = ["scheduler", "--host", f"{self.address.partition(':')[0]}://{host}", "--port", port]
        self.scheduler = self._start([*words, "--no-dashboard", "--scheduler-file", str(self.file)])
        self.wait_until(self.file.exists)

    def start_worker(
        self,
        *,
        nanny: bool = False,
        before: Sequence[str] = (),
        address: str = "",
        preexec: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        scratch = self.folder / f"scratch-{self._started}"
        words = ["worker", address or self.address, "--nthreads", "1", "--no-dashboard"]
        words += ["--nanny" if nanny else "--no-nanny", "--local-directory", str(scratch)]
        worker = self._start(words, before, preexec, environment)
        self.workers.append(worker)
        return worker

    def words(self) -> str:
        """The output of all processes."""
        return "\n".join(file.read_text(errors="replace") for file in sorted(self.folder.glob("*.log")))

    def wait_workers(self, count: int) -> None:
        """Wait until this number of workers has connected to the scheduler."""
        self.wait_until(lambda: self.words().count("Registered to:") >= count)

    def wait_until(self, true: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + patience_s
        while not true():
            assert time.monotonic() < until, self.words()[-3000:]
            time.sleep(0.02)

    def close(self) -> None:
        processes = [*self.workers, *([self.scheduler] if self.scheduler else [])]
        for process in processes:
            end_group(process)

    def _start(
        self,
        words: Sequence[str],
        before: Sequence[str] = (),
        preexec: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        self._started += 1
        with (self.folder / f"{self._started:02}-{words[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [*before, sys.executable, "-m", "dask", *words, *self._options],
                stdout=log,
                stderr=log,
                env={**self._environment, **(environment or {})},
                # In its own process group, so that a nanny's worker ends with the nanny.
                start_new_session=True,
                preexec_fn=preexec,  # noqa: PLW1509 (only a limit)
            )


def end_group(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    """End a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    process.wait()


@contextmanager
def dask_cluster(
    folder: Path,
    workers: int = 2,
    *,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    before: Sequence[str] = (),
) -> Iterator[DaskProcesses]:
    """A scheduler and some workers that stop at the end of the `with` block."""
    found = DaskProcesses(folder, environment, options)
    try:
        found.start_scheduler()
        for _ in range(workers):
            found.start_worker(before=before)
        found.wait_workers(workers)
        yield found
    finally:
        found.close()


class SlowLink:
    """A proxy port that delays and slows down the traffic to another port.

    Parameters
    ----------
    address
        Address of the other port: ``tcp://host:port``.
    delay_s
        Delay in each direction.
    bytes_per_s
        Rate of every connection in each direction.
    """

    def __init__(self, address: str, delay_s: float, bytes_per_s: float) -> None:
        host, _, port = address.rpartition("/")[2].partition(":")
        self._to = (host, int(port))
        self._delay_s, self._bytes_per_s = delay_s, bytes_per_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.passed = 0
        self._open = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """End all connections, and wait for the threads."""
        for held in self._open:
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for held in self._open:
            held.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(near)
            with suppress(OSError):
                far = socket.create_connection(self._to)
                self._open.append(far)
                for ends in ((near, far), (far, near)):
                    self._begin(self._carry, *ends)

    def _begin(self, what: Callable[..., None], *of: object) -> None:
        thread = threading.Thread(target=what, args=of, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        """Forward data with two threads, so that receiving does not wait until delayed data has been sent."""
        late: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def deliver() -> None:
            with suppress(OSError):
                while (due := late.get())[1]:
                    time.sleep(max(due[0] - time.monotonic(), 0))
                    target.sendall(due[1])
                target.shutdown(socket.SHUT_WR)

        self._begin(deliver)
        data = b"?"
        while data:
            try:
                data = source.recv(16384)
            except OSError:
                data = b""
            self.passed += len(data)
            time.sleep(len(data) / self._bytes_per_s)
            late.put((time.monotonic() + self._delay_s, data))
