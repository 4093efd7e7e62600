#!/usr/bin/env bash
# Builds the programs for another Debian on this machine's processor: programs.sh SUITE [GOAL...], as root. The goals of
# the Makefile are release and fleet, and both if none is named. They run in a root of SUITE (root.sh), with this
# machine's Swift and without a network, and the programs are then in .build/ARCHITECTURE/SUITE/release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suite=${1-}
[[ -n $suite ]] || { echo 'programs.sh: say for which Debian: make programs SUITE=trixie' >&2; exit 64; }
shift
goals=("$@")
if ((${#goals[@]} == 0)); then goals=(release fleet); fi
architecture=$(dpkg --print-architecture)
swift=$(dirname "$(dirname "$(realpath "$(command -v swiftc)")")")
folder=.build/$architecture/$suite result=.build/$architecture/$suite/release
root=$(Packaging/root.sh "$suite" "$architecture")
mkdir -p "$result" "$root/stepctl" "$root/swift"

# In the root there is no git that knows this folder.
source Packaging/stamp.sh
source Packaging/goals.sh

for goal in "${goals[@]}"; do
  take_goal "$goal"
  # Its own build folder stands where the Makefile has it, with the packages that it takes.
  build=$folder/build/$goal
  mkdir -p "$package/.build" "$build"
  swift package --package-path "$package" --scratch-path "$build" resolve
  # shellcheck disable=SC2016
  unshare --mount --pid --net --fork bash -euc '
    root=$0 swift=$1 build=$2 package=$3 goal=$4
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount --rbind --make-private -o ro . "$root/stepctl"
    mount --bind "$swift" "$root/swift"
    mount --bind "$build" "$root/stepctl/$package/.build"
    exec chroot "$root" env -i PATH=/swift/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      STEPCTL_COMMIT="$STEPCTL_COMMIT" STEPCTL_COMMIT_TIME="$STEPCTL_COMMIT_TIME" make -C /stepctl "$goal"' \
    "$root" "$swift" "$build" "$package" "$goal"
  for program in "${programs[@]}" "${others[@]}"; do install "$build/release/$program" "$result/"; done
done
ls "$result"
