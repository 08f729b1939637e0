#!/usr/bin/env bash
# Measures what the README's two commands cost on a fresh machine: clones this repository into an empty directory, with an
# empty cargo home, runs both, and prints wall time, processor time, disk and the number of packages.
#
#   ./fresh.sh             both commands
#   ./fresh.sh demo        only the first one
#   ./fresh.sh test        only the second one
#
# Needs git, Rust, a C compiler, and the package registries. Everything is below one temporary directory, which is removed.
set -euo pipefail
source=$(cd "$(dirname "$0")" && git rev-parse --show-toplevel)
which=${1:-both}
case "$which" in both | demo | test) ;; *)
    echo "usage: $0 [demo|test]" >&2
    exit 2
    ;;
esac

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
git clone --quiet --no-hardlinks "$source" "$place/clone"
cd "$place/clone"
export CARGO_HOME="$place/cargo-home" CARGO_TERM_COLOR=never
# Settings of this shell would measure another build than the one a newcomer gets.
unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR CARGO_BUILD_JOBS RUSTC_WRAPPER RUSTFLAGS PEERS_DIR CARGO_INCREMENTAL CI
for setting in "${!CARGO_PROFILE_@}"; do unset "$setting"; done
echo "commit $(git rev-parse --short HEAD), $(nproc) processors, $(rustc --version)"

# Runs a command, keeps its output apart, and prints one row. Fails as the command does.
measure() {
    local name=$1 status=0 packages
    shift
    local TIMEFORMAT='%R %U %S'
    { time "$@" >"$place/output" 2>&1 || status=$?; } 2>"$place/times"
    packages=$(grep -c '^ *Compiling ' "$place/output" || true)
    read -r wall user system <"$place/times"
    LC_ALL=C awk -v name="$name" -v wall="$wall" -v user="$user" -v sys="$system" -v packages="$packages" \
        -v disk="$(du -sm "$place/clone/target" | cut -f1)" \
        'BEGIN { printf "%-34s %6.0f s wall %6.0f s processor %6d MB %5d packages\n", name, wall, user + sys, disk, packages }'
    # The closing table of `cargo xtask`, if that is what ran.
    sed -n '/^step  *result  *time$/,$s/^/    /p' "$place/output"
    if [ "$status" -ne 0 ]; then
        tail -n 40 "$place/output" >&2
        echo "$name failed with $status" >&2
    fi
    return "$status"
}

failed=0
if [ "$which" != test ]; then
    # The story of the demo takes a minute at normal speed; nobody watches it here.
    measure 'cargo demo' cargo demo --once --speed 30 || failed=1
fi
if [ "$which" != demo ]; then
    # As on a fresh machine: nothing of the first command is there yet.
    rm -rf target
    measure 'cargo xtask test' cargo xtask test || failed=1
fi
exit "$failed"
