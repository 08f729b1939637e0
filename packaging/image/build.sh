#!/usr/bin/env bash
# Makes the image of the Containerfile beside this file from a program that is built already, without a registry.
#
#   packaging/image/build.sh [--program FILE] [--tag NAME] [--try]
#
# --program FILE   a static program. Default: target/release-files/proxy-gateway, which packaging/release.sh builds
# --tag NAME       the name of the image. Default: proxy-gateway
# BUILDAH          names another program buildah, in the environment
# --try            unpacks the image and runs it there as its user, with nothing else in sight; takes root
set -euo pipefail
cd "$(dirname "$0")/../.."

program=target/release-files/proxy-gateway
tag=proxy-gateway
try=no
while (($#)); do
  case $1 in
    --program) program=${2:?--program needs a file}; shift ;;
    --tag) tag=${2:?--tag needs a name}; shift ;;
    --try) try=yes ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

work=$(mktemp -d)
started=
finish() {
  [[ -z $started ]] || kill "$started" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

# Nothing is fetched, so no signature has to be demanded.
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$work/policy.json"
if [[ $try = yes ]]; then
  # The images of this machine stay as they are.
  printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$work" "$work" >"$work/storage.conf"
  export CONTAINERS_STORAGE_CONF=$work/storage.conf
fi
buildah=${BUILDAH:-buildah}

# What the stage `build` would have made.
mkdir -p "$work/build/out"
install -m 755 "$program" "$work/build/out/proxy-gateway"
install -m 644 /etc/ssl/certs/ca-certificates.crt packaging/image/appsettings.json "$work/build/out/"
# Docker's format, since OCI's has no health check.
"$buildah" build --signature-policy "$work/policy.json" --format docker --isolation chroot --build-context "build=$work/build" \
  --file packaging/image/Containerfile --tag "$tag" "$work/build"
[[ $try = yes ]] || exit 0

# What the image says of itself is what runs.
"$buildah" inspect --type image "$tag" >"$work/image.json"
config() { python3 -c "import json, sys; c = json.load(sys.stdin)['Docker']['config']; print($1)" <"$work/image.json"; }
user=$(config "c['User']")
command=$(config "' '.join(c['Entrypoint'] + c['Cmd'])")
check=$(config "' '.join(c['Healthcheck']['Test'][1:])")
[[ $user = 65532:65532 ]]

container=$("$buildah" from --signature-policy "$work/policy.json" --pull-never "$tag")
mkdir "$work/root"
cp -a "$("$buildah" mount "$container")/." "$work/root"
"$buildah" rm "$container" >/dev/null
echo "the image has $(find "$work/root" -type f | wc -l) files, $(du -sh "$work/root" | cut -f1)"

# Nothing may be written, as with --read-only.
chmod -R a-w "$work/root"
chmod a+rx "$work" "$work/root"
# shellcheck disable=SC2086 # The words of a command.
chroot --userspec="$user" "$work/root" $command &
started=$!
healthy=no
for _ in $(seq 50); do
  # shellcheck disable=SC2086
  if chroot --userspec="$user" "$work/root" $check 2>/dev/null; then healthy=yes; break; fi
  sleep 0.2
done
[[ $healthy = yes ]] || { echo "build.sh: the health check does not succeed" >&2; exit 1; }
kill -TERM "$started"
wait "$started"
started=
# shellcheck disable=SC2086
if chroot --userspec="$user" "$work/root" $check 2>/dev/null; then
  echo "build.sh: the health check succeeds without the program" >&2
  exit 1
fi
echo "the image runs, is healthy, and stops"
