package import Domain

/// A tag as it presents itself when it is selected (ISO 14443-3, 6.5).
package struct NFCTarget: Hashable, Sendable {
  /// The answer to the request, as the chip gives it: two bytes.
  package let atqa: [UInt8]
  /// The answer to the selection.
  package let sak: UInt8
  package let uid: TagUID
  /// The answer of an ISO 14443-4 tag to its activation, without its length; empty for others.
  package let ats: [UInt8]

  /// Nil for what no tag can be.
  package init?(atqa: [UInt8], sak: UInt8, uid: [UInt8], ats: [UInt8]) {
    guard atqa.count == 2, let uid = TagUID(uid), ats.count <= 254 else { return nil }
    self.atqa = atqa
    self.sak = sak
    self.uid = uid
    self.ats = ats
  }

  /// Whether it speaks ISO 14443-4, as Type 4 tags do (ISO 14443-3, 6.5.3.4: bit 6 of SAK).
  package var speaksISODEP: Bool { sak & 0x20 != 0 }
}
