# shellcheck shell=bash
# swift_arm64 SUITE COMMAND OPTION...: this machine's SwiftPM with Debian's compiler and with what sdk.sh made. To be
# sourced in the project's folder.
swift_arm64() {
  local folder=$PWD/.build/arm64 suite=$1 command=$2 pkgconfig
  shift 2
  # SwiftPM finds the .pc files of this machine first, unless pkg-config knows no others.
  pkgconfig=$folder/$suite/sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$folder/$suite/sysroot/usr/share/pkgconfig
  # The manifest runs on this machine, so this machine's compiler makes it.
  env SWIFT_EXEC="$folder/compiler/bin/swiftc" SWIFT_EXEC_MANIFEST="$(command -v swiftc)" \
    PKG_CONFIG_SYSROOT_DIR="$folder/$suite/sysroot" PKG_CONFIG_LIBDIR="$pkgconfig" \
    swift "$command" --swift-sdks-path "$folder/$suite/sdks" --swift-sdk arm64 \
    --pkg-config-path "${pkgconfig%:*}" --pkg-config-path "${pkgconfig#*:}" "$@"
}
