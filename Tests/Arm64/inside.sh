#!/usr/bin/env bash
# Runs a command where arm64 programs run by themselves, and so do those that they start: inside.sh SYSROOT COMMAND...
# qemu-user stands in for the processor, and SYSROOT has the libraries. binfmt_misc is registered in namespaces of this
# command's own (Linux 6.7 or newer): neither this machine nor anyone else on it sees it.
set -euo pipefail
sysroot=$(realpath "${1:?usage: inside.sh SYSROOT COMMAND...}")
shift
qemu=$(command -v qemu-aarch64-static) || { echo 'inside.sh: apt-get install qemu-user-static first' >&2; exit 77; }

work=$(mktemp -d)
mapping=
trap 'kill $mapping 2>/dev/null || true; rm -rf "$work"' EXIT
# Where Debian's qemu looks for libraries, whatever the environment of a program is.
mkdir -p "$work/etc/qemu-binfmt" "$work/binfmt"
ln -s "$sysroot" "$work/etc/qemu-binfmt/aarch64"
# ld.so asks whether this one is there by a system call whose path qemu does not look up below SYSROOT.
if [[ -e $sysroot/etc/ld.so.preload ]]; then cp "$sysroot/etc/ld.so.preload" "$work/etc/"; fi
# /etc of this machine, and that folder.
cat >"$work/enter" <<'END'
set -e
echo $$ >"$1/entered"
read -r <"$1/mapped"
if ! mount -t binfmt_misc binfmt_misc "$1/binfmt"; then
  echo 'inside.sh: this kernel has no binfmt_misc for namespaces (Linux 6.7 has)' >&2
  exit 69
fi
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
# F: the interpreter is opened now. P: a program gets the name that it was called by.
printf '%s' ":arm64:M::$magic:$mask:$2:PF" >"$1/binfmt/register"
mount -t overlay overlay -o "lowerdir=$1/etc:/etc" /etc
exec "${@:3}"
END
mkfifo "$work/entered" "$work/mapped"
# Root is root there, and all users are users, because mosquitto changes to one of its own; anybody else is root alone.
{
  read -r entered <"$work/entered"
  map="0 $EUID $((EUID == 0 ? 65536 : 1))"
  if ((EUID != 0)); then echo deny >"/proc/$entered/setgroups"; fi
  echo "$map" >"/proc/$entered/uid_map"
  echo "${map/ $EUID / $(id -g) }" >"/proc/$entered/gid_map"
  echo >"$work/mapped"
} &
mapping=$!
unshare --user --mount --propagation private bash "$work/enter" "$work" "$qemu" "$@"
