#!/usr/bin/env bash
# Types what the page stepd-pi(7) says, in a fresh Debian with the packages of `make deb`: pi.sh [SUITE [ARCHITECTURE]],
# as root, with mmdebstrap and Debian's mirror. The packages are in .build/deb/SUITE/ARCHITECTURE. systemd does not run
# under qemu-user, so what needs it is not tried for a processor that this machine has not.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source Tests/Install/root.sh

mkdir "$root/opt/packages"
for package in stepctl stepctl-operator stepd; do
  file=$(compgen -G ".build/deb/$suite/$architecture/${package}_*.deb" || true)
  [[ -n $file ]] || { echo "pi.sh: there is no $package for $suite and $architecture: run make deb" >&2; exit 66; }
  cp "$file" "$root/opt/packages"
done

title 'installed'
inside sh -c 'apt-get -qq install --yes --no-install-recommends dbus mosquitto sudo systemd systemd-timesyncd \
  /opt/packages/*.deb' >/dev/null
inside stepd --version

title 'as the page says'
# pi.py copies the root, and has devices and processes of its own.
umount --recursive "$root/dev" "$root/proc"
python3 -u Tests/Install/pi.py ${foreign:+--without-systemd} "$root"
