#!/usr/bin/env bash
# Builds the ns-3 peer against the installed ns-3 (Debian package libns3-dev). Usage: build.sh OUTPUT
set -euo pipefail
cd "$(dirname "$0")"
modules=(core network internet point-to-point applications traffic-control nix-vector-routing)
# The libraries are named here because Debian's pkg-config files also request those of unused modules.
g++ -std=c++17 -O2 -DNDEBUG dumbbell.cc -o "$1" "${modules[@]/#/-lns3-}"
