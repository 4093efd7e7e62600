#!/usr/bin/env bash
# Prints the table of Fleet/CONCURRENCY.md, and how much of a booking runs on one processor at a time: run.sh PROGRAM.
set -euo pipefail
program=$(realpath "${1:?usage: run.sh PROGRAM}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap '"$here/../postgres.sh" stop "$folder/cluster" 2>/dev/null; rm -rf "$folder"' EXIT
chmod 711 "$folder"
"$here/../postgres.sh" start "$folder/cluster" >/dev/null
STEPFLEET_POSTGRES=$folder/cluster "$program"

# The processors that this process may use, as 0 and 1.
mapfile -t processors < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | sed 's/-/ /' | while read -r first last; do
  seq "$first" "${last:-$first}"
done)
if ((${#processors[@]} < 2)); then
  echo 'Amdahl: left out, for there is one processor'
  exit
fi
# The fastest of three: what disturbs only makes slower.
bookings() { for _ in 1 2 3; do taskset -c "$1" "$program" bookings; done | sort -n | tail -n 1; }
"$program" amdahl "$(bookings "${processors[0]}")" "$(bookings "${processors[0]},${processors[1]}")"
