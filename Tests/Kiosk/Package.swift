// swift-tools-version: 6.2
import PackageDescription

// A program of somebody else's: it knows stepctl by its library products alone.
let package = Package(
  name: "kiosk",
  dependencies: [.package(name: "stepctl", path: "../..")],
  targets: [
    .executableTarget(
      name: "kiosk",
      dependencies: [
        .product(name: "Rider", package: "stepctl"), .product(name: "StepProtocol", package: "stepctl"),
      ],
      path: "Sources")
  ]
)
