import Glibc
import SystemIO
import TestSupport

/// A program that a test runs, found where the shell finds it; what it prints goes to a file.
final class Program {
  let id: pid_t
  private let output: String
  /// What waitpid(2) said, once it has ended.
  private var ended: Int32?

  /// - Parameters:
  ///   - folder: where the output goes to. The program runs in `/`, so that no relative path works by chance.
  ///   - environment: `NAME=value`, added to this process's.
  init(_ arguments: [String], in folder: TemporaryFolder, environment: [String] = []) throws {
    output = "\(folder.path)/output-\(UInt64.random(in: .min ... .max))"
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    // What other tests have open at this moment would stay open as long as it runs.
    for number in 3..<256 as Range<Int32> { posix_spawn_file_actions_addclose(&actions, number) }
    var vector = (["env", "--chdir=/"] + environment + arguments).map { strdup($0) } + [nil]
    defer { for argument in vector { free(argument) } }
    var id = pid_t()
    let code = posix_spawn(&id, "/usr/bin/env", &actions, nil, &vector, environ)
    guard code == 0 else { throw SystemError("start", arguments[0], code: code) }
    self.id = id
  }

  deinit { stop() }

  /// What it has printed so far, both streams in their order.
  var printed: String { (try? TemporaryFolder.text(output)) ?? "" }

  /// Waits until something is printed, and says whether it was before the end or the deadline.
  func waits(for text: String, seconds: Int = 20) -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !printed.contains(text) {
      guard ContinuousClock.now < deadline, !hasEnded(WNOHANG) else { return printed.contains(text) }
      usleep(5000)
    }
    return true
  }

  /// Waits for the end: the status, and all that was printed.
  func finish() -> (status: Int32, printed: String) {
    _ = hasEnded(0)
    return (ended ?? -1, printed)
  }

  func stop() {
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

  /// Whether there is a program of that name, for tests that are skipped without it.
  static func isInstalled(_ name: String) -> Bool {
    let path = getenv("PATH").map { String(cString: $0) } ?? ""
    return path.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
  }
}
