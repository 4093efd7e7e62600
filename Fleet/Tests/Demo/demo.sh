#!/usr/bin/env bash
# Shows a fleet on this machine alone: demo.sh BIN FLEETBIN, where BIN is the folder of stepctl and stepd and FLEETBIN that
# of stepfleet. Two vehicles, two riders, a race that one of them loses, an open step, access that is taken back, a rider
# who is helped, a vehicle that is silent, and a booking that ends beside the parking zone. Ends with status 1 as soon as
# anything happens otherwise than it says, and leaves nothing behind.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${1:?usage: demo.sh BIN FLEETBIN}" && pwd)
fleetbin=$(cd "${2:?usage: demo.sh BIN FLEETBIN}" && pwd)
PATH=$bin:$fleetbin:$PATH
# shellcheck source-path=SCRIPTDIR source=../../../Tests/Demo/stage.sh
source "$here/../../../Tests/Demo/stage.sh"
unset XDG_CONFIG_HOME
# A busy machine takes longer, and nothing here waits for it to pass.
export STEPFLEET_DIR=$folder/fleet STEPCTL_TIMEOUT=40

# rider NAME STATUS COMMAND: the same, in a home of the rider's own.
rider() {
  printf '%s%s: %s' "$dim" "$1" "$plain"
  HOME=$folder/$1 run "$2" "$3"
}

# shows PATTERN: waits until `stepfleet status` shows a vehicle so, with what it notes below it in the same line.
shows() {
  for ((tries = 0; ; tries++)); do
    if stepfleet status | sed ':lines; N; $!b lines; s/\n   / /g' | grep -q "$1"; then return; fi
    ((tries < 300)) || fail "no line of \`stepfleet status\` is as $1"
    sleep 0.1
  done
}

title 'The operator: a server, and the broker of its vehicles'
port=$(free_port) broker=$(free_port)
run 0 "stepfleet init fleet --host localhost --port $port --broker-port $broker"
# Mail goes into files here.
cat >sendmail <<'EOF'
#!/bin/sh
cat >>"$(dirname "$0")/mail"
EOF
chmod +x sendmail
python3 - "$folder/sendmail" <<'EOF'
import json, sys
file = "fleet/stepfleet.json"
settings = json.load(open(file)) | {"sendmail": sys.argv[1]}
json.dump(settings, open(file, "w"))
EOF
# Started by root, mosquitto would become a user who cannot reach this folder.
if ((EUID == 0)); then
  sed -i '/^user /d' fleet/operator/mosquitto.conf
  echo 'user root' >>fleet/operator/mosquitto.conf
fi
start 'mosquitto -c fleet/operator/mosquitto.conf 2>broker.log'
mosquitto=${started[-1]}
await broker.log running
start 'stepfleet serve fleet 2>server.log'
await server.log '"serving"'

title 'Two vehicles join; the private keys of each are made on it, and stay there'
for name in chassis van; do
  run 0 "stepfleet vehicle add ${name^} | tee $name.code"
  code=$(grep -oE '[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}' $name.code | head -n 1)
  mkdir -p board
  HOME=$folder/board run 0 "stepctl provision vehicle $name --fleet https://localhost:$port --code $code \\
    --ca fleet/operator/tls/ca.pem -q | head -n 1"
  sed -i 's/^travel_s = .*/travel_s = 1/' $name/stepd.toml
done
kill -HUP "$mosquitto"
await broker.log 'Reloading config.'
for name in chassis van; do
  start "stepd --config $name/stepd.toml 2>$name.log"
  await $name.log 'connected to'
  if [[ $name == chassis ]]; then chassis=${started[-1]}; fi
done

title 'Two riders make accounts, each with a code by mail'
for name in anna ben; do
  mkdir "$name"
  : >mail
  rider $name 0 "echo 'a long password' | stepctl account create https://localhost:$port --email $name@example.org -y \\
    --ca fleet/operator/tls/ca.pem"
  await mail Subject
  code=$(grep '^Subject:' mail | grep -oE '[0-9]{6}' | head -n 1)
  rider $name 0 "stepctl account confirm $code"
done

title 'They log in, and both want the same vehicle'
for name in anna ben; do
  rider $name 0 "echo 'a long password' | stepctl login --email $name@example.org"
done
rider anna 0 'stepctl vehicles'
HOME=$folder/anna stepctl book Chassis --for 2h -y >anna.log 2>&1 &
one=$!
HOME=$folder/ben stepctl book Chassis --for 2h -y >ben.log 2>&1 &
two=$!
first=0 second=0
wait $one || first=$?
wait $two || second=$?
for name in anna ben; do
  printf '%s%s: $ stepctl book Chassis --for 2h -y%s\n' "$dim" "$name" "$plain"
  cat "$name.log"
done
case $first$second in
05) winner=anna loser=ben ;;
50) winner=ben loser=anna ;;
*) fail "one of them should have it, and not $first and $second" ;;
esac
rider "$loser" 0 'stepctl book Van --for 2h -y'

title 'Each opens the step in front'
for pair in "$winner chassis" "$loser van"; do
  read -r name vehicle <<<"$pair"
  uuid=$(sed -n 's/^uuid = "\(.*\)"/\1/p' "$vehicle/vehicle.toml")
  python3 "$here/../../../Tests/Demo/walk.py" --uuid "$uuid" --side left --out "$vehicle.btsnoop" >/dev/null
  rider "$name" 0 "stepctl open --radio btsnoop:$vehicle.btsnoop"
done
rider "$winner" 0 'stepctl bookings'

title 'The operator takes the access back'
booking=$(HOME=$folder/$winner stepctl bookings --json | sed 's/.*"id":"\([^"]*\)".*/\1/')
run 0 "stepfleet revoke --booking $booking"
for ((tries = 0; ; tries++)); do
  status=0
  HOME=$folder/$winner stepctl close --radio btsnoop:chassis.btsnoop >refused.log 2>&1 || status=$?
  if ((status == 5)); then break; fi
  ((tries < 300)) || fail 'the access still counts'
  sleep 0.1
done
printf '%s%s: $ stepctl close --radio btsnoop:chassis.btsnoop%s\n' "$dim" "$winner" "$plain"
cat refused.log

title 'Both riders call. The operator sees why, and makes the access of one new'
run 0 "stepfleet support $winner@example.org | tee support.log"
grep -q 'Chassis refused at .*: token_revoked' support.log || fail 'the operator should see why'
run 0 "stepfleet support $loser@example.org --reissue | tee support.log"
grep -q 'is made new' support.log || fail 'the access should be made new'
# The vehicle has heard that the old access counts no more.
shows '^Van .* yes, heard [^;]* ago$'
rider "$loser" 0 'stepctl close --radio btsnoop:van.btsnoop'

title 'A vehicle falls silent, and the operator sees who has not heard'
kill "$chassis"
wait "$chassis" || true
rider "$loser" 0 'stepctl book Chassis --for 1h -y'
run 0 'stepfleet vehicle suspend Chassis'
shows '^Chassis .* silent .* notice not confirmed'
run 0 'stepfleet status'

title 'The operator draws a parking zone, and a booking ends beside it'
run 0 "stepfleet zone add Yard --parking --point 48.77580,9.18290 --point 48.77580,9.18372 \\
    --point 48.77602,9.18372 --point 48.77602,9.18290"
rider "$loser" 0 'stepctl zones'
run 0 'stepfleet vehicle place Van 48.77702,9.1833'
van=$(HOME=$folder/$loser stepctl bookings --json | grep '"name":"Van"' | sed 's/.*"id":"\([^"]*\)".*/\1/')
rider "$loser" 0 "stepctl bookings end ${van:0:8} -y 2>&1 | tee end.log"
grep -q '112 m from the parking zone Yard' end.log || fail 'the rider should be told how far the zone is'
run 0 'stepfleet history --lines 6 | tee history.log'
grep -q 'Van: left: is closed' history.log || fail 'the history should have the last motion'

printf '\nAll of it happened as it should, in %s s.\n' "$SECONDS"
