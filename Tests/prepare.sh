#!/usr/bin/env bash
# Installs the Debian packages that a goal of the Makefile needs and that are not there:
# prepare.sh build|demo|test|rig|deb|fleet|test-fleet|bench-fleet.
# Finds out whether Swift is there, too, which Debian does not have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the package says of its system libraries; toml++ is headers alone, zxing-cpp is C++, and Swift links with gcc's
# libraries.
mapfile -t libraries < <(sed -n 's/^ *library(.*\[\(.*\)\]),$/\1/p' Package.swift | tr -d '" ' | tr ',' '\n' | sort -u)
if ((${#libraries[@]} == 0)); then
  echo 'prepare.sh: Package.swift names no library in the form that is read here' >&2
  exit 70
fi
packages=(g++ git libtomlplusplus-dev libzxing-dev pkg-config "${libraries[@]}")
case ${1-} in
build) ;;
rig) packages=(bc bison bluez dbus-daemon flex gcc libc6-dev make xz-utils) ;;
demo) packages+=(mosquitto mosquitto-clients python3) ;;
test)
  packages+=(
    bluez dbus-daemon fish i2c-tools libnfc-bin libnfc-examples man-db mandoc mosquitto mosquitto-clients openssl poppler-utils
    gpsd gpsd-clients iproute2 nftables python3 python3-venv qrencode rabbitmq-server shellcheck spin strace systemd tshark zbar-tools
    zsh
  )
  ;;
deb) packages=(debhelper dpkg-dev lintian) ;;
fleet | test-fleet | bench-fleet)
  mapfile -t -O "${#packages[@]}" packages < <(sed -n 's/.*pkgConfig: "[a-z]*", "\([a-z0-9-]*\)").*/\1/p' Fleet/Package.swift)
  packages+=(libsqlite3-dev)
  if [[ $1 != fleet ]]; then packages+=(mosquitto postgresql python3 python3-venv); fi
  if [[ $1 == bench-fleet ]]; then packages+=(curl golang-go golang-github-mattn-go-sqlite3-dev wrk); fi
  ;;
*)
  echo 'usage: prepare.sh build|demo|test|rig|deb|fleet|test-fleet|bench-fleet' >&2
  exit 64
  ;;
esac

required=6.2
version=$({ swift --version 2>/dev/null || true; } | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p')
if [[ $(printf '%s\n' "$required" "${version:-0}" | sort -V | head -n 1) != "$required" ]]; then
  echo "Swift $required or newer is needed (found: ${version:-none}): see https://www.swift.org/install/linux" >&2
  exit 69
fi

install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    echo "not Debian: cannot tell whether these are there: $*" >&2
    return
  fi
  local package state missing=() root=()
  for package in "$@"; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    if [[ $state != installed ]]; then missing+=("$package"); fi
  done
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    root=(sudo)
    if ! command -v sudo >/dev/null; then
      echo "run as root: apt-get install ${missing[*]}" >&2
      exit 77
    fi
  fi
  echo "installing ${missing[*]}"
  # A fresh Debian may still be installing something by itself.
  root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${root[@]}" update
  "${root[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
}
install_missing "${packages[@]}"

# The tests in Python run in an environment of their own. It is made again when what it has to hold has changed.
environment() {
  local requirements=$1 folder=$2
  if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    python3 -m venv --clear "$folder" &&
      "$folder/bin/python" -m pip install --quiet --prefer-binary --no-compile --requirement "$requirements" &&
      cp "$requirements" "$folder/requirements.txt"
  fi
}
case $1 in
test)
  environment Tests/Peers/requirements.txt .build/venv
  # Its packages do not go with the others', and not each version of Python has them all.
  environment Tests/Peers/homeassistant.txt .build/homeassistant || echo 'Home Assistant cannot be installed here' >&2
  ;;
test-fleet) environment Fleet/Tests/requirements.txt Fleet/.build/venv ;;
bench-fleet) environment Fleet/Tests/Benchmarks/requirements.txt Fleet/.build/bench ;;
esac
