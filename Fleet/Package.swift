// swift-tools-version: 6.2
import PackageDescription

// As in the package above: CI turns warnings into errors.
let strict = Context.environment["STEPCTL_STRICT"] != nil

let swiftSettings: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (strict ? [.treatAllWarnings(as: .error)] : [])

func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [], resources: [Resource] = []
) -> Target {
  .target(
    name: name, dependencies: dependencies, path: "Sources/\(name)", exclude: exclude, resources: resources,
    swiftSettings: swiftSettings)
}

func library(_ name: String, pkgConfig: String, _ package: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/Libraries/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
  .testTarget(name: name, dependencies: dependencies, path: "Tests/\(name)", swiftSettings: swiftSettings)
}

let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(name: "HummingbirdCore", package: "hummingbird")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let nio = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioHTTPTypes = Target.Dependency.product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let tls = Target.Dependency.product(name: "HummingbirdTLS", package: "hummingbird")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
/// The package above. SwiftPM calls it what its folder is called, and module aliases take no other name.
let stepctl = String(Context.packageDirectory.split(separator: "/").dropLast().last!)
// This package is called Fleet. SwiftPM takes two of one name, in any case, for one, and plans for ever.
if stepctl.lowercased() == "fleet" { fatalError("the folder of the repository needs another name than \(stepctl)") }
/// Places and areas on the earth: the modules Geography and GeoJSON.
let geography = Target.Dependency.product(name: "Geography", package: stepctl)
/// What the vehicles and the riders' program speak, and what hands out access to them.
let stepProtocol = Target.Dependency.product(name: "StepProtocol", package: stepctl)
/// An operator's keys, tokens and notices.
let operating = Target.Dependency.product(name: "Operator", package: stepctl)

/// How a program reads what was typed, and says what went wrong.
let terminal = Target.Dependency.product(name: "Terminal", package: stepctl)

let package = Package(
  name: "stepfleet",
  products: [.executable(name: "stepfleet", targets: ["stepfleet"])],
  dependencies: [
    .package(path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // C libraries: a module map and a header, one importer each.
    library("CPostgres", pkgConfig: "libpq", "libpq-dev"),
    library("CSodium", pkgConfig: "libsodium", "libsodium-dev"),
    // glibc's own functions for memory, which Swift does not import.
    .systemLibrary(name: "CMalloc", path: "Sources/Libraries/CMalloc"),

    // What is allowed: bookings, changes, access, vehicles. Values, no I/O and no clock.
    module("Booking", [stepProtocol, geography]),
    // Where everything is kept: one contract, SQLite and PostgreSQL.
    module("Store", [.product(name: "GRDB", package: "GRDB.swift"), "CPostgres", logging]),
    // What every route has to do: problems, bodies, who is asking.
    module(
      "Web",
      ["Store", hummingbird, hummingbirdCore, httpTypes, nio, nioHTTP1, nioHTTPTypes, stepProtocol, logging]),
    // Who somebody is: accounts, passwords, devices, tokens of the API.
    module(
      "Login", ["Web", "Store", "CSodium", stepProtocol, hummingbird, httpTypes, nio, crypto, logging],
      exclude: ["LOGIN.md"]),
    // Vehicles, bookings and access, by HTTP.
    module(
      "API",
      ["Web", "Store", "Booking", stepProtocol, geography, operating, hummingbird, httpTypes, nio, crypto, logging],
      resources: [.embedInCode("openapi.json")]),
    .executableTarget(
      name: "stepfleet",
      dependencies: [
        "API", "Booking", "Login", "Web", "Store", "CMalloc", stepProtocol, geography, operating, terminal, crypto,
        hummingbird,
        hummingbirdCore,
        tls, nio, lifecycle,
        logging,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Sources/stepfleet", exclude: ["stepfleet.service"], swiftSettings: swiftSettings),

    tests("BookingTests", ["Booking", stepProtocol, geography]),
    // What tests of several modules share.
    .target(
      name: "FleetTestSupport", dependencies: ["Store"], path: "Tests/Support", swiftSettings: swiftSettings),
    tests("StoreTests", ["Store", "FleetTestSupport"]),
    tests("WebTests", ["Web", stepProtocol, hummingbird, httpTypes, nio, nioHTTP1, nioHTTPTypes, nioEmbedded]),
    tests(
      "APITests",
      [
        "API", "Booking", "Store", "Login", "Web", "FleetTestSupport", stepProtocol, geography, operating, hummingbird,
        httpTypes, nio, nioEmbedded, logging,
      ]),
    tests("LoginTests", ["Login", "FleetTestSupport", "Web", "Store", stepProtocol, crypto, hummingbird]),
  ]
)

// Only on request: `make concurrency` prints the table of CONCURRENCY.md.
if Context.environment["STEPFLEET_CONCURRENCY"] != nil {
  package.targets.append(
    .executableTarget(
      name: "Concurrency", dependencies: ["API", "Booking", "Store", "FleetTestSupport"], path: "Tests/Concurrency",
      exclude: ["run.sh"], swiftSettings: swiftSettings))
}
