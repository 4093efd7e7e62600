#!/usr/bin/env bash
# The last part of demo.sh, inside the rig's kernel, which has two adapters: link.sh BIN AIR. No broker is needed.
set -euo pipefail
exec 2>&1

demo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${1:?usage: link.sh BIN AIR}" && pwd)
air=$(realpath "${2:?usage: link.sh BIN AIR}")
PATH=$bin:$PATH
# shellcheck source-path=SCRIPTDIR
source "$demo/stage.sh"
export XDG_CONFIG_HOME=$folder

moved() { [[ $(sed 's/.*"step":"\([^"]*\)".*"to":"\([^"]*\)".*/\1 \2/' car/servo.jsonl | paste -sd,) == "$1" ]]; }

"$air" --ctl orders --ready ready vhci vhci &
started+=($!)
await ready ready
for adapter in hci0 hci1; do
  until hciconfig "$adapter" up 2>/dev/null; do sleep 0.05; done
done
echo 'rssi 0 1 -50' >orders

port=$(free_port)
run 0 "stepctl provision vehicle car --name 'Rolling Chassis' --port $port --beacon left=hci0 --quiet"
run 0 'stepctl provision token car --rider alice --for 1h --quiet'
run 0 "printf '[link]\\nadapter = \"hci0\"\\n' >>car/stepd.toml"
export STEPCTL_VEHICLE=car/riders/alice/vehicle.toml STEPCTL_RADIO=hci1
start 'stepd --config car/stepd.toml 2>controller.log'
await controller.log 'can be found by Bluetooth'
await controller.log 'left: on the air'
run 0 'stepctl open'
moved 'left open' || fail 'expected that the left step opened'
run 0 'stepctl status'

printf '\nThe broker comes, and goes between question and command\n'
start 'mosquitto -v -c car/mosquitto.conf 2>broker.log'
broker=${started[-1]}
await controller.log 'connected to'
# The rider stands too far away, and comes closer.
echo 'rssi 0 1 -90' >orders
start 'stepctl close --timeout 30 -v >closing.log 2>&1'
await broker.log "left/set_position',"
kill "$broker"
await closing.log 'linked by Bluetooth'
echo 'rssi 0 1 -50' >orders
wait "${started[-1]}" || fail 'expected that the step closes'
unset "started[-1]"
run 0 'cat closing.log'
moved 'left open,left close' || fail 'expected that the left step closed'
