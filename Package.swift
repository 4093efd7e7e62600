// swift-tools-version: 6.2
import PackageDescription

// CI turns warnings into errors; someone who builds with a newer compiler is not punished for it.
let strict = Context.environment["STEPCTL_STRICT"] != nil

let swiftSettings: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (strict ? [.treatAllWarnings(as: .error)] : [])

/// A module of ours: what it may import is what it names here, and a test checks that it imports no more.
func module(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
  .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: swiftSettings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(
    name: name, dependencies: dependencies, path: "Tests/\(name)", exclude: exclude, swiftSettings: swiftSettings)
}

let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "stepctl",
  products: [
    .executable(name: "stepctl", targets: ["stepctl"]),
    .executable(name: "stepctl-nfc", targets: ["stepctl-nfc"]),
    .executable(name: "stepctl-qr", targets: ["stepctl-qr"]),
    .executable(name: "stepd", targets: ["stepd"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
  ],
  targets: [
    // C libraries: a module map and a header, one importer each.
    .systemLibrary(name: "CBluetooth", pkgConfig: "bluez", providers: [.apt(["libbluetooth-dev"])]),
    .systemLibrary(name: "CNFC", pkgConfig: "libnfc", providers: [.apt(["libnfc-dev"])]),
    .systemLibrary(
      name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev", "libssl-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    // Headers alone: the library is loaded when a radio needs it.
    .systemLibrary(name: "CSystemd", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CPNG", pkgConfig: "libpng", providers: [.apt(["libpng-dev"])]),
    .systemLibrary(name: "CTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
    .systemLibrary(name: "CZBar", pkgConfig: "zbar", providers: [.apt(["libzbar-dev"])]),
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CVideo"),
    .target(name: "CTOML"),
    .target(name: "CZXing", linkerSettings: [.linkedLibrary("ZXing")]),

    // Pure: bytes and values in, values out; no I/O and no clock.
    module("StepDomain"),
    module("StrictJSON"),
    module("NDEF"),
    module("NFCMessages", ["StepDomain"]),
    module("NTAG424", [crypto, cryptoExtras]),
    module("Ranging", ["StepDomain"], exclude: ["RANGING.md"]),
    module("StepProtocol", ["StepDomain", "StrictJSON", crypto, cryptoExtras], exclude: ["PROTOCOL.md"]),

    // Adapters: each owns one library or one corner of the system, and imports no other adapter.
    module("SystemIO", ["CLinux"]),
    module("Bluetooth", ["SystemIO", "StepDomain", "Ranging", "CBluetooth", "CSystemd"]),
    // libnfc sometimes ends its process: it has one of its own, which NFCReader speaks with.
    module(
      "NFCReader", ["SystemIO", "StepDomain", "NDEF", "NFCMessages", "NTAG424"], exclude: ["NFC.md"]),
    module("NFCDevice", ["SystemIO", "NFCMessages", "CNFC"]),
    module("MQTTClient", ["SystemIO", "CMosquitto"]),
    module("QRCode", ["CQREncode", "CZlib"]),
    module("QRReader", ["SystemIO"]),
    module("Configuration", ["SystemIO", "StepDomain", "StrictJSON", "StepProtocol", "CTOML"]),
    module(
      "Provisioning", ["SystemIO", "StepDomain", "StrictJSON", "StepProtocol", "Configuration", "COpenSSL"]),

    // The frame of both programs: what is printed where, and how they end.
    module("Terminal", ["StepDomain", "SystemIO", "StrictJSON", "Configuration", "MQTTClient", argumentParser]),

    // The programs' insides.
    module("QRDecoder", ["SystemIO", "QRReader", "CPNG", "CTurboJPEG", "CZBar", "CZXing", "CVideo"]),
    module(
      "StepController",
      [
        "SystemIO", "StepDomain", "StrictJSON", "Ranging", "StepProtocol", "Bluetooth", "MQTTClient", "Configuration",
      ]),
    module(
      "StepCommands",
      [
        "SystemIO", "StepDomain", "StrictJSON", "NDEF", "NFCMessages", "Ranging", "StepProtocol", "Bluetooth",
        "NFCReader", "QRCode", "QRReader", "MQTTClient", "Configuration", "Provisioning", "Terminal", argumentParser,
      ]),
    .executableTarget(name: "stepctl-qr", dependencies: ["QRDecoder"], swiftSettings: swiftSettings),
    .executableTarget(name: "stepctl", dependencies: ["StepCommands", "Terminal"], swiftSettings: swiftSettings),
    .executableTarget(name: "stepctl-nfc", dependencies: ["NFCDevice"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "stepd",
      dependencies: ["StepController", "Bluetooth", "Configuration", "MQTTClient", "Terminal", argumentParser],
      exclude: ["stepd.service"], swiftSettings: swiftSettings),

    tests("StrictJSONTests", ["StrictJSON"]),
    tests("StepDomainTests", ["StepDomain"]),
    tests("NDEFTests", ["NDEF", "StrictJSON"]),
    tests("RangingTests", ["Ranging", "StepDomain", "StrictJSON"]),
    tests("StepProtocolTests", ["StepProtocol", "StepDomain", "StrictJSON", crypto]),
    tests("SystemIOTests", ["SystemIO"]),
    tests("BluetoothTests", ["Bluetooth", "Ranging", "StepDomain", "SystemIO"]),
    tests("NTAG424Tests", ["NTAG424"]),
    tests("NFCMessagesTests", ["NFCMessages", "StepDomain"]),
    tests("NFCReaderTests", ["NFCReader", "NFCMessages", "SystemIO"]),
    tests("QRCodeTests", ["QRCode"]),
    tests("QRReaderTests", ["QRReader", "SystemIO"]),
    tests("QRDecoderTests", ["QRDecoder", "QRCode", "QRReader"]),
    tests("MQTTClientTests", ["MQTTClient", "SystemIO"]),
    tests("ConfigurationTests", ["Configuration", "StepDomain", "StepProtocol", "SystemIO"]),
    tests(
      "ProvisioningTests", ["Provisioning", "Configuration", "StepDomain", "StepProtocol", "StrictJSON", "SystemIO"]),
    tests(
      "StepControllerTests",
      [
        "StepController", "StepDomain", "StepProtocol", "StrictJSON", "SystemIO", "Ranging", "Bluetooth",
        "Configuration", crypto,
      ]),
    tests("StepCommandsTests", ["StepCommands", "Ranging", "StepDomain", "Terminal"]),
    tests("StructureTests", []),
    tests("DocumentationTests", []),
  ],
  cxxLanguageStandard: .cxx17
)

// Only when asked for: it takes clang's runtime, and flags that SwiftPM calls unsafe. `make fuzz` asks.
if Context.environment["STEPCTL_FUZZ"] != nil {
  package.targets.append(
    .executableTarget(
      name: "Fuzz",
      dependencies: [
        "Bluetooth", "Configuration", "NDEF", "NFCMessages", "NTAG424", "QRReader", "Ranging", "StepDomain",
        "StepProtocol", "StrictJSON",
      ],
      path: "Tests/Fuzz",
      swiftSettings: swiftSettings,
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]))
}

// Only when asked for: what Tests/Benchmarks/parser measures. `make bench` asks.
if Context.environment["STEPCTL_BENCH"] != nil {
  package.products.append(.library(name: "ParserBenchmark", type: .dynamic, targets: ["ParserBenchmark"]))
  package.targets.append(
    .target(
      name: "ParserBenchmark", dependencies: ["Ranging"], path: "Tests/Benchmarks/parser",
      exclude: ["parser.c", "parser.py"], swiftSettings: swiftSettings))
}
