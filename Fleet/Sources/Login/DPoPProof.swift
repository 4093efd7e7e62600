import Crypto
import Encoding
package import StepProtocol

/// Why a DPoP proof is invalid (RFC 9449 4.3). The error repeats nothing of the proof.
package enum ProofError: Error, Equatable, CustomStringConvertible {
  case missing
  case several
  case malformed(String)
  case badSignature
  case otherMethod
  case otherAddress
  case otherToken
  case otherKey
  /// Seconds that the device's clock is ahead of the server's; negative if it is behind.
  case clock(Int64)
  case used

  package var description: String {
    switch self {
    case .missing: "there is no DPoP header"
    case .several: "there is more than one DPoP header"
    case .malformed(let what): "the DPoP proof is not valid: \(what)"
    case .badSignature: "the signature of the DPoP proof is not by its key"
    case .otherMethod: "the DPoP proof is for another method"
    case .otherAddress: "the DPoP proof is for another address"
    case .otherToken: "the DPoP proof is for another access token"
    case .otherKey: "the DPoP proof is by another key than the token is for"
    case .clock(let ahead):
      "the DPoP proof is of another time: the device's clock is \(ahead.magnitude) s "
        + (ahead > 0 ? "ahead of" : "behind") + " the server's, or the proof was kept"
    case .used: "the DPoP proof was used before"
    }
  }
}

/// Proves that the sender of a request has the private key that a token is bound to (RFC 9449).
///
/// The signature is always Ed25519, under its old name `EdDSA` or its new one (RFC 9864), so there is no choice to
/// attack.
package struct DPoPProof: Sendable {
  /// Maximum size in bytes. Our proofs are shorter, and a longer one is not read.
  static let maximumSize = 4096
  /// Maximum age of a proof in seconds, for slow networks and clocks.
  static let maximumAge: Int64 = 120
  /// How far a device's clock may be ahead, in seconds.
  static let maximumLead: Int64 = 60

  /// The key that signed the proof.
  package let key: VerificationKey
  /// The proof's unique id.
  let id: String
  let issued: Int64

  /// The key's thumbprint (RFC 7638), to which tokens are bound.
  package var thumbprint: String { key.thumbprint.description }

  /// Checks everything except whether the proof was used before.
  ///
  /// - Parameters:
  ///   - text: the value of the request's one DPoP header.
  ///   - method: the request's method.
  ///   - target: the request's address as the server publishes it; query and fragment are ignored.
  ///   - now: Unix time, seconds.
  ///   - notBefore: when this server began to remember proofs. Older ones may have been used.
  ///   - accessToken: the token in the same request; nil for a request for tokens.
  package init(
    parsing text: String, method: String, target: String, now: Int64, notBefore: Int64 = .min, accessToken: String?
  ) throws(ProofError) {
    guard text.utf8.count <= Self.maximumSize else { throw .malformed("it is too long") }
    let text = Array(text.utf8)
    let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = Base64URL.decode(utf8: parts[2]), signature.count == 64
    else { throw .malformed("it is not a compact JWS of JSON objects with a signature of 64 bytes") }

    guard let type = header["typ"]?.string, identical(type, "dpop+jwt") else {
      throw .malformed("its typ is not dpop+jwt")
    }
    guard let algorithm = header["alg"]?.string, identical(algorithm, "EdDSA") || identical(algorithm, "Ed25519") else {
      throw .malformed("its alg is not EdDSA")
    }
    // RFC 7515 4.1.11: a receiver must refuse a critical extension that it does not understand.
    guard header["crit"] == nil else { throw .malformed("it has an extension that must be understood") }
    guard let jwk = header["jwk"], jwk["d"] == nil, let key = try? VerificationKey(jwk: jwk) else {
      throw .malformed("its jwk is not a public Ed25519 key")
    }
    // Other members of the key, such as `alg`, are ignored; they do not change its thumbprint.
    guard let point = try? Curve25519.Signing.PublicKey(rawRepresentation: key.bytes),
      point.isValidSignature(signature, for: text[..<parts[1].endIndex])
    else { throw .badSignature }

    guard let id = claims["jti"]?.string, (1...256).contains(id.utf8.count) else {
      throw .malformed("its jti is missing or too long")
    }
    guard let named = claims["htm"]?.string else { throw .malformed("its htm is missing") }
    guard identical(named, method) else { throw .otherMethod }
    guard let address = claims["htu"]?.string, let address = normalizedAddress(address) else {
      throw .malformed("its htu is not an address")
    }
    guard let target = normalizedAddress(target), identical(address, target) else { throw .otherAddress }
    guard let issued = Self.time(claims["iat"]) else { throw .malformed("its iat is not a time") }
    guard (-Self.maximumAge...Self.maximumLead).contains(issued - now), issued >= notBefore else {
      throw .clock(issued - now)
    }
    if let accessToken {
      guard let hash = claims["ath"]?.string, identical(hash, digest(of: accessToken)) else { throw .otherToken }
    }
    self.key = key
    self.id = id
    self.issued = issued
  }

  private static func object(_ part: ArraySlice<UInt8>) -> JSON? {
    guard let bytes = Base64URL.decode(utf8: part), let value = try? JSON(parsing: bytes, maximumDepth: 4),
      value.object != nil
    else { return nil }
    return value
  }

  /// A NumericDate (RFC 7519 2), possibly with a fraction, in a range that is safe for arithmetic.
  private static func time(_ value: JSON?) -> Int64? {
    switch value {
    case .integer(let seconds) where (0..<(1 << 53)).contains(seconds): seconds
    case .number(let seconds) where seconds >= 0 && seconds < 0x1p53: Int64(seconds)
    default: nil
    }
  }
}

/// An address without query and fragment, with scheme and host in lower case and without the scheme's default port (RFC
/// 9449 4.3, RFC 3986 6.2.2 and 6.2.3). The server's own paths have only one spelling.
func normalizedAddress(_ text: String) -> String? {
  let text = text.prefix { $0 != "?" && $0 != "#" }
  let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
  guard parts.count >= 3, parts[1].isEmpty else { return nil }
  let scheme = parts[0].lowercased()
  var host = parts[2].lowercased()
  guard scheme == "https:" || scheme == "http:", !host.isEmpty, !host.contains("@") else { return nil }
  let port = scheme == "https:" ? ":443" : ":80"
  if host.hasSuffix(port) { host.removeLast(port.count) }
  return "\(scheme)//\(host)/" + (parts.count == 4 ? String(parts[3]) : "")
}

/// The used proofs, stored for as long as they could be used again.
///
/// They are only in memory. Therefore a restarted server refuses proofs from before its start.
package struct UsedProofs: Sendable {
  /// The capacity of each half. When it is full, requests are refused, because forgetting would allow replays.
  private let capacity: Int
  /// The longest time for which a proof stays usable after it was seen, seconds.
  private static let lifetime = DPoPProof.maximumAge + DPoPProof.maximumLead

  // Swift's hash has a random key in each process, so nobody can search for two proofs with equal hashes, and 64 bits
  // are enough.
  private var recent: Set<Int> = []
  private var older: Set<Int> = []
  private var turned: Int64 = .min

  package init(capacity: Int = 1_000_000) { self.capacity = capacity }

  /// - Returns: false when the proof was used before; nil when there is no room to remember it.
  package mutating func use(_ proof: DPoPProof, at now: Int64) -> Bool? {
    if now - max(turned, 0) > Self.lifetime {
      // After two lifetimes without a request, all proofs are too old.
      older = now - max(turned, 0) > 2 * Self.lifetime ? [] : recent
      recent = []
      turned = now
    }
    var hasher = Hasher()
    hasher.combine(proof.key)
    hasher.combine(proof.id)
    let hash = hasher.finalize()
    guard !recent.contains(hash), !older.contains(hash) else { return false }
    guard recent.count < capacity else { return nil }
    recent.insert(hash)
    return true
  }
}
