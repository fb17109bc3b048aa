#!/usr/bin/env bash
# Installs a wheel in a bare Debian 12 that has Python but no compiler, and times the demonstration.
# Usage: tools/clean_root.sh WHEEL ROOT     (debootstrap creates ROOT if it does not exist)
set -euo pipefail
wheel=$1 root=$2
if [ ! -x "$root/usr/bin/python3" ]; then
    debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" >"$root.log" 2>&1
fi
rm -rf "$root/root/demo" "$root/root/env" "$root/dist" "$root/root/.cache"
mkdir "$root/dist"
cp "$wheel" "$root/dist"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# Uses this machine's own certificates and package index, if there are any.
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf"; do [ ! -e "$file" ] || cp "$file" "$root/etc/pip.conf"; done
unshare --mount --pid --fork chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 \
    ${https_proxy:+"https_proxy=$https_proxy"} bash -euc '
    if command -v cargo cc gcc; then echo "this root has a compiler" >&2; exit 1; fi
    mount -t proc proc /proc
    cd /root
    began=$(date +%s.%N)
    since() { # TEXT: prints the wall time and processor time so far
        times >spent # not in a subshell, which would report only its own time
        python3 - "$began" "$1" "$(tail -1 spent)" <<"END"
import re, sys, time
began, what, spent = sys.argv[1:]
used = sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", spent))
print(f"   {time.time() - float(began):6.1f} s, processor {used:5.1f} s: {what}")
END
    }
    python3 -m venv env
    since "environment made"
    env/bin/pip install --quiet --disable-pip-version-check /dist/*.whl
    since "installed"
    env/bin/aqmlab demo --quiet --no-report -o demo >table
    since "first table"
    env/bin/aqmlab plot demo delay-cdf -o figure.svg >plotted
    since "first figure"
    grep -q "Adaptive RED" table && test -s figure.svg && test -s env/share/man/man1/aqmlab.1
    env/bin/python -c "
import time, os
began = time.perf_counter(); import aqmlab; aqmlab.run
print(f\"   import aqmlab: {1e3 * (time.perf_counter() - began):.0f} ms, first of all\")"
    du -sm env/lib/python3*/site-packages/aqmlab env | sed "s/^/   MB: /"
'
