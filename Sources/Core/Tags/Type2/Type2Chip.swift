import Encoding
package import NDEF

/// A chip for Type 2 tags whose memory is known from its data sheet.
package struct Type2Chip: Hashable, Sendable {
  package let name: String
  /// The number of all pages, with those for configuration and secrets.
  package let pages: Int
  /// The pages for TLV blocks.
  package let userPages: Range<Int>
  /// The capability container that the chip should have.
  package let container: [UInt8]
  /// Nil if the chip has static lock bytes only.
  package let dynamicLocks: Type2DynamicLocks?
  /// The page whose last byte is AUTH0, the first page that a password protects; nil if the chip has no password.
  package let configuration: Int?

  private init(
    _ name: String, pages: Int, end: Int, size: UInt8, pagesPerLock: Int? = nil, hasPassword: Bool = true
  ) {
    self.name = name
    self.pages = pages
    userPages = 4..<end
    container = [0xE1, 0x10, size, 0x00]
    // On all of these chips, the dynamic lock bytes are in the page behind the user memory.
    dynamicLocks = pagesPerLock.map { Type2DynamicLocks(page: end, pages: 16..<end, pagesPerLock: $0) }
    // The last four pages: CFG0 with AUTH0, CFG1 with ACCESS, PWD, PACK (NTAG213/215/216, rev. 3.2, 8.5.7; MF0ULx1,
    // rev. 3.3, 8.5.5; NTAG210/212, rev. 3.0, 8.5.6).
    configuration = hasPassword ? pages - 4 : nil
  }

  /// NXP, MF0ICU1 (MIFARE Ultralight), rev. 3.9, 7.5. It does not answer GET_VERSION.
  package static let ultralight = Type2Chip(
    "MIFARE Ultralight", pages: 16, end: 16, size: 0x06, hasPassword: false)
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
  /// Nil for chips other than the above.
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

  /// The addresses at which READ returns the UID, the counter or both as ASCII, in place of the stored bytes. Nil if
  /// the mirror is off, or the chip has none (NTAG213/215/216, rev. 3.2, 8.5.7 and 8.7; NTAG210/212, rev. 3.0, 8.5.6).
  ///
  /// - Parameter page: the page CFG0.
  func mirror(by page: [UInt8]) -> Range<Int>? {
    let count: Int
    switch self {
    // MIRROR_CONF: none, 7 bytes as digits, 3 bytes as digits, or both with an x between them.
    case .ntag213, .ntag215, .ntag216: count = [0, 14, 6, 21][Int(page[0] >> 6)]
    case .ntag210, .ntag212: count = 14
    default: return nil
    }
    // MIRROR_PAGE; below 4 there is no mirror.
    guard page[2] > 3, count > 0 else { return nil }
    let start = Int(page[2]) * Type2Memory.pageSize + Int(page[0] >> 4 & 0x03)
    return start..<start + count
  }
}

/// The content of page 3 of a Type 2 tag (NFC Forum, Type 2 Tag Operation 1.1, 6.1).
package struct CapabilityContainer: Hashable, Sendable {
  package let majorVersion: UInt8
  package let minorVersion: UInt8
  /// The bytes for TLV blocks from page 4 on, reserved bytes included.
  package let dataSize: Int
  /// 0: free; 8 to 14: the manufacturer's own rules.
  package let readAccess: UInt8
  /// 0: free; 8 to 14: the manufacturer's own rules; 15: never.
  package let writeAccess: UInt8

  /// - Throws: `notFormatted`, `notNDEF` or `unsupportedVersion`.
  package init(_ page: [UInt8]) throws(NDEFError) {
    // One-time programmable bits leave the factory as 0 (NTAG213/215/216, rev. 3.2, 8.5.4; MF0ICU1, rev. 3.9, 7.5.3).
    guard page != [0, 0, 0, 0] else { throw .notFormatted }
    // 6.1: E1h means that the NFC Forum defines the rest.
    guard page[0] == 0xE1 else { throw .notNDEF(container: page) }
    majorVersion = page[1] >> 4
    minorVersion = page[1] & 0x0F
    // 6.1.1: a reader accepts any minor version of a known major version, and no other major version.
    guard majorVersion == 1 else { throw .unsupportedVersion(major: majorVersion, minor: minorVersion) }
    dataSize = Int(page[2]) * 8
    readAccess = page[3] >> 4
    writeAccess = page[3] & 0x0F
  }

  func checkReadable() throws(NDEFError) {
    guard readAccess == 0 else { throw .unreadable(access: readAccess) }
  }

  func checkWritable() throws(NDEFError) {
    guard writeAccess != 0x0F else { throw .readOnly }
    guard writeAccess == 0 else { throw .writeProtected(access: writeAccess) }
  }
}

/// The static lock bytes: bytes 2 and 3 of page 2 (Type 2 Tag 1.1, 2.1.2; NTAG213/215/216, rev. 3.2, 8.5.2).
package struct Type2StaticLocks {
  /// Bit 3 locks page 3, bit 4 page 4, and so on up to bit 15. Bits 0 to 2 freeze bits 3, 4 to 9, and 10 to 15.
  let bits: UInt16

  package init(page2: [UInt8]) { bits = UInt16(littleEndianBytes: page2[2...3]) }

  package func isLocked(page: Int) -> Bool { (3...15).contains(page) && bits >> page & 1 == 1 }

  /// The first page from 3 to 15 that is not locked and can never be locked.
  var frozen: Int? {
    (3...15).first { page in
      let freeze = page == 3 ? 0 : page < 10 ? 1 : 2
      return !isLocked(page: page) && bits >> freeze & 1 == 1
    }
  }
}

/// Where a chip keeps the lock bits for the pages from 16 on, and how many pages each bit locks.
package struct Type2DynamicLocks: Hashable, Sendable {
  /// The page with the lock bits, in its first two bytes. Bit n of the third byte freezes bits 2n and 2n + 1.
  package let page: Int
  /// The pages that the bits lock.
  let pages: Range<Int>
  let pagesPerLock: Int

  var count: Int { (pages.count + pagesPerLock - 1) / pagesPerLock }

  /// The page with all lock bits set. The freezing bits would add nothing.
  var all: [UInt8] {
    let bits = UInt16(truncatingIfNeeded: (1 << count) - 1)
    return bits.littleEndianBytes + [0, 0]
  }

  private func isSet(_ bit: Int, in bytes: [UInt8]) -> Bool { bytes[bit / 8] >> (bit % 8) & 1 == 1 }

  package func isLocked(page: Int, by bytes: [UInt8]) -> Bool {
    pages.contains(page) && isSet((page - pages.lowerBound) / pagesPerLock, in: bytes)
  }

  /// The first page that is not locked and can never be locked.
  func frozen(by bytes: [UInt8]) -> Int? {
    (0..<count).first { !isSet($0, in: bytes) && isSet(16 + $0 / 2, in: bytes) }.map {
      pages.lowerBound + $0 * pagesPerLock
    }
  }
}
