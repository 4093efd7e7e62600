#!/usr/bin/env bash
# Fuzzes every parser of bytes from outside for SECONDS_EACH (60), as many at a time as there are cores (JOBS). FUZZ names
# one of them. Each begins with samples of what it should accept, and with what was found before
# (Tests/Fuzz/corpus/TARGET.hex). What makes a parser crash is kept as .build/fuzz/TARGET-crash-...; add it to the corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export STEPCTL_FUZZ=1 SWIFT_BACKTRACE=enable=no
swift build --quiet --scratch-path .build/fuzz --disable-index-store -debug-info-format none --product Fuzz \
  -Xswiftc -sanitize=fuzzer
program=.build/fuzz/debug/Fuzz
seeds=.build/fuzz/seeds
mkdir -p "$seeds"
python3 Tests/Fuzz/seeds.py "$seeds"

fuzz() {
  local name=$1 log=.build/fuzz/$1.log
  if FUZZ=$name .build/fuzz/debug/Fuzz -max_total_time="${SECONDS_EACH:-60}" -max_len=16384 -rss_limit_mb=1024 \
    -timeout=10 -artifact_prefix=".build/fuzz/$name-" ".build/fuzz/seeds/$name" >"$log" 2>&1; then
    printf '%-14s %s\n' "$name" "$(grep 'DONE' "$log" | tail -n 1)"
  else
    printf '%-14s FAILED: see %s\n' "$name" "$log"
    grep -m 3 -E 'Fatal error|ERROR|Test unit written' "$log" || true
    return 1
  fi
}
export -f fuzz

# Without a name the program says all of them, and ends with a status.
names=${FUZZ:-$({ FUZZ='' "$program" || true; } | sed 's/.*one of //; s/,//g')}
unset FUZZ
# shellcheck disable=SC2086 # The names are words.
printf '%s\n' $names | xargs -P "${JOBS:-$(nproc)}" -I '{}' bash -c 'fuzz {}'
