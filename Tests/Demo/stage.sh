# shellcheck shell=bash
# What the demonstrations share: a stage of their own, which is gone when they end. To be sourced; PATH has the programs.
set -euo pipefail

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
fi
PATH=$PATH:/usr/sbin

started=()
folder=$(mktemp -d "${TMPDIR:-/tmp}/stepctl-demo.XXXXXX")
# Started by root, mosquitto becomes a user of its own, who has to reach its files.
chmod 755 "$folder"
clean_up() {
  trap '' INT TERM
  kill "${started[@]}" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$folder"

# Settings of whoever runs this would change what happens.
unset STEPCTL_VEHICLE STEPCTL_RADIO STEPCTL_NFC STEPCTL_VIA STEPCTL_TIMEOUT https_proxy HTTPS_PROXY

title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

fail() {
  printf 'demo: %s\n' "$1" >&2
  for log in *.log; do
    if [[ -s $log ]]; then printf -- '--- %s\n%s\n' "$log" "$(tail -n 20 "$log")" >&2; fi
  done
  exit 1
}

# run STATUS COMMAND: shows the command, runs it, shows its exit status unless that is 0; it has to be STATUS.
run() {
  local status=0
  printf '%s$ %s%s\n' "$dim" "$2" "$plain"
  eval "$2" || status=$?
  ((status == 0)) || printf '%sexit %s%s\n' "$dim" "$status" "$plain"
  ((status == $1)) || fail "expected exit $1"
}

# start COMMAND: shows the command and leaves it running.
start() {
  printf '%s$ %s &%s\n' "$dim" "$1" "$plain"
  eval "$1 &"
  started+=($!)
}

# await FILE TEXT [COUNT]: until so many lines of the file have the text in them.
await() {
  local tries lines
  for ((tries = 0; tries < 1200; tries++)); do
    lines=$(grep -cF -- "$2" "$1" 2>/dev/null || true)
    if ((${lines:-0} >= ${3:-1})); then return; fi
    sleep 0.05
  done
  fail "there is no \"$2\" in $1"
}

# A port below those that the kernel gives to outgoing connections, one of which could take it before we do.
free_port() {
  python3 - <<'EOF'
import random, socket

while True:
    port = random.randrange(20_000, 32_000)
    try:
        socket.socket().bind(("", port))
    except OSError:
        continue
    print(port)
    break
EOF
}
