#!/usr/bin/env bash
# Runs a program of this machine in a kernel of its own, whose Bluetooth adapter is a virtual one: see README.md.
#
#   run.sh [OPTION]... -- PROGRAM [ARGUMENT]...
#
#   --scn FILE        what is on the air (beaconctl.c has the format); again for a second adapter; none: no adapter
#   --ctl 'OPTION…'   of the controllers: --bt4, --bundle N
#   --noup            leaves the adapters down
#   --dbus            runs a system bus and bluetoothd
#   --pre COMMAND     runs before the program, as root
#   --as USER         runs the program as somebody else
#   --timeout N       seconds that all of it may take (60)
#   --kernel WORD     for the kernel's command line
#   --kasan           takes the kernel that looks for its own faults, and fails if it found one
#   --virtual-time    whoever sleeps is awake at once, and the clock has gone on; an hour of waiting takes no time
#   --keep FOLDER     keeps what was logged; ctl0.log has each command that the first controller got
#
# The exit status is the program's; 124 when the time is over; 125 when there is no kernel, or it failed.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
built=$(readlink -f "$here/../..")/.build/rig

fail() {
  echo "run.sh: $1" >&2
  exit 125
}

scenarios=() controller='' up=1 bus='' before=: as='' timeout=60 keep='' kernel=() variant=''
# What runs in there keeps the machine's time: who may give it precedence does.
niceness=-15
while (($# > 0)); do
  case $1 in
  --noup) up='' ;;
  --kasan) variant=kasan/ ;;
  --dbus) bus=1 ;;
  --virtual-time)
    kernel+=(time-travel)
    # Other programs beside it may have to keep time, so it gets no precedence. It must not get less than an equal share
    # either: on a busy machine it would then stand still for longer than 200 ms, and stepd would end a motion.
    niceness=0
    ;;
  --)
    shift
    break
    ;;
  --scn | --ctl | --pre | --as | --timeout | --kernel | --keep)
    (($# > 1)) || fail "$1 takes a value"
    case $1 in
    --scn) scenarios+=("$2") ;;
    --ctl) controller=$2 ;;
    --pre) before=$2 ;;
    --as) as=$2 ;;
    --timeout) timeout=$2 ;;
    --kernel) kernel+=("$2") ;;
    --keep) keep=$2 ;;
    esac
    shift
    ;;
  *) fail "there is no option $1" ;;
  esac
  shift
done
(($# > 0)) || fail 'no program is given'
linux=$built/${variant}linux
[[ -x $linux ]] || fail "there is no kernel: make rig${variant:+-kasan} builds it"
if ((${#scenarios[@]} == 0)); then scenarios=("$here/beacons.scn"); fi

# Several of these may run at a time: each sees the old program or the new one.
for program in beaconctl air; do
  if [[ ! $built/$program -nt $here/$program.c ]]; then
    gcc -O2 -Wall -o "$built/$program.$$" "$here/$program.c" -lm || fail "$program cannot be built"
    mv "$built/$program.$$" "$built/$program"
  fi
done

# What goes in and out: a folder of this machine that is /vmout in there.
folder=$(mktemp -d /tmp/stepctl-rig.XXXXXX)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT

# The kernel's first program: this machine's files below a layer that takes what is written.
cat >"$folder/init" <<INIT
#!/bin/bash
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/written /mnt/work /mnt/root
root=/mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/written,workdir=/mnt/work overlay \$root
mount -t proc proc \$root/proc
mount -t sysfs sysfs \$root/sys
mount -t debugfs debugfs \$root/sys/kernel/debug
mount -t devtmpfs devtmpfs \$root/dev
mkdir -p \$root/dev/pts \$root/dev/shm \$root/vmout
mount -t devpts -o ptmxmode=666 devpts \$root/dev/pts
mount -t tmpfs tmpfs \$root/dev/shm
mount -t tmpfs -o mode=755 tmpfs \$root/run
mount -t hostfs -o $folder none \$root/vmout
ip link set lo up
hostname rig
out=\$root/vmout
chroot \$root /bin/bash /vmout/run </dev/null >\$out/stdout 2>\$out/stderr
echo \$? >\$out/status
dmesg >\$out/dmesg
sync
# Powers off, which the kernel does when it gets to it.
echo o >\$root/proc/sysrq-trigger
sleep 60
INIT
chmod +x "$folder/init"

# What runs in there.
{
  printf 'export HOME=/root PATH=%q%s\n' "$PATH" "${LD_LIBRARY_PATH:+ LD_LIBRARY_PATH=$(printf %q "$LD_LIBRARY_PATH")}"
  echo 'exec 3>/vmout/rig.log'
  count=0
  for scenario in "${scenarios[@]}"; do
    if [[ $scenario == none ]]; then continue; fi
    printf '%q vhci %q %s --ready /run/ready%d --log /vmout/ctl%d.log 2>&3 &\n' \
      "$built/beaconctl" "$(readlink -f "$scenario")" "$controller" "$count" "$count"
    # shellcheck disable=SC2016 # Expanded in there.
    printf 'controllers+=($!); for attempt in {1..200}; do [[ -s /run/ready%d ]] && break; sleep 0.02; done\n' "$count"
    ((count += 1))
  done
  if [[ $bus ]]; then
    echo 'mkdir -p /run/dbus; dbus-daemon --system --fork --nopidfile >&3 2>&3'
    echo '/usr/libexec/bluetooth/bluetoothd -n >&3 2>&3 & sleep 1'
  elif [[ $up ]]; then
    # shellcheck disable=SC2016
    echo 'sleep 0.1; for adapter in /sys/class/bluetooth/hci*; do hciconfig ${adapter##*/} up >&3 2>&3; done'
  fi
  echo "$before"
  printf 'cd %q\n' "$PWD"
  if [[ $as ]]; then printf 'setpriv --reuid=%q --regid=%q --clear-groups ' "$as" "$(id -g "$as")"; fi
  printf '%q ' "$@"
  # shellcheck disable=SC2016
  printf '\nstatus=$?\n%s\nexit $status\n' \
    'if ((${#controllers[@]})); then kill "${controllers[@]}" 2>&3; sleep 0.05; fi'
} >"$folder/run"

# The kernel's memory is a file. On a disk that is busy, it would hold up all that runs in there.
memory=/dev/shm
if findmnt --noheadings --target /dev/shm --output OPTIONS | grep -q noexec ||
  (($(df --output=avail --block-size=1M /dev/shm | tail -n 1) < 2048)); then memory=${TMPDIR:-/tmp}; fi
# The kernel is a session of its own, and Linux weighs sessions (sched(7), autogroup).
# shellcheck disable=SC2016 # bash fills these in later.
weigh='{ echo "$0" >/proc/self/autogroup; } 2>/dev/null; exec "$@"'
TMPDIR=$memory nice -n "$niceness" timeout --kill-after 2 "$timeout" setsid bash -c "$weigh" "$niceness" \
  "$linux" "${kernel[@]}" mem=512M root=/dev/root rootfstype=hostfs rootflags=/ ro quiet con=null \
  con0=null,fd:1 init="$folder/init" </dev/null >"$folder/console" 2>&1
ended=$?

cat "$folder/stdout" 2>/dev/null
cat "$folder/stderr" >&2 2>/dev/null
status=125
if [[ -s $folder/status ]]; then
  status=$(<"$folder/status")
elif ((ended == 124)); then
  status=124
else
  echo "run.sh: the kernel failed ($ended)" >&2
  grep --text --max-count 1 'Kernel panic' "$folder/console" >&2
  tail -n 20 "$folder/console" >&2
fi
if [[ $variant ]] && grep --text --max-count 40 --after-context 60 'BUG: KASAN' "$folder/dmesg" "$folder/console" >&2; then
  echo 'run.sh: the kernel has found a fault of its own' >&2
  status=1
fi
if [[ $keep ]]; then
  rm -rf "$keep"
  cp -r "$folder" "$keep"
fi
exit "$status"
