"""Atomic writing of files: a file is complete or unchanged, however the process or the machine stops."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from aqmlab.errors import HostError

SWEEP_FILE = "sweep.json"
EXPERIMENT_FILE = "experiment.json"
CLAIMS_FILE = "claims.json"
"""The file with the verdicts on claims, in the directory of an experiment or of a sweep."""

_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_KERNEL = r"(?:(?P<kernel>[0-9a-f]{8})-)?"
_FOREIGN_S = 24 * 3600
"""How long files of another kernel are kept although their lock appears to be free."""


def slug(title: str) -> str:
    """Return a title in a form that can be part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].rstrip("-") or "experiment"


def json_text(
    content: object, *, indent: int | None = None, compact: bool = False, ascii_only: bool = False
) -> str:
    """Return JSON that every reader accepts: NaN and infinite numbers become ``null``."""
    separators = (",", ":") if compact else None

    def text(of: object) -> str:
        return json.dumps(of, indent=indent, separators=separators, ensure_ascii=ascii_only, allow_nan=False)

    try:
        return text(content)
    except ValueError:
        return text(_finite(content))


def _finite(content: object) -> object:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(item) for key, item in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(item) for item in content]
    return content


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file under a temporary name, then rename it.

    The temporary name belongs to this call alone, so two processes may write the same file: the
    last one wins. Links are followed. A device or a pipe (``/dev/stdout``) is written to and never
    replaced.

    Raises
    ------
    OSError
        If the file cannot be written; the previous file is then unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    file = file.resolve()
    if file.exists() and not (file.is_file() or file.is_dir()):
        with file.open("wb") as device:
            device.write(data)
        return
    _remove_abandoned(file.parent, rf"\.{re.escape(file.name)}\.{_KERNEL}\d+-[0-9a-f]{{8}}")
    temporary, out = _own_file(file)
    try:
        with os.fdopen(out, "wb") as to:
            to.write(data)
            to.flush()
            os.fsync(to.fileno())
            temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def partial_directory(parent: Path, called: str) -> Iterator[Path]:
    """A temporary directory, removed at the end; if the process is killed, the next call removes it."""
    prefix = f".{called}.partial-"
    _remove_abandoned(parent, rf"{re.escape(prefix)}{_KERNEL}\w{{8}}")
    while True:
        directory = Path(tempfile.mkdtemp(prefix=f"{prefix}{_kernel()}-", dir=parent))
        try:
            lock = os.open(directory, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process considered it abandoned before it was locked
        if _is_ours(lock):
            break
        os.close(lock)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def locked(file: int) -> bool | None:
    """Lock an open file and return whether that succeeded; ``None`` if the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


@cache
def _kernel() -> str:
    """Eight digits of the running kernel's own number, which is new at each start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "0" * 8


def own_name() -> str:
    """A new name for files of this process; it names the kernel, too."""
    return f"{_kernel()}-{os.getpid()}-{os.urandom(4).hex()}"


def may_be_in_use(path: Path, kernel: str | None) -> bool:
    """Whether a path whose lock is free may still be in use, because its name names another ``kernel``.

    A host does not see the locks of its guests. After a day without a change, the path counts as abandoned.
    """
    if kernel in (None, _kernel()):
        return False
    changed = max(entry.stat().st_mtime for entry in (path, *path.rglob("*")))
    return time.time() - changed < _FOREIGN_S


def _own_file(file: Path) -> tuple[Path, int]:
    """A new, open file next to another one, locked as long as it is open."""
    while True:
        temporary = file.with_name(f".{file.name}.{own_name()}")
        out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if _is_ours(out):
            return temporary, out
        os.close(out)


def _is_ours(file: int) -> bool:
    """Lock a new temporary file; ``False`` if another process locked it first and removes it as abandoned."""
    return locked(file) is not False and os.fstat(file).st_nlink > 0


def _remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove temporary files and directories of killed processes: those whose lock is free."""
    try:
        left = [(path, found) for path in folder.iterdir() if (found := re.fullmatch(pattern, path.name))]
    except OSError:
        return
    for path, found in left:
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if locked(lock) and not may_be_in_use(path, found["kernel"]):
                    _remove(path)
            finally:
                os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def save(file: Path, content: str | bytes) -> None:
    """Write a file that the user requested, by :func:`write_whole`.

    Raises
    ------
    HostError
        If the file cannot be written; the message names it.
    """
    try:
        write_whole(file, content)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror or error}") from error
