import Glibc
import Testing

@testable import SystemIO

/// Against programs that say what a helper should not. Nobody writes to them while they start, so that they can be run.
@Suite("Helper processes", .timeLimit(.minutes(10))) struct HelperProcessTests {
  private func helper(
    _ script: String, longest: Int = 1024, interruption: Interruption? = nil
  ) throws -> HelperProcess {
    try HelperProcess("/bin/sh", arguments: ["-c", script], longest: longest, interruption: interruption)
  }

  private func ask(_ script: String, within patience: Duration = .seconds(60)) throws -> [UInt8] {
    try helper(script).ask([1, 2, 3], within: patience)
  }

  @Test("a helper answers, whatever pieces its answer comes in")
  func answers() throws {
    let helper = try HelperProcess("/bin/cat")
    #expect(try helper.ask([1, 2, 3], within: .seconds(60)) == [1, 2, 3])
    #expect(try helper.ask([4], within: .seconds(60)) == [4])
    #expect(try ask(#"printf '\000'; sleep 0.05; printf '\002a'; sleep 0.05; printf 'b'; cat"#) == Array("ab".utf8))
  }

  @Test("how a helper ended is told")
  func endings() throws {
    #expect(throws: HelperProcess.Failure.ended(.exited(3))) { try ask("exit 3") }
    #expect(throws: HelperProcess.Failure.ended(.signaled(SIGABRT))) { try ask("head -c 1 >/dev/null; kill -6 $$") }
    #expect(throws: HelperProcess.Failure.ended(.exited(0))) { try ask(#"printf '\000\014\203'"#) }
  }

  @Test("a helper that closes its output and goes on is ended")
  func undead() throws {
    let began = Instant.now
    #expect(throws: HelperProcess.Failure.ended(.signaled(SIGKILL))) { try ask("exec >&-; sleep 100") }
    // It is not waited for until it ends by itself.
    #expect(began.duration(to: .now) < .seconds(90))
  }

  @Test(
    "what is no message is not believed",
    arguments: [#"printf '\000\000'; cat"#, #"printf '\377\377'; cat"#, #"printf '\004\001'; cat"#, "cat /dev/zero"])
  func malformed(script: String) {
    #expect(throws: HelperProcess.Failure.malformed) { try ask(script) }
  }

  @Test("a helper that says nothing is waited for as long as was said")
  func silent() throws {
    let began = Instant.now
    #expect(throws: HelperProcess.Failure.silent) { try ask("sleep 100", within: .milliseconds(30)) }
    #expect(began.duration(to: .now) >= .milliseconds(30))
    #expect(try helper("sleep 100").next(until: .now + .milliseconds(10)) == nil)
  }

  @Test("a helper that reads nothing does not hold up who sends")
  func full() throws {
    let helper = try helper("sleep 100")
    let message = [UInt8](repeating: 0, count: 60_000)
    try helper.send(message)
    #expect(throws: HelperProcess.Failure.silent) { try helper.send(message) }
  }

  @Test("an interruption ends a wait at once")
  func interrupted() throws {
    let interruption = try Interruption.manual()
    let helper = try helper("sleep 100", interruption: interruption)
    try DetachedThread.start {
      usleep(10_000)
      interruption.interrupt()
    }
    #expect(throws: HelperProcess.Failure.interrupted) { try helper.next(until: nil) }
    #expect(HelperProcess.Failure.interrupted.isInterruption)
  }

  @Test("a program that is not there is told")
  func missing() {
    let error = SystemError("start", "/none", code: ENOENT)
    #expect(throws: HelperProcess.Failure.system(error)) { try HelperProcess("/none") }
  }

  @Test("a helper is a source of an event loop, up to its end")
  func source() throws {
    let loop = try EventLoop()
    let helper = try helper(#"printf '\000\001a\000\001b'; sleep 0.05; printf '\000\002cd'; exit 7"#)
    var messages: [[UInt8]] = []
    try loop.watch(helper.descriptor) { messages += try helper.received() }
    #expect(throws: HelperProcess.Failure.ended(.exited(7))) { try loop.run() }
    #expect(messages == ["a", "b", "cd"].map { Array($0.utf8) })
  }

  @Test("a helper is given time to end by itself, and is gone with its owner")
  func farewell() throws {
    let interruption = try Interruption.manual()
    func identifier(_ script: String, farewell: Duration) throws -> pid_t {
      let helper = try helper(script, interruption: interruption)
      let message = try #require(try helper.next(until: .now + .seconds(60)))
      helper.end(within: farewell)
      return pid_t(String(decoding: message, as: UTF8.self).filter(\.isNumber))!
    }
    // The number, and spaces up to seven characters.
    let say = #"printf '\000\007%-7s' $$; "#
    let began = Instant.now
    for script in ["cat >/dev/null", "sleep 100"] {
      let identifier = try identifier(say + script, farewell: .milliseconds(100))
      #expect(kill(identifier, 0) == -1 && errno == ESRCH)
    }
    #expect(began.duration(to: .now) < .seconds(90))
  }
}

@Suite("Confinement") struct ConfinementTests {
  @Test("an architecture that nobody has checked is refused, and nothing is given up")
  func unknownArchitecture() throws {
    #expect(throws: SystemError("give up system calls", code: ENOSYS)) {
      try Confinement.computeOnly(controlsDevices: false, architecture: 0)
    }
    #expect(access("/", F_OK) == 0)
  }
}
