#!/usr/bin/env bash
# Makes a Debian to build in: root.sh SUITE ARCHITECTURE, as root. It is of this machine's architecture, with the
# libraries of ARCHITECTURE, and with the tools that packages and, for its own architecture, programs are built with.
# Prints its folder, .build/roots/SUITE-ARCHITECTURE. A root that has all of these is left as it is; MIRROR names another
# mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=$1 architecture=$2
root=.build/roots/$suite-$architecture
own=$(dpkg --print-architecture)
tools=(binutils debhelper dpkg-dev lintian make)
mapfile -t libraries < <(Tests/prepare.sh libraries)
if [[ $architecture == "$own" ]]; then
  # Swift's programs take libncurses6, and link with gcc's libraries.
  tools+=(ca-certificates g++ git libncurses6 mosquitto-dev pkg-config)
else
  type=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_TYPE 2>/dev/null)
  tools+=("binutils-${type//_/-}" "libc6:$architecture")
  libraries=("${libraries[@]/%/:$architecture}")
fi
# What a complete root has.
wanted="${tools[*]} ${libraries[*]}"
if [[ ! -e $root/complete || $(<"$root/complete") != "$wanted" ]]; then
  ((EUID == 0)) || { echo 'root.sh: run as root' >&2; exit 77; }
  rm -rf "$root"
  mkdir -p "$root"
  # Roots are made again more often than machines lose power meanwhile.
  mmdebstrap --quiet --mode=root --variant=minbase --dpkgopt=force-unsafe-io \
    --architectures="$(printf '%s\n' "$own" "$architecture" | uniq | paste -sd ,)" \
    --include="$(printf '%s\n' "${tools[@]}" "${libraries[@]}" | paste -sd ,)" \
    "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >&2
  echo "$wanted" >"$root/complete"
fi
echo "$root"
