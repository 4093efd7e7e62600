import Foundation

/// A program that a test runs to its end.
struct Program {
  private let executable: URL

  struct Outcome {
    let status: Int32
    let output: String
    let errors: String
  }

  struct NotBuilt: Error, CustomStringConvertible {
    let name: String
    var description: String {
      "no \(name) beside the tests: `swift build` makes it, or STEPCTL_BIN_DIR says in which folder it is"
    }
  }

  /// A product of the package: in `STEPCTL_BIN_DIR`, or where the tests themselves were built.
  init(product name: String) throws {
    let files = FileManager.default
    if let folder = ProcessInfo.processInfo.environment["STEPCTL_BIN_DIR"] {
      executable = URL(filePath: folder).appending(path: name)
      guard files.isExecutableFile(atPath: executable.path) else { throw NotBuilt(name: name) }
      return
    }
    // The tests are `…/debug/stepctlPackageTests.xctest`; a runner that loads them may itself lie elsewhere.
    let starts = ["/proc/self/exe", CommandLine.arguments[0], CommandLine.arguments.last ?? ""]
    for start in starts {
      var folder = URL(filePath: start).resolvingSymlinksInPath().deletingLastPathComponent()
      while folder.pathComponents.count > 1 {
        let candidate = folder.appending(path: name)
        var isFolder: ObjCBool = false
        if files.fileExists(atPath: candidate.path, isDirectory: &isFolder), !isFolder.boolValue,
          files.isExecutableFile(atPath: candidate.path)
        {
          executable = candidate
          return
        }
        folder.deleteLastPathComponent()
      }
    }
    throw NotBuilt(name: name)
  }

  /// A program of the system; nil where it is not installed.
  init?(installed name: String) {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    guard
      let path = folders.map({ "\($0)/\(name)" }).first(where: FileManager.default.isExecutableFile(atPath:))
    else { return nil }
    executable = URL(filePath: path)
  }

  /// - Parameter environment: the whole of it; what the tests were started with must not change what they see.
  func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Outcome {
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    process.environment = environment
    process.standardInput = FileHandle.nullDevice
    // Errors go to a file, so that neither of two pipes can fill up while the other is read.
    let errors = FileManager.default.temporaryDirectory.appending(path: "stepctl-errors-\(UUID())")
    try Data().write(to: errors)
    defer { try? FileManager.default.removeItem(at: errors) }
    let handle = try FileHandle(forWritingTo: errors)
    let output = Pipe()
    process.standardOutput = output
    process.standardError = handle
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try handle.close()
    return Outcome(
      status: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self),
      errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self))
  }
}
