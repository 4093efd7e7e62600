import Crypto
import Encoding
package import StepProtocol

/// Why a DPoP proof does not count (RFC 9449 4.3). Nothing of the proof is repeated.
package enum ProofError: Error, Equatable, CustomStringConvertible {
  case missing
  case several
  case malformed(String)
  case badSignature
  case otherMethod
  case otherAddress
  case otherToken
  case otherKey
  /// Seconds that the device's clock is ahead of the server's, or behind where negative.
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

/// A proof that whoever sends a request has the private key that a token is bound to (RFC 9449).
///
/// The signature is Ed25519 only, under its old name `EdDSA` or its new one (RFC 9864): there is no choice to attack.
package struct DPoPProof: Sendable {
  /// Bytes: more is no proof of ours, and is not read.
  static let maximumSize = 4096
  /// Seconds that a proof may be old, for slow networks and clocks.
  static let maximumAge: Int64 = 120
  /// Seconds that a device's clock may be ahead.
  static let maximumLead: Int64 = 60

  /// The key that signed it.
  package let key: VerificationKey
  /// What makes it single.
  let id: String
  let issued: Int64

  /// The name of its key (RFC 7638), to which tokens are bound.
  package var thumbprint: String { key.thumbprint.description }

  /// Checks all but whether it was used before.
  ///
  /// - Parameters:
  ///   - text: the value of the request's one DPoP header.
  ///   - method: the request's.
  ///   - target: the address of the request as the server publishes it; query and fragment do not count.
  ///   - now: Unix time, seconds.
  ///   - notBefore: when this server began to remember proofs: older ones may have been used.
  ///   - accessToken: the token beside it; nil where a token is asked for.
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
    // RFC 7515 4.1.11: whoever does not understand an extension that must be understood refuses it.
    guard header["crit"] == nil else { throw .malformed("it has an extension that must be understood") }
    guard let jwk = header["jwk"], jwk["d"] == nil, let key = try? VerificationKey(jwk: jwk) else {
      throw .malformed("its jwk is not a public Ed25519 key")
    }
    // Other members of the key, such as `alg`, do not count, and neither do they change its thumbprint.
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

  /// A NumericDate (RFC 7519 2), which may have a fraction, within what can be computed with.
  private static func time(_ value: JSON?) -> Int64? {
    switch value {
    case .integer(let seconds) where (0..<(1 << 53)).contains(seconds): seconds
    case .number(let seconds) where seconds >= 0 && seconds < 0x1p53: Int64(seconds)
    default: nil
    }
  }
}

/// An address without query and fragment, with scheme and host in lower case and without the scheme's own port
/// (RFC 9449 4.3, RFC 3986 6.2.2 and 6.2.3). The server's own paths have nothing that could be written in two ways.
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

/// The proofs that were used, for as long as they could be used again.
///
/// It is in memory: a server that starts anew takes no proof from before its start instead.
package struct UsedProofs: Sendable {
  /// How many of each half. Beyond that no request is taken, because forgetting would let old ones in again.
  private let capacity: Int
  /// A proof can be used for this long at the most after it was seen, in seconds.
  private static let lifetime = DPoPProof.maximumAge + DPoPProof.maximumLead

  // Swift's hash has a random key in each process: nobody can look for two proofs with one hash, and 64 bits are
  // enough.
  private var recent: Set<Int> = []
  private var older: Set<Int> = []
  private var turned: Int64 = .min

  package init(capacity: Int = 1_000_000) { self.capacity = capacity }

  /// - Returns: false when the proof was used before; nil when there is no room to remember it.
  package mutating func use(_ proof: DPoPProof, at now: Int64) -> Bool? {
    if now - max(turned, 0) > Self.lifetime {
      // Two turns without a request between: what is older than a lifetime can be forgotten at once.
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
