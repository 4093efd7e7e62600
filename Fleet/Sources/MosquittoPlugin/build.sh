#!/usr/bin/env bash
# Builds the plugin: build.sh FILE [COMPILER...], where COMPILER is cc, or another one with its first arguments. It takes
# mosquitto's headers (Debian: libmosquitto-dev and mosquitto-dev).
set -euo pipefail
file=$1 compiler=("${@:2}")
if ((${#compiler[@]} == 0)); then compiler=(cc); fi
mkdir -p "$(dirname "$file")"
# A broker that has loaded the old file goes on with it.
"${compiler[@]}" -std=gnu17 -O2 -Wall -Wextra -Werror -fstack-protector-strong -shared -fPIC -Wl,-z,relro,-z,now,-s \
  -o "$file.new" "$(dirname "${BASH_SOURCE[0]}")/mosquitto_stepfleet.c"
mv "$file.new" "$file"
