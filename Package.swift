// swift-tools-version: 6.2
import PackageDescription

// CI turns warnings into errors. Users with a newer compiler must not suffer from its new warnings.
let strict = Context.environment["STEPCTL_STRICT"] != nil

let swiftSettings: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (strict ? [.treatAllWarnings(as: .error)] : [])

/// One of our modules, in a folder that shows its room. It may import only what it lists here. A test checks this, and
/// that rooms depend only downward.
func module(
  _ name: String, in folder: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Sources/\(folder)", exclude: exclude, swiftSettings: swiftSettings)
}

func program(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .executableTarget(
    name: name, dependencies: dependencies, path: "Sources/Programs/\(name)", exclude: exclude,
    swiftSettings: swiftSettings)
}

func library(_ name: String, pkgConfig: String? = nil, _ packages: [String] = []) -> Target {
  .systemLibrary(
    name: name, path: "Sources/Libraries/\(name)", pkgConfig: pkgConfig,
    providers: packages.isEmpty ? nil : [.apt(packages)])
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
  .testTarget(
    name: name, dependencies: dependencies + ["TestSupport"], path: "Tests/Unit/\(name)", exclude: exclude,
    swiftSettings: swiftSettings)
}

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
  name: "stepctl",
  products: [
    .executable(name: "stepctl", targets: ["stepctl"]),
    .executable(name: "stepctl-operator", targets: ["stepctl-operator"]),
    .executable(name: "stepctl-nfc", targets: ["stepctl-nfc"]),
    .executable(name: "stepctl-qr", targets: ["stepctl-qr"]),
    .executable(name: "stepctl-traffic", targets: ["stepctl-traffic"]),
    .executable(name: "stepd", targets: ["stepd"]),
    // For gateways, kiosks and simulators. Tests/Kiosk is an example.
    .library(name: "StepProtocol", targets: ["StepProtocol", "Access", "Domain", "Encoding"]),
    .library(name: "Ranging", targets: ["Ranging", "Domain"]),
    // For an operator's server. Fleet is one.
    .library(
      name: "Operator", targets: ["Operator", "Access", "StepProtocol", "Domain", "Encoding", "SystemIO", "CBuild"]),
    .library(name: "Geography", targets: ["Geography", "GeoJSON"]),
    // For a program that is typed as these are.
    .library(name: "Terminal", targets: ["Terminal"]),
    .library(
      name: "Rider", targets: ["Rider", "Access", "MQTT", "StepProtocol", "Ranging", "Domain", "Encoding", "SystemIO"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2")
  ],
  targets: [
    // C libraries: a module map and a header each. Only one module imports each library.
    library("CBluetooth", pkgConfig: "bluez", ["libbluetooth-dev"]),
    library("CNFC", pkgConfig: "libnfc", ["libnfc-dev"]),
    library("CMosquitto", pkgConfig: "libmosquitto", ["libmosquitto-dev", "libssl-dev"]),
    library("CLibcrypto", pkgConfig: "libcrypto", ["libssl-dev"]),
    library("COpenSSL", pkgConfig: "libcrypto", ["libssl-dev"]),
    // Headers only: the library is loaded when a radio needs it.
    library("CSystemd", ["libsystemd-dev"]),
    // Headers only: the library is loaded when a fleet's server is contacted.
    library("CCurl", ["libcurl4-openssl-dev"]),
    library("CQREncode", pkgConfig: "libqrencode", ["libqrencode-dev"]),
    library("CZlib", pkgConfig: "zlib", ["zlib1g-dev"]),
    library("CPNG", pkgConfig: "libpng", ["libpng-dev"]),
    library("CTurboJPEG", pkgConfig: "libturbojpeg", ["libturbojpeg0-dev"]),
    library("CZBar", pkgConfig: "zbar", ["libzbar-dev"]),
    library("CWebSockets", pkgConfig: "libwebsockets", ["libwebsockets-dev", "libssl-dev"]),
    library("CLinux"),
    library("CDevices"),
    library("CVideo"),
    .target(name: "CTOML", path: "Sources/Libraries/CTOML"),
    // A separate target, so that a new commit recompiles nothing else. The Makefile names the commit: SwiftPM keeps a
    // manifest that it has read, with what git said then (gitInformation). It reads it again if the environment
    // differs.
    .target(
      name: "CBuild", path: "Sources/Libraries/CBuild",
      cSettings: ["STEPCTL_COMMIT", "STEPCTL_COMMIT_TIME", "STEPCTL_SWIFT"].compactMap { name in
        guard let value = Context.environment[name], !value.isEmpty else { return nil }
        return .define(name, to: "\"\(value)\"", .when(configuration: .release))
      }),
    // The arguments that main() gets.
    .target(name: "CArguments", path: "Sources/Libraries/CArguments"),
    // Not for tests, which do use Swift's concurrency.
    .target(name: "CNoTasks", path: "Sources/Libraries/CNoTasks"),
    .target(name: "CZXing", path: "Sources/Libraries/CZXing", linkerSettings: [.linkedLibrary("ZXing")]),

    // Core: bytes and values in, values out; no I/O and no clock.
    module("Encoding", in: "Core/Encoding"),
    module("Domain", in: "Core/Domain", ["Encoding"]),
    module("Cryptography", in: "Core/Cryptography", ["CLibcrypto"]),
    module("NDEF", in: "Core/NDEF", ["Encoding", "Domain"]),
    module("Tags", in: "Core/Tags", ["Encoding", "Domain", "NDEF"]),
    module("NTAG424", in: "Core/NTAG424", ["Encoding", "Domain", "Cryptography", "Tags"]),
    module("Geography", in: "Core/Geography"),
    module("GeoJSON", in: "Core/GeoJSON", ["Encoding", "Geography"]),
    module("Traffic", in: "Core/Traffic", ["Encoding", "Domain", "Geography"], exclude: ["FEED.md"]),
    module("TrafficBridge", in: "Core/TrafficBridge", ["Encoding", "Domain", "Geography", "Traffic"]),
    module("Ranging", in: "Core/Ranging", ["Encoding", "Domain"], exclude: ["RANGING.md"]),
    module("Evaluation", in: "Core/Evaluation", ["Encoding", "Domain", "Geography", "Traffic", "Ranging"]),
    module("StepProtocol", in: "Core/StepProtocol", ["Encoding", "Domain", "Cryptography"], exclude: ["PROTOCOL.md"]),
    // What operators, riders and vehicles hand to one another once: codes, labels, requests, access.
    module("Access", in: "Core/Access", ["Encoding", "Domain", "Cryptography", "NDEF", "StepProtocol"]),

    // SystemIO: services of the kernel.
    module("SystemIO", in: "SystemIO", ["Encoding", "Domain", "CLinux", "CArguments"]),

    // Adapters: each owns one library or one part of the system, and imports no other adapter.
    module(
      "Bluetooth", in: "Adapters/Bluetooth", ["Encoding", "Domain", "Ranging", "SystemIO", "CBluetooth", "CSystemd"]),
    module("MQTT", in: "Adapters/MQTT", ["Domain", "SystemIO", "CMosquitto"]),
    module("HTTP", in: "Adapters/HTTP", ["Domain", "SystemIO", "CCurl"]),
    module("Certificates", in: "Adapters/Certificates", ["Encoding", "Domain", "StepProtocol", "COpenSSL"]),
    // libnfc sometimes ends its process, so it runs in stepctl-nfc. NFC talks to that program.
    module("NFC", in: "Adapters/NFC", ["Encoding", "Domain", "NDEF", "Tags", "SystemIO"], exclude: ["NFC.md"]),
    module("CodeReading", in: "Adapters/CodeReading", ["Encoding", "Domain", "SystemIO"]),
    module("TrafficFeed", in: "Adapters/TrafficFeed", ["Encoding", "Domain", "Traffic", "SystemIO"]),
    // gpsd reads the receivers.
    module("Positioning", in: "Adapters/Positioning", ["Encoding", "Domain", "Geography", "SystemIO"]),
    module("OBD", in: "Adapters/OBD", ["Encoding", "Domain", "SystemIO"]),
    module("CodeDrawing", in: "Adapters/CodeDrawing", ["Encoding", "Domain", "CQREncode", "CZlib"]),

    // FileFormats: what several sides read. UserSettings: this user's folders and choices.
    module(
      "FileFormats", in: "FileFormats",
      ["Encoding", "Domain", "Geography", "StepProtocol", "SystemIO", "MQTT", "CTOML"]),
    module("UserSettings", in: "UserSettings", ["Domain", "SystemIO", "FileFormats"]),

    // Three sides that do not know one another.
    // Rider: finding the step, the session with the vehicle, this device's keys and vehicles, the account at a server.
    module(
      "Rider", in: "Rider",
      [
        "Encoding", "Domain", "Cryptography", "NDEF", "Tags", "Geography", "Ranging", "StepProtocol", "Access",
        "SystemIO", "Bluetooth", "MQTT", "HTTP", "Certificates", "NFC", "CodeReading", "FileFormats", "UserSettings",
      ]),
    // Vehicle: what decides, what stepd.toml says, and what acts.
    module(
      "StepController", in: "Vehicle/StepController",
      ["Encoding", "Domain", "Cryptography", "Geography", "Traffic", "Ranging", "StepProtocol"], exclude: ["MOTION.md"]),
    module(
      "StepdConfiguration", in: "Vehicle/StepdConfiguration",
      [
        "Encoding", "Domain", "Geography", "Traffic", "StepProtocol", "SystemIO", "Bluetooth", "MQTT", "TrafficFeed",
        "Positioning", "FileFormats", "StepController",
      ]),
    module(
      "StepDaemon", in: "Vehicle/StepDaemon",
      [
        "Encoding", "Domain", "Cryptography", "Geography", "Traffic", "Ranging", "StepProtocol", "SystemIO",
        "Bluetooth", "MQTT", "TrafficFeed", "Positioning", "OBD", "FileFormats", "StepController",
        "StepdConfiguration", "CDevices",
      ]),
    // Operator: making vehicles, and handing out access.
    module(
      "Operator", in: "Operator",
      [
        "Encoding", "Domain", "Cryptography", "NDEF", "Tags", "NTAG424", "Geography", "Traffic", "StepProtocol",
        "Access", "SystemIO", "Bluetooth", "MQTT", "Certificates", "NFC", "TrafficFeed", "Positioning", "FileFormats",
        "StepController", "StepdConfiguration",
      ]),

    // Terminal: how a program prints, asks and ends.
    module("Terminal", in: "Terminal", ["Encoding", "Domain", "SystemIO", "CBuild", argumentParser]),

    // Commands: a file for each command, named by what is typed.
    module(
      "CommandParts", in: "Commands/CommandParts",
      [
        "Encoding", "Domain", "Geography", "StepProtocol", "Access", "SystemIO", "Bluetooth", "HTTP", "Certificates",
        "NFC", "CodeDrawing", "FileFormats", "UserSettings", "Terminal", argumentParser,
      ]),
    module(
      "RiderCommands", in: "Commands/RiderCommands",
      [
        "Encoding", "Domain", "Cryptography", "Geography", "Ranging", "StepProtocol", "Access", "SystemIO", "Bluetooth",
        "MQTT", "HTTP", "Certificates", "NFC", "CodeReading", "Positioning", "CodeDrawing", "FileFormats",
        "UserSettings", "Rider", "Terminal", "CommandParts", argumentParser,
      ]),
    module(
      "OperatorCommands", in: "Commands/OperatorCommands",
      [
        "Encoding", "Domain", "NDEF", "Tags", "Geography", "Traffic", "Ranging", "Evaluation", "StepProtocol", "Access",
        "SystemIO", "Bluetooth", "MQTT", "Certificates", "NFC", "TrafficFeed", "Positioning", "CodeDrawing",
        "FileFormats", "UserSettings", "Rider", "StepController", "StepdConfiguration", "Operator", "Terminal",
        "CommandParts", "RiderCommands", argumentParser,
      ]),

    // Programs: entry points, and libraries that may fail and so run in their own process.
    program("stepctl", ["SystemIO", "Terminal", "CommandParts", "RiderCommands", "CNoTasks"]),
    program("stepctl-operator", ["Terminal", "OperatorCommands", "CNoTasks"]),
    program(
      "stepd",
      [
        "Domain", "StepProtocol", "SystemIO", "MQTT", "StepController", "StepdConfiguration", "StepDaemon", "Terminal",
        argumentParser, "CNoTasks",
      ], exclude: ["stepd.service", "stepd-broker.service"]),
    program("stepctl-nfc", ["Encoding", "Tags", "SystemIO", "CNFC"]),
    program(
      "stepctl-traffic", ["Encoding", "Domain", "Traffic", "TrafficBridge", "SystemIO", "TrafficFeed", "CWebSockets"]),
    program(
      "stepctl-qr",
      ["Encoding", "Domain", "SystemIO", "CodeReading", "CPNG", "CTurboJPEG", "CVideo", "CZBar", "CZXing"]),

    // Support for the tests of several modules.
    .target(
      name: "TestSupport", dependencies: ["Encoding", "Domain", "Tags", "SystemIO", "NFC", "StepController"],
      path: "Tests/Support", swiftSettings: swiftSettings),
    tests("EncodingTests", ["Encoding"]),
    tests("DomainTests", ["Domain"]),
    tests("CryptographyTests", ["Encoding", "Cryptography"]),
    tests("TagsTests", ["Encoding", "Domain", "NDEF", "Tags", "NTAG424"]),
    tests("RangingTests", ["Encoding", "Domain", "Ranging", "Evaluation"]),
    tests("EvaluationTests", ["Domain", "Evaluation"]),
    tests("GeographyTests", ["Geography"]),
    tests("GeoJSONTests", ["Encoding", "Geography", "GeoJSON"]),
    tests("TrafficTests", ["Encoding", "Domain", "Geography", "Traffic", "TrafficBridge", "Evaluation"]),
    tests("StepProtocolTests", ["Encoding", "Domain", "Cryptography", "NDEF", "StepProtocol", "Access"]),
    tests("SystemIOTests", ["Domain", "SystemIO"]),
    tests("BluetoothTests", ["Encoding", "Domain", "Ranging", "SystemIO", "Bluetooth"]),
    tests("NFCTests", ["Encoding", "Domain", "NDEF", "Tags", "SystemIO", "NFC", "Operator"]),
    tests("TrafficFeedTests", ["Encoding", "SystemIO", "TrafficFeed"]),
    tests("PositioningTests", ["Geography", "Positioning"]),
    tests("OBDTests", ["Domain", "SystemIO", "OBD"]),
    tests("CodeDrawingTests", ["CodeDrawing"]),
    tests("CodeReadingTests", ["Encoding", "SystemIO", "CodeReading", "CodeDrawing", "stepctl-qr"]),
    tests("MQTTTests", ["SystemIO", "MQTT"]),
    tests(
      "FileFormatsTests",
      [
        "Encoding", "Domain", "Geography", "Traffic", "StepProtocol", "SystemIO", "Bluetooth", "MQTT", "TrafficFeed",
        "Positioning", "FileFormats", "UserSettings", "Rider", "StepController", "StepdConfiguration", "Operator",
      ]),
    tests(
      "OperatorTests",
      [
        "Encoding", "Domain", "StepProtocol", "Access", "SystemIO", "Bluetooth", "MQTT", "Certificates", "FileFormats",
        "Rider", "StepController", "StepdConfiguration", "Operator",
      ]),
    tests(
      "StepControllerTests",
      ["Encoding", "Domain", "Cryptography", "Geography", "Traffic", "StepProtocol", "StepController"]),
    tests(
      "StepDaemonTests",
      [
        "Encoding", "Domain", "Cryptography", "Geography", "Ranging", "StepProtocol", "SystemIO", "Bluetooth", "MQTT",
        "StepController", "StepdConfiguration", "StepDaemon", "CommandParts",
      ]),
    tests(
      "CommandTests",
      [
        "Encoding", "Domain", "Cryptography", "NDEF", "Tags", "Ranging", "StepProtocol", "SystemIO", "Bluetooth",
        "MQTT", "Certificates", "NFC", "CodeDrawing", "FileFormats", "UserSettings", "Rider", "StepController",
        "StepdConfiguration", "Terminal", "CommandParts", "RiderCommands", "OperatorCommands", argumentParser,
      ]),
    tests(
      "FleetClientTests",
      ["Encoding", "Domain", "Cryptography", "Geography", "StepProtocol", "Access", "SystemIO", "HTTP", "Rider"]),
    tests(
      "RiderTests",
      ["Domain", "Ranging", "StepProtocol", "SystemIO", "Bluetooth", "MQTT", "Rider", "StepController", "Terminal"]),
    tests("StructureTests", ["Encoding"]),
    tests("DocumentationTests", []),
  ],
  cxxLanguageStandard: .cxx17
)

// Only on request: it needs clang's runtime, and flags that SwiftPM calls unsafe. `make fuzz` asks for it.
if Context.environment["STEPCTL_FUZZ"] != nil {
  package.targets.append(
    .executableTarget(
      name: "Fuzz",
      dependencies: [
        "Encoding", "Domain", "NDEF", "Tags", "NTAG424", "Geography", "GeoJSON", "Traffic", "TrafficBridge", "Ranging",
        "Evaluation", "StepProtocol", "Access", "SystemIO", "Bluetooth", "HTTP", "CodeReading", "TrafficFeed",
        "Positioning", "OBD", "FileFormats", "Rider", "StepController", "StepdConfiguration", "Operator",
        "CommandParts",
      ],
      path: "Tests/Fuzz", exclude: ["run.sh", "seeds.py", "corpus"],
      swiftSettings: swiftSettings,
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]))
}

// Only on request: the module tests that are named, and no others. `make test-arm64` asks for those that it runs.
if let names = Context.environment["STEPCTL_TESTS"]?.split(whereSeparator: \.isWhitespace) {
  package.targets.removeAll { target in target.type == .test && !names.contains { $0 == target.name } }
}

// Only on request: Tests/Benchmarks/parser measures it. `make bench` asks for it.
if Context.environment["STEPCTL_BENCH"] != nil {
  package.products.append(.library(name: "ParserBenchmark", type: .dynamic, targets: ["ParserBenchmark"]))
  package.targets.append(
    .target(
      name: "ParserBenchmark", dependencies: ["Ranging"], path: "Tests/Benchmarks/parser",
      exclude: ["parser.c", "parser.py"], swiftSettings: swiftSettings))
}
