#!/usr/bin/env bash
# Checks everything, goes on after a failure where it can, and ends with a line that counts: `make test`.
# `run.sh modules` leaves out whole programs, the model, the kernel and the fleet: `make check`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

export STEPCTL_STRICT=1 PYTHONDONTWRITEBYTECODE=1
results=$PWD/.build/test-results
rm -rf "$results"
mkdir -p "$results"
# Progress is for people.
quiet=(--quiet)
if [[ -t 1 ]]; then quiet=(); fi

passed=0 failed=0 skipped=0

title() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# check TITLE COMMAND...: one that passes or fails.
check() {
  title "$1"
  if "${@:2}"; then
    ((passed += 1))
  else
    ((failed += 1))
    return 1
  fi
}

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

count() { grep -oE "$2" "$1" 2>/dev/null | wc -l; }

# Swift's tests say when each begins and ends. What failed, what was skipped and the end are enough to read; an issue may
# take several lines.
modules() {
  swift test --skip-build --disable-xctest --xunit-output "$results/modules.xml" >"$results/modules.log" 2>&1
  local status=$?
  awk '/^(◇|✔|\[)/ { shown = 0 } /^(✘|↳|➜|error|fatal|Fatal|✔ Test run)/ { shown = 1 } shown' "$results/modules.log"
  return "$status"
}

# Most of these wait for most of the time: three workers a core. A file's tests share a vehicle.
programs() {
  "$STEPCTL_PYTHON" -m pytest -q -rs -p no:cacheprovider --numprocesses $(($(nproc) * 3)) --dist loadfile --no-loadscope-reorder \
    --junit-xml "$results/programs.xml" Tests
}

# fleet PROCESS: waits for the runner of the fleet's server, a package of its own, and adds the line that it ends with.
# `make test-fleet` runs its programs.
fleet() {
  wait "$1"
  title 'the fleet: modules'
  cat "$results/fleet.txt"
  if [[ $(tail -n 1 "$results/fleet.txt") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3]))
  else
    ((failed += 1))
  fi
}

check 'lint' make --no-print-directory lint
if [[ ${1-} == modules ]]; then
  export STEPCTL_RIG=no
else
  check 'model of the protocol' Tests/Model/check.py
fi
if check 'build' Tests/build.sh --build-tests "${quiet[@]}"; then
  STEPCTL_PYTHON=$PWD/.build/venv/bin/python
  STEPCTL_BIN_DIR=$(swift build --show-bin-path)
  export STEPCTL_BIN_DIR STEPCTL_PYTHON
  if [[ ${1-} != modules ]]; then
    # Building the fleet's server takes what the tests leave of the processors and the disk.
    ionice -c 3 nice -n 19 Fleet/Tests/run.sh modules >"$results/fleet.txt" 2>&1 &
    fleet_process=$!
  fi
  # One after the other: both boot kernels, and side by side they take as long.
  title 'modules'
  modules
  tally "$results/modules.xml" $?
  if [[ ${1-} != modules ]]; then
    title 'programs'
    programs
    tally "$results/programs.xml" $?
  fi
  if [[ ${1-} != modules ]]; then fleet "$fleet_process"; fi
fi

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
