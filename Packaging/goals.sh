# shellcheck shell=bash
# take_goal GOAL: sets `package` to the folder of the Swift package, and `programs` to what this goal of the Makefile builds
# of it. To be sourced by scripts that build for another Debian. Status 64 for another goal.
take_goal() {
  # shellcheck disable=SC2034 # Whoever sources this reads both.
  case $1 in
  release) package=. programs=(stepctl stepd stepctl-operator stepctl-nfc stepctl-qr stepctl-traffic) ;;
  fleet) package=Fleet programs=(stepfleet) ;;
  *)
    echo "${0##*/}: there is no goal \"$1\": release, fleet" >&2
    exit 64
    ;;
  esac
}
