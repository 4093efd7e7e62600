#!/usr/bin/env bash
# Checks the fleet's server and ends with a line that counts. Without PostgreSQL what needs it is skipped.
# `run.sh modules` builds what tests need, and runs the module tests and the test of the API's document.
# `run.sh programs` runs the others: with stepctl, stepd, real databases and brokers, and the demonstration.
# `run.sh` runs everything: `make test-fleet`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export STEPCTL_STRICT=1 PYTHONDONTWRITEBYTECODE=1
case ${1-} in
'' | programs) if ! Tests/build.sh --quiet --product stepctl || ! Tests/build.sh --quiet --product stepd; then exit 1; fi ;;
modules) ;;
*)
  echo 'usage: run.sh [modules|programs]' >&2
  exit 64
  ;;
esac

folder=$(mktemp -d)
chmod 755 "$folder"
trap 'Fleet/Tests/postgres.sh stop "$folder/cluster" 2>/dev/null; rm -rf "$folder"' EXIT
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

# What was passed, failed and skipped so far is said, and is the end.
finish() {
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0))
  exit
}

title 'build'
if ! Tests/build.sh --quiet --package-path Fleet --build-tests; then
  ((failed += 1))
  finish
fi
STEPFLEET_BIN_DIR=$(swift build --package-path Fleet --show-bin-path)
export STEPFLEET_BIN_DIR
if ! Fleet/Sources/MosquittoPlugin/build.sh "$STEPFLEET_BIN_DIR/mosquitto_stepfleet.so"; then
  ((failed += 1))
  finish
fi

if Fleet/Tests/postgres.sh start "$folder/cluster" >/dev/null; then export STEPFLEET_POSTGRES=$folder/cluster; fi

modules() {
  title 'modules'
  swift test --package-path Fleet --skip-build --disable-xctest --xunit-output "$folder/modules.xml" >"$folder/modules.log" 2>&1
  local status=$?
  awk '/^(◇|✔|\[)/ { shown = 0 } /^(✘|↳|➜|error|fatal|Fatal|✔ Test run)/ { shown = 1 } shown' "$folder/modules.log"
  # The name in the file has the kind of the tests before its end.
  tally "$(find "$folder" -name 'modules*.xml' -size +0 | head -n 1)" "$status"
  title 'document'
  pytests document Fleet/Tests/System/test_document.py
}

# pytests NAME ARGUMENTS...
pytests() {
  Fleet/.build/venv/bin/python -m pytest -q -rs -p no:cacheprovider -c Fleet/Tests/pytest.ini \
    --junit-xml "$folder/$1.xml" "${@:2}"
  tally "$folder/$1.xml" $?
}

programs() {
  STEPCTL_BIN_DIR=$(swift build --show-bin-path)
  export STEPCTL_BIN_DIR
  title 'programs'
  # Most of these wait for most of the time: workers more than there are cores.
  pytests programs --numprocesses $(($(nproc) * 2)) --dist worksteal --ignore Fleet/Tests/System/test_document.py \
    Fleet/Tests/System
  title 'demonstration'
  if Fleet/Tests/Demo/demo.sh "$STEPCTL_BIN_DIR" "$STEPFLEET_BIN_DIR" >"$folder/demo.log" 2>&1; then
    ((passed += 1))
  else
    ((failed += 1))
    cat "$folder/demo.log"
  fi
}

if [[ ${1-} != programs ]]; then modules; fi
if [[ ${1-} != modules ]]; then programs; fi
finish
