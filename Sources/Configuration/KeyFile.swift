package import StepProtocol
import Encoding
import SystemIO

/// Keys in files: JWKs (RFC 7517), private ones readable by their owner only.
package enum KeyFile {
  package static func signingKey(_ path: String) throws(ConfigurationError) -> SigningKey {
    let jwk = try privateJWK(path)
    do throws(KeyError) { return try SigningKey(jwk: jwk) } catch { throw ConfigurationError(path, "\(error)") }
  }

  package static func decryptionKey(_ path: String) throws(ConfigurationError) -> DecryptionKey {
    let jwk = try privateJWK(path)
    do throws(KeyError) { return try DecryptionKey(jwk: jwk) } catch { throw ConfigurationError(path, "\(error)") }
  }

  /// What a step's minors are computed from.
  package static func beaconSecret(_ path: String) throws(ConfigurationError) -> BeaconSecret {
    let jwk = try privateJWK(path)
    do throws(KeyError) { return try BeaconSecret(jwk: jwk) } catch { throw ConfigurationError(path, "\(error)") }
  }

  /// A public Ed25519 key; a private one will do, and its private part is not looked at.
  package static func verificationKey(_ path: String) throws(ConfigurationError) -> VerificationKey {
    let jwk = try read(path)
    do throws(KeyError) { return try VerificationKey(jwk: jwk) } catch { throw ConfigurationError(path, "\(error)") }
  }

  /// A token as its file has it, without the line end.
  package static func token(_ path: String) throws(ConfigurationError) -> String {
    var bytes = try content(path)
    while let last = bytes.last, last == 0x0A || last == 0x0D || last == 0x20 { bytes.removeLast() }
    guard !bytes.isEmpty, bytes.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
      throw ConfigurationError(path, "not a token: expected a compact JWT")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func privateJWK(_ path: String) throws(ConfigurationError) -> JSON {
    try PrivateFile.check(path)
    return try read(path)
  }

  private static func read(_ path: String) throws(ConfigurationError) -> JSON {
    let bytes = try content(path)
    do throws(JSON.SyntaxError) { return try JSON(parsing: bytes) } catch {
      // The position, and nothing of the content: it may be a secret.
      throw ConfigurationError(path, "\(error)")
    }
  }

  private static func content(_ path: String) throws(ConfigurationError) -> [UInt8] {
    do throws(SystemError) { return try Files.read(path, limit: 8192) } catch {
      throw ConfigurationError(path, error)
    }
  }
}
