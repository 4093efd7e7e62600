import Encoding
package import StepProtocol
import SystemIO

/// Keys in files: JWKs (RFC 7517) and tokens. No error repeats anything of their content.
package enum KeyFile {
  package static func signingKey(_ path: String) throws -> SigningKey {
    try read(path, isPrivate: true, SigningKey.init(jwk:))
  }

  package static func decryptionKey(_ path: String) throws -> DecryptionKey {
    try read(path, isPrivate: true, DecryptionKey.init(jwk:))
  }

  /// What a step's minors are computed from.
  package static func beaconSecret(_ path: String) throws -> BeaconSecret {
    try read(path, isPrivate: true, BeaconSecret.init(jwk:))
  }

  /// A public Ed25519 key. A private one serves too; its private part is not looked at.
  package static func verificationKey(_ path: String) throws -> VerificationKey {
    try read(path, isPrivate: false, VerificationKey.init(jwk:))
  }

  /// A token as its file has it, without the line end.
  package static func token(_ path: String) throws -> String {
    var bytes = try Files.readRegular(path)
    while let last = bytes.last, last == 0x0A || last == 0x0D || last == 0x20 { bytes.removeLast() }
    guard !bytes.isEmpty, bytes.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
      throw ConfigurationError(path, "not a token: expected a compact JWT")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Throws when the file is not there, or when anyone but its owner may read it.
  package static func checkPrivate(_ path: String) throws {
    guard try !Files.isReadableByOthers(path) else {
      throw ConfigurationError(path, "can be read by others: chmod 600 \(path)", kind: .permission)
    }
  }

  private static func read<Key>(
    _ path: String, isPrivate: Bool, _ key: (JSON) throws -> Key
  ) throws -> Key {
    if isPrivate { try checkPrivate(path) }
    let bytes = try Files.readRegular(path)
    // These errors give a position, or what was expected.
    do { return try key(JSON(parsing: bytes)) } catch { throw ConfigurationError(path, "\(error)") }
  }
}
