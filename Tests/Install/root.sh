# shellcheck shell=bash
# A fresh Debian to install in, for a script that is run as root as `SCRIPT [SUITE [ARCHITECTURE]]` and that sources
# this first. The script then runs in namespaces of its own, so that nothing of it stays mounted, with these:
#
#   $suite, $architecture   what it is: bookworm and this machine's, unless the script was told otherwise
#   $root                   its folder, which is removed at the end; $work is a folder beside it
#   inside COMMAND...       runs a command in it
#   title TEXT
#
# qemu-user plays a processor that this machine has not. The kernel learns that in a namespace of users of the script's
# own (Linux 6.7), not for the machine. It takes the sysroot of `make arm64`. What was fetched stays in .build/roots;
# MIRROR names another mirror.
set -euo pipefail

suite=${1:-bookworm} architecture=${2:-$(dpkg --print-architecture)}
name=$(basename "$0")
((EUID == 0)) || { echo "$name: run as root" >&2; exit 77; }
command -v mmdebstrap >/dev/null || { echo "$name: apt-get install mmdebstrap first" >&2; exit 77; }
foreign=
if [[ $architecture != $(dpkg --print-architecture) ]]; then
  foreign=yes
  # The processor of a Raspberry Pi 3. qemu's own has more instructions, such as the atomic ones (LSE) that a Pi 4 lacks.
  export QEMU_CPU=cortex-a53
  sysroot=$PWD/.build/arm64/$suite/sysroot
  [[ -e $sysroot/usr/include/stdio.h ]] || { echo "$name: there is no $sysroot: make arm64 first" >&2; exit 77; }
  command -v qemu-aarch64-static >/dev/null || { echo "$name: apt-get install qemu-user-static first" >&2; exit 77; }
fi

if [[ -z ${STEPCTL_NAMESPACES-} ]]; then
  export STEPCTL_NAMESPACES=yes
  if [[ -z $foreign ]]; then exec unshare --mount --pid --fork --kill-child "$0" "$@"; fi
  # Every user of the machine is one in there, too: apt gives up root, and files belong to several.
  gate=$(mktemp -d)
  mkfifo "$gate/open"
  # shellcheck disable=SC2016
  unshare --user --mount --pid --fork --kill-child bash -c 'read -r _ <"$0/open" && rm -r "$0" && exec "$@"' \
    "$gate" "$0" "$@" &
  while [[ $(readlink "/proc/$!/ns/user") == $(readlink /proc/self/ns/user) ]]; do sleep 0.01; done
  awk '{ print $1, $1, $3 }' /proc/self/uid_map >"/proc/$!/uid_map"
  awk '{ print $1, $1, $3 }' /proc/self/gid_map >"/proc/$!/gid_map"
  echo >"$gate/open"
  wait $!
  exit
fi
mount -t proc proc /proc

work=$(mktemp -d)
root=$work/root
clean_up() {
  jobs -p | xargs -r kill 2>/dev/null || true
  umount --lazy "$root/dev" "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

title() { printf '\n== %s\n' "$1"; }
inside() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    ${foreign:+"QEMU_CPU=$QEMU_CPU"} "$@"
}

if [[ -n $foreign ]]; then
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  # An arm64 program of ELF (EM_AARCH64: 0xb7). With F the emulator is opened here, and need not be in the root. With C
  # (which implies O) a program has the rights of its own file, not of the emulator's: without it, as Debian registers its
  # qemu, sudo is not root. With P a program gets the name that it was called by. What each does is said in Linux,
  # Documentation/admin-guide/binfmt-misc.rst.
  printf ':arm64:M::%s:%s:%s:PCF' \
    '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' \
    "$(command -v qemu-aarch64-static)" >/proc/sys/fs/binfmt_misc/register
fi

title "a fresh $suite, $architecture"
base=.build/roots/test-$suite-$architecture
if [[ ! -e $base/complete ]]; then
  rm -rf "$base"
  mkdir -p "$base"
  mmdebstrap --quiet --mode=root --variant=minbase --dpkgopt=force-unsafe-io --architectures="$architecture" \
    ${foreign:+--skip=check/qemu} "$suite" "$base" "${MIRROR:-http://deb.debian.org/debian}"
  touch "$base/complete"
fi
cp -a "$base" "$root"
rm "$root/complete"
if [[ -n $foreign ]]; then
  # qemu-user refuses seccomp filters, so stepctl-qr could not confine itself, and would read nothing. This takes the
  # filter in the kernel's place, and applies none.
  clang --target=aarch64-linux-gnu --sysroot="$sysroot" -fuse-ld=lld -shared -fPIC -O1 -Wall -Werror \
    Tests/Arm64/filter.c -o "$root/opt/filter.so"
  echo /opt/filter.so >"$root/etc/ld.so.preload"
fi
# Device files cannot be made in a namespace of users.
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc proc "$root/proc"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside apt-get -qq update

# same_build PACKAGE...: what is installed says everywhere of which version, which commit and for which processor it is.
# stepd is among it, and starts for a vehicle that stepctl-operator makes.
same_build() {
  local package version='' said build program
  for package; do
    # shellcheck disable=SC2016
    read -r said build < <(inside dpkg-query --show --showformat='${Version} ${Architecture}\n' "$package")
    [[ ${version:=$said} == "$said" && $build == "$architecture" ]] || { echo "$package: $said $build" >&2; return 1; }
  done
  if [[ ! $version =~ ^([0-9.]+)\+[0-9]{14}\.([0-9a-f]{12}\+?)~deb[0-9]+$ ]]; then
    echo "the version is $version" >&2
    return 1
  fi
  local number=${BASH_REMATCH[1]} commit=${BASH_REMATCH[2]}
  echo "$number, commit $commit, $architecture"
  for program in stepctl 'stepctl provision' stepd stepfleet; do
    if [[ $program == stepfleet && " $* " != *' stepfleet '* ]]; then continue; fi
    # shellcheck disable=SC2086
    said=$(inside $program --version | head -n 3 | paste -sd ,)
    [[ $said == "$number,commit $commit,architecture $architecture" ]] || { echo "$program: $said" >&2; return 1; }
  done
  inside sh -c 'cd /opt && stepctl provision vehicle metered --no-input --quiet &&
    printf "[metrics]\nfile = \"stepd.prom\"\n" >>metered/stepd.toml && exec stepd --config metered/stepd.toml' \
    >"$work/metered" 2>&1 &
  local stepd=$! metrics=$root/opt/metered/stepd.prom
  for ((tries = 0; tries < 600; tries++)); do
    if [[ -s $metrics ]]; then break; fi
    sleep 0.1
  done
  said=$(grep '^stepd_build_info' "$metrics") || { cat "$work/metered" >&2; return 1; }
  kill -KILL "$stepd"
  wait "$stepd" 2>/dev/null || true
  rm -r "$root/opt/metered"
  [[ $said == "stepd_build_info{version=\"$number\",commit=\"$commit\",architecture=\"$architecture\"} 1" ]] ||
    { echo "$said" >&2; return 1; }
}
