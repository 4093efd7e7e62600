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
    .executable(name: "stepctl-nfc", targets: ["stepctl-nfc"]),
    .executable(name: "stepctl-qr", targets: ["stepctl-qr"]),
    .executable(name: "stepctl-traffic", targets: ["stepctl-traffic"]),
    .executable(name: "stepd", targets: ["stepd"]),
    // For gateways, kiosks and simulators. Tests/Kiosk is an example.
    .library(name: "StepProtocol", targets: ["StepProtocol", "Domain", "Encoding"]),
    .library(name: "Ranging", targets: ["Ranging", "Domain"]),
    // For an operator's server. Fleet is one.
    .library(name: "Operator", targets: ["Provisioning", "StepProtocol", "Domain", "Encoding", "SystemIO"]),
    .library(name: "Geography", targets: ["Geography"]),
    .library(name: "Rider", targets: ["Rider", "MQTT", "StepProtocol", "Ranging", "Domain", "Encoding", "SystemIO"]),
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
    // A separate target, so that a new commit recompiles nothing else.
    .target(
      name: "CBuild", path: "Sources/Libraries/CBuild",
      cSettings: Context.gitInformation.map {
        [.define("STEPCTL_COMMIT", to: "\"\($0.currentCommit)\"", .when(configuration: .release))]
      }),
    // Not for tests, which do use Swift's concurrency.
    .target(name: "CNoTasks", path: "Sources/Libraries/CNoTasks"),
    .target(name: "CZXing", path: "Sources/Libraries/CZXing", linkerSettings: [.linkedLibrary("ZXing")]),

    // Core: bytes and values in, values out; no I/O and no clock.
    module("Encoding", in: "Core/Encoding"),
    module("Domain", in: "Core/Domain", ["Encoding"]),
    module("Cryptography", in: "Core/Cryptography", ["CLibcrypto"]),
    module("Tags", in: "Core/Tags", ["Cryptography", "Domain", "Encoding"]),
    module("Geography", in: "Core/Geography"),
    module("Traffic", in: "Core/Traffic", ["Domain", "Encoding", "Geography"], exclude: ["FEED.md"]),
    module("Ranging", in: "Core/Ranging", ["Domain", "Encoding"], exclude: ["RANGING.md"]),
    module("Evaluation", in: "Core/Evaluation", ["Domain", "Encoding", "Ranging"]),
    module(
      "StepProtocol", in: "Core/StepProtocol", ["Cryptography", "Domain", "Encoding", "Tags"], exclude: ["PROTOCOL.md"]),

    // System: services of the kernel.
    module("SystemIO", in: "System", ["Domain", "Encoding", "CLinux"]),

    // Adapters: each owns one library or one part of the system, and imports no other adapter.
    module(
      "Bluetooth", in: "Adapters/Bluetooth",
      ["SystemIO", "Domain", "Encoding", "Ranging", "CBluetooth", "CSystemd"]),
    module("MQTT", in: "Adapters/MQTT", ["SystemIO", "Domain", "CMosquitto"]),
    module("HTTP", in: "Adapters/HTTP", ["SystemIO", "Domain", "CCurl"]),
    // libnfc sometimes ends its process, so it runs in stepctl-nfc. NFC talks to that program.
    module("NFC", in: "Adapters/NFC", ["SystemIO", "Domain", "Encoding", "Tags"], exclude: ["NFC.md"]),
    module("CodeReading", in: "Adapters/CodeReading", ["SystemIO", "Domain", "Encoding"]),
    module("TrafficFeed", in: "Adapters/TrafficFeed", ["SystemIO", "Domain", "Encoding", "Traffic"]),
    // gpsd reads the receivers.
    module("Positioning", in: "Adapters/Positioning", ["SystemIO", "Domain", "Encoding", "Geography"]),
    module("CodeDrawing", in: "Adapters/CodeDrawing", ["Domain", "Encoding", "CQREncode", "CZlib"]),

    // Rider: the rider's side: finding the step, and the session with the vehicle.
    module(
      "Rider", in: "Rider",
      [
        "Domain", "Encoding", "StepProtocol", "Ranging", "Tags", "SystemIO", "Bluetooth", "MQTT", "NFC", "CodeReading",
      ]),

    // FleetClient: this device's account on a fleet's server.
    module(
      "FleetClient", in: "FleetClient",
      ["Cryptography", "Domain", "Encoding", "Geography", "StepProtocol", "SystemIO", "HTTP"]),

    // Controller: the vehicle's side.
    module(
      "StepController", in: "Controller/Core",
      ["Cryptography", "Domain", "Encoding", "Geography", "Ranging", "StepProtocol", "Traffic"],
      exclude: ["MOTION.md"]),
    module(
      "StepDaemon", in: "Controller/Shell",
      [
        "StepController", "SystemIO", "Domain", "Encoding", "Ranging", "StepProtocol", "Bluetooth", "MQTT",
        "Configuration", "CDevices", "Geography", "Traffic", "TrafficFeed", "Positioning",
      ]),

    // Configuration: files and settings, parsed into types.
    module(
      "Configuration", in: "Configuration",
      [
        "SystemIO", "Domain", "Encoding", "Geography", "StepProtocol", "Bluetooth", "MQTT", "Rider", "StepController",
        "Traffic", "TrafficFeed", "Positioning", "CTOML",
      ]),

    // Operator: making vehicles and handing out access.
    module(
      "Provisioning", in: "Operator",
      [
        "SystemIO", "Domain", "Encoding", "StepProtocol", "Bluetooth", "MQTT", "StepController", "Configuration",
        "Cryptography", "COpenSSL",
      ]),

    // CommandLine: shared by both programs: output, and exit.
    module(
      "Terminal", in: "CommandLine",
      ["Domain", "SystemIO", "Encoding", "HTTP", "Configuration", "CBuild", argumentParser]),

    // Commands: a file for each command, named by what is typed.
    module(
      "StepCommands", in: "Commands",
      [
        "SystemIO", "Domain", "Encoding", "Tags", "Ranging", "StepProtocol", "Bluetooth", "NFC", "CodeDrawing",
        "CodeReading", "MQTT", "HTTP", "Rider", "FleetClient", "Configuration", "Provisioning", "Terminal", "Geography",
        "Traffic", "TrafficFeed", "Positioning", "StepController", "Evaluation", "Cryptography", argumentParser,
      ]),

    // Programs: entry points, and libraries that may fail and so run in their own process.
    program("stepctl", ["StepCommands", "Terminal", "CNoTasks"]),
    program(
      "stepd",
      [
        "StepDaemon", "StepController", "StepProtocol", "Configuration", "Terminal", "Domain", "SystemIO", "MQTT",
        "CNoTasks", argumentParser,
      ],
      exclude: ["stepd.service", "stepd-broker.service"]),
    program("stepctl-nfc", ["SystemIO", "Encoding", "Tags", "CNFC"]),
    program("stepctl-traffic", ["SystemIO", "Encoding", "Traffic", "TrafficFeed", "CWebSockets"]),
    program(
      "stepctl-qr",
      ["SystemIO", "Domain", "Encoding", "CodeReading", "CPNG", "CTurboJPEG", "CZBar", "CZXing", "CVideo"]),

    // Support for the tests of several modules.
    .target(
      name: "TestSupport", dependencies: ["SystemIO", "Encoding", "Domain", "Tags", "NFC", "StepController"],
      path: "Tests/Support", swiftSettings: swiftSettings),
    tests("EncodingTests", ["Encoding"]),
    tests("DomainTests", ["Domain"]),
    tests("CryptographyTests", ["Cryptography", "Encoding"]),
    tests("TagsTests", ["Tags", "Domain", "Encoding"]),
    tests("RangingTests", ["Ranging", "Domain", "Encoding"]),
    tests("EvaluationTests", ["Evaluation"]),
    tests("GeographyTests", ["Geography"]),
    tests("TrafficTests", ["Traffic", "Domain", "Encoding", "Geography"]),
    tests("StepProtocolTests", ["Cryptography", "StepProtocol", "Tags", "Domain", "Encoding"]),
    tests("SystemIOTests", ["SystemIO"]),
    tests("BluetoothTests", ["Bluetooth", "Ranging", "Domain", "Encoding", "SystemIO"]),
    tests("NFCTests", ["NFC", "Tags", "Domain", "Encoding", "SystemIO"]),
    tests("TrafficFeedTests", ["TrafficFeed", "Encoding", "SystemIO"]),
    tests("PositioningTests", ["Positioning", "Geography"]),
    tests("CodeDrawingTests", ["CodeDrawing", "Domain"]),
    tests("CodeReadingTests", ["CodeReading", "CodeDrawing", "Encoding", "SystemIO", "stepctl-qr"]),
    tests("MQTTTests", ["MQTT", "SystemIO"]),
    tests(
      "ConfigurationTests",
      [
        "Configuration", "Domain", "Encoding", "StepProtocol", "SystemIO", "Bluetooth", "MQTT", "Rider",
        "StepController", "Geography", "Positioning", "Traffic", "TrafficFeed",
      ]),
    tests(
      "ProvisioningTests",
      [
        "Provisioning", "Configuration", "Domain", "StepProtocol", "Encoding", "SystemIO", "Bluetooth", "MQTT",
        "StepController", "Rider",
      ]),
    tests(
      "StepControllerTests",
      ["Cryptography", "StepController", "Domain", "Encoding", "Geography", "StepProtocol", "Traffic"]),
    tests(
      "StepDaemonTests",
      [
        "Cryptography",
        "StepDaemon", "StepController", "Domain", "StepProtocol", "Encoding", "SystemIO", "Ranging", "Bluetooth",
        "MQTT", "Configuration",
      ]),
    tests(
      "StepCommandsTests",
      [
        "StepCommands", "Bluetooth", "Configuration", "Cryptography", "Domain", "Encoding", "MQTT", "NFC", "Ranging",
        "Rider", "StepController", "StepProtocol", "SystemIO", "Tags", "Terminal", argumentParser,
      ]),
    tests(
      "FleetClientTests",
      ["FleetClient", "HTTP", "Domain", "Encoding", "Geography", "Cryptography", "StepProtocol", "SystemIO"]),
    tests("RiderTests", ["Rider", "StepController", "StepProtocol", "Ranging", "Domain", "MQTT", "SystemIO"]),
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
        "Bluetooth", "CodeReading", "Configuration", "Domain", "Encoding", "Evaluation", "FleetClient", "Geography",
        "HTTP",
        "Positioning",
        "Ranging",
        "StepController", "StepProtocol", "SystemIO", "Tags", "Traffic", "TrafficFeed",
      ],
      path: "Tests/Fuzz", exclude: ["run.sh", "seeds.py", "corpus"],
      swiftSettings: swiftSettings,
      linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]))
}

// Only on request: Tests/Benchmarks/parser measures it. `make bench` asks for it.
if Context.environment["STEPCTL_BENCH"] != nil {
  package.products.append(.library(name: "ParserBenchmark", type: .dynamic, targets: ["ParserBenchmark"]))
  package.targets.append(
    .target(
      name: "ParserBenchmark", dependencies: ["Ranging"], path: "Tests/Benchmarks/parser",
      exclude: ["parser.c", "parser.py"], swiftSettings: swiftSettings))
}
