#!/usr/bin/env bash
# Checks everything, goes on after a failure where it can, and ends with a line that counts: `make test`.
# `run.sh modules` leaves out whole programs, the model and the kernel: `make check`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Warnings are errors here, and only here: someone who builds with a newer compiler is not punished for it.
export STEPCTL_STRICT=1 PYTHONDONTWRITEBYTECODE=1
results=$PWD/.build/test-results
rm -rf "$results"
mkdir -p "$results"
# Progress is for people.
quiet=(--quiet)
if [[ -t 1 ]]; then quiet=(); fi

passed=0 failed=0 skipped=0
# What failed is kept for programs_again.
remembers=(-o "cache_dir=$results/pytest")

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

# Most of these wait for most of the time: two workers more than there are cores. A file's tests share a vehicle.
programs() {
  "$STEPCTL_PYTHON" -m pytest -q -rs "${remembers[@]}" --numprocesses $(($(nproc) + 2)) --dist loadfile --no-loadscope-reorder \
    --junit-xml "$results/programs.xml" Tests
}

# stepd tells of a fault when a machine holds it up, as it should: a program that failed beside all others runs again,
# alone, and what it does then counts. Its name is shown either way. More than a few have another cause.
programs_again() {
  local failures
  failures=$(count "$results/programs.xml" '<failure\b|<error\b')
  if ((failures == 0 || failures > 10)); then return; fi
  title 'programs that failed, again and alone'
  "$STEPCTL_PYTHON" -m pytest -v -rs "${remembers[@]}" --last-failed --junit-xml "$results/again.xml" Tests
  local status=$?
  ((failed -= failures))
  tally "$results/again.xml" "$status"
}

check 'lint' make --no-print-directory lint
if [[ ${1-} == modules ]]; then
  export STEPCTL_RIG=no
else
  check 'model of the protocol' Tests/Model/check.py
fi
if check 'build' swift build --build-tests "${quiet[@]}"; then
  STEPCTL_PYTHON=$PWD/.build/venv/bin/python
  STEPCTL_BIN_DIR=$(swift build --show-bin-path)
  export STEPCTL_BIN_DIR STEPCTL_PYTHON
  modules >"$results/modules.txt" &
  if [[ ${1-} != modules ]]; then
    title 'programs'
    programs
    tally "$results/programs.xml" $?
  fi
  wait $!
  status=$?
  title 'modules'
  cat "$results/modules.txt"
  tally "$results/modules.xml" "$status"
  programs_again
fi

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
