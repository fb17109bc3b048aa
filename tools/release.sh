#!/usr/bin/env bash
# Builds and checks the parts of a release in dist/: sdist, wheels, crates, SBOMs, hashes. Resumable: steps that have
# finished for the same sources are not repeated. Steps for which a machine lacks a tool are skipped and
# listed at the end; with RELEASE_STRICT=1, the script then exits with 3.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
tree=$(git stash create) # the commit that a stash would create; empty if nothing has changed
key=$(git rev-parse --short "$(git rev-parse "${tree:-HEAD}^{tree}")")
work=$root/target/dist/$key
out=$work/packages
tools=$root/target/dist/tools
source=$work/source
environment=$work/environment
targets=${RELEASE_TARGETS:-"x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-apple-darwin"}
published="-p aqmlab-units -p aqmlab-random -p aqmlab-params -p aqmlab-qdisc"
mkdir -p "$work" "$out"
skipped=()

skip() { skipped+=("$1"); echo "   skipped: $1"; }
step() { # TEXT FUNCTION [TARGET]: runs the function once for these sources
    local mark=$work/done-$2${3:+-$3} before=${#skipped[@]} began=$SECONDS
    [ -e "$mark" ] && { printf '== %s (done before)\n' "$1"; return; }
    printf '== %s\n' "$1"
    "${@:2}"
    echo "   $((SECONDS - began)) s"
    [ "${#skipped[@]}" -gt "$before" ] || touch "$mark"
}

our_wheel() { find "$out" -name "aqmlab-$version-*manylinux*$(uname -m).whl"; }

get_tools() {
    [ -x "$tools/bin/python" ] || "${PYTHON:-python3}" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check \
        "maturin>=1.16,<2" ziglang uv "cyclonedx-bom>=7" pip-audit abi3audit
}

make_sdist() {
    "$tools/bin/maturin" sdist -o "$out" 2>"$work/sdist.log" || { cat "$work/sdist.log" >&2; return 1; }
    rm -rf "$source"
    mkdir -p "$source"
    tar xzf "$out/aqmlab-$version.tar.gz" -C "$source" --strip-components=1
    # Wheels contain the page, which is built; without the compiler's target, they lack it.
    if make --silent playground >/dev/null; then
        cp python/aqmlab/playground.html "$source/python/aqmlab/"
    else
        skip "the playground in wheels: the compiler lacks the target wasm32-unknown-unknown"
    fi
}

build() { # TARGET FOLDER: builds from the sdist, which proves that the sdist is complete
    local more=()
    # Chrono links to CoreFoundation for time zones, which nothing here uses, but the linker must find it.
    [[ $1 != *apple* ]] || more=(-- -C "link-arg=-F$root/tools/frameworks")
    (cd "$source" && CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} PATH=$tools/bin:$PATH \
        maturin build --quiet --release --locked --zig --target "$1" -o "$2" "${more[@]}")
}

# The wheels contain the manual pages as share/man/man1. The program writes these, so a first wheel is built without them.
make_pages() {
    local pages=$source/aqmlab.data/data/share/man/man1
    rm -rf "$source/aqmlab.data" "$work/first"
    sed -i '/^data = "aqmlab.data"$/d' "$source/pyproject.toml"
    build "$(uname -m)-unknown-linux-gnu" "$work/first"
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$work"/first/*.whl
    "$environment/bin/python" tools/man_pages.py "$pages"
    sed -i 's/^\[tool.maturin\]$/&\ndata = "aqmlab.data"/' "$source/pyproject.toml"
    if command -v mandoc >/dev/null; then mandoc -Tlint -Wwarning "$pages"/*.1; fi
}

make_wheel() { # TARGET
    if [ ! -d "$(rustc --print target-libdir --target "$1")" ] && ! rustup target add "$1" >/dev/null 2>&1; then
        skip "wheel for $1: its standard library is not installed (rustup target add $1)"
        return
    fi
    build "$1" "$out"
    rm -f "$work/done-check_wheels"
}

check_wheels() {
    "$tools/bin/python" tools/check_wheels.py "$out"/*.whl
    "$tools/bin/abi3audit" --strict --assume-minimum-abi3 3.11 "$out"/*linux*.whl
}

clean_root() {
    if [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then
        tools/clean_root.sh "$(our_wheel)" "$root/target/dist/debian12"
    else
        skip "installation in a bare Debian 12: it needs root and debootstrap"
    fi
    echo "   uvx aqmlab demo, with an empty cache:"
    local cache certificates=/etc/ssl/certs/ca-certificates.crt began=$SECONDS
    cache=$(mktemp -d)
    [ ! -e $certificates ] || export SSL_CERT_FILE=$certificates
    env -i HOME="$HOME" PATH="$tools/bin:/usr/bin:/bin" ${SSL_CERT_FILE:+"SSL_CERT_FILE=$SSL_CERT_FILE"} \
        UV_CACHE_DIR="$cache" uvx --quiet --python "$tools/bin/python" --from "$(our_wheel)" \
        aqmlab demo --runs 2 --quiet -o "$cache/demo" >"$work/uvx-table"
    test -s "$cache/demo/report.html"
    rm -rf "$cache"
    echo "   $((SECONDS - began)) s to the report"
}

make_crates() {
    # shellcheck disable=SC2086 # the variable is a list of words
    cargo package --quiet $published
    cp "${CARGO_TARGET_DIR:-target}"/package/aqmlab-*-"$version".crate "$out"
    # shellcheck disable=SC2086
    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps $published
    local tag
    tag=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true)
    if [ -z "$tag" ]; then
        echo "   no earlier release to compare the crates with"
    elif cargo semver-checks --version >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        cargo semver-checks $published --baseline-rev "$tag"
    else
        skip "comparison of the crates with $tag: cargo-semver-checks is not installed (cargo install cargo-semver-checks)"
    fi
}

# CycloneDX: maturin lists the wheel's Rust packages; the Python packages are listed from an
# environment in which the wheel is installed.
make_sbom() {
    "$tools/bin/cyclonedx-py" environment --output-reproducible --of JSON \
        -o "$out/aqmlab-$version-python.cdx.json" "$environment/bin/python"
    "$tools/bin/python" -c '
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
(made_by_maturin,) = [name for name in wheel.namelist() if name.endswith(".cyclonedx.json")]
sys.stdout.write(wheel.read(made_by_maturin).decode())' "$(our_wheel)" >"$out/aqmlab-$version-rust.cdx.json"
    "$environment/bin/python" -m pip freeze --exclude aqmlab >"$work/python-packages.txt"
}

audit() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny check
    else
        skip "advisories about Rust packages: cargo-deny is not installed (cargo install cargo-deny); make test checks licences and sources"
    fi
    # Strict: a package that the index does not know counts as a failure.
    "$tools/bin/pip-audit" --strict --disable-pip --no-deps --requirement "$work/python-packages.txt" ||
        skip "advisories about Python packages: pip-audit found some, or could not look up all packages; see above"
}

write_hashes() { (cd "$out" && sha256sum -- *.whl *.tar.gz *.crate *.json >SHA256SUMS); }

step "tools, into target/dist/tools" get_tools
step "source distribution" make_sdist
step "manual pages" make_pages
for target in $targets; do step "wheel for $target" make_wheel "$target"; done
step "contents of the wheels" check_wheels
step "clean installations" clean_root
step "crates" make_crates
step "software bills of materials" make_sbom
step "advisories" audit
write_hashes
rm -rf dist
cp -r "$out" dist
echo "== dist/"
(cd dist && du -b -- * | sort -k2)
for what in "${skipped[@]}"; do echo "skipped: $what"; done
[ "${#skipped[@]}" -eq 0 ] || [ -z "${RELEASE_STRICT:-}" ] || exit 3
