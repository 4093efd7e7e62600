#!/usr/bin/env bash
# Shows what stepctl is for, with the real programs and a real broker: demo.sh BIN, where BIN is the folder of stepctl
# and stepd. Ends with status 1 as soon as anything happens otherwise than it says, and leaves nothing behind.
set -euo pipefail

demo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${1:?usage: demo.sh BIN}" && pwd)
PATH=$bin:$PATH
# shellcheck source-path=SCRIPTDIR
source "$demo/stage.sh"
export XDG_CONFIG_HOME=$folder

# begin COMMAND LOG: starts a command that moves a step, and waits until the step moves.
begin() {
  start "$1 >$2 2>&1"
  await "$2" 'answer   moving'
}

# ends STATUS LOG: waits for what was started last, which has to end with STATUS, and shows what it printed.
ends() {
  local status=0
  wait "${started[-1]}" || status=$?
  unset "started[-1]"
  run 0 "cat $2"
  ((status == $1)) || fail "expected that it ends with $1, not with $status"
}

moved() { [[ $(sed 's/.*"step":"\([^"]*\)".*"to":"\([^"]*\)".*/\1 \2/' car/servo.jsonl | paste -sd,) == "$1" ]]; }

port=$(free_port)
uuid=5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90

title '1. A vehicle, its broker and its controller, and a token for a rider'
run 0 "stepctl provision vehicle car --name 'Rolling Chassis' --port $port \\
    --uuid $uuid \\
    --topic arena2036/rolling_chassis --quiet"
run 0 'stepctl provision token car --rider alice --for 1h --quiet'
# A program of the vehicle's can be an input: it writes 1 to a file while nothing is in the left step's way.
echo 1 >car/clear
run 0 "printf '[inputs.steps.left]\\nclear = \"file:clear\"\\n' >>car/stepd.toml"
start 'mosquitto -v -c car/mosquitto.conf 2>broker.log'
await broker.log ' running'
start 'stepd --config car/stepd.toml 2>controller.log'
stepd=${started[-1]}
await broker.log 'Sending SUBACK'

title '2. A rider walks up to the left step; what a phone would hear is simulated'
ln -s "$demo/walk.py" "$demo/road.py" .
ln -s "$demo/../Peers/Tags" tags
run 0 "python3 walk.py --side left --out walk.btsnoop \\
    --uuid $uuid"
export STEPCTL_VEHICLE=car/riders/alice/vehicle.toml STEPCTL_RADIO=btsnoop:walk.btsnoop
printf '%s$ export STEPCTL_VEHICLE=%s\n$ export STEPCTL_RADIO=%s%s\n' \
  "$dim" "$STEPCTL_VEHICLE" "$STEPCTL_RADIO" "$plain"
run 0 'stepctl locate --watch --interval 2 | tee lines'
python3 walk.py --side left --check <lines || fail 'expected that each zone is the one in which the rider is'
run 0 'stepctl locate'

title '3. Somebody records what is sent to the controller, with its certificate'
start "mosquitto_sub -h localhost -p $port --cafile car/tls/ca.pem \\
    --cert car/tls/controller.pem --key car/tls/controller.key \\
    -i recorder -q 1 -t 'arena2036/rolling_chassis/+/set_position' -F '%t %p' >recorded"
await broker.log 'Sending SUBACK to recorder'

title '4. The step in front opens'
run 0 'stepctl open'
run 0 'cat car/servo.jsonl'
moved 'left open' || fail 'expected that the left step opened and nothing else moved'

title '5. The right step does not: the rider stands at the left one'
run 4 'stepctl open right'
moved 'left open' || fail 'expected that nothing moved'

title '6. The left step closes'
run 0 'stepctl close left'
moved 'left open,left close' || fail 'expected that the left step closed'

title '7. What was recorded, and cannot be read, is sent again: it moves nothing'
await recorded /set_position 4
kill "${started[-1]}"
unset "started[-1]"
run 0 'cut -c 1-77 recorded'
cp car/servo.jsonl before
# More than a second apart: of refusals that are alike stepd writes one line a second.
run 0 "while read -r topic message; do
    sleep 1.5
    mosquitto_pub -h localhost -p $port --cafile car/tls/ca.pem \\
      --cert car/riders/alice/rider.pem --key car/riders/alice/rider.key \\
      -q 1 -t \"\$topic\" -m \"\$message\"
  done <recorded"
await controller.log ': replayed' "$(wc -l <recorded)"
run 0 'cat controller.log'
run 0 'cmp before car/servo.jsonl'

title '8. The left step opens, and is stopped on its way'
begin 'stepctl open left' opening.log
run 0 'stepctl stop --side left'
ends 6 opening.log
run 0 'stepctl close left'
moved 'left open,left close,left open,left close' || fail 'expected that the left step closed'

title '9. It opens again, and something is in its way: it stops, and waits for another command'
begin 'stepctl open left' obstructed.log
run 0 'echo 0 >car/new && mv car/new car/clear'
ends 6 obstructed.log
run 5 'stepctl open left'
run 0 'echo 1 >car/new && mv car/new car/clear'
# A contact has to stay clear for a moment before it is believed.
sleep 1
run 0 'stepctl close left'
six='left open,left close,left open,left close,left open,left close'
moved "$six" || fail 'expected that the left step closed'

title '10. Where the radio does not do, the tag on the step does (a program plays it)'
start "python3 tags/chip.py --tag ntag213 --link reader >chip.log"
await chip.log reader
export STEPCTL_NFC=pn532_uart:$folder/reader
printf '%s$ export STEPCTL_NFC=pn532_uart:%s/reader%s\n' "$dim" "$folder" "$plain"
run 0 'stepctl provision tag --step right --vehicle car/vehicle.toml'
run 0 'stepctl open right --by nfc'
moved "$six,right open" || fail 'expected that the right step opened'

title '11. And so does the code on it'
run 0 'stepctl provision qr --step right --vehicle car/vehicle.toml --output right.png'
run 4 'stepctl close left --by qr --qr right.png'
run 0 'stepctl close right --by qr --qr right.png'
moved "$six,right open,right close" || fail 'expected that the right step closed'

title '12. So both steps are closed, says the controller'
run 0 'stepctl status | tee status'
[[ $(tr -s ' ' <status | paste -sd,) == 'left closed,right closed' ]] || fail 'expected that both steps are closed'

title '13. The vehicle watches the road; what a traffic feed would show is simulated: a bicycle passes, and the step waits'
run 0 'python3 road.py --out car/road.jsonl'
run 0 "printf '%s\n' '[guard]' 'feed = \"file:road.jsonl\"' 'place = \"fixed\"' \\
    'latitude = 48.7758' 'longitude = 9.1829' 'heading_deg = 0' 'length_m = 4.6' 'width_m = 1.9' \\
    '[guard.steps]' 'left = { from_m = 1.8, to_m = 2.8, reach_m = 0.4 }' \\
    'right = { from_m = 1.8, to_m = 2.8, reach_m = 0.4 }' >>car/stepd.toml"
kill "$stepd"
wait "$stepd" || fail 'stepd did not end in order'
start 'stepd --config car/stepd.toml 2>guarded.log'
await guarded.log 'connected to'
run 0 'stepctl open left --by beacon 2>&1 | tee waiting'
grep -q '^traffic  a bicycle in .* s; waiting' waiting || fail 'expected that the step waits for the bicycle'
moved "$six,right open,right close,left open" || fail 'expected that the left step opened'

title '14. Without a network: the rider'"'"'s device speaks to the vehicle by Bluetooth'
rig=$demo/../../.build/rig
if [[ ! -x $rig/linux ]]; then
  echo 'It takes a kernel with Bluetooth, which "make rig" builds.'
# Both are ELF files, whose e_machine (at 18) says for which processor. The rig's kernel has no emulator for another one's.
elif ! cmp --quiet --ignore-initial=18 --bytes=2 "$bin/stepctl" "$rig/linux"; then
  echo 'The programs are for another processor than the kernel with Bluetooth, which "make rig" built.'
else
  "$demo/../Rig/run.sh" --timeout 120 --scn none --noup -- "$demo/link.sh" "$bin" "$rig/air" || fail 'it went otherwise'
fi
