#!/usr/bin/env bash
# Reproduces all papers, and writes scorecards and figures into their folders; then scores what does not hold under the
# readings that may explain it. An interrupted run continues where it stopped.
#     tools/reproduce.sh [multiverse | infer] [OPTION ...]
# Options go to `aqmlab paper`: --quick, --jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh
steps="reproduce causes"
case "${1:-}" in
multiverse | infer)
    steps=$1
    shift
    ;;
esac
failed=0
for paper in papers/*/paper.toml; do
    folder=$(dirname "$paper")
    output=$folder
    case " $* " in
    *" --quick "*) # results of a small version must not be quoted
        output=runs/quick/$(basename "$folder")
        steps=reproduce
        ;;
    esac
    for step in $steps; do
        .venv/bin/aqmlab paper "$step" "$folder" --output "$output" "$@" || failed=$?
        # 1 means that a finding fails without an explanation; the other papers are run nevertheless.
        [ "$failed" -le 1 ] || exit "$failed"
    done
done
exit "$failed"
