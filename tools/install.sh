#!/usr/bin/env bash
# Makes .venv with aqmlab built from this tree. Safe to repeat: up-to-date parts are left alone.
# Usage: tools/install.sh [extra ...]   (extras of pyproject.toml: test, site)
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
extras=${1:+[$(IFS=,; echo "$*")]}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "aqmlab needs Python 3.11 or newer; $python is $("$python" --version 2>&1)" >&2
    exit 3
}
command -v cargo >/dev/null || {
    echo "aqmlab needs a Rust toolchain (cargo), version 1.88 or newer" >&2
    exit 3
}
if [ ! -x .venv/bin/python ]; then
    "$python" -m venv .venv || {
        echo "could not make .venv; on Debian, run: apt-get install python3-venv" >&2
        exit 3
    }
fi
# Crates compile while pip waits for the network and the disk. Only crates that do not use Parquet are built here: cargo
# would compile the others again later, with the features that the extension requests.
cargo build --release --quiet -p aqmlab-qdisc -p aqmlab-transport -p aqmlab-traffic &
compiling=$!
trap 'kill "$compiling" 2>/dev/null || true' EXIT
# The Python packages are installed in one step; the stamp file saves later calls a query of the package index.
stamp=.venv/.deps-$( { cat pyproject.toml; echo "$extras"; } | sha256sum | cut -c1-16)
if [ ! -e "$stamp" ]; then
    .venv/bin/python tools/requirements.py "$@" > .venv/requirements.txt
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r .venv/requirements.txt
    touch "$stamp"
fi
wait "$compiling"
.venv/bin/python tools/build.py
