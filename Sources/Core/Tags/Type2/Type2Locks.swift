/// The static lock bytes: bytes 2 and 3 of page 2 (Type 2 Tag 1.1, 2.1.2; NTAG213/215/216, rev. 3.2, 8.5.2).
package struct Type2StaticLocks {
  /// Bit 3 locks page 3, bit 4 page 4, and so on up to bit 15. Bits 0 to 2 freeze bits 3, 4 to 9, and 10 to 15.
  let bits: UInt16

  package init(page2: [UInt8]) { bits = UInt16(page2[2]) | UInt16(page2[3]) << 8 }

  package func isLocked(page: Int) -> Bool { (3...15).contains(page) && bits >> page & 1 == 1 }

  /// The first page from 3 to 15 that is not locked and never can be.
  var frozen: Int? {
    (3...15).first { page in
      let freeze = page == 3 ? 0 : page < 10 ? 1 : 2
      return !isLocked(page: page) && bits >> freeze & 1 == 1
    }
  }
}

/// Where a chip has lock bits for the pages from 16 on, and for how many pages each is.
package struct Type2DynamicLocks: Hashable, Sendable {
  /// The page that holds them. Its first two bytes are lock bits; bit n of its third byte freezes bits 2n and 2n + 1.
  package let page: Int
  /// The pages that they lock.
  let pages: Range<Int>
  let pagesPerLock: Int

  var count: Int { (pages.count + pagesPerLock - 1) / pagesPerLock }

  /// All lock bits, as they stand in the page. The freezing bits add nothing to lock bits that are set.
  var all: [UInt8] {
    let bits = UInt16(truncatingIfNeeded: (1 << count) - 1)
    return [UInt8(bits & 0xFF), UInt8(bits >> 8), 0, 0]
  }

  private func isSet(_ bit: Int, in bytes: [UInt8]) -> Bool { bytes[bit / 8] >> (bit % 8) & 1 == 1 }

  package func isLocked(page: Int, by bytes: [UInt8]) -> Bool {
    pages.contains(page) && isSet((page - pages.lowerBound) / pagesPerLock, in: bytes)
  }

  /// The first page that is not locked and never can be.
  func frozen(by bytes: [UInt8]) -> Int? {
    (0..<count).first { !isSet($0, in: bytes) && isSet(16 + $0 / 2, in: bytes) }.map {
      pages.lowerBound + $0 * pagesPerLock
    }
  }
}
