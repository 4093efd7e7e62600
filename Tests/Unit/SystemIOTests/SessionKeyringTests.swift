import Domain
import Glibc
import TestSupport
import Testing

@testable import SystemIO

/// In the kernel, each in a login session of its own.
@Suite("Secrets in the keyring of a login session", .enabled(if: Keyctl.isThere, "this system gives no keyring"))
struct SessionKeyringTests {
  private let name = "stepctl-test:\(UUID.random())"

  /// What /proc/keys says of the key: its number, its flags, how often it is used, when it ends, its rights, its user.
  private func described() throws -> [Substring] {
    let number = String(Keyctl.find(name), radix: 16)
    let keys = String(decoding: try Files.read("/proc/keys", limit: 1 << 20), as: UTF8.self)
    let lines = keys.split(separator: "\n").map { $0.split(separator: " ") }
    return try #require(lines.first { $0[0].drop { $0 == "0" } == number })
  }

  @Test("a secret is kept, replaced and forgotten")
  func kept() throws {
    try #require(Keyctl.login())
    #expect(SessionKeyring.secret(name) == nil)
    #expect(try !SessionKeyring.forget(name))
    try SessionKeyring.keep([1, 2, 3], as: name, for: 60)
    #expect(SessionKeyring.secret(name) == [1, 2, 3])
    let longest = [UInt8](repeating: 7, count: 256)
    try SessionKeyring.keep(longest, as: name, for: 60)
    #expect(SessionKeyring.secret(name) == longest)
    #expect(SessionKeyring.secret("\(name)x") == nil)
    #expect(try SessionKeyring.forget(name))
    #expect(SessionKeyring.secret(name) == nil)
    #expect(try !SessionKeyring.forget(name))
  }

  @Test("the kernel ends it, and nobody may put that off")
  func end() throws {
    try #require(Keyctl.login())
    try SessionKeyring.keep([1], as: name, for: 3600)
    let key = Keyctl.find(name)
    #expect(key > 0)
    #expect(Keyctl.control(Keyctl.setTimeout, key, 36_000) == -1 && errno == EACCES)
    #expect(Keyctl.control(Keyctl.setPermissions, key, 0x3F3F_3F3F) == -1 && errno == EACCES)
    try SessionKeyring.keep([2], as: name, for: 4)
    #expect(SessionKeyring.secret(name) == [2])
    // The kernel counts whole seconds of the day's time.
    usleep(5_100_000)
    #expect(SessionKeyring.secret(name) == nil)
    #expect(try !SessionKeyring.forget(name))
    try SessionKeyring.keep([3], as: name, for: 60)
    #expect(SessionKeyring.secret(name) == [3])
  }

  @Test("its user's programs may see, read, find and link it, and nobody else may do anything")
  func rights() throws {
    try #require(Keyctl.login())
    try SessionKeyring.keep([1], as: name, for: 3600)
    let described = try described()
    #expect(described[4] == "001b0000")
    #expect(described[5] == "\(geteuid())")
    #expect(["59m", "1h"].contains(described[3]), "\(described)")
  }

  @Test("it is not written into a key with its name that somebody else left there, and that all may read")
  func planted() throws {
    try #require(Keyctl.login())
    let planted = Keyctl.add(name, [9])
    #expect(Keyctl.control(Keyctl.setPermissions, planted, 0x3F3F_3F3F) == 0)
    try SessionKeyring.keep([1, 2, 3], as: name, for: 60)
    #expect(SessionKeyring.secret(name) == [1, 2, 3])
    #expect(Keyctl.find(name) != planted)
    #expect(Keyctl.secret(of: planted) != [1, 2, 3])
    #expect(try described()[4] == "001b0000")
  }

  @Test("another session does not have it")
  func sessions() throws {
    try #require(Keyctl.login())
    try SessionKeyring.keep([1], as: name, for: 60)
    try #require(Keyctl.login())
    #expect(SessionKeyring.secret(name) == nil)
  }

  @Test("a session that has ended keeps nothing, and says so")
  func ended() throws {
    try #require(Keyctl.login())
    try SessionKeyring.keep([1], as: name, for: 60)
    #expect(Keyctl.control(Keyctl.revoke, Keyctl.session) == 0)
    #expect(SessionKeyring.secret(name) == nil)
    #expect(throws: KeyringError(code: EKEYREVOKED)) { try SessionKeyring.keep([1], as: name, for: 60) }
    #expect(throws: KeyringError(code: EKEYREVOKED)) { try SessionKeyring.forget(name) }
    // For the tests that come after this one on this thread.
    try #require(Keyctl.login())
  }
}

@Suite("Why the kernel keeps no secret") struct KeyringErrorTests {
  @Test(
    "is said in words, with what to do",
    arguments: [
      (ENOSYS, "this system gives the program no keyring: Function not implemented"),
      (EPERM, "this system gives the program no keyring: Operation not permitted"),
      (EDQUOT, "your keyrings in the kernel are full"),
      (EKEYREVOKED, "the keyring of this login session has ended"),
    ])
  func words(code: Int32, message: String) {
    let error = KeyringError(code: code)
    #expect(error.description == message)
    #expect(error.hint != nil && error.exitStatus == .unavailable)
  }
}
