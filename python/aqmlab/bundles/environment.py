"""The versions of packages on this machine: Python packages, and the lock file of the Rust crates."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path

_NAME = re.compile(r"[\w.-]+")


def requirements() -> str:
    """Return the installed versions of the package and of all that it requires, in pip's format."""
    found: dict[str, str] = {}
    ahead = ["aqmlab"]
    while ahead:
        name = ahead.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[key] = package.version
        required = (text for text in package.requires or () if "extra ==" not in text)
        ahead += [named[0] for text in required if (named := _NAME.match(text))]
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items())]
    return f"# Python {platform.python_version()}, {platform.platform()}\n" + "".join(lines)


def cargo_lock() -> bytes | None:
    """Return the lock file of the Rust crates if the package runs from a clone."""
    file = Path(__file__).resolve().parents[3] / "Cargo.lock"
    return file.read_bytes() if file.is_file() else None
