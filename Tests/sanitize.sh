#!/usr/bin/env bash
# Runs module tests with AddressSanitizer, then with ThreadSanitizer. Each has a build folder of its own: .build/address,
# .build/thread. SUITES (a pattern) names the tests; without it, those of the modules that have C libraries or threads.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
suites=${SUITES-'SystemIOTests|MQTTTests|BluetoothTests|StepDaemonTests|NFCTests|CodeReadingTests|ProvisioningTests|ConfigurationTests'}
export SWIFT_BACKTRACE=enable=no
# What Swift's runtime keeps for ever is no leak of ours.
export ASAN_OPTIONS=detect_leaks=0
status=0
for sanitizer in address thread; do
  printf '== %s (%d s)\n' "$sanitizer" "$SECONDS"
  swift test --quiet --disable-xctest --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" --filter "$suites" ||
    status=1
done
printf '%d s in all\n' "$SECONDS"
exit "$status"
