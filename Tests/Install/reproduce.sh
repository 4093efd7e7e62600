#!/usr/bin/env bash
# Builds this commit twice, in two folders, and compares what comes out by cmp and, where it differs, by diffoscope:
# reproduce.sh [PROGRAM...]. The programs are stepctl and stepd unless others are named, or "all" is: then packages are
# made of them as well, and compared. Folders, languages, time zones and umasks differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

programs=("$@")
if ((${#programs[@]} == 0)); then programs=(stepctl stepd); fi
if [[ ${programs[*]} == all ]]; then
  programs=(stepctl stepd stepctl-operator stepctl-nfc stepctl-qr stepctl-traffic)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD)
folders=("$work/one" "$work/another/folder/two")

# build FOLDER NAME=VALUE...: a clone of this commit, built with another environment.
build() {
  local folder=$1
  shift
  git clone --quiet --shared --no-checkout . "$folder"
  git -C "$folder" checkout --quiet --detach "$commit"
  env "$@" make -C "$folder" PROGRAMS="${programs[*]}" >&2
  if ((${#programs[@]} == 6)); then env "$@" make -C "$folder" deb >&2; fi
}
(umask 022 && build "${folders[0]}" LC_ALL=C TZ=UTC)
(umask 002 && build "${folders[1]}" LC_ALL=C.UTF-8 TZ=Pacific/Auckland)

# What was built: programs, and packages if there are some.
results() {
  local program
  for program in "${programs[@]}"; do echo ".build/release/$program"; done
  (cd "${folders[0]}" && find .build/deb -name '*.deb' 2>/dev/null | sort)
}
differ=0
while read -r result; do
  if cmp "${folders[@]/%//$result}"; then
    echo "same    $(sha256sum "${folders[0]}/$result" | cut -c 1-16)  $result"
  else
    differ=1
    echo "differs $result"
    diffoscope --text - "${folders[@]/%//$result}" | head -n 200 || true
  fi
done < <(results)
exit "$differ"
