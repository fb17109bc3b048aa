"""Run a scenario live in virtual time: between the TCP stacks of a Linux that runs as an ordinary process.

    python live.py KERNEL SCENARIO DIRECTORY [OPTION ...]

This command boots KERNEL, a Linux built as an ordinary process (User Mode Linux, `ARCH=um`), runs
`aqmlab live SCENARIO` in it with all arms and seeds, and writes the experiment to DIRECTORY as
`aqmlab live -o DIRECTORY` does. The Python that runs this script also runs aqmlab in the guest, so aqmlab
must be installed for that Python. Options of `aqmlab live` may follow: `--seeds 5`, `--arm RED`,
`--pcap bottleneck`. Runs in DIRECTORY are kept, so an interrupted command continues when it is started
again. The exit code is that of aqmlab, or 3 if the kernel does not boot.

With `--both` as the first option, this script runs `aqmlab run --both`, which also simulates the same seeds; with
`--sweep`, it runs `aqmlab sweep --host live` with DIRECTORY as the store. With `--reproduce`, SCENARIO is the folder of a
paper, DIRECTORY is the store, and it runs `aqmlab paper live`.

With CONFIG_UML_TIME_TRAVEL_SUPPORT, the kernel's clock stands still while any thread is computing; when all
threads are idle, it jumps to the next timer. Nothing is therefore late, however slow or busy the machine is.
Debian's package `user-mode-linux` has a kernel without that option, and with a tick of 10 ms: it runs in real
time, and is suitable only for trials. The kernel's modules are taken from ../lib/uml/modules, relative to the
folder of KERNEL.

The root file system of the kernel is this machine's, read-only; only the folder that contains DIRECTORY is
writable. The script needs root, ptrace, and room for the guest's memory (`AQMLAB_GUEST_MEMORY`, by default
`1G`) in /dev/shm, of which only the used part is occupied.
"""

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LOOK_S = 0.2
PR_SET_PDEATHSIG, FINIT_MODULE = 1, 313
libc = ctypes.CDLL(None)
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/run/home TMPDIR=/run/tmp
mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /run; mkdir /run/home /run/tmp
mount -t hostfs -o {out} o {out}; mount -t hostfs -o {work} w {work}
ip link set lo up
ulimit -n "$(cat /proc/sys/fs/nr_open)"
export PYTHONPATH={path}
cd {here}
{python} {this} --load {modules}
{command} > {work}/log 2>&1; echo $? > {work}/rc
sync; echo o > /proc/sysrq-trigger; sleep 9
"""


def load(folder: str) -> None:
    """Load modules from a folder: those that a live run can use, each after the modules that it needs."""
    folder = os.path.join(folder, os.uname().release)
    wanted = ("/tun.ko", "/net/sched/", "/net/ipv4/tcp_")
    try:
        with open(os.path.join(folder, "modules.dep")) as file:
            lines = [line.replace(":", "").split() for line in file]
    except FileNotFoundError:
        return  # this kernel has them built in
    for line in lines:
        if any(word in line[0] for word in wanted):
            for module in reversed(line):
                file = os.open(os.path.join(folder, module), os.O_RDONLY)
                libc.syscall(FINIT_MODULE, file, b"", 0)  # it is not an error if the module is already loaded
                os.close(file)


def follow(log: str, shown: int) -> int:
    """Print the log after its first `shown` bytes, and return its length."""
    try:
        with open(log, "rb") as file:
            file.seek(shown)
            more = file.read()
    except FileNotFoundError:
        return shown
    sys.stdout.buffer.write(more)
    sys.stdout.flush()
    return shown + len(more)


def boot(kernel: str, command: list[str], out: str) -> int:
    """Run a command in the guest, with write access to the folder `out`, and return its exit code."""
    work = tempfile.mkdtemp(prefix="linux-")
    init, log, console = (os.path.join(work, name) for name in ("init", "log", "console"))
    modules = os.path.join(
        os.path.dirname(os.path.dirname(os.path.realpath(kernel))), "lib", "uml", "modules"
    )
    paths = {"out": out, "here": os.getcwd(), "python": sys.executable, "this": __file__, "modules": modules}
    words = {name: shlex.quote(os.path.abspath(path)) for name, path in paths.items()}
    words["path"] = shlex.quote(os.environ.get("PYTHONPATH", ""))
    words |= {"work": work, "command": shlex.join(command)}
    with open(init, "w") as file:
        file.write(INIT.format(**words))
    os.chmod(init, 0o755)
    memory = os.environ.get("AQMLAB_GUEST_MEMORY", "1G")
    arguments = [kernel, f"mem={memory}", "time-travel=inf-cpu", "rootfstype=hostfs", "rootflags=/", "ro"]
    arguments += [f"init={init}", "con=null", "con0=null,fd:1", "loglevel=4"]
    # A kernel with this option catches system calls with fewer switches than by ptrace; others ignore it.
    arguments += ["seccomp=auto"]
    try:
        with open(console, "w") as file:
            guest = subprocess.Popen(
                arguments,
                env=os.environ | {"TMPDIR": "/dev/shm"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        shown = 0
        try:
            while guest.poll() is None:
                time.sleep(LOOK_S)
                shown = follow(log, shown)
        finally:
            if guest.poll() is None:
                os.killpg(guest.pid, signal.SIGKILL)
                guest.wait()
        follow(log, shown)
        try:
            with open(os.path.join(work, "rc")) as file:
                return int(file.read())
        except (OSError, ValueError):
            with open(console) as file:
                print(f"the kernel stopped before the command ended:\n{file.read()}", file=sys.stderr)
            return 3
    finally:
        shutil.rmtree(work)


def main() -> int:
    if sys.argv[1:2] == ["--load"]:
        load(sys.argv[2])
        return 0
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    kernel, scenario, out = (os.path.abspath(word) for word in sys.argv[1:4])
    folder = os.path.dirname(out)
    os.makedirs(folder, exist_ok=True)
    resume = ["--resume"] if os.path.exists(out) else []
    match sys.argv[4:]:
        case ["--sweep", *rest]:
            command = ["sweep", scenario, "--host", "live", "--store", out, *rest]
        case ["--reproduce", *rest]:
            command = ["paper", "live", scenario, "--store", out, *rest]
        case ["--both", *rest]:
            command = ["run", "--both", scenario, "-o", out, *resume, *rest]
        case options:
            command = ["live", scenario, "-o", out, *resume, *options]
    return boot(kernel, [sys.executable, "-m", "aqmlab", *command], folder)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
