#!/usr/bin/env bash
# Builds the gateway for distribution: one static program for Linux on x86-64, its checksum, and its bill of materials.
#
#   packaging/release.sh [--output DIR] [--no-sbom] [--twice] [--program FILE]
#
# --output DIR   where the files go. Default: target/release-files
# --program FILE takes this static program instead of building one
# --no-sbom      leaves the bill of materials out, which takes cargo-cyclonedx (fetched if it is not installed)
# --twice        builds a second time from a copy of the sources in another directory, and fails if a byte differs
#
# The program needs no file of the system but trusted certificates. It is linked with glibc's static libraries: host names
# are resolved from /etc/hosts and DNS, as /etc/resolv.conf says. Other sources that /etc/nsswitch.conf may name (mDNS,
# LDAP, systemd's `resolve`) take glibc's shared libraries, of the same version, on the machine; without them they are
# skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TARGET=x86_64-unknown-linux-gnu
readonly CYCLONEDX=0.5.9
output=target/release-files
sbom=yes
twice=no
program=
while (($#)); do
  case $1 in
    --output) output=${2:?--output needs a directory}; shift ;;
    --no-sbom) sbom=no ;;
    --twice) twice=yes ;;
    --program) program=${2:?--program needs a file}; shift ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
if [[ -n $program && $twice = yes ]]; then
  echo "release.sh: --twice builds, and --program names what is built already: use one of them" >&2
  exit 2
fi

target_directory=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo_home=${CARGO_HOME:-$HOME/.cargo}
# The time of the commit, for whatever wants to write one.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

elsewhere=$(mktemp -d)
readonly NAME=release-bill-of-materials
finish() {
  rm -rf "$elsewhere"
  find . -path ./target -prune -o -name "$NAME.json" -exec rm -f {} +
}
trap finish EXIT

# Builds the sources in the directory $1 with the target directory $2. No path of this machine gets into the program: neither
# by Rust's panics nor by C's assertions.
build() {
  local from=$1 into=$2 place remap=() c_flags=""
  # Of several that fit, the last one counts.
  for place in "$from=/src" "$cargo_home=/cargo" "$(rustc --print sysroot)=/rust" "$into=/target"; do
    remap+=("--remap-path-prefix=$place")
    c_flags+=" -ffile-prefix-map=$place"
  done
  (
    cd "$from"
    RUSTFLAGS="-Ctarget-feature=+crt-static -Cstrip=symbols ${remap[*]}" \
      CFLAGS="${CFLAGS:-}$c_flags" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$into \
      "${CARGO:-cargo}" build --locked --profile dist --package proxy-gateway --bin proxy-gateway --target "$TARGET"
  )
}

if [[ -z $program ]]; then
  build "$PWD" "$target_directory"
  program=$target_directory/$TARGET/dist/proxy-gateway
fi
mkdir -p "$output"
install -m 755 "$program" "$output/proxy-gateway"
(cd "$output" && sha256sum proxy-gateway >proxy-gateway.sha256 && cat proxy-gateway.sha256)

linked=$(LC_ALL=C ldd "$output/proxy-gateway" 2>&1 || true)
if [[ $linked != *"statically linked"* && $linked != *"not a dynamic executable"* ]]; then
  echo "release.sh: the program is not static: $linked" >&2
  exit 1
fi

if [[ $sbom = yes ]]; then
  if ! cargo cyclonedx --version >/dev/null 2>&1; then
    "${CARGO:-cargo}" install cargo-cyclonedx --locked --version "$CYCLONEDX" --root "$target_directory/tools"
    PATH=$target_directory/tools/bin:$PATH
  fi
  # It writes a file into each package of the workspace, all of which get this name.
  cargo cyclonedx --quiet --manifest-path proxy-gateway/Cargo.toml --format json --spec-version 1.5 \
    --describe crate --target "$TARGET" --no-build-deps --override-filename "$NAME"
  # The place of the checkout says nothing about the program.
  sed "s|file://$PWD|file:///src|g" "proxy-gateway/$NAME.json" >"$output/proxy-gateway.cdx.json"
fi

if [[ $twice = yes ]]; then
  mkdir "$elsewhere/sources"
  git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory "$elsewhere/sources"
  build "$elsewhere/sources" "$elsewhere/target"
  cmp "$elsewhere/target/$TARGET/dist/proxy-gateway" "$output/proxy-gateway"
  echo "the second build has the same bytes"
fi
