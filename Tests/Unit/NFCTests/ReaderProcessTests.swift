import Glibc
import Tags
import SystemIO
import Testing

@testable import NFC

@Suite("The program that libnfc is in")
struct ReaderProcessTests {
  let interruption: Interruption

  init() throws { interruption = try Interruption() }

  /// What a request comes to with a program in the place of `stepctl-nfc`.
  private func failure(_ script: String) throws -> NFCError? {
    var path = Array("/tmp/stepctl-nfc-XXXXXX\0".utf8CString)
    let file = Descriptor(adopting: mkstemp(&path))
    let program = String(decoding: path.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer { unlink(program) }
    try file.write("#!/bin/sh\n\(script)\n".utf8)
    fchmod(file.number, 0o700)
    try Files.replace(program, with: Files.read(program), mode: 0o700)
    let process = try start(program)
    do throws(NFCError) {
      _ = try process.ask(.select)
      return nil
    } catch {
      return error
    }
  }

  /// Again while a child that another test has just made still has the script open for writing.
  private func start(_ program: String) throws -> ReaderProcess {
    while true {
      do throws(NFCError) {
        return try ReaderProcess(program, interruption: interruption)
      } catch {
        guard case .system(let error) = error, error.code == ETXTBSY else { throw error }
        usleep(10_000)
      }
    }
  }

  @Test("that ends is told with how it ended")
  func ended() throws {
    #expect(try failure("exit 3") == .programEnded(.exited(3)))
    #expect(try failure("head -c 1 >/dev/null; kill -6 $$") == .programEnded(.signaled(SIGABRT)))
    #expect(try failure("kill -11 $$") == .programEnded(.signaled(SIGSEGV)))
  }

  @Test("that ends in the middle of a reply has ended")
  func torn() throws {
    #expect(try failure(#"printf '\000\014\203'"#) == .programEnded(.exited(0)))
  }

  @Test("that answers what is no reply is not believed")
  func unexpected() throws {
    // It says back what it was asked; and a length that no message has.
    #expect(try failure("cat") == .unexpected)
    #expect(try failure(#"printf '\377\377'; cat"#) == .unexpected)
    #expect(try failure(#"printf '\000\001\377'; cat"#) == .unexpected)
  }

  @Test("whose reply comes in pieces is understood")
  func pieces() throws {
    #expect(try failure(#"printf '\000'; sleep 0.1; printf '\001\204'; cat"#) == nil)
  }

  @Test("that is not there is told")
  func missing() {
    #expect(throws: NFCError.system(SystemError("start", "/none", code: ENOENT))) {
      try ReaderProcess("/none", interruption: interruption)
    }
  }
}
