#!/usr/bin/env bash
# Installs the packages of `make deb` in a fresh Debian, uses them, upgrades and purges them, and sees that nothing stays:
# deb.sh [SUITE], as root, with debootstrap and Debian's mirror. Takes some minutes; DEBIAN_ROOT keeps the base system.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

suite=${1:-bookworm}
packages=(.build/deb/stepctl_*.deb .build/deb/stepd_*.deb)
[[ -e ${packages[0]} ]] || { echo 'deb.sh: there are no packages: run make deb' >&2; exit 66; }
((EUID == 0)) || { echo 'deb.sh: run as root' >&2; exit 77; }

base=${DEBIAN_ROOT:-$(mktemp -d)/base}
work=$(mktemp -d)
root=$work/root
clean_up() {
  umount "$root/dev/pts" "$root/proc" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

title() { printf '\n== %s\n' "$1"; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
# What stands in the file system, without what dpkg and apt keep for themselves.
files() {
  find "$root" -xdev \( -path "$root/proc" -o -path "$root/var/cache" -o -path "$root/var/lib/apt" -o \
    -path "$root/var/lib/dpkg" -o -path "$root/var/log" -o -path "$root/tmp" -o -path "$root/run" \) -prune -o -print |
    sed "s|^$root||" | sort
}

title "a fresh $suite"
if [[ ! -x $base/usr/bin/dpkg ]]; then
  debootstrap --variant=minbase --include=adduser "$suite" "$base" "${MIRROR:-http://deb.debian.org/debian}"
fi
cp -a "$base" "$root"
mount -t proc proc "$root/proc"
# The story plays a reader on a pseudo-terminal.
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
# What is installed beside stays: the story needs a broker, and programs that play a reader and a walk.
inside apt-get -qq update
inside apt-get -qq install --yes --no-install-recommends mosquitto mosquitto-clients python3 systemd >/dev/null
mkdir "$root/opt/packages"
cp "${packages[@]}" "$root/opt/packages"

title 'installed'
# Dependencies stay when the packages go, so they come first.
mapfile -t depends < <(for package in "${packages[@]}"; do dpkg-deb --field "$package" Depends; done |
  tr ',' '\n' | sed 's/([^)]*)//; s/|.*//; s/ //g' | sort -u)
inside apt-get -qq install --yes --no-install-recommends "${depends[@]}" >/dev/null
files >"$work/before"
inside sh -c 'dpkg --install /opt/packages/*.deb' >/dev/null
inside stepctl --version
inside stepd --version
if inside systemctl is-enabled stepd.service 2>/dev/null; then exit 1; fi
inside getent group stepd

title 'used: the story of make demo'
mkdir -p "$root/opt/Tests"
cp -R Tests/Demo Tests/Peers "$root/opt/Tests"
inside /opt/Tests/Demo/demo.sh /usr/bin >"$work/story" 2>&1 || { tail -n 40 "$work/story" >&2; exit 1; }
grep -c '^exit ' "$work/story"

title 'upgraded'
for package in stepctl stepd; do
  dpkg-deb --raw-extract "$root"/opt/packages/${package}_*.deb "$work/$package"
  sed -i 's/^Version: .*/&+upgrade/' "$work/$package/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip --build "$work/$package" "$root/opt/packages/upgrade-$package.deb" >/dev/null
done
mkdir -p "$root/var/lib/stepctl"
echo key >"$root/var/lib/stepctl/key"
inside sh -c 'dpkg --install /opt/packages/upgrade-*.deb' >/dev/null
inside dpkg-query --show stepctl stepd
[[ $(<"$root/var/lib/stepctl/key") == key ]]

title 'purged'
inside dpkg --purge stepctl stepd 2>"$work/said" >/dev/null
grep 'is kept' "$work/said"
rm -r "$root/var/lib/stepctl"
files >"$work/after"
# Python notes what it compiled, and the group file its former self.
if ! diff <(grep -Ev '__pycache__|^/etc/(group|gshadow)-?$|^/opt' "$work/before") \
  <(grep -Ev '__pycache__|^/etc/(group|gshadow)-?$|^/opt' "$work/after"); then
  echo 'deb.sh: something stays, or is gone' >&2
  exit 1
fi
if inside getent group stepd; then exit 1; fi
echo 'nothing is left behind'
