#!/usr/bin/env bash
# Installs the Debian packages that a goal of the Makefile needs and that are not there: prepare.sh build|demo|test.
# Finds out whether Swift is there, too, which Debian does not have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What the package says of its system libraries; toml++ is headers alone, and Swift links with gcc's libraries.
mapfile -t libraries < <(sed -n 's/.*\.apt(\["\([^]]*\)"\]).*/\1/p' Package.swift | tr -d '" ' | tr ',' '\n')
packages=(g++ git libtomlplusplus-dev pkg-config "${libraries[@]}")
case ${1-} in
build) ;;
demo) packages+=(mosquitto mosquitto-clients python3) ;;
test)
  packages+=(
    bluez fish mandoc mosquitto mosquitto-clients openssl python3 python3-venv shellcheck systemd tshark zsh
  )
  ;;
*)
  echo 'usage: prepare.sh build|demo|test' >&2
  exit 64
  ;;
esac

required=6.2
version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9.]*\).*/\1/p' | head -n 1)
if [[ $(printf '%s\n' "$required" "${version:-0}" | sort -V | head -n 1) != "$required" ]]; then
  echo "Swift $required or newer is needed (found: ${version:-none}): see https://www.swift.org/install/linux" >&2
  exit 69
fi

if ! command -v dpkg-query >/dev/null; then
  echo "not Debian: cannot tell whether these are installed: ${packages[*]}" >&2
  exit 0
fi
missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  if [[ $state != installed ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then exit 0; fi

echo "installing: ${missing[*]}"
root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "run as root: apt-get install ${missing[*]}" >&2
    exit 77
  fi
  root=(sudo)
fi
apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
apt update
apt install --yes --no-install-recommends "${missing[@]}" >/dev/null
