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

# The fastest of three: what disturbs only makes slower.
bookings() { for _ in 1 2 3; do taskset -c "$1" "$program" bookings; done | sort -n | tail -n 1; }
if (($(nproc) < 2)); then
  echo 'Amdahl: left out, for this machine has one processor'
  exit
fi
one=$(bookings 0) two=$(bookings 0,1)
awk -v one="$one" -v two="$two" 'BEGIN {
  speedup = two / one
  serial = 2 / speedup - 1
  if (serial < 0) serial = 0
  if (serial > 1) serial = 1
  printf "\nAmdahl: %d bookings a second on one processor, %d on two: S = %.2f\n", one, two, serial
  for (count = 4; count <= 64; count *= 4)
    printf "on %2d: %.2f times as many as on one\n", count, 1 / (serial + (1 - serial) / count)
}'
