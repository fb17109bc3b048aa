#!/bin/sh
# Regenerates vectors/ns2-single-flow/*.csv with ns-2.35 (Debian package ns2). Run from the repository root.
set -eu
dir=vectors/ns2-single-flow
cut -d, -f1 "$dir/cases.csv" | tail -n +2 | while read -r case; do
    ns peers/ns2/single_flow.tcl "$dir/cases.csv" "$case" > "$dir/$case.csv"
done
