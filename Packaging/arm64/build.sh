#!/usr/bin/env bash
# Builds programs for arm64 on an amd64 Debian: build.sh SUITE GOAL FLAG..., with what sdk.sh makes. SUITE is the Debian
# that they are for, GOAL is one of the Makefile (release or fleet), and flags are swiftc's: `make arm64` calls it.
# The programs are in .build/arm64/SUITE/release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
suite=$1 goal=$2
shift 2
source Packaging/goals.sh
take_goal "$goal"
Packaging/arm64/sdk.sh "$suite"
folder=$PWD/.build/arm64
sysroot=$folder/$suite/sysroot archives=$folder/$suite/archives
# What the programs say of themselves, with the version of the compiler that makes them: packages are made of no others.
SWIFT_EXEC=$folder/compiler/bin/swiftc
source Packaging/stamp.sh
# As in the Makefile, which says why. The SDK's folders are below this one.
pathless=(-file-prefix-map "$PWD=." -Xfrontend -disable-incremental-llvm-codegen)

# As for this machine (Makefile): a static libstdc++ alone in a folder, and the small FoundationEssentials.
mkdir -p "$archives"
ln -sf "$sysroot"/usr/lib/gcc/aarch64-linux-gnu/*/libstdc++.a "$archives/libstdc++.a"
"$SWIFT_EXEC" -target aarch64-unknown-linux-gnu -sdk "$sysroot" -resource-dir "$folder/library/swift_static" \
  -O "${pathless[@]}" -parse-as-library -static -emit-library -o "$archives/libessentials.a" \
  -module-link-name essentials \
  -emit-module -emit-module-path "$archives/FoundationEssentials.swiftmodule" -module-name FoundationEssentials \
  Sources/Libraries/FoundationEssentials/FoundationEssentials.swift

if [[ -e $folder/$suite/glibc236.o ]]; then set -- "$@" -Xlinker "$folder/$suite/glibc236.o"; fi
flags=(-Xcc "-ffile-prefix-map=$PWD=.")
for flag in "${pathless[@]}" "$@"; do flags+=(-Xswiftc "$flag"); done
source Packaging/arm64/swift.sh
build=$folder/$suite/build/$goal release=$folder/$suite/release
mkdir -p "$release"
for program in "${programs[@]}"; do
  swift_arm64 "$suite" build --package-path "$package" --scratch-path "$build" -c release --static-swift-stdlib \
    --disable-local-rpath "${flags[@]}" --product "$program"
  install "$build/aarch64-unknown-linux-gnu/release/$program" "$release"
done
for other in "${others[@]}"; do
  Fleet/Sources/MosquittoPlugin/build.sh "$release/$other" \
    "$folder/compiler/bin/clang" --target=aarch64-unknown-linux-gnu "--sysroot=$sysroot" -fuse-ld=lld
done
