import Certificates
import CommandParts
import Domain
import FileFormats
import SystemIO
import Terminal

/// The passphrase of this device's key.
extension Context {
  /// The environment variable that names a file with the passphrase.
  private static let variable = "STEPCTL_PASSPHRASE_FILE"

  /// Opens a key that a passphrase protects. The passphrase comes from the file that the environment names, or from the
  /// terminal.
  ///
  /// - Parameter noInput: true forbids asking.
  func unlock(_ interruption: Interruption, noInput: Bool = false) -> KeyFile.Unlock {
    { path, pem in
      var attempts = passphrase.bytes == nil && file == nil ? Self.attempts : 1
      while true {
        let given = try passphrase.bytes ?? ask(for: path, interruption, noInput: noInput)
        attempts -= 1
        do {
          let key = try ProtectedKey.open(pem, path, by: given)
          passphrase.keep(given)
          return key
        } catch ProtectedKeyError.wrongPassphrase where attempts > 0 {
          Console(self).note("the passphrase is wrong")
        }
      }
    }
  }

  /// The number of attempts.
  private static let attempts = 3

  /// The file that the environment names.
  private var file: String? { environment[Self.variable].flatMap { $0.isEmpty ? nil : $0 } }

  private func ask(for path: String, _ interruption: Interruption, noInput: Bool) throws -> [UInt8] {
    if let file { return try Self.passphrase(in: file) }
    guard !noInput, input.isTerminal else {
      throw CommandFailure(
        .noPermission, "\(path): a passphrase protects this key, and nobody can be asked for it",
        hint: "name a file with it in \(Self.variable)")
    }
    return Array(try Questions(streams, interruption).askSecret("passphrase of this device's key: ").utf8)
  }

  /// The first line of a file that only its owner may read.
  static func passphrase(in file: String) throws -> [UInt8] {
    try KeyFile.checkPrivate(file)
    let line = try Files.read(file, limit: 4096).prefix { $0 != 0x0A && $0 != 0x0D }
    guard !line.isEmpty else { throw ConfigurationError(file, "an empty passphrase") }
    return Array(line)
  }
}
