#!/usr/bin/env bash
# Makes what builds programs for arm64 on an amd64 Debian: sdk.sh SUITE, where SUITE is the Debian that they are for.
# Everything is made once, and kept below .build/arm64. README.md says what each part is for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

suite=${1-}
case $suite in
bookworm) gcc=12 ;;
trixie) gcc=14 ;;
*)
  echo 'usage: sdk.sh bookworm|trixie' >&2
  exit 64
  ;;
esac
recipes=$PWD/Packaging/arm64
folder=$PWD/.build/arm64
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [[ $(dpkg --print-architecture) != amd64 ]]; then
  echo 'sdk.sh: this machine is no amd64 Debian; on an arm64 machine with Swift, make is enough' >&2
  exit 69
fi
toolchain=$(dirname "$(realpath "$(command -v swiftc)")")
# What this machine takes Debian's packages from.
# shellcheck disable=SC2016 # apt fills this in.
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' |
  sort -u | head -n 1)}
mirrors=("${mirror:-http://deb.debian.org/debian}" https://snapshot.debian.org/archive/debian/20261030T000000Z)
mkdir -p "$folder/downloads"
trap 'rm -rf "$folder"/apt.*' EXIT

# make_once PART TEXT FUNCTION: makes a part, unless it is there and was made by the same functions from the same TEXT.
make_once() {
  local part=$1 recipe status=0
  recipe=$({ declare -f debian unpack "$3" && cat "$recipes"/{downloads,glibc236.c} && echo "$2"; } | sha256sum)
  if [[ $(cat "$folder/$part.recipe" 2>/dev/null) == "$recipe" ]]; then return; fi
  echo "arm64: making $part" >&2
  rm -rf "${folder:?}/$part" "$folder/$part.recipe"
  mkdir -p "$folder/$part"
  # With `||`, bash would go on after a command of a function that fails.
  set +e
  (
    trap - EXIT
    set -e
    "$3"
  )
  status=$?
  set -e
  ((status == 0)) || exit "$status"
  echo "$recipe" >"$folder/$part.recipe"
}

# package NAME ARCHITECTURE: downloads a package of the list, checked by size and digest, and sets `deb` to its path.
package() {
  local size digest name found from
  found=$(grep " $1_.*_$2.deb\$" "$recipes/downloads")
  read -r size digest name <<<"$found"
  deb=$folder/downloads/$name
  for from in "${mirrors[@]}"; do
    # apt-helper takes a file that is there already, if it is the right one. In a URL a + is %2b.
    if /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "${from%/}/pool/main/s/swiftlang/${name//+/%2b}" \
      "$deb" "Checksum-FileSize:$size" "SHA256:$digest" 2>>"$folder/downloads/log"; then
      rm -f "$folder/downloads/log"
      return
    fi
  done
  echo "sdk.sh: no mirror has $name as Packaging/arm64/downloads names it; its README.md says what to do" \
    "(${mirrors[*]}; .build/arm64/downloads/log)" >&2
  exit 69
}

# unpack NAME ARCHITECTURE FOLDER PATTERN...: the files of a package of the list below usr/libexec/swift.
unpack() {
  local deb
  package "$1" "$2"
  dpkg-deb --fsys-tarfile "$deb" | tar --extract --directory "$3" --strip-components 4 --wildcards "${@:4}"
  rm "$deb"
}

# debian SUITE ARCHITECTURE FOLDER PACKAGE...: unpacks these packages and what they depend on, checked by Debian's
# signature. apt has all of its files in a folder of its own, so it neither knows nor changes this machine's packages.
debian() {
  local suite=$1 architecture=$2 to=$3 apt
  shift 3
  apt=$(mktemp -d "$folder/apt.XXXXXX")
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,parts,trusted}
  : >"$apt/status"
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<END
Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache"; Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/parts"; Dir::Etc::Preferences "$apt/preferences"; Dir::Etc::PreferencesParts "$apt/parts";
APT::Architecture "$architecture"; APT::Architectures { "$architecture"; }; APT::Sandbox::User "root";
APT::Install-Recommends "false"; Debug::NoLocking "true";
END
  export APT_CONFIG=$apt/apt.conf
  apt-get -qq update
  apt-get -qq --yes --download-only install "$@" >/dev/null
  # Both suites have their files below /usr; Debian 12's packages say otherwise.
  mkdir -p "$to"/usr/{bin,lib,sbin}
  ln -s usr/bin usr/lib usr/sbin "$to"
  for deb in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$deb" "$to"; done
  rm -rf "$apt" "$to"/usr/share/{doc,locale,man}
}

# Debian's compiler, with the modules of its own version. It wants newer libraries than a Debian 12 has.
compiler() {
  local to=$folder/compiler library program
  mkdir "$to/system"
  # Its library: the compiler is written in Swift as well.
  unpack libswiftlang amd64 "$to" './usr/libexec/swift/lib/swift/linux/*.so' './usr/libexec/swift/lib/swift/host/*.so'
  # Without libSwiftScan, which only makes planning quicker, it is half as large.
  unpack swiftlang amd64 "$to" --exclude '*/lib_InternalSwiftScan.so' \
    ./usr/libexec/swift/bin/{swift-driver,swift-frontend,swift-autolink-extract,swiftc} \
    './usr/libexec/swift/lib/clang/*/include' './usr/libexec/swift/lib/swift/host/*.so'
  debian trixie amd64 "$to/system" libc6 libgcc-s1 libncurses6 libsqlite3-0 libstdc++6 libuuid1 libzstd1 zlib1g
  library=$to/system/usr/lib/x86_64-linux-gnu
  for program in swift-driver swift-frontend; do
    patchelf --set-interpreter "$library/ld-linux-x86-64.so.2" --force-rpath --set-rpath \
      "\$ORIGIN/../lib/swift/host/compiler:\$ORIGIN/../lib/swift/host:\$ORIGIN/../lib/swift/linux:$library" "$to/bin/$program"
  done
  # It links with this machine's programs, and SwiftPM looks into its index for tests.
  for program in clang clang++ ld.lld llvm-ar; do ln -s "$toolchain/$program" "$to/bin"; done
  ln -s "$toolchain/../lib/libIndexStore.so" "$to/lib"
  "$to/bin/swiftc" -nonlib-dependency-scanner --version 2>/dev/null | head -n 1 >&2
}

# The Swift library that programs for arm64 are compiled and linked with.
library() {
  local to=$folder/library part modules
  mkdir "$to/all"
  unpack libswiftlang arm64 "$to/all" './usr/libexec/swift/lib/swift/*'
  unpack swiftlang arm64 "$to/all" --exclude '*/embedded/*' --exclude '*/host/*' --exclude '*/pm/*' \
    --exclude '*/FrameworkABIBaseline/*' './usr/libexec/swift/lib/swift/*' './usr/libexec/swift/lib/swift_static/*'
  modules=$(echo "$folder"/compiler/lib/clang/*)
  for part in swift swift_static; do
    mv "$to/all/lib/$part" "$to"
    rm -rf "$to/$part/clang"
    ln -s "$modules" "$to/$part/clang"
  done
  rm -r "$to/all"
  # Whoever imports Testing and Foundation would be linked with lib_Testing_Foundation, which Debian does not have.
  rm -rf "$to"/swift/linux/Testing.swiftcrossimport
}

# The C libraries and headers of the system that programs will run on, and the Swift SDK that names everything.
sysroot() {
  local to=$folder/$suite/sysroot bundle=$folder/$suite/sdks/arm64.artifactbundle link target
  mkdir "$to"
  debian "$suite" arm64 "$to" "${packages[@]}"
  # Links of the system that name a path from its root.
  find "$to/usr" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
    ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$to$target")" "$link"
  done
  ln -s "$folder/library/swift" "$folder/library/swift_static" "$to/usr/lib"
  if ! grep -q __isoc23_strtol "$to/usr/include/stdlib.h"; then
    clang --target=aarch64-linux-gnu --sysroot="$to" -O2 -fPIC -Wall -Werror -c "$recipes/glibc236.c" -o "$folder/$suite/glibc236.o"
  fi
  mkdir -p "$bundle/arm64"
  cat >"$bundle/info.json" <<END
{"schemaVersion": "1.0", "artifacts": {
  "arm64": {"type": "swiftSDK", "version": "1", "variants": [{"path": "arm64"}]}}}
END
  cat >"$bundle/arm64/swift-sdk.json" <<END
{"schemaVersion": "4.0", "targetTriples": {"aarch64-unknown-linux-gnu": {
  "sdkRootPath": "$to", "toolsetPaths": ["toolset.json"],
  "swiftResourcesPath": "$folder/library/swift", "swiftStaticResourcesPath": "$folder/library/swift_static"}}}
END
  cat >"$bundle/arm64/toolset.json" <<END
{"schemaVersion": "1.0", "swiftCompiler": {"extraCLIOptions": ["-use-ld=lld", "-nonlib-dependency-scanner"]},
  "linker": {"path": "$toolchain/ld.lld"}}
END
}

# The libraries that the packages of Swift name, as Tests/prepare.sh reads them.
mapfile -t packages < <({
  sed -n 's/^ *library(.*\[\(.*\)\]),$/\1/p' Package.swift
  sed -n 's/.*pkgConfig: "[a-z]*", "\([a-z0-9-]*\)").*/\1/p' Fleet/Package.swift
  echo "libc6-dev,libgcc-$gcc-dev,libsqlite3-dev,mosquitto-dev,libstdc++-$gcc-dev,libtomlplusplus-dev,libzxing-dev,linux-libc-dev"
} | tr -d '" ' | tr ',' '\n' | sort -u)

make_once compiler "$toolchain" compiler
make_once library '' library
make_once "$suite" "$toolchain ${packages[*]}" sysroot
