import Glibc
import SystemIO
import Testing

@Suite("Child processes") struct ChildProcessTests {
  @Test("a child reads what is written to it, and answers")
  func conversation() throws {
    var child = try ChildProcess("/bin/head", arguments: ["-n", "1"])
    try child.input.write("hello\nrest\n".utf8)
    #expect(try Files.readAll(child.output, "its output") == Array("hello\n".utf8))
    #expect(child.wait() == .exited(0))
    #expect(child.wait() == .exited(0))
  }

  @Test("a child reads the descriptor that it was given")
  func given() throws {
    let file = try Descriptor.open("/proc/self/comm", O_RDONLY)
    let child = try ChildProcess("/bin/cat", standardInput: file.number)
    #expect(try Files.readAll(child.output, "its output") == Files.read("/proc/self/comm"))
  }

  @Test("a child's standard error can be read with its output, and is not otherwise")
  func errors() throws {
    let script = ["-c", "echo found; echo wrong >&2"]
    let child = try ChildProcess("/bin/sh", arguments: script, errors: .output)
    #expect(try Files.readAll(child.output, "its output") == Array("found\nwrong\n".utf8))
    let quiet = try ChildProcess("/bin/sh", arguments: script)
    #expect(try Files.readAll(quiet.output, "its output") == Array("found\n".utf8))
  }

  @Test("how a child ended is told")
  func endings() throws {
    var failing = try ChildProcess("/bin/sh", arguments: ["-c", "exit 65"])
    #expect(failing.wait() == .exited(65))
    var aborting = try ChildProcess("/bin/sh", arguments: ["-c", "kill -ABRT $$"])
    #expect(aborting.wait() == .signaled(SIGABRT))
    var idle = try ChildProcess("/bin/cat")
    #expect(idle.kill() == .signaled(SIGKILL))
  }

  @Test("a child has no signal blocked or ignored, whatever this process does with them")
  func signals() throws {
    signal(SIGPIPE, SIG_IGN)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    defer { pthread_sigmask(SIG_UNBLOCK, &signals, nil) }
    let child = try ChildProcess("/bin/grep", arguments: ["-E", "SigBlk|SigIgn", "/proc/self/status"])
    let masks = String(decoding: try Files.readAll(child.output, "its output"), as: UTF8.self)
      .split(separator: "\n").compactMap { UInt64($0.suffix(16), radix: 16) }
    // But for 32 and 33, which the C library keeps to itself.
    #expect(masks.map { $0 & ~(0b11 << 31) } == [0, 0])
  }

  @Test("a child is gone with its owner")
  func owner() throws {
    func start() throws -> pid_t {
      let child = try ChildProcess("/bin/sh", arguments: ["-c", "echo $$; exec sleep 100"])
      var line = [UInt8](repeating: 0, count: 16)
      let count = try line.withUnsafeMutableBytes { bytes in try child.output.read(into: bytes) }
      return pid_t(String(decoding: line[..<count], as: UTF8.self).split(separator: "\n")[0])!
    }
    let identifier = try start()
    #expect(kill(identifier, 0) == -1 && errno == ESRCH)
  }

  @Test("a program that is not there is told")
  func missing() {
    #expect(throws: SystemError("start", "/nowhere/at-all", code: ENOENT)) {
      _ = try ChildProcess("/nowhere/at-all")
    }
    #expect(throws: SystemError("start", "stepctl-no-such-program", code: ENOENT)) {
      try ChildProcess.program("stepctl-no-such-program")
    }
  }
}
