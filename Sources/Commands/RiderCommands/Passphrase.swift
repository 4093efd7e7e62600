import Certificates
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import SystemIO
import Terminal

/// The passphrase of this device's key.
extension Context {
  /// The environment variable that names a file with the passphrase.
  private static let variable = "STEPCTL_PASSPHRASE_FILE"

  /// Opens a key that a passphrase protects. The passphrase comes from the file that the environment names, or from the
  /// terminal. Neither is asked while the key is unlocked (`stepctl unlock`).
  ///
  /// - Parameters:
  ///   - noInput: true forbids asking.
  ///   - byPassphrase: true wants the passphrase itself. Otherwise, whoever comes to an unlocked device could take its
  ///     passphrase away, or keep it unlocked, by a command.
  func unlock(_ interruption: Interruption, noInput: Bool = false, byPassphrase: Bool = false) -> KeyFile.Unlock {
    { path, pem in
      if !byPassphrase, passphrase.bytes == nil, let key = (try? EnrolledDevice(folders))?.open(pem, path) {
        return key
      }
      var attempts = passphrase.bytes == nil && file == nil ? Self.attempts : 1
      while true {
        let given = try passphrase.bytes ?? ask(for: path, interruption, noInput: noInput, byPassphrase: byPassphrase)
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

  private func ask(
    for path: String, _ interruption: Interruption, noInput: Bool, byPassphrase: Bool
  ) throws -> [UInt8] {
    if let file { return try Self.passphrase(in: file) }
    guard !noInput, input.isTerminal else {
      throw CommandFailure(
        .noPermission, "\(path): a passphrase protects this key, and nobody can be asked for it",
        hint: (byPassphrase ? "" : "type `stepctl unlock` first, on a terminal, or ")
          + "name a file with it in \(Self.variable)")
    }
    return Array(try Questions(streams, interruption).askSecret("passphrase of this device's key: ").utf8)
  }

  /// The first line of a file that only its owner may read.
  static func passphrase(in file: String) throws -> [UInt8] {
    try KeyFile.checkPrivate(file)
    let line = try Files.read(file, limit: 4096).withoutByteOrderMark.prefix { $0 != 0x0A && $0 != 0x0D }
    guard !line.isEmpty else { throw ConfigurationError(file, "an empty passphrase") }
    return Array(line)
  }
}
