import Cryptography
public import Encoding

/// Why a key cannot be used.
public enum KeyError: Error, Equatable, CustomStringConvertible {
  /// Not a JWK of the required kind (RFC 7517, RFC 8037).
  case notJWK(expected: String)
  /// Not 32 bytes, or 32 bytes that must not be used as a key.
  case unusable(String)

  public var description: String {
    switch self {
    case .notJWK(let expected): "not a key in JWK form: expected \(expected)"
    case .unusable(let reason): reason
    }
  }
}

/// A JWK thumbprint (RFC 7638) with SHA-256. It names a key in `kid`, and people compare it.
public struct Thumbprint: Hashable, Sendable, CustomStringConvertible {
  /// Base64url.
  public let description: String

  init(base64URL: String) { description = base64URL }

  init(curve: String, publicKey: [UInt8]) {
    // RFC 7638 3.2: the required members only, in lexicographic order, without white space.
    let canonical = #"{"crv":"\#(curve)","kty":"OKP","x":"\#(Base64URL.encode(publicKey))"}"#
    description = Base64URL.encode(SHA256.digest(of: Array(canonical.utf8)))
  }
}

/// A public Ed25519 key, which verifies signatures of the operator, a rider's device or a controller.
public struct VerificationKey: Hashable, Sendable {
  /// 32 bytes (RFC 8032).
  public let bytes: [UInt8]
  private let key: Ed25519.PublicKey

  /// - Parameter bytes: the 32 bytes of RFC 8032. Points of small order are refused, because signatures by them can be
  ///   computed without a private key. A coordinate not below p is refused too, so that each key has one encoding.
  public init(_ bytes: [UInt8]) throws(KeyError) {
    guard let key = Ed25519.PublicKey(bytes) else {
      throw .unusable("an Ed25519 key has 32 bytes")
    }
    let y = Array(bytes.dropLast()) + [bytes[31] & 0x7F]  // The top bit is the sign of x.
    guard isBelowPrime(y) else { throw .unusable("the Ed25519 key is not in its canonical form") }
    // libcrypto accepts any point, and for points of small order the equation of RFC 8032 5.1.7 can hold by chance.
    guard !smallOrder.contains(y) else {
      throw .unusable("the Ed25519 key is a point of low order, which protects nothing")
    }
    self.bytes = bytes
    self.key = key
  }

  /// The public JWK (RFC 8037 2).
  public init(jwk: JSON) throws(KeyError) { try self.init(publicBytes(of: jwk, curve: "Ed25519")) }

  /// The public part.
  public var jwk: JSON { ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(bytes))] }
  public var thumbprint: Thumbprint { Thumbprint(curve: "Ed25519", publicKey: bytes) }

  package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool { key.isValid(signature, for: message) }

  public static func == (a: Self, b: Self) -> Bool { a.bytes == b.bytes }
  public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// A private Ed25519 key.
public struct SigningKey: Sendable {
  private let key: Ed25519.PrivateKey

  /// A new key.
  public init() { key = Ed25519.PrivateKey() }

  /// The private JWK (RFC 8037 2); its `x` must belong to its `d`.
  public init(jwk: JSON) throws(KeyError) {
    let secret = try secretBytes(of: jwk, curve: "Ed25519")
    guard let key = Ed25519.PrivateKey(secret) else {
      throw .unusable("an Ed25519 key has 32 bytes")
    }
    guard try publicBytes(of: jwk, curve: "Ed25519") == key.publicKey.bytes else {
      throw .unusable("the public part of the key does not belong to its private part")
    }
    self.key = key
  }

  /// A key in PEM that OpenSSL reads, or that one of its providers keeps elsewhere, as in a PKCS #11 token. `jwk` ends
  /// the process if it cannot be read from there.
  package init(pem: [UInt8]) throws(KeyError) {
    guard let key = Ed25519.PrivateKey(pem: pem), (try? VerificationKey(key.publicKey.bytes)) != nil else {
      throw .unusable("OpenSSL reads no Ed25519 key from this PEM")
    }
    self.key = key
  }

  /// Includes the private part.
  public var jwk: JSON {
    [
      "kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.encode(key.publicKey.bytes)),
      "d": .string(Base64URL.encode(key.bytes)),
    ]
  }

  /// The matching public key.
  public var verificationKey: VerificationKey {
    // A public key that the library derived has the right length.
    try! VerificationKey(key.publicKey.bytes)
  }

  /// 64 bytes (RFC 8032). A caller that signs anything other than this module's objects must give it a type that none
  /// of these objects has.
  package func signature(for bytes: [UInt8]) -> [UInt8] { key.signature(for: bytes) }
}

/// A controller's public X25519 key, to which commands are encrypted.
public struct EncryptionKey: Hashable, Sendable {
  /// 32 bytes (RFC 7748).
  public let bytes: [UInt8]
  let key: X25519.PublicKey

  /// - Parameter bytes: the 32 bytes of RFC 7748. Points that make every shared secret zero are refused. A number not
  ///   below p is refused too, so that each key has one encoding.
  public init(_ bytes: [UInt8]) throws(KeyError) {
    guard let key = X25519.PublicKey(bytes) else {
      throw .unusable("an X25519 key has 32 bytes")
    }
    guard isBelowPrime(bytes) else { throw .unusable("the X25519 key is not in its canonical form") }
    // Any private key reveals this, because clamping makes each private key a multiple of the cofactor (RFC 7748 5).
    guard X25519.PrivateKey().sharedSecret(with: key) != nil else {
      throw .unusable("the X25519 key is a point of low order, which protects nothing")
    }
    self.bytes = bytes
    self.key = key
  }

  /// The public JWK (RFC 8037 2).
  public init(jwk: JSON) throws(KeyError) { try self.init(publicBytes(of: jwk, curve: "X25519")) }

  public var thumbprint: Thumbprint { Thumbprint(curve: "X25519", publicKey: bytes) }

  public static func == (a: Self, b: Self) -> Bool { a.bytes == b.bytes }
  public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// A controller's private X25519 key.
public struct DecryptionKey: Sendable {
  let key: X25519.PrivateKey
  /// The name that a command's header must give.
  public let thumbprint: Thumbprint

  /// A new key.
  public init() { self.init(X25519.PrivateKey()) }

  private init(_ key: X25519.PrivateKey) {
    self.key = key
    thumbprint = Thumbprint(curve: "X25519", publicKey: key.publicKey.bytes)
  }

  /// The private JWK (RFC 8037 2); its `x` must belong to its `d`.
  public init(jwk: JSON) throws(KeyError) {
    let secret = try secretBytes(of: jwk, curve: "X25519")
    guard let key = X25519.PrivateKey(secret) else {
      throw .unusable("an X25519 key has 32 bytes")
    }
    guard try publicBytes(of: jwk, curve: "X25519") == key.publicKey.bytes else {
      throw .unusable("the public part of the key does not belong to its private part")
    }
    self.init(key)
  }

  /// Includes the private part.
  public var jwk: JSON {
    [
      "kty": "OKP", "crv": "X25519", "x": .string(Base64URL.encode(key.publicKey.bytes)),
      "d": .string(Base64URL.encode(key.bytes)),
    ]
  }

  /// The matching public key.
  public var encryptionKey: EncryptionKey {
    // A public key that the library derived is neither short nor of low order.
    try! EncryptionKey(key.publicKey.bytes)
  }
}

/// The secret that a step's rotating minor is computed from. Only the vehicle knows it, and the step's own beacon if
/// that has a clock.
public struct BeaconSecret: Sendable {
  /// In bytes.
  public static let size = 32
  let bytes: [UInt8]

  /// A new secret.
  public init() { bytes = randomBytes(Self.size) }

  /// A symmetric JWK (RFC 7518 6.4) of 32 bytes.
  public init(jwk: JSON) throws(KeyError) {
    guard let kty = jwk["kty"]?.string, identical(kty, "oct"), let k = jwk["k"]?.string,
      let bytes = Base64URL.decode(k), bytes.count == Self.size
    else { throw .notJWK(expected: #"{"kty":"oct","k":…} of \#(Self.size) bytes"#) }
    self.bytes = bytes
  }

  /// The secret itself.
  public var jwk: JSON { ["kty": "oct", "k": .string(Base64URL.encode(bytes))] }
}

/// The y coordinates, low byte first, of the eight points of Ed25519 whose order divides 8: 0, 1, p - 1, and two of
/// order 8. The points of order 8 and those with y = 0 come in pairs that differ in the sign of x.
private let smallOrder: [[UInt8]] = [
  [UInt8](repeating: 0, count: 32),
  [1] + [UInt8](repeating: 0, count: 31),
  [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
  [
    0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF, 0x98, 0xF0, 0xD5, 0xDF, 0xAC,
    0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88, 0x6D, 0x53, 0xFC, 0x05,
  ],
  [
    0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10, 0x67, 0x0F, 0x2A, 0x20, 0x53,
    0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77, 0x92, 0xAC, 0x03, 0x7A,
  ],
]

/// Whether a number of 32 bytes, low byte first, is below p = 2^255 - 19.
private func isBelowPrime(_ number: [UInt8]) -> Bool {
  number[31] < 0x7F || number[31] == 0x7F && (number[0] < 0xED || number[1...30].contains { $0 != 0xFF })
}

private func publicBytes(of jwk: JSON, curve: String) throws(KeyError) -> [UInt8] {
  guard let kty = jwk["kty"]?.string, identical(kty, "OKP"), let crv = jwk["crv"]?.string, identical(crv, curve),
    let x = jwk["x"]?.string,
    let bytes = Base64URL.decode(x), bytes.count == 32
  else { throw .notJWK(expected: #"{"kty":"OKP","crv":"\#(curve)","x":…}"#) }
  return bytes
}

private func secretBytes(of jwk: JSON, curve: String) throws(KeyError) -> [UInt8] {
  guard let d = jwk["d"]?.string, let bytes = Base64URL.decode(d), bytes.count == 32,
    let crv = jwk["crv"]?.string, identical(crv, curve)
  else { throw .notJWK(expected: #"{"kty":"OKP","crv":"\#(curve)","x":…,"d":…}"#) }
  return bytes
}
