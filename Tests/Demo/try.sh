#!/usr/bin/env bash
# A vehicle on this machine, and a shell for its rider: try.sh BIN, where BIN is the folder of stepctl and stepd. What the
# shell reads may come from a pipe. The vehicle is gone when the shell ends.
set -euo pipefail

demo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "${1:?usage: try.sh BIN}" && pwd):$PATH
# shellcheck source-path=SCRIPTDIR
source "$demo/stage.sh"

stepctl provision vehicle car --name 'Rolling Chassis' --port "$(free_port)" --quiet >provision.log
stepctl provision token car --rider alice --for 8h --quiet >>provision.log
mosquitto -v -c car/mosquitto.conf 2>broker.log &
started+=($!)
await broker.log ' running'
stepd --config car/stepd.toml 2>controller.log &
started+=($!)
await broker.log 'Sending SUBACK'
"$demo/walk.py" --side left --vehicle car/vehicle.toml --out walk.btsnoop

export XDG_CONFIG_HOME=$folder
export STEPCTL_VEHICLE=$folder/car/riders/alice/vehicle.toml STEPCTL_RADIO=btsnoop:$folder/walk.btsnoop
cat <<'EOF'
You are Alice, and walk up to the left step of the Rolling Chassis. Try:

    stepctl open             stepctl locate --watch
    stepctl open right       stepctl status
    stepctl close            stepctl doctor

`exit` ends this shell, and the vehicle.
EOF
PS1='alice$ ' bash --norc || true
