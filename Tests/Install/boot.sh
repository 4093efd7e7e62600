#!/usr/bin/env bash
# Boots a root file system with its own systemd, and with processes, network and control groups of its own; what is written
# there is gone at the end: boot.sh ROOT FOLDER, as root, as the first process of new name spaces:
#
#   unshare --mount --pid --fork --kill-child --uts --ipc --net Tests/Install/boot.sh ROOT FOLDER
#
# FOLDER is an empty one that takes what is written. In a chroot systemd could not confine services.
set -euo pipefail
root=$2/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/dev"
while read -r name major minor; do mknod -m 666 "$root/dev/$name" c "$major" "$minor"; done <<'END'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
ptmx 5 2
END
mkdir "$root/dev/pts" "$root/dev/shm"
if [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  mkdir "$root/sys/fs/cgroup/systemd"
  mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
fi
ip link set lo up
# A computer in a network has an address that is not the loopback's.
ip address add 192.0.2.1/32 dev lo
echo car >"$root/etc/hostname"
mkdir "$root/run/old"
cd "$root"
pivot_root . run/old
# What systemd mounts for a service, such as its credentials, is shared with the service.
exec env -i container=other PATH=/usr/sbin:/usr/bin SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 /bin/sh -c \
  'umount -l /run/old && mount --make-rshared / && exec /lib/systemd/systemd --log-target=null --show-status=false --unit=basic.target'
