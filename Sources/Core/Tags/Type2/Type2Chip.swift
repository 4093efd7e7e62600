/// A chip of a Type 2 tag whose memory is known from its data sheet.
package struct Type2Chip: Hashable, Sendable {
  package let name: String
  /// From page 0 on, those of its configuration and secrets included.
  package let pages: Int
  /// Where TLV blocks can stand.
  package let userPages: Range<Int>
  /// The capability container that it should have.
  package let container: [UInt8]
  /// Nil when it has static lock bytes only.
  package let dynamicLocks: Type2DynamicLocks?

  private init(_ name: String, pages: Int, end: Int, size: UInt8, pagesPerLock: Int? = nil) {
    self.name = name
    self.pages = pages
    userPages = 4..<end
    container = [0xE1, 0x10, size, 0x00]
    // On all of them the dynamic lock bytes are in the page behind the user memory.
    dynamicLocks = pagesPerLock.map { Type2DynamicLocks(page: end, pages: 16..<end, pagesPerLock: $0) }
  }

  /// NXP, MF0ICU1 (MIFARE Ultralight), rev. 3.9, 7.5. It does not answer GET_VERSION.
  package static let ultralight = Type2Chip("MIFARE Ultralight", pages: 16, end: 16, size: 0x06)
  /// NXP, MF0ULx1 (MIFARE Ultralight EV1), rev. 3.3, 8.5 and 8.5.2.
  package static let ultralightEV1Small = Type2Chip("MIFARE Ultralight EV1 48", pages: 20, end: 16, size: 0x06)
  package static let ultralightEV1Large = Type2Chip(
    "MIFARE Ultralight EV1 128", pages: 41, end: 36, size: 0x10, pagesPerLock: 2)
  /// NXP, NTAG210/212, rev. 3.0, 8.5 and 8.5.3.
  package static let ntag210 = Type2Chip("NTAG210", pages: 20, end: 16, size: 0x06)
  package static let ntag212 = Type2Chip("NTAG212", pages: 41, end: 36, size: 0x10, pagesPerLock: 2)
  /// NXP, NTAG213/215/216, rev. 3.2, 8.5 (memory), 8.5.3 (dynamic lock bytes) and 8.5.4 (container).
  package static let ntag213 = Type2Chip("NTAG213", pages: 45, end: 40, size: 0x12, pagesPerLock: 2)
  package static let ntag215 = Type2Chip("NTAG215", pages: 135, end: 130, size: 0x3E, pagesPerLock: 16)
  package static let ntag216 = Type2Chip("NTAG216", pages: 231, end: 226, size: 0x6D, pagesPerLock: 16)

  /// By the answer to GET_VERSION (NTAG213/215/216, rev. 3.2, 10.1): fixed 00h, vendor 04h (NXP), product type, subtype
  /// (its antenna's capacitance), major and minor version, storage size, protocol 03h (ISO/IEC 14443-3).
  ///
  /// Nil when it is none of the chips above.
  package init?(version: [UInt8]) {
    guard version.count == 8, version[0] == 0x00, version[1] == 0x04, version[7] == 0x03 else { return nil }
    switch (version[2], version[4], version[6]) {
    case (0x03, 1, 0x0B): self = .ultralightEV1Small
    case (0x03, 1, 0x0E): self = .ultralightEV1Large
    case (0x04, 1, 0x0B): self = .ntag210
    case (0x04, 1, 0x0E): self = .ntag212
    case (0x04, 1, 0x0F): self = .ntag213
    case (0x04, 1, 0x11): self = .ntag215
    case (0x04, 1, 0x13): self = .ntag216
    default: return nil
    }
  }
}
