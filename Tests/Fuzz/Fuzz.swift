import Bluetooth
import Configuration
import Glibc
import Ranging
import StepDomain
import StepProtocol
import StrictJSON

/// Feeds libFuzzer's inputs to the parser that the environment variable FUZZ names. `make fuzz` runs each for a while.
@main
enum Fuzz {
  static func main() {
    let name = getenv("FUZZ").map { String(cString: $0) } ?? ""
    guard let target = targets[name] else {
      fputs("fuzz: set FUZZ to one of \(targets.keys.sorted().joined(separator: ", "))\n", stderr)
      exit(64)
    }
    Fuzz.target = target
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(
      runDriver(&count, &arguments) { bytes, size in
        Fuzz.target([UInt8](UnsafeBufferPointer(start: bytes, count: size)))
        return 0
      })
  }

  /// Set before the driver starts, and only read after that.
  nonisolated(unsafe) private static var target: ([UInt8]) -> Void = { _ in }

  /// Every parser of bytes from outside. What it accepts must be the same after a round trip, where there is one.
  private static let targets: [String: ([UInt8]) -> Void] = [
    "advertisement": { bytes in
      var reports = AdvertisingReports()
      _ = reports.read(event: bytes.span) { address, rssi, data in _ = IBeacon(advertisingData: data) }
      _ = IBeacon(advertisingData: bytes.span)
    },
    "json": { bytes in
      guard let value = try? JSON(parsing: bytes) else { return }
      precondition((try? JSON(parsing: value.bytes)) == value)
    },
    "command": { bytes in
      _ = ReceivedCommand(bytes, controller: Keys.controller, operatorKey: Keys.operatorKey)
      // Behind the encryption, where a fuzzer cannot get by itself.
      _ = try? Token(unverified: String(decoding: bytes, as: UTF8.self))
    },
    "statement": { bytes in
      _ = try? Statement(payload: bytes, verifiedBy: Keys.operatorKey)
    },
    "vehicle": { bytes in
      guard let file = try? VehicleFile(parsing: bytes, path: "fuzz.toml") else { return }
      _ = file.render()
    },
    "controller": { bytes in
      guard let file = try? ControllerFile(parsing: bytes, path: "fuzz.toml") else { return }
      _ = file.render()
    },
    "btsnoop": { bytes in CaptureFuzzing.run(bytes) },
  ]

  private enum Keys {
    static let controller = DecryptionKey()
    static let operatorKey = SigningKey().verificationKey
  }
}

/// The capture radio reads files, so each input becomes one, in memory.
private enum CaptureFuzzing {
  private static let descriptor = memfd_create("fuzz.btsnoop", 0)

  static func run(_ bytes: [UInt8]) {
    ftruncate(descriptor, 0)
    _ = pwrite(descriptor, bytes, bytes.count, 0)
    guard let radio = try? RadioSpec("btsnoop:/proc/self/fd/\(descriptor)").open() else { return }
    defer { radio.close() }
    while let event = try? radio.next(until: nil) {
      if case .ended = event { return }
    }
  }
}

/// libFuzzer's entry point for programs with a main of their own (FuzzerInterface.h).
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ argc: UnsafeMutablePointer<Int32>,
  _ argv: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32
