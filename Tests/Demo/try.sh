#!/usr/bin/env bash
# A vehicle on this machine, and a shell for its rider: try.sh BIN, where BIN is the folder of stepctl and stepd. On a
# terminal the rider walks up first. What the shell reads may come from a pipe. The vehicle is gone when the shell ends.
set -euo pipefail

demo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "${1:?usage: try.sh BIN}" && pwd):$PATH
# shellcheck source-path=SCRIPTDIR
source "$demo/stage.sh"

stepctl provision vehicle car --name 'Rolling Chassis' --port "$(free_port)" --quiet >provision.log
mosquitto -v -c car/mosquitto.conf 2>broker.log &
started+=($!)
stepctl provision token car --rider alice --for 8h --quiet >>provision.log
"$demo/walk.py" --side left --vehicle car/vehicle.toml --out walk.btsnoop
await broker.log ' running'
stepd --config car/stepd.toml 2>controller.log &
started+=($!)
await broker.log 'Sending SUBACK'

export XDG_CONFIG_HOME=$folder
export STEPCTL_VEHICLE=$folder/car/riders/alice/vehicle.toml STEPCTL_RADIO=btsnoop:$folder/walk.btsnoop
if [[ -t 0 && -t 1 ]]; then
  echo '$ stepctl open --watch'
  # Whoever quits or stops it is a rider too.
  stepctl open --watch || true
  echo
fi
cat <<'EOF'
You are Alice, at the left step of the Rolling Chassis. Try:

    stepctl close --watch    stepctl locate --watch
    stepctl open right       stepctl status
    stepctl open             stepctl doctor

`exit` ends this shell, and the vehicle.
EOF
PS1='alice$ ' bash --norc || true
