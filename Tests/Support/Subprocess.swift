package import Glibc
import SystemIO

/// A program that a test runs. It ends with its owner.
package final class Subprocess {
  package let id: pid_t
  private let folder: TemporaryFolder
  private var ended: Int32?

  package struct Outcome: Sendable {
    /// As the shell has it: 128 and the number for a signal.
    package let status: Int32
    package let output: String
    package let errors: String
    package var printed: String { output + errors }
  }

  package struct Missing: Error, CustomStringConvertible {
    package let description: String
  }

  /// Starts a program, in `/`, so that no relative path works by chance.
  ///
  /// - Parameters:
  ///   - arguments: the program's name or path, and what is given to it.
  ///   - environment: added to this process's.
  ///   - inheriting: false leaves this process's environment out.
  package init(_ arguments: [String], environment: [String: String] = [:], inheriting: Bool = true) throws {
    folder = try TemporaryFolder()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    for (number, name) in [(1 as Int32, "output"), (2, "errors")] {
      posix_spawn_file_actions_addopen(&actions, number, "\(folder.path)/\(name)", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    }
    // What other tests have open at this moment would stay open as long as it runs.
    for number in 3..<256 as Range<Int32> { posix_spawn_file_actions_addclose(&actions, number) }
    let words =
      ["env", "--chdir=/"] + (inheriting ? ["PATH=\(Self.path)"] : ["-i"])
      + environment.map { "\($0.key)=\($0.value)" } + arguments
    var vector = words.map { strdup($0) } + [nil]
    defer { for word in vector { free(word) } }
    var id = pid_t()
    let code = posix_spawn(&id, "/usr/bin/env", &actions, nil, &vector, environ)
    guard code == 0 else { throw SystemError("start", arguments[0], code: code) }
    self.id = id
  }

  deinit { stop() }

  package var output: String { (try? TemporaryFolder.text("\(folder.path)/output")) ?? "" }
  package var errors: String { (try? TemporaryFolder.text("\(folder.path)/errors")) ?? "" }
  package var printed: String { output + errors }

  /// Waits until something is printed, and says whether it was before the end or the deadline.
  package func waits(for text: String, seconds: Int = 60) -> Bool {
    let deadline = Instant.now + .seconds(seconds)
    while !printed.contains(text) {
      guard Instant.now < deadline, !hasEnded(WNOHANG) else { return printed.contains(text) }
      usleep(5000)
    }
    return true
  }

  /// Waits for the end.
  package func finish() -> Outcome {
    _ = hasEnded(0)
    let status = ended ?? -1
    // wait(2): the signal's number is in the lowest bits.
    return Outcome(
      status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F, output: output, errors: errors)
  }

  package func stop() {
    guard !hasEnded(WNOHANG) else { return }
    // SIGTERM may be blocked in it, as it is in the threads of this process.
    kill(id, SIGKILL)
    _ = hasEnded(0)
  }

  private func hasEnded(_ flags: Int32) -> Bool {
    if ended != nil { return true }
    var status: Int32 = 0
    while true {
      let result = waitpid(id, &status, flags)
      if result == -1, errno == EINTR { continue }
      if result == id { ended = status }
      return result != 0
    }
  }

  /// Runs a program to its end.
  package static func run(
    _ arguments: [String], environment: [String: String] = [:], inheriting: Bool = true
  ) throws -> Outcome {
    try Subprocess(arguments, environment: environment, inheriting: inheriting).finish()
  }

  /// Runs a program of this package to its end.
  ///
  /// - Parameter environment: the whole of it. What the tests were started with must not change what they see.
  package static func run(
    product name: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws -> Outcome {
    try run([product(name)] + arguments, environment: environment, inheriting: false)
  }

  /// Whether there is a program of that name, for tests that are skipped without it.
  package static func isInstalled(_ name: String) -> Bool {
    path.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
  }

  /// Where programs are looked for. Debian has daemons where an ordinary user's path does not lead.
  private static let path = (getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin") + ":/usr/sbin"

  /// The path of a program of this package: in `STEPCTL_BIN_DIR`, or where the tests themselves were built.
  package static func product(_ name: String) throws -> String {
    if let folder = getenv("STEPCTL_BIN_DIR").map({ String(cString: $0) }) {
      return try isProgram("\(folder)/\(name)") ?? { throw Missing(description: "there is no \(folder)/\(name)") }()
    }
    // The tests are `…/debug/stepctlPackageTests.xctest`. A runner that loads them may itself be elsewhere.
    for start in [CommandLine.arguments[0], CommandLine.arguments.last ?? "", "/proc/self/exe"] {
      guard let real = realpath(start, nil) else { continue }
      defer { free(real) }
      var folders = String(cString: real).split(separator: "/")
      while folders.popLast() != nil {
        if let path = isProgram("/" + folders.joined(separator: "/") + "/\(name)") { return path }
      }
    }
    throw Missing(
      description: "no \(name) beside the tests: `swift build` makes it, or STEPCTL_BIN_DIR names its folder")
  }

  private static func isProgram(_ path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, access(path, X_OK) == 0 else { return nil }
    return path
  }
}

/// Runs a command line of the shell to its end.
package func shell(_ command: String) -> (status: Int32, output: String) {
  guard let outcome = try? Subprocess.run(["sh", "-c", command]) else { return (-1, "") }
  return (outcome.status, outcome.output)
}
