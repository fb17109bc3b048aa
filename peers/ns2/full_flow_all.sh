#!/bin/sh
# Regenerates vectors/ns2-full-flow/*.csv with ns-2.35 (Debian package ns2). Run from the repository root.
set -eu
dir=vectors/ns2-full-flow
tail -n +2 "$dir/cases.csv" | while IFS=, read -r case rule exchanges close window every initial delay_ms drop drop_back end_s; do
    ns peers/ns2/full_flow.tcl "exchanges=$exchanges" "close=$close" "window=$window" "every=$every" "initial=$initial" \
        "delay_ms=$delay_ms" "drop=$drop" "drop_back=$drop_back" "end_s=$end_s" |
        sed -e '/^#/!s/ /,/g' -e '1a time_s,host,sequence,payload,ack,flags' > "$dir/$case.csv"
done
