import Domain
import Encoding
import Glibc
package import StepProtocol
import SystemIO

/// Keys in files: JWKs (RFC 7517) and tokens. No error repeats any part of their content.
package enum KeyFile {
  /// Opens a key that a passphrase protects. Gets the key's path and its PEM.
  package typealias Unlock = (_ path: String, _ pem: [UInt8]) throws -> SigningKey

  /// - Parameter unlock: nil if nobody can be asked for a passphrase.
  package static func signingKey(_ path: String, unlock: Unlock? = nil) throws -> SigningKey {
    try checkPrivate(path)
    let bytes = try Files.readRegular(path).withoutByteOrderMark
    guard isProtected(bytes) else { return try key(bytes, path, SigningKey.init(jwk:)) }
    guard let unlock else {
      throw ConfigurationError(path, "a passphrase protects this key, and here it cannot be used", kind: .permission)
    }
    let key = try unlock(path, bytes)
    guard try key.verificationKey == publicKey(pem: bytes, path) else {
      throw ConfigurationError(path, "the public part of the key does not belong to its private part")
    }
    return key
  }

  /// An operator's key: a JWK, or PEM that OpenSSL reads. With OpenSSL's provider for PKCS #11 that may name a key in a
  /// token, which the key does not leave.
  package static func operatorKey(_ path: String) throws -> SigningKey {
    try operatorKey(privateContent(path), path)
  }

  /// The content of a file that others may not read.
  package static func privateContent(_ path: String) throws -> [UInt8] {
    try checkPrivate(path)
    return try Files.readRegular(path)
  }

  /// - Parameters:
  ///   - content: the file's.
  ///   - path: for errors.
  package static func operatorKey(_ content: [UInt8], _ path: String) throws -> SigningKey {
    let bytes = content.withoutByteOrderMark
    guard bytes.starts(with: "-----BEGIN ".utf8) else { return try key(bytes, path, SigningKey.init(jwk:)) }
    do { return try SigningKey(pem: bytes) } catch { throw ConfigurationError(path, "\(error)") }
  }

  /// Whether using the key needs a passphrase.
  package static func isProtected(_ path: String) throws -> Bool {
    try isProtected(Files.readRegular(path).withoutByteOrderMark)
  }

  package static func decryptionKey(_ path: String) throws -> DecryptionKey {
    try read(path, DecryptionKey.init(jwk:))
  }

  /// The secret from which a step's minors are computed.
  package static func beaconSecret(_ path: String) throws -> BeaconSecret {
    try read(path, BeaconSecret.init(jwk:))
  }

  /// A public Ed25519 key. The file may also have a private key, whose private part is ignored.
  package static func verificationKey(_ path: String) throws -> VerificationKey {
    let bytes = try Files.readRegular(path).withoutByteOrderMark
    return isProtected(bytes) ? try publicKey(pem: bytes, path) : try key(bytes, path, VerificationKey.init(jwk:))
  }

  /// The token in a file, without the line end.
  package static func token(_ path: String) throws -> String {
    var bytes = try Files.readRegular(path).withoutByteOrderMark
    while let last = bytes.last, last == 0x0A || last == 0x0D || last == 0x20 { bytes.removeLast() }
    guard !bytes.isEmpty, bytes.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
      throw ConfigurationError(path, "not a token: expected a compact JWT")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Throws if the file does not exist, or if others than its owner may read it.
  package static func checkPrivate(_ path: String) throws {
    guard try !Files.isReadableByOthers(path) || isCredential(path) else {
      throw ConfigurationError(path, "can be read by others: \(shellCommand("chmod", "600", path))", kind: .permission)
    }
  }

  /// Whether systemd gave the file to this service alone (`CREDENTIALS_DIRECTORY` in systemd.exec(5)). It may have an
  /// access list for the service's user, which shows as if a group could read it.
  private static func isCredential(_ path: String) -> Bool {
    guard let folder = getenv("CREDENTIALS_DIRECTORY").map({ String(cString: $0) }), folder.hasPrefix("/"),
      let found = realpath(path, nil)
    else { return false }
    defer { free(found) }
    return String(cString: found).hasPrefix(folder + "/")
  }

  // MARK: - PEM

  private static func isProtected(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: "-----BEGIN ENCRYPTED PRIVATE KEY-----".utf8)
  }

  /// The public key after a protected key: a SubjectPublicKeyInfo of Ed25519 (RFC 8410 4), which has only one form.
  private static func publicKey(pem: [UInt8], _ path: String) throws -> VerificationKey {
    let lines = String(decoding: pem, as: UTF8.self).split(whereSeparator: \.isNewline)
    let body = lines.drop { $0 != "-----BEGIN PUBLIC KEY-----" }.dropFirst().prefix { !$0.hasPrefix("-----") }.joined()
    let head: [UInt8] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00]
    guard let bytes = Base64URL.decode(base64: body), bytes.starts(with: head),
      let key = try? VerificationKey(Array(bytes.dropFirst(head.count)))
    else { throw ConfigurationError(path, "the public part of the key is missing, or damaged") }
    return key
  }

  private static func read<Key>(_ path: String, _ key: (JSON) throws -> Key) throws -> Key {
    try checkPrivate(path)
    return try self.key(Files.readRegular(path).withoutByteOrderMark, path, key)
  }

  private static func key<Key>(_ bytes: [UInt8], _ path: String, _ key: (JSON) throws -> Key) throws -> Key {
    // These errors give a position, or what was expected.
    do { return try key(JSON(parsing: bytes)) } catch { throw ConfigurationError(path, "\(error)") }
  }
}
