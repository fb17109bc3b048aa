#!/usr/bin/env bash
# Reproduces all papers, and writes scorecards and figures into their folders. An interrupted run continues where it
# stopped.
# Arguments go to `aqmlab reproduce`: --quick, --multiverse, --infer, --jobs.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install.sh
failed=0
for paper in papers/*/paper.toml; do
    folder=$(dirname "$paper")
    case " $* " in
    *" --quick "*) output=runs/quick/$(basename "$folder") ;; # results of a small version must not be quoted
    *) output=$folder ;;
    esac
    .venv/bin/aqmlab reproduce "$folder" --output "$output" "$@" || failed=$?
    # 1 means that a finding fails without an explanation; the other papers are run nevertheless.
    [ "$failed" -le 1 ] || exit "$failed"
    case " $* " in
    *" --quick "* | *" --multiverse "* | *" --infer "*) ;;
    *) .venv/bin/aqmlab reproduce "$folder" --causes --output "$output" "$@" >/dev/null ;;
    esac
done
exit "$failed"
