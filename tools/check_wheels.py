"""Check the files in wheels: one stable-ABI extension module, all data files, the manual pages, no leftovers.

python tools/check_wheels.py WHEEL...
"""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST_MB = 12


def wanted() -> set[str]:
    """The files of the package in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "python/aqmlab"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {line.removeprefix("python/") for line in listed.stdout.splitlines()}


def faults(wheel: Path, files: set[str]) -> list[str]:
    """The errors that are found in a wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if name.startswith("aqmlab/")}
    said = [f"lacks {name}" for name in sorted(files - package)]
    said += [
        f"has {name}, which is not in the repository"
        for name in sorted(package - files - {"aqmlab/_core.abi3.so"})
    ]
    if "aqmlab/_core.abi3.so" not in names:
        said.append("has no aqmlab/_core.abi3.so")
    if sum(name.endswith(".1") and "/share/man/man1/" in name for name in names) < 20:
        said.append("does not contain the manual pages")
    for part in ("licenses/LICENSE-MIT", "licenses/LICENSE-APACHE", "sboms/"):
        if not any(f".dist-info/{part}" in name for name in names):
            said.append(f"has no {part}")
    if "-abi3-" not in wheel.name:
        said.append("is not built for the stable ABI")
    if wheel.stat().st_size > LARGEST_MB * 1e6:
        said.append(f"has {wheel.stat().st_size / 1e6:.1f} MB, more than {LARGEST_MB}")
    return said


def main(wheels: list[str]) -> int:
    """Report the errors of all wheels; return the exit code."""
    files = wanted()
    found = 0
    for wheel in map(Path, wheels):
        said = faults(wheel, files)
        found += len(said)
        sys.stdout.write(
            f"   {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB{''.join(f', {text}' for text in said)}\n"
        )
    return 1 if found or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
