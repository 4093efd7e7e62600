import Foundation
import Glibc

/// A program that a test runs, found where the shell finds it; what it prints goes to a file.
final class Program {
  private let process = Process()
  private let output: String

  /// - Parameters:
  ///   - folder: where the output goes to; the process runs in `/`, so that no relative path works by chance.
  ///   - environment: added to this process's.
  init(_ arguments: [String], in folder: TemporaryFolder, environment: [String: String] = [:]) throws {
    output = "\(folder.path)/output-\(Foundation.UUID())"
    try Data().write(to: URL(filePath: output))
    let handle = try FileHandle(forWritingTo: URL(filePath: output))
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = URL(filePath: "/")
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = handle
    process.standardError = handle
    try process.run()
  }

  deinit { stop() }

  var isRunning: Bool { process.isRunning }
  var id: Int32 { process.processIdentifier }

  /// What it has printed so far, both streams in their order.
  var printed: String { (try? String(contentsOfFile: output, encoding: .utf8)) ?? "" }

  /// Waits until something is printed, and says whether it was.
  func waits(for text: String, seconds: Double = 20) -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !printed.contains(text) {
      guard ContinuousClock.now < deadline, isRunning else { return printed.contains(text) }
      usleep(5000)
    }
    return true
  }

  func stop() {
    if process.isRunning { process.terminate() }
    process.waitUntilExit()
  }

  /// Waits for the end: the status, and all that was printed.
  func finish() -> (status: Int32, printed: String) {
    process.waitUntilExit()
    return (process.terminationStatus, printed)
  }

  /// Whether there is a program of that name, for tests that are skipped without it.
  static func isInstalled(_ name: String) -> Bool {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return path.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
  }
}
