#!/usr/bin/env bash
# Runs arm64 programs on an amd64 machine, by qemu-user, and ends with a line that counts: `make test-arm64`.
# `run.sh programs` leaves out the modules, which take the emulator a quarter of an hour: CI.
# It takes the programs of `make arm64` for SUITE (bookworm), and this machine's broker, Python, and programs to compare
# with (STEPCTL_AMD64_BIN_DIR, or what `swift build` made).
#
# qemu-user applies no seccomp filter (filter.c) and no limit of address space (RLIMIT_AS), and /proc shows the emulator's
# own state. Tests of these are not among those with the marker arm64. Of the module tests three are left out: signals 34
# and 35 are the emulator's own, and its vfork(2) is a fork, so that a program that cannot be started fails only later.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export PYTHONDONTWRITEBYTECODE=1
# The processor of a Raspberry Pi 3. qemu's own has more instructions, such as the atomic ones (LSE) that a Pi 4 lacks, too.
export QEMU_CPU=cortex-a53

suite=${SUITE:-bookworm}
folder=$PWD/.build/arm64
sysroot=$folder/$suite/sysroot
STEPCTL_BIN_DIR=$folder/$suite/release
STEPCTL_AMD64_BIN_DIR=${STEPCTL_AMD64_BIN_DIR:-$(swift build --show-bin-path)}
STEPCTL_ARM64=$(mktemp -d)
export STEPCTL_BIN_DIR STEPCTL_AMD64_BIN_DIR STEPCTL_ARM64
trap 'cp "$STEPCTL_ARM64"/*.log "$folder" 2>/dev/null; rm -rf "$STEPCTL_ARM64" "$sysroot/etc/ld.so.preload"' EXIT
for program in "$STEPCTL_BIN_DIR/stepd" "$STEPCTL_AMD64_BIN_DIR/stepctl"; do
  [[ -x $program ]] || { echo "run.sh: there is no $program: make arm64, and swift build" >&2; exit 66; }
done
# A child that has given up its rights writes its filter there.
chmod 1777 "$STEPCTL_ARM64"
ln -s "$sysroot" "$STEPCTL_ARM64/sysroot"
mkdir -p "$STEPCTL_ARM64"/lib/{aarch64,x86_64}-linux-gnu "$sysroot/etc"
clang --target=aarch64-linux-gnu --sysroot="$sysroot" -fuse-ld=lld -shared -fPIC -O1 -Wall -Werror \
  -DFOLDER="\"$STEPCTL_ARM64\"" Tests/Arm64/filter.c -o "$STEPCTL_ARM64/lib/aarch64-linux-gnu/filter.so" || exit
# inside.sh shows this file to programs of this machine, too, and they complain about a library that they cannot load.
clang -shared -x c /dev/null -o "$STEPCTL_ARM64/lib/x86_64-linux-gnu/filter.so" || exit
# shellcheck disable=SC2016 # ld.so fills $LIB in.
echo "$STEPCTL_ARM64/"'$LIB/filter.so' >"$sysroot/etc/ld.so.preload"

passed=0 failed=0 skipped=0
title() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }
count() { grep -oE "$2" "$1" 2>/dev/null | wc -l; }

# tally FILE STATUS: adds what a runner wrote, as JUnit does, and the status that it ended with.
tally() {
  local failures
  failures=$(count "$1" '<failure\b|<error\b')
  # A runner that crashed has no failure in its file, or no file.
  if (($2 != 0 && failures == 0)); then ((failed += 1)); fi
  ((passed += $(count "$1" '<testcase\b') - failures - $(count "$1" '<skipped\b')))
  ((failed += failures))
  ((skipped += $(count "$1" '<skipped\b')))
}

# Core, what the kernel does for a program, and the controller; with the compiler, Foundation and Swift Testing of one
# version. Their libraries want Debian 13's C library.
modules() {
  title 'arm64: modules'
  export STEPCTL_TESTS='CryptographyTests DomainTests EncodingTests EvaluationTests GeographyTests RangingTests StepControllerTests
  StepProtocolTests SystemIOTests TagsTests TrafficTests'
  source Packaging/arm64/swift.sh
  if Packaging/arm64/sdk.sh trixie &&
    swift_arm64 trixie build --quiet --scratch-path "$folder/trixie/tests" --product stepctlPackageTests; then
    Tests/Arm64/inside.sh "$folder/trixie/sysroot" env "LD_LIBRARY_PATH=$folder/library/swift/linux" \
      "$folder/trixie/tests/debug/stepctlPackageTests.xctest" --testing-library swift-testing \
      --skip '(ChildProcessTests/(signals|missing)|HelperProcessTests/missing)\(\)' \
      --xunit-output "$STEPCTL_ARM64/modules.xml" >"$STEPCTL_ARM64/modules.log" 2>&1
    status=$?
    awk '/^(◇|✔|\[)/ { shown = 0 } /^(✘|↳|➜|error|fatal|Fatal|✔ Test run)/ { shown = 1 } shown' "$STEPCTL_ARM64/modules.log"
    tally "$STEPCTL_ARM64/modules.xml" "$status"
  else
    ((failed += 1))
  fi
}
if [[ ${1-} != programs ]]; then modules; fi

# story GOAL COMMAND...: what a goal of the Makefile shows.
story() {
  title "arm64: the story of make $1"
  if Tests/Arm64/inside.sh "$sysroot" "${@:2}" >"$STEPCTL_ARM64/$1.log" 2>&1; then
    ((passed += 1))
  else
    ((failed += 1))
    tail -n 60 "$STEPCTL_ARM64/$1.log"
  fi
}
story demo Tests/Demo/demo.sh "$STEPCTL_BIN_DIR"
if [[ -x $STEPCTL_BIN_DIR/stepfleet ]]; then
  story demo-fleet Fleet/Tests/Demo/demo.sh "$STEPCTL_BIN_DIR" "$STEPCTL_BIN_DIR"
else
  echo 'skipped: the story of make demo-fleet, for which make arm64 SUITES=bookworm GOALS=fleet builds stepfleet'
  ((skipped += 1))
fi

title 'arm64: programs'
Tests/Arm64/inside.sh "$sysroot" .build/venv/bin/python -m pytest -q -rs -m arm64 -o "cache_dir=$STEPCTL_ARM64/pytest" \
  --numprocesses $(($(nproc) + 1)) --dist loadfile --junit-xml "$STEPCTL_ARM64/programs.xml" \
  Tests/System Tests/Arm64
tally "$STEPCTL_ARM64/programs.xml" $?

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
