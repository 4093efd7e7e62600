#!/usr/bin/env bash
# Installs the Debian packages that a goal of the Makefile needs and that are not there:
# prepare.sh build|arm64|demo|test|test-arm64|rig|deb|debs|archive|reproduce|fleet|test-fleet|bench-fleet.
# `prepare.sh libraries` prints the development packages of the libraries that the programs are built with.
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
libraries+=(libtomlplusplus-dev libzxing-dev)
mapfile -t fleet < <(sed -n 's/.*pkgConfig: "[a-z]*", "\([a-z0-9-]*\)").*/\1/p' Fleet/Package.swift)
fleet+=(libsqlite3-dev)
packages=(g++ git pkg-config "${libraries[@]}")
case ${1-} in
build) ;;
arm64) packages=(g++ git patchelf pkg-config) ;;
rig) packages=(bc bison bluez dbus-daemon flex gcc libc6-dev make patch xz-utils) ;;
demo) packages+=(mosquitto mosquitto-clients python3) ;;
test | test-arm64)
  packages+=(
    apt-utils bluez dbus-daemon dpkg-dev fish fuse3 i2c-tools libnfc-bin libnfc-examples man-db mandoc mosquitto mosquitto-clients openssl
    poppler-utils gpg gpsd gpsd-clients iproute2 nftables python3 python3-venv qrencode shellcheck spin strace systemd
    tshark xz-utils zbar-tools zsh
  )
  if [[ $1 == test-arm64 ]]; then packages+=(patchelf qemu-user-static); fi
  ;;
libraries)
  printf '%s\n' "${libraries[@]}" "${fleet[@]}" | sort -u
  exit
  ;;
reproduce) packages+=(debhelper diffoscope-minimal lintian) ;;
deb) packages=(binutils debhelper dpkg-dev lintian) ;;
debs) packages=(binutils dpkg-dev mmdebstrap qemu-user-static) ;;
archive) packages=(apt-utils gpg binutils python3 python3-venv xz-utils) ;;
fleet | test-fleet | bench-fleet)
  packages+=("${fleet[@]}" mosquitto-dev)
  if [[ $1 != fleet ]]; then packages+=(chromium-headless-shell mosquitto mosquitto-clients openssl postgresql python3 python3-venv rabbitmq-server); fi
  if [[ $1 == bench-fleet ]]; then packages+=(curl golang-go golang-github-mattn-go-sqlite3-dev wrk); fi
  ;;
*)
  echo 'usage: prepare.sh build|arm64|demo|test|test-arm64|rig|deb|debs|archive|reproduce|fleet|test-fleet|bench-fleet|libraries' >&2
  exit 64
  ;;
esac

required=6.2
version=$({ swift --version 2>/dev/null || true; } | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p')
# Packages are made of programs that are built already, perhaps elsewhere.
if [[ $1 != @(deb|archive) && $(printf '%s\n' "$required" "${version:-0}" | sort -V | head -n 1) != "$required" ]]; then
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
test | test-arm64)
  environment Packaging/requirements.txt .build/sbom
  environment Tests/Peers/requirements.txt .build/venv
  # Its packages do not go with the others', and not each version of Python has them all.
  if [[ $1 == test ]]; then
    environment Tests/Peers/homeassistant.txt .build/homeassistant || echo 'Home Assistant cannot be installed here' >&2
  fi
  ;;
archive) environment Packaging/requirements.txt .build/sbom ;;
test-fleet)
  environment Fleet/Tests/requirements.txt Fleet/.build/venv
  # axe-core alone: what brings it is for another browser, and is not used.
  if ! compgen -G 'Fleet/.build/venv/lib/python3*/site-packages/pytest_playwright_axe' >/dev/null; then
    Fleet/.build/venv/bin/python -m pip install --quiet --no-compile --no-deps --ignore-requires-python \
      pytest-playwright-axe==4.14.0
  fi
  ;;
bench-fleet) environment Fleet/Tests/Benchmarks/requirements.txt Fleet/.build/bench ;;
esac
