#!/usr/bin/env bash
# Checks everything, goes on after a failure where it can, and ends with a line that counts: `make test`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# Warnings are errors here, and only here: someone who builds with a newer compiler is not punished for it.
export STEPCTL_STRICT=1 PYTHONDONTWRITEBYTECODE=1
results=.build/test-results
rm -rf "$results"
mkdir -p "$results"
# Progress is for people.
quiet=(--quiet)
if [[ -t 1 ]]; then quiet=(); fi

passed=0 failed=0 skipped=0

# check TITLE COMMAND...: one that passes or fails.
check() {
  printf '\n== %s\n' "$1"
  if "${@:2}"; then
    ((passed += 1))
  else
    ((failed += 1))
    return 1
  fi
}

# tests TITLE FILE COMMAND...: one that writes what became of its tests, as JUnit does, into the file.
tests() {
  printf '\n== %s\n' "$1"
  local status=0 failures
  "${@:3}" || status=$?
  failures=$(count "$2" '<failure\b|<error\b')
  # A runner that crashed has no failure in its file, or no file.
  if ((status != 0 && failures == 0)); then ((failed += 1)); fi
  ((passed += $(count "$2" '<testcase\b') - failures - $(count "$2" '<skipped\b')))
  ((failed += failures))
  ((skipped += $(count "$2" '<skipped\b')))
}

count() { grep -oE "$2" "$1" 2>/dev/null | wc -l; }

check 'lint' make --no-print-directory lint
if check 'build' swift build --build-tests "${quiet[@]}"; then
  STEPCTL_BIN_DIR=$(swift build --show-bin-path)
  export STEPCTL_BIN_DIR
  tests 'modules' "$results/modules.xml" \
    swift test --skip-build --disable-xctest --xunit-output "$results/modules.xml"
  for suite in System Tags Peers Install; do
    if compgen -G "Tests/$suite/test_*.py" >/dev/null; then
      tests "$suite" "$results/$suite.xml" .build/venv/bin/python -m pytest -q -rs -p no:cacheprovider \
        --junit-xml "$PWD/$results/$suite.xml" "Tests/$suite"
    fi
  done
fi

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
