#!/usr/bin/env bash
# Makes Debian packages of programs that were built: packages.sh BIN FLEET_BIN [SUITE ARCHITECTURE]. BIN and FLEET_BIN
# are the folders that they are in; what is not there is said, and stepfleet may be missing. Without SUITE the packages
# are for the Debian of this machine, and made by its tools; with it, they are made in a root of SUITE (root.sh), as root.
# They are then in .build/deb/SUITE/ARCHITECTURE.
set -euo pipefail
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$1 fleet=$2 suite=${3-} architecture=${4-}
fail() { echo "packages.sh: $2" >&2; exit "$1"; }

missing=()
for program in stepctl stepd stepctl-operator stepctl-nfc stepctl-qr stepctl-traffic; do
  [[ -x $bin/$program ]] || missing+=("$program")
done
((${#missing[@]} == 0)) || fail 66 "$bin lacks ${missing[*]}: build them first"
programs=("$bin/stepctl" "$bin/stepctl-operator" "$bin/stepd")
if [[ -x $fleet/stepfleet ]]; then
  programs+=("$fleet/stepfleet")
  [[ -e $fleet/mosquitto_stepfleet.so ]] || fail 66 "$fleet lacks mosquitto_stepfleet.so: build it first"
else
  echo "packages.sh: there is no $fleet/stepfleet, so there will be no package of it" >&2
fi

# What the programs say of themselves: version, commit, its time, processor. They need not run on this machine.
stamp=
for program in "${programs[@]}"; do
  found=$(LC_ALL=C readelf --string-dump=.stepctl "$program" 2>/dev/null | sed -n 's/^ *\[ *0\]  //p')
  [[ -n $found ]] || fail 65 "$program does not say which commit it is of: build it with make, in a clone of the repository"
  [[ ${stamp:=$found} == "$found" ]] ||
    fail 65 "$program is \"$found\", and ${programs[0]} is \"$stamp\": build both again"
done
read -r version commit time processor _ <<<"$stamp"
[[ $(dpkg-parsechangelog -S Version) == "$version" ]] || fail 65 "debian/changelog is not of version $version"

if [[ -n $suite ]]; then
  root=$(Packaging/root.sh "$suite" "$architecture")
else
  root='' architecture=$(dpkg --print-architecture)
fi
[[ $processor == "$architecture" ]] || fail 65 "the programs in $bin are for $processor, not for $architecture"
# shellcheck disable=SC1091
read -r suite release < <(. "${root:-}/etc/os-release" && echo "$VERSION_CODENAME ${VERSION_ID-}")

# A package's version has the commit, so that no two of one version differ, and the release, so that upgrading the
# release upgrades the package.
full="$version+$(date --utc --date="@$time" +%Y%m%d%H%M%S).$commit~${release:+deb}${release:-$suite}"
result=.build/deb/$suite/$architecture
work=${root:-.build/deb}/build
rm -rf "$result" "$work"
mkdir -p "$result" "$work/stepctl" "$work/programs"
cp -R debian Makefile man completions schema CHANGELOG.md "$work/stepctl/"
cp --parents Sources/Programs/stepd/*.service Fleet/Sources/stepfleet/*.service Fleet/man/*.8 "$work/stepctl/"
cp "$bin"/stepctl{,-operator,-nfc,-qr,-traffic} "$bin/stepd" "${programs[@]:3}" "$work/programs/"
if ((${#programs[@]} > 3)); then cp "$fleet/mosquitto_stepfleet.so" "$work/programs/"; fi
{
  cat <<END
stepctl ($full) $suite; urgency=medium

  * Commit $commit, for Debian ${release:-$suite}.

 -- $(dpkg-parsechangelog -S Maintainer)  $(LC_ALL=C date --utc -R --date="@$time")

END
  cat debian/changelog
} >"$work/stepctl/debian/changelog"

# What is linked into the programs and comes from Debian's packages: gcc's libraries, by what its objects say, and headers.
static=$(LC_ALL=C readelf --string-dump=.comment "$bin/stepd" |
  sed -n 's/.*GCC: (Debian \(\([0-9]*\)[^)]*\)).*/gcc-\2 (= \1)/p')
headers=$(dpkg-query --admindir="${root:-}/var/lib/dpkg" --show --showformat='${source:Package} (= ${source:Version})' \
  libtomlplusplus-dev)

# Runs in the folder $work, or in the same folder of the root.
# shellcheck disable=SC2016
build='set -e
  export BIN=$PWD/programs FLEET_BIN= DEB_BUILD_PROFILES= RUN= STATIC="$1"
  if [ -x programs/stepfleet ]; then FLEET_BIN=$BIN DEB_BUILD_PROFILES=pkg.stepctl.fleet; fi
  if [ -x qemu ]; then RUN=$PWD/qemu; fi
  (cd stepctl && dpkg-buildpackage --host-arch "$0" --build=binary --no-sign --no-check-builddeps)
  lintian --fail-on error,warning ./*.changes'
if [[ -z $root ]]; then
  (cd "$work" && sh -c "$build" "$architecture" "${static:+$static, }$headers")
else
  # stepfleet makes its completions itself.
  if [[ $architecture != $(dpkg --print-architecture) && -x $work/programs/stepfleet ]]; then
    cp "$(command -v qemu-aarch64-static)" "$work/qemu"
  fi
  # shellcheck disable=SC2016
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"' \
    "$root" sh -c "cd /build && $build" "$architecture" "${static:+$static, }$headers"
fi
cp "$work"/*.deb "$result/"
rm -rf "$work"
ls "$result"
