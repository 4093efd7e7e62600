extension Type2Plan {
  /// What makes a tag read-only for ever, as it is (Type 2 Tag 1.1, 6.3.3 and 6.4.4): the container says so, and all lock
  /// bits are set.
  ///
  /// The container comes first, because one of the static lock bits protects it. The bits that freeze lock bits come last
  /// of all: if they were set alone, the tag could never be locked. NTAG21x writes these pages wholly or not at all
  /// (NTAG213/215/216, rev. 3.2, 10.4); of others nobody says so. The chip heeds the new bits when it is selected anew.
  ///
  /// - Throws: `lockFrozen`, whatever the container is; what is wrong with the container; `locked` when that is, or
  ///   `unknownChip`.
  package static func lock(_ memory: Type2Memory, chip: Type2Chip?) throws(NDEFError) -> Type2Step<Type2Plan> {
    try Type2Memory.step { () throws(Type2Stop) in
      let head = try memory.bytes(0..<16)
      var page2 = Array(head[8..<12])
      let locks = Type2StaticLocks(page2: page2)
      if let page = locks.frozen { throw .failed(.lockFrozen(page: page)) }
      let dynamic = try chip?.dynamicLocks.map { locks throws(Type2Stop) in (locks, try memory.page(locks.page)) }
      if let (locks, bytes) = dynamic, let page = locks.frozen(by: bytes) { throw .failed(.lockFrozen(page: page)) }
      let container = try stopping { () throws(NDEFError) in try CapabilityContainer(Array(head[12..<16])) }
      if container.writeAccess != 0x0F, locks.isLocked(page: 3) { throw .failed(.locked(page: 3)) }
      // Without dynamic lock bytes the data area ends at page 15 (Type 2 Tag 1.1, 2.1).
      guard chip != nil || container.dataSize <= 48 else { throw .failed(.unknownChip) }

      var plan = Type2Plan(memory: memory)
      try plan.set(page: 3, to: Array(head[12..<15]) + [head[15] | 0x0F])
      if let (locks, bytes) = dynamic { try plan.set(page: locks.page, to: zip(bytes, locks.all).map { $0 | $1 }) }
      for bits: UInt16 in [0xFFF8, 0xFFFF] {
        page2[2] |= UInt8(bits & 0xFF)
        page2[3] |= UInt8(bits >> 8)
        try plan.set(page: 2, to: page2)
      }
      return plan
    }
  }
}
