import Certificates
import CommandParts
import Domain
import Encoding
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal
import TestSupport
import Testing

@testable import UserSettings

@Suite("stepctl unlock and lock", .enabled(if: Keyctl.isThere, "this system gives no keyring"))
struct UnlockTests {
  private var shell: Shell
  private let now: Int64
  private let passphrases: (present: String, other: String)

  /// A device with a protected key, and a shell in which nobody can be asked.
  init() throws {
    shell = try Shell()
    now = shell.now.microseconds / 1_000_000
    passphrases = (
      try shell.folder.write("passphrase", "correct horse\n"), try shell.folder.write("other", "battery staple\n")
    )
    let made = shell.types("enroll", "--name", "anna", "--passphrase-file", passphrases.present)
    try #require(made.ending == .status(.done))
  }

  /// The shell of somebody who knows a passphrase.
  private func knowing(_ passphrase: String) -> Shell {
    var shell = shell
    shell.environment["STEPCTL_PASSPHRASE_FILE"] = passphrase
    return shell
  }

  /// How a command ends that needs the device's key, and whose passphrase nobody knows.
  private var use: Program.Ending { shell.types("enroll", "--name", "anna").ending }

  @Test("while the key is unlocked nobody is asked for its passphrase, and no file is written")
  func unlocked() throws {
    try #require(Keyctl.login())
    let files = try shell.folder.listing()
    #expect(use == .status(.noPermission))
    let ended = knowing(passphrases.present).types("unlock")
    #expect(ended.ending == .status(.done))
    #expect(ended.lines == ["this device's key is unlocked until \(dateAndTime(now + 900)) (15 min)"])
    #expect(use == .status(.done))
    // Not even a wrong one is read.
    #expect(knowing(passphrases.other).types("enroll", "--name", "anna").ending == .status(.done))
    #expect(try shell.folder.listing() == files)
    #expect(shell.types("lock").lines == ["this device's key is locked"])
    #expect(use == .status(.noPermission))
    #expect(shell.types("lock").lines == ["this device's key was not unlocked in this login session"])
    #expect(
      try knowing(passphrases.present).types("unlock", "--for", "2h", "--json").objects == [
        ["unlocked_s": 7200, "expires": .integer(now + 7200)]
      ])
    #expect(try shell.types("lock", "--json").objects == [["was_unlocked": true]])
  }

  @Test("stepctl alone says for how long")
  func overview() throws {
    try #require(Keyctl.login())
    var shell = shell
    shell.environment["STEPCTL_RADIO"] = "h4:unix:/radio"
    func device() -> String? { shell.types("-v").lines.first { $0.hasPrefix("device ") } }
    #expect(device()?.contains("unlocked") == false)
    #expect(try shell.types("--json").objects[0]["unlocked_s"] == .null)
    #expect(knowing(passphrases.present).types("unlock", "--for", "12m").ending == .status(.done))
    #expect(device()?.hasSuffix(", unlocked for 12 min") == true)
    #expect(try shell.types("--json").objects[0]["unlocked_s"] == 720)
  }

  @Test("whoever comes to an unlocked device can neither keep it unlocked nor change the passphrase")
  func unattended() throws {
    try #require(Keyctl.login())
    #expect(knowing(passphrases.present).types("unlock").ending == .status(.done))
    #expect(shell.types("unlock", "--for", "12h").ending == .status(.noPermission))
    for change in [["--no-passphrase"], ["--passphrase-file", passphrases.other]] {
      #expect(shell.types(["enroll", "--name", "anna"] + change).ending == .status(.noPermission), "\(change)")
    }
    #expect(use == .status(.done))
  }

  @Test("another passphrase locks the key, and what was kept opens no other file")
  func changed() throws {
    try #require(Keyctl.login())
    let key = shell.path("home/.config/stepctl/device/device.jwk")
    #expect(knowing(passphrases.present).types("unlock").ending == .status(.done))
    let before = try Files.read(key)
    let change = ["enroll", "--name", "anna", "--passphrase-file", passphrases.other]
    #expect(knowing(passphrases.present).types(change).ending == .status(.done))
    #expect(use == .status(.noPermission))
    #expect(try shell.types("lock", "--json").objects == [["was_unlocked": false]])
    // The same key under another passphrase, as a backup of another day has it.
    #expect(knowing(passphrases.other).types("unlock").ending == .status(.done))
    let after = try Files.read(key)
    try Files.replace(key, with: before, mode: 0o600)
    #expect(use == .status(.noPermission))
    try Files.replace(key, with: after, mode: 0o600)
    #expect(use == .status(.done))
    // A lost key does not keep anybody from locking.
    unlink(key)
    #expect(shell.types("unlock").ending == .status(.noInput))
    #expect(try shell.types("lock", "--json").objects == [["was_unlocked": true]])
  }

  @Test("a wrong passphrase unlocks nothing")
  func wrong() throws {
    try #require(Keyctl.login())
    let ended = knowing(passphrases.other).types("unlock")
    #expect(ended.ending == .status(.noPermission) && ended.errors.hasSuffix("the passphrase is wrong\n"))
    #expect(shell.types("unlock").ending == .status(.noPermission))
    #expect(try shell.types("lock", "--json").objects == [["was_unlocked": false]])
  }

  @Test("what somebody else left in the keyring opens nothing, and is asked about nowhere")
  func planted() throws {
    try #require(Keyctl.login())
    for size in [1, 8, 39, 40, 41, 200] {
      #expect(Keyctl.add("stepctl:\(shell.path("home"))/.config/stepctl/device", .init(repeating: 5, count: size)) > 0)
      #expect(use == .status(.noPermission))
      #expect(knowing(passphrases.present).types("enroll", "--name", "anna").ending == .status(.done))
      #expect(try shell.types("--json", "--radio", "h4:unix:/radio").objects[0]["unlocked_s"] == .null)
    }
  }

  @Test("a time has an end within 12 hours")
  func times() throws {
    try #require(Keyctl.login())
    for time in ["0s", "15", "721m", "13h", "30d", "-1m", ""] {
      #expect(knowing(passphrases.present).types("unlock", "--for", time).ending == .status(.usage), "\(time)")
    }
    #expect(use == .status(.noPermission))
    #expect(knowing(passphrases.present).types("unlock", "--for", "12h").ending == .status(.done))
  }

  @Test("a session that has ended keeps no key, and says so")
  func ended() throws {
    try #require(Keyctl.login())
    #expect(Keyctl.control(Keyctl.revoke, Keyctl.session) == 0)
    let ended = knowing(passphrases.present).types("unlock")
    #expect(ended.ending == .status(.unavailable))
    #expect(
      ended.notes == [
        "stepctl: error: the keyring of this login session has ended", "hint: log in to this computer again",
      ])
    #expect(use == .status(.noPermission))
    #expect(knowing(passphrases.present).types("enroll", "--name", "anna").ending == .status(.done))
    #expect(shell.types("lock").ending == .status(.unavailable))
    // For the tests that come after this one on this thread.
    try #require(Keyctl.login())
  }

  @Test("a key without a passphrase is never locked, and a device without a key has none to unlock")
  func unprotected() throws {
    let shell = try Shell()
    #expect(shell.types("unlock").errors.hasPrefix("stepctl: error: this computer has no device key\n"))
    #expect(shell.types("enroll", "--name", "anna").ending == .status(.done))
    let ended = shell.types("unlock")
    #expect(ended.ending == .status(.done))
    #expect(ended.lines == ["no passphrase protects this device's key: it is never locked"])
    #expect(try shell.types("unlock", "--json").objects == [["unlocked_s": .null, "expires": .null]])
  }
}

@Suite("What opens a protected key in place of its passphrase") struct OpeningKeyTests {
  private let key = SigningKey()
  private let passphrase = Array("correct horse".utf8)

  @Test("is of one file and one passphrase")
  func opening() throws {
    let pem = try ProtectedKey.seal(key, by: passphrase)
    let opening = try ProtectedKey.openingKey(of: pem, "key", by: passphrase)
    #expect(opening.count == 32)
    #expect(try ProtectedKey.open(pem, "key", with: opening)?.verificationKey == key.verificationKey)
    #expect(throws: ProtectedKeyError.wrongPassphrase("key")) {
      try ProtectedKey.openingKey(of: pem, "key", by: Array("correct house".utf8))
    }
    // The same key and passphrase, with another salt.
    let again = try ProtectedKey.seal(key, by: passphrase)
    #expect(try ProtectedKey.open(again, "key", with: opening) == nil)
    for wrong in [[], Array(opening.dropLast()), opening + [0], Array(opening.reversed())] {
      #expect(try ProtectedKey.open(pem, "key", with: wrong) == nil)
    }
    #expect(throws: ProtectedKeyError.damaged("key")) { try ProtectedKey.openingKey(of: [], "key", by: passphrase) }
  }

  @Test(
    "is had of files that openssl makes in the same way, and of no others",
    .enabled(if: Subprocess.isInstalled("openssl"), "openssl is not installed"),
    arguments: [
      (["-scrypt"], nil), (["-v2", "aes-256-cbc"], ProtectedKeyError.otherScheme("key")),
      (["-scrypt", "-v2", "aes-128-cbc"], ProtectedKeyError.otherScheme("key")),
    ])
  func schemes(options: [String], error: ProtectedKeyError?) throws {
    let plain = try Subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"]).output
    let folder = try TemporaryFolder()
    let file = try folder.write("plain.pem", plain)
    let made = try Subprocess.run(
      ["openssl", "pkcs8", "-topk8", "-in", file, "-passout", "pass:correct horse"] + options)
    #expect(made.status == 0)
    let pem = Array(made.output.utf8)
    let found = Result { try ProtectedKey.openingKey(of: pem, "key", by: passphrase).count }
    #expect((try? found.get()) == (error == nil ? 32 : nil))
    if let error { #expect(throws: error) { try found.get() } }
    _ = try ProtectedKey.open(pem, "key", by: passphrase)
  }
}
