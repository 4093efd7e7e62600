import Certificates
import Encoding
package import StepProtocol
import SystemIO

/// The device's key, usable for a while without its passphrase: the kernel keeps the key that opens its file, in the
/// keyring of this login session. That key is worth nothing without the file, and the passphrase is kept nowhere.
extension EnrolledDevice {
  /// The longest time, seconds: more than a day of work, and less than until the next one.
  package static let longestUnlocking: Int64 = 12 * 3600

  /// Throws if there is no key to unlock.
  package func requireKey() throws(StoreError) {
    if !Files.exists(keyPath) { throw Files.exists(path) ? .lostKey(keyPath) : .notEnrolled }
  }

  /// - Parameters:
  ///   - seconds: 1 to `longestUnlocking`.
  ///   - now: Unix time.
  /// - Returns: when it ends, Unix time.
  /// - Throws: `ProtectedKeyError` for a wrong passphrase, `KeyringError`.
  package func unlock(by passphrase: [UInt8], for seconds: Int64, now: Int64) throws -> Int64 {
    let key = try ProtectedKey.openingKey(of: Files.readRegular(keyPath), keyPath, by: passphrase)
    let end = now + seconds
    try SessionKeyring.keep(end.bigEndianBytes + key, as: entry, for: Int(seconds))
    return end
  }

  /// - Returns: whether anything was kept.
  /// - Throws: `KeyringError`.
  package func lock() throws -> Bool { try SessionKeyring.forget(entry) }

  /// Opens a protected key with what is kept; nil if that is nothing, or opens another file.
  package func open(_ pem: [UInt8], _ path: String) -> SigningKey? {
    kept.flatMap { try? ProtectedKey.open(pem, path, with: $0.key) }
  }

  /// When the time ends, Unix time; nil if the device's key is not unlocked.
  package var unlockedUntil: Int64? {
    guard let kept, let pem = try? Files.readRegular(keyPath), open(pem, keyPath) != nil else { return nil }
    return kept.end
  }

  private var kept: (end: Int64, key: [UInt8])? {
    SessionKeyring.secret(entry).map { (Int64(bigEndianBytes: $0.prefix(8)), Array($0.dropFirst(8))) }
  }

  /// The entry is named by the device's folder, so that `lock` finds it even if the key file is lost or replaced.
  private var entry: String { "stepctl:\(path)" }
}
