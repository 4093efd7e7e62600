import Encoding
import TestSupport
import Testing

@testable import Cryptography

@Suite("HPKE") struct HPKETests {
  /// RFC 9180, A.2.1.
  let vector: JSON
  let recipient: X25519.PrivateKey

  init() throws {
    vector = try Repository.json("Tests/Fixtures/rfc9180.json")
    recipient = try #require(X25519.PrivateKey(vector.bytes("skRm")))
  }

  /// The first message of the vector's context.
  private var first: JSON { vector["encryptions"]!.array![0] }

  private func open(_ ciphertext: [UInt8], _ encapsulatedKey: [UInt8]) -> (message: [UInt8], exporter: HPKE.Exporter)? {
    HPKE.open(
      ciphertext, encapsulatedKey: encapsulatedKey, with: recipient, info: vector.bytes("info"),
      additional: first.bytes("aad"))
  }

  @Test("the vector's private keys have its public keys")
  func keys() throws {
    #expect(recipient.publicKey.bytes == vector.bytes("pkRm"))
    #expect(try #require(X25519.PrivateKey(vector.bytes("skEm"))).publicKey.bytes == vector.bytes("pkEm"))
  }

  @Test("each value on the way is the vector's")
  func schedule() throws {
    let ephemeral = try #require(X25519.PublicKey(vector.bytes("enc")))
    let agreed = try #require(recipient.sharedSecret(with: ephemeral))
    let shared = HPKE.sharedSecret(agreed, vector.bytes("enc"), recipient.publicKey)
    #expect(shared.bytes == vector.bytes("shared_secret"))
    let schedule = HPKE.KeySchedule(shared, vector.bytes("info"))
    #expect(schedule.key.bytes == vector.bytes("key"))
    #expect(schedule.baseNonce.bytes == vector.bytes("base_nonce"))
    #expect(schedule.exporter.secret.bytes == vector.bytes("exporter_secret"))
  }

  @Test("seals what the vector has, and opens and exports it")
  func both() throws {
    let ephemeral = try #require(X25519.PrivateKey(vector.bytes("skEm")))
    let sealed = try #require(
      HPKE.seal(
        first.bytes("pt"), to: recipient.publicKey, info: vector.bytes("info"), additional: first.bytes("aad"),
        ephemeral: ephemeral))
    #expect(sealed.encapsulatedKey == vector.bytes("enc") && sealed.ciphertext == first.bytes("ct"))
    let opened = try #require(open(first.bytes("ct"), vector.bytes("enc")))
    #expect(opened.message == first.bytes("pt"))
    let exports = try #require(vector["exports"]?.array)
    #expect(exports.count == 3)
    for export in exports {
      for exporter in [sealed.exporter, opened.exporter] {
        let secret = exporter.export(export.bytes("exporter_context"), count: 32)
        #expect(secret.bytes == export.bytes("exported_value"))
      }
    }
  }

  @Test("does not open what was changed, was sealed to another key, or for another purpose")
  func refusals() throws {
    let (ciphertext, encapsulated) = (first.bytes("ct"), vector.bytes("enc"))
    for position in ciphertext.indices {
      var changed = ciphertext
      changed[position] ^= 1
      #expect(open(changed, encapsulated) == nil)
    }
    for position in encapsulated.indices {
      var changed = encapsulated
      changed[position] ^= 1
      #expect(open(ciphertext, changed) == nil)
    }
    for wrong in [[], Array(encapsulated.dropLast()), encapsulated + [0]] { #expect(open(ciphertext, wrong) == nil) }
    // X25519 ignores the top bit. The shared secret is over the bytes as they were sent.
    #expect(open(ciphertext, encapsulated.dropLast() + [encapsulated[31] | 0x80]) == nil)
    // The vector's other messages have other sequence numbers: a context here has one message.
    #expect(open(vector["encryptions"]!.array![1].bytes("ct"), encapsulated) == nil)
    let (info, additional) = (vector.bytes("info"), first.bytes("aad"))
    for (key, info, additional) in [
      (X25519.PrivateKey(), info, additional), (recipient, [], additional), (recipient, info, []),
    ] {
      #expect(
        HPKE.open(ciphertext, encapsulatedKey: encapsulated, with: key, info: info, additional: additional) == nil)
    }
  }

  /// Every form of the points whose order divides 8, on the curve and on its twist, that X25519 reads: 0, 1, the two of
  /// order 8, p - 1, p and p + 1 (Bernstein, cr.yp.to/ecdh.html#validate).
  static let lowOrder =
    ["00", "01", "ec", "ed", "ee"].map { low in
      let isNearPrime = low > "a"
      return low + String(repeating: isNearPrime ? "ff" : "00", count: 30) + (isNearPrime ? "7f" : "00")
    } + [
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    ]

  @Test(
    "neither side agrees with a point of low order (7.1.4), with or without the bit that is ignored",
    arguments: lowOrder)
  func smallOrder(text: String) throws {
    let point = bytes(text)
    for point in [point, point.dropLast() + [point[31] | 0x80]] {
      let key = try #require(X25519.PublicKey(point))
      #expect(recipient.sharedSecret(with: key) == nil && X25519.PrivateKey().sharedSecret(with: key) == nil)
      #expect(HPKE.seal([1], to: key, additional: []) == nil)
      #expect(open(first.bytes("ct"), point) == nil)
    }
  }

  @Test("two sealings of one message have nothing in common, and what they export has not, either")
  func fresh() throws {
    let a = try #require(HPKE.seal([7], to: recipient.publicKey, additional: []))
    let b = try #require(HPKE.seal([7], to: recipient.publicKey, additional: []))
    #expect(a.encapsulatedKey != b.encapsulatedKey && a.ciphertext != b.ciphertext)
    #expect(a.exporter.export([], count: 32) != b.exporter.export([], count: 32))
    #expect(a.exporter.export([], count: 32) != a.exporter.export([0], count: 32))
  }
}

extension JSON {
  fileprivate func bytes(_ name: String) -> [UInt8] { hexadecimal(self[name]!.string!)! }
}
