#!/usr/bin/env bash
# The long lane: checks that take too long for every change.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh test
echo "== contract kit, 1000 seeds"
AQMLAB_CONTRACT_SEEDS=1000 cargo test -q -p aqmlab-qdisc --test contract
.venv/bin/aqmlab aqm check all --seeds 1000
echo "== random cases, drawn anew in each run"
for _ in 1 2 3 4 5; do
    export PROPTEST_RNG_SEED=$RANDOM$RANDOM
    echo "PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED"
    cargo test -q -p aqmlab-sim -p aqmlab-qdisc -p aqmlab-scenario -p aqmlab-live \
        --test twins --test kinds --test goodput --test port_ahead --test language --test frames --test captures
done
unset PROPTEST_RNG_SEED
echo "== control laws over ten minutes"
.venv/bin/python -m pytest -q -m slow tests/python
echo "== papers, the small version"
tools/reproduce.sh --quick
echo "== steady runs allocate nothing, without debug assertions"
cargo test -q --release -p aqmlab-sim --test no_allocation
echo "== arbitrary bytes into the live router"
if rustup toolchain list 2>/dev/null | grep -q ^nightly && cargo fuzz --version >/dev/null 2>&1; then
    tools/fuzz.sh 60
else
    echo "skipped: a nightly toolchain and cargo-fuzz are needed"
fi
echo "== seeded mutations"
python3 tools/mutate.py
echo "== crowds beside a Linux"
cargo test -q --release -p aqmlab-sim --test crowd_vs_linux -- --ignored --nocapture
echo "== comparison runs with ns-2"
if command -v ns >/dev/null; then
    cargo test -q -p aqmlab-transport --test ns2_single_flow
    AQMLAB_CROWD_SEEDS=100 cargo test -q --release -p aqmlab-sim --test crowd_vs_ns2 -- --nocapture
else
    echo "skipped: ns-2 (the command ns, Debian package ns2) is not installed"
fi
echo "== the UNC testbed at its own scale, live in virtual time"
if [ -n "${AQMLAB_GUEST_KERNEL:-}" ] && [ -n "${AQMLAB_GUEST_STORE:-}" ]; then
    # Hours for each seed (papers/le/README.md). Complete runs are kept in the store, so this continues where it was
    # interrupted. A finding that fails is a result and no error.
    AQMLAB_GUEST_MEMORY=${AQMLAB_GUEST_MEMORY:-4G} .venv/bin/python peers/linux/live.py \
        "$AQMLAB_GUEST_KERNEL" papers/le "$AQMLAB_GUEST_STORE" --reproduce --finding F98 || [ $? -eq 1 ]
else
    echo "skipped: AQMLAB_GUEST_KERNEL names no Linux built with ARCH=um, or AQMLAB_GUEST_STORE no store"
fi
