import Cryptography
import Encoding
import Testing

@testable import StepProtocol

@Suite("Encryption") struct EncryptionTests {
  @Test("opens what the draft of HPKE in JOSE gives as HPKE-4, compact")
  func draft() throws {
    let vector = Vectors.joseHPKE4
    let key = try DecryptionKey(jwk: vector["jwk"]!)
    // The draft's header has not our explicit type, so only what is below the header check is tried.
    let parts = vector.text("compact").split(separator: ".", omittingEmptySubsequences: false)
    let opened = try #require(
      HPKE.open(
        Base64URL.decode(parts[3])!, encapsulatedKey: Base64URL.decode(parts[1])!, with: key.key,
        additional: Array(parts[0].utf8)))
    #expect(String(decoding: opened.message, as: UTF8.self) == vector.text("plaintext"))
    #expect(throws: ProtocolError.self) { try EncryptedObject.open(vector.text("compact"), with: key) }
  }

  @Test("round trip, and every sealing is another")
  func roundTrip() throws {
    let key = DecryptionKey()
    let first = EncryptedObject.seal(Array("open".utf8), to: key.encryptionKey).text
    #expect(first != EncryptedObject.seal(Array("open".utf8), to: key.encryptionKey).text)
    #expect(try EncryptedObject.open(first, with: key) == Array("open".utf8))
    #expect(throws: ProtocolError.unknownKey) { try EncryptedObject.open(first, with: DecryptionKey()) }
  }

  /// The canonical points of low order on Curve25519, and the non-canonical encodings of some (D. J. Bernstein,
  /// "Curve25519: new Diffie-Hellman speed records", and https://cr.yp.to/ecdh.html#validate).
  static let lowOrderPoints: [[UInt8]] = [
    [UInt8](repeating: 0, count: 32),
    [1] + [UInt8](repeating: 0, count: 31),
    [
      0xE0, 0xEB, 0x7A, 0x7C, 0x3B, 0x41, 0xB8, 0xAE, 0x16, 0x56, 0xE3, 0xFA, 0xF1, 0x9F, 0xC4, 0x6A, 0xDA, 0x09, 0x8D,
      0xEB,
      0x9C, 0x32, 0xB1, 0xFD, 0x86, 0x62, 0x05, 0x16, 0x5F, 0x49, 0xB8, 0x00,
    ],
    [
      0x5F, 0x9C, 0x95, 0xBC, 0xA3, 0x50, 0x8C, 0x24, 0xB1, 0xD0, 0xB1, 0x55, 0x9C, 0x83, 0xEF, 0x5B, 0x04, 0x44, 0x5C,
      0xC4,
      0x58, 0x1C, 0x8E, 0x86, 0xD8, 0x22, 0x4E, 0xDD, 0xD0, 0x9F, 0x11, 0x57,
    ],
    [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
    [0xED] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
    [0xEE] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
  ]

  @Test("points of low order are neither sealed to nor opened from (RFC 9180 7.1.4)", arguments: lowOrderPoints)
  func lowOrder(point: [UInt8]) throws {
    let isCanonical = point[31] < 0x7F || point[0] < 0xED
    let reason = isCanonical ? "a point of low order, which protects nothing" : "not in its canonical form"
    #expect(throws: KeyError.unusable("the X25519 key is \(reason)")) { try EncryptionKey(point) }
    let key = DecryptionKey()
    let parts = EncryptedObject.seal([1], to: key.encryptionKey).text
      .split(separator: ".", omittingEmptySubsequences: false)
    let forged = "\(parts[0]).\(Base64URL.encode(point))..\(parts[3])."
    #expect(throws: ProtocolError.undecipherable) { try EncryptedObject.open(forged, with: key) }
  }

  @Test("all that cannot be opened looks alike")
  func alike() throws {
    let key = DecryptionKey()
    let parts = EncryptedObject.seal(Array("open".utf8), to: key.encryptionKey).text
      .split(separator: ".", omittingEmptySubsequences: false)
    let ciphertext = Base64URL.decode(parts[3])!
    let other = [ciphertext[0] ^ 1] + Array(ciphertext.dropFirst())
    for changed in [[], Array(ciphertext.dropLast()), ciphertext + [0], other] {
      #expect(throws: ProtocolError.undecipherable) {
        try EncryptedObject.open("\(parts[0]).\(parts[1])..\(Base64URL.encode(changed)).", with: key)
      }
    }
  }
}
