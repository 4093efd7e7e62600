import Glibc
import SystemIO
import Testing

/// A program that a test started, with nothing to read and nowhere to write.
struct Subprocess {
  private let id: pid_t

  init(_ arguments: [String]) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    // What other tests have open at this moment would stay open as long as it runs.
    for number in 3..<256 as Range<Int32> { posix_spawn_file_actions_addclose(&actions, number) }
    var vector = arguments.map { strdup($0) } + [nil]
    defer { for argument in vector { free(argument) } }
    var id = pid_t()
    let code = posix_spawnp(&id, arguments[0], &actions, nil, &vector, environ)
    guard code == 0 else { throw SystemError("start", arguments[0], code: code) }
    self.id = id
  }

  /// Waits for the end; 0 is success.
  @discardableResult
  func wait() -> Int32 {
    var status: Int32 = 0
    while waitpid(id, &status, 0) == -1, errno == EINTR {}
    return status
  }

  func kill(with signal: Int32 = SIGKILL) {
    _ = Glibc.kill(id, signal)
    wait()
  }
}

struct ExitStatus: Error {
  let arguments: [String]
  let status: Int32
}

/// Runs a program to its end, which must be success.
func run(_ arguments: String...) throws {
  let status = try Subprocess(arguments).wait()
  if status != 0 { throw ExitStatus(arguments: arguments, status: status) }
}
