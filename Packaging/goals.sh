# shellcheck shell=bash
# take_goal GOAL: sets `package` to the folder of the Swift package, `programs` to what this goal of the Makefile builds of
# it, and `others` to what is built beside them. To be sourced by scripts that build for another Debian. Status 64 for
# another goal.
take_goal() {
  # shellcheck disable=SC2034 # Whoever sources this reads them.
  case $1 in
  release) package=. programs=(stepctl stepd stepctl-operator stepctl-nfc stepctl-qr stepctl-traffic) others=() ;;
  fleet) package=Fleet programs=(stepfleet) others=(mosquitto_stepfleet.so) ;;
  *)
    echo "${0##*/}: there is no goal \"$1\": release, fleet" >&2
    exit 64
    ;;
  esac
}
