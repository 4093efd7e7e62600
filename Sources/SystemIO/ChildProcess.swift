import CLinux
import Glibc

/// A program that this process starts, with pipes to its standard input and output. It ends with its owner.
package struct ChildProcess: ~Copyable {
  /// How the child ended.
  package enum Ending: Equatable, Sendable {
    case exited(Int32)
    case signaled(Int32)
  }

  /// Where a child's standard error goes.
  package enum StandardError {
    case nowhere
    /// To this process's.
    case shared
    /// To the child's standard output.
    case output
  }

  /// The child's standard input. If the child was given another one, nobody reads this.
  package private(set) var input: Descriptor
  /// The child's standard output, and its standard error if that goes there.
  package let output: Descriptor
  private let identifier: pid_t
  private var ending: Ending?

  /// Starts a program, with default actions for all signals, and none of them blocked.
  ///
  /// - Parameters:
  ///   - path: the program's path.
  ///   - standardInput: the descriptor that the child should read; nil for a pipe from this process.
  ///   - errors: where the child's standard error goes.
  package init(
    _ path: String, arguments: [String] = [], standardInput: Int32? = nil, errors: StandardError = .nowhere
  ) throws(SystemError) {
    let toIt = try Pipe()
    let fromIt = try Pipe()
    identifier = try Self.spawn(
      path, arguments, input: standardInput ?? toIt.reader.number, output: fromIt.writer.number, errors: errors)
    input = toIt.takeWriter()
    output = fromIt.takeReader()
  }

  deinit {
    guard ending == nil else { return }
    Glibc.kill(identifier, SIGKILL)
    _ = Self.reap(identifier)
  }

  /// Waits for the child's end.
  package mutating func wait() -> Ending {
    let ending = ending ?? Self.reap(identifier)
    self.ending = ending
    return ending
  }

  /// Waits this long for the child's end, and then kills it.
  package mutating func wait(within patience: Duration) -> Ending {
    guard ending == nil else { return wait() }
    // Without this descriptor (Linux before 5.3) the wait cannot be limited, so the child is killed at once.
    let process = Descriptor(adopting: open_process(identifier))
    let hasEnded = try? waitReadable([process.number], until: .now + patience)
    return process.number >= 0 && hasEnded == [true] ? wait() : kill()
  }

  /// Tells the child that it gets no more input.
  package mutating func closeInput() { input = Descriptor(adopting: -1) }

  /// Kills the child, whatever it is doing.
  package mutating func kill() -> Ending {
    if ending == nil { Glibc.kill(identifier, SIGKILL) }
    return wait()
  }

  /// The path of one of our programs: beside this one, as built, or in `../libexec/stepctl`, as installed.
  package static func program(_ name: String) throws(SystemError) -> String {
    guard let own = realpath("/proc/self/exe", nil) else { throw SystemError("read", "/proc/self/exe") }
    defer { free(own) }
    let folder = Files.parent(of: String(cString: own))
    let places = ["\(folder)/\(name)", "\(folder)/../libexec/stepctl/\(name)"]
    guard let path = places.first(where: { access($0, X_OK) == 0 }) else {
      throw SystemError("start", name, code: errno)
    }
    return path
  }

  // MARK: -

  private static func spawn(
    _ path: String, _ arguments: [String], input: Int32, output: Int32, errors: StandardError
  ) throws(SystemError) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    switch errors {
    case .nowhere: posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    case .shared: break
    case .output: posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
    }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    words.append(nil)
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, path, &actions, &attributes, words, environ)
    guard code == 0 else { throw SystemError("start", path, code: code) }
    return identifier
  }

  private static func reap(_ identifier: pid_t) -> Ending {
    var status: Int32 = 0
    while waitpid(identifier, &status, 0) == -1, errno == EINTR {}
    // wait(2): the macros WIFSIGNALED, WTERMSIG and WEXITSTATUS.
    let signal = status & 0x7F
    return signal == 0 ? .exited(status >> 8 & 0xFF) : .signaled(signal)
  }
}

/// The two ends of a pipe(7).
package struct Pipe: ~Copyable {
  package let reader: Descriptor
  package let writer: Descriptor

  package init() throws(SystemError) {
    var numbers: [Int32] = [-1, -1]
    _ = try check("create a pipe") { pipe2(&numbers, O_CLOEXEC) }
    reader = Descriptor(adopting: numbers[0])
    writer = Descriptor(adopting: numbers[1])
  }

  /// The reading end; the other end is closed.
  package consuming func takeReader() -> Descriptor { reader }
  /// The writing end; the other end is closed.
  package consuming func takeWriter() -> Descriptor { writer }
}
