#!/usr/bin/env bash
# Checks the fleet's server and ends with what was found: `make test-fleet`. Without PostgreSQL what needs it is skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export STEPCTL_STRICT=1 PYTHONDONTWRITEBYTECODE=1
status=0

for product in stepctl stepd; do swift build --quiet --product "$product" || exit; done
swift build --quiet --package-path Fleet --build-tests || exit
STEPCTL_BIN_DIR=$(swift build --show-bin-path)
STEPFLEET_BIN_DIR=$(swift build --package-path Fleet --show-bin-path)
export STEPCTL_BIN_DIR STEPFLEET_BIN_DIR

folder=$(mktemp -d)
chmod 755 "$folder"
trap 'Fleet/Tests/postgres.sh stop "$folder/cluster" 2>/dev/null; rm -rf "$folder"' EXIT
if Fleet/Tests/postgres.sh start "$folder/cluster"; then export STEPFLEET_POSTGRES=$folder/cluster; fi
swift test --package-path Fleet --skip-build --disable-xctest >"$folder/modules.log" 2>&1 || status=1
awk '/^(◇|✔|\[)/ { shown = 0 } /^(✘|↳|➜|error|fatal|Fatal|✔ Test run)/ { shown = 1 } shown' "$folder/modules.log"
programs=(
  Fleet/.build/venv/bin/python -m pytest -q -rs -o "cache_dir=$folder/pytest" -c Fleet/Tests/pytest.ini Fleet/Tests/System
)
# Most of these wait for most of the time: a worker more than there are cores. What fails beside all others runs again, alone.
if ! "${programs[@]}" --numprocesses $(($(nproc) + 1)); then
  "${programs[@]}" -v --last-failed --last-failed-no-failures none || status=1
fi
if Fleet/Tests/Demo/demo.sh "$STEPCTL_BIN_DIR" "$STEPFLEET_BIN_DIR" >"$folder/demo.log" 2>&1; then
  echo 'the demonstration shows what it says'
else
  cat "$folder/demo.log"
  status=1
fi
exit "$status"
