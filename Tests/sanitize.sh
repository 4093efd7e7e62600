#!/usr/bin/env bash
# Runs module tests with AddressSanitizer, in a build folder of its own (.build/asan). SUITES (a pattern) names the tests;
# without it, those of the modules that parse, or that have C libraries or threads.
#
# ThreadSanitizer is left out: that of Swift 6.3 does not see the lock inside Synchronization.Mutex, and reports every
# value that a Mutex protects as a race.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suites=${SUITES-'(SystemIO|MQTT|Bluetooth|StepDaemon|NFC|CodeReading|Encoding|StepProtocol|Tags|FileFormats|Traffic|TrafficFeed|Positioning|Geography)Tests'}
# Leaks are left out: what the runtime keeps until the end is none.
# The kernel of the rig lies where the sanitizer wants its own memory.
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0 STEPCTL_RIG=no
Tests/build.sh --quiet --build-tests --sanitize=address --scratch-path .build/asan
log=.build/asan/test.log
if ! swift test --skip-build --disable-xctest --sanitize=address --scratch-path .build/asan --filter "$suites" \
  >"$log" 2>&1; then
  grep -E '^✘|ERROR: AddressSanitizer|SUMMARY' "$log" | head -n 40 || true
  echo "see $log" >&2
  exit 1
fi
grep -E '^✔ Test run' "$log"
