/// Hybrid public key encryption (RFC 9180) in base mode, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and
/// ChaCha20Poly1305. Functions and labels have their names from the RFC.
///
/// A context encrypts one message (section 6.1), so its sequence number is always 0, and the nonce is `base_nonce`
/// (section 5.2).
package enum HPKE {
  /// The result of encrypting a message.
  package struct Sealed: Sendable {
    /// The encapsulated key, `enc`.
    package let encapsulatedKey: [UInt8]
    package let ciphertext: [UInt8]
    package let exporter: Exporter
  }

  /// SealBase (section 6.1), with the context's exporter.
  ///
  /// - Parameter ephemeral: a key for this message only. The tests pass the keys of the test vectors.
  /// - Returns: nil if the recipient's key is of small order (section 7.1.4).
  package static func seal(
    _ message: [UInt8], to recipient: X25519.PublicKey, info: [UInt8] = [], additional: [UInt8],
    ephemeral: X25519.PrivateKey = X25519.PrivateKey()
  ) -> Sealed? {
    let encapsulatedKey = ephemeral.publicKey.bytes
    guard let agreed = ephemeral.sharedSecret(with: recipient) else { return nil }
    let context = KeySchedule(sharedSecret(agreed, encapsulatedKey, recipient), info)
    let ciphertext = ChaCha20Poly1305.seal(
      message, key: context.key, nonce: context.baseNonce, additional: additional)
    return Sealed(encapsulatedKey: encapsulatedKey, ciphertext: ciphertext, exporter: context.exporter)
  }

  /// OpenBase (section 6.1), with the context's exporter.
  ///
  /// - Returns: nil if the message was not encrypted to this key or was changed, and if the encapsulated key is invalid
  ///   or of small order (section 7.1.4).
  package static func open(
    _ ciphertext: [UInt8], encapsulatedKey: [UInt8], with recipient: X25519.PrivateKey, info: [UInt8] = [],
    additional: [UInt8]
  ) -> (message: [UInt8], exporter: Exporter)? {
    guard let ephemeral = X25519.PublicKey(encapsulatedKey), let agreed = recipient.sharedSecret(with: ephemeral)
    else { return nil }
    let context = KeySchedule(sharedSecret(agreed, encapsulatedKey, recipient.publicKey), info)
    return ChaCha20Poly1305.open(ciphertext, key: context.key, nonce: context.baseNonce, additional: additional)
      .map { ($0, context.exporter) }
  }

  /// Derives secrets that only the sender and the recipient of a message know.
  package struct Exporter: Sendable {
    let secret: Secret

    /// Context.Export (section 5.3).
    ///
    /// - Parameter count: bytes, at most 32.
    package func export(_ context: [UInt8], count: Int) -> Secret {
      labeledExpand(hpkeSuite, secret, "sec", context, count)
    }
  }

  /// ExtractAndExpand of DHKEM (section 4.1).
  static func sharedSecret(_ agreed: Secret, _ encapsulatedKey: [UInt8], _ recipient: X25519.PublicKey) -> Secret {
    let eaePRK = labeledExtract(kemSuite, salt: .empty, "eae_prk", agreed)
    return labeledExpand(kemSuite, eaePRK, "shared_secret", encapsulatedKey + recipient.bytes, 32)
  }

  /// KeySchedule (section 5.1) for `mode_base`: `psk` and `psk_id` are empty.
  struct KeySchedule {
    let key: Secret
    let baseNonce: Secret
    let exporter: Exporter

    init(_ sharedSecret: Secret, _ info: [UInt8]) {
      let modeBase: [UInt8] = [0x00]
      let pskIDHash = labeledExtract(hpkeSuite, salt: .empty, "psk_id_hash", .empty)
      let infoHash = labeledExtract(hpkeSuite, salt: .empty, "info_hash", Secret(info))
      let context = modeBase + pskIDHash.bytes + infoHash.bytes
      let secret = labeledExtract(hpkeSuite, salt: sharedSecret, "secret", .empty)
      key = labeledExpand(hpkeSuite, secret, "key", context, ChaCha20Poly1305.keySize)
      baseNonce = labeledExpand(hpkeSuite, secret, "base_nonce", context, ChaCha20Poly1305.nonceSize)
      exporter = Exporter(secret: labeledExpand(hpkeSuite, secret, "exp", context, SHA256.size))
    }
  }

  // The `suite_id` of section 4.1 and the one of section 5.1. Section 7 defines the identifiers.
  private static let kemSuite = Array("KEM".utf8) + [0x00, 0x20]
  private static let hpkeSuite = Array("HPKE".utf8) + [0x00, 0x20] + [0x00, 0x01] + [0x00, 0x03]
  private static let version = Array("HPKE-v1".utf8)

  /// LabeledExtract (section 4).
  private static func labeledExtract(_ suite: [UInt8], salt: Secret, _ label: String, _ keyMaterial: Secret) -> Secret {
    HKDF.extract(salt: salt, Secret(version + suite + Array(label.utf8), keyMaterial))
  }

  /// LabeledExpand (section 4).
  private static func labeledExpand(
    _ suite: [UInt8], _ key: Secret, _ label: String, _ info: [UInt8], _ count: Int
  ) -> Secret {
    let labeledInfo = [UInt8(count >> 8), UInt8(count & 0xFF)] + version + suite + Array(label.utf8) + info
    return HKDF.expand(key, info: labeledInfo, count: count)
  }
}
