#!/usr/bin/env bash
# Builds the kernel that run.sh starts: .build/rig/linux, user-mode Linux from Debian's own source. `make rig` calls it.
# `kernel.sh kasan` builds one that looks for its own faults in memory (KASAN), for `run.sh --kasan`: .build/rig/kasan/linux.
# Debian's package user-mode-linux cannot be taken: it is built without Bluetooth.
#
# What was built is kept in ~/.cache/stepctl/rig, for other clones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

recipe=$(cat Tests/Rig/kernel.sh Tests/Rig/l2cap.patch | sha256sum | cut -c 1-16)
repair=$PWD/Tests/Rig/l2cap.patch
variant=${1-}
mkdir -p ".build/rig/$variant"
cd ".build/rig/$variant"
# Of two at a time, the second one finds what the first one has built.
exec {lock}>lock
flock "$lock"
# A source of another version is another kernel, and so is one that is built otherwise.
package=$(apt-cache depends linux-source | sed -n 's/^ *Depends: //p')
if [[ -z $package ]]; then
  echo 'kernel.sh: apt knows no linux-source: apt-get update, on Debian' >&2
  exit 69
fi
version=$(apt-cache show "$package" | sed -n '0,/^Version: /s/^Version: //p')-$recipe
if [[ -x linux && $(cat version 2>/dev/null) == "$version" ]]; then exit; fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stepctl/rig/$variant
if [[ -x $cache/linux-$version ]]; then
  cp "$cache/linux-$version" linux.part
  mv linux.part linux
  echo "$version" >version
  exit
fi

rm -rf source
mkdir source
trap 'rm -rf "$PWD/source"' EXIT
(
  cd source
  apt-get -qq --option APT::Sandbox::User=root download "$package"
  # What no line of this kernel is made from is most of the source; its Kconfig files have to be there all the same.
  dpkg-deb --fsys-tarfile ./*.deb | tar --extract --to-stdout --wildcards '*.tar.xz' |
    tar --extract --xz --strip-components 1 \
      --exclude '*/Documentation/[a-zA-JL-Z]*' --exclude '*/drivers/gpu/drm/*/*.[ch]' --exclude '*/tools/testing' \
      --exclude '*/drivers/net/*/*/*.[ch]' --exclude '*/sound/*/*.[ch]'
  rm ./*.deb
  # The stand-in for I2C devices may be built in, and not only as a module.
  sed -i '/^config I2C_STUB/,/^config /s/^\tdepends on m$//' drivers/i2c/Kconfig

  # From 6.1.190 on, a Bluetooth connection that does not come about frees a channel twice.
  if ! patch --quiet -p1 <"$repair"; then
    echo 'kernel.sh: l2cap.patch does not fit this source: is it repaired there?' >&2
    exit 1
  fi

  # Lines of a simulated GPIO chip need interrupts, and user-mode Linux has given away all of its numbers.
  sed -i '/define NR_IRQS/s/UM_LAST_SIGNAL_IRQ$/(UM_LAST_SIGNAL_IRQ + 64)/' arch/um/include/asm/irq.h

  make ARCH=um x86_64_defconfig >/dev/null
  options=(
    # Bluetooth, with controllers that a program plays.
    NET UNIX INET BT BT_LE BT_BREDR BT_HCIVHCI BT_DEBUGFS
    # Cryptography that Bluetooth and bluetoothd take.
    CRYPTO CRYPTO_USER CRYPTO_USER_API_HASH CRYPTO_USER_API_SKCIPHER CRYPTO_AES CRYPTO_ECB CRYPTO_CMAC CRYPTO_ECDH
    CRYPTO_SHA256
    # GPIO, I2C and a watchdog, played by the kernel itself.
    CONFIGFS_FS GPIOLIB GPIO_CDEV GPIO_SIM I2C I2C_CHARDEV I2C_STUB WATCHDOG WATCHDOG_CORE SOFT_WATCHDOG PWM
    # This machine's files, copied on writing.
    HOSTFS OVERLAY_FS TMPFS TMPFS_XATTR TMPFS_POSIX_ACL DEVTMPFS DEBUG_FS
    # A network that delays, reorders and loses (tc-netem(8)).
    NET_SCHED NET_SCH_NETEM
    # What programs expect of a kernel.
    ADVISE_SYSCALLS AIO BINFMT_SCRIPT CGROUPS EPOLL EVENTFD FILE_LOCKING FUTEX HIGH_RES_TIMERS INOTIFY_USER MEMBARRIER
    MEMFD_CREATE MULTIUSER NAMESPACES NET_NS NO_HZ_IDLE POSIX_MQUEUE SECCOMP SIGNALFD SYSVIPC TIMERFD USER_NS
    # Time that passes only when nothing has to be done.
    UML_TIME_TRAVEL_SUPPORT
  )
  if [[ $variant == kasan ]]; then options+=(KASAN KASAN_GENERIC STACKTRACE); fi
  without=(
    AUTOFS4_FS BLK_DEV_UBD DEBUG_INFO DEBUG_KERNEL EXT4_FS ISO9660_FS MODULES REISERFS_FS RFKILL SOUND STATIC_LINK
    UML_NET UML_SOUND
  )
  # shellcheck disable=SC2046 # Each name is an option of its own.
  ./scripts/config $(printf -- '--enable %s ' "${options[@]}") $(printf -- '--disable %s ' "${without[@]}")
  make ARCH=um olddefconfig >/dev/null
  for option in "${options[@]}"; do
    grep -q "^CONFIG_$option=y" .config || echo "kernel.sh: this kernel has no $option" >&2
  done
  if ! make ARCH=um -j"$(nproc)" linux >../build.log 2>&1; then
    tail -n 20 ../build.log >&2
    exit 1
  fi
  strip -o ../linux.part linux
)
mv linux.part linux
echo "$version" >version
mkdir -p "$cache"
# A kernel of another recipe is of no use any more.
rm -f "$cache"/linux-*
cp linux "$cache/part"
mv "$cache/part" "$cache/linux-$version"
