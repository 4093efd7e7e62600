/// What page 3 of a Type 2 tag says of the tag (NFC Forum, Type 2 Tag Operation 1.1, 6.1).
package struct CapabilityContainer: Hashable, Sendable {
  package let majorVersion: UInt8
  package let minorVersion: UInt8
  /// How many bytes there are from page 4 on for TLV blocks, those reserved among them included.
  package let dataSize: Int
  /// 0: granted; 8 to 14: the manufacturer's own rules.
  package let readAccess: UInt8
  /// 0: granted; 8 to 14: the manufacturer's own rules; 15: never.
  package let writeAccess: UInt8

  /// - Throws: `notFormatted`, `notNDEF` or `unsupportedVersion`.
  package init(_ page: [UInt8]) throws(NDEFError) {
    // One-time programmable bits are 0 when they leave the factory (NTAG213/215/216, rev. 3.2, 8.5.4; MF0ICU1, rev. 3.9, 7.5.3).
    guard page != [0, 0, 0, 0] else { throw .notFormatted }
    // 6.1: E1h says that the NFC Forum defined what follows.
    guard page[0] == 0xE1 else { throw .notNDEF(container: page) }
    majorVersion = page[1] >> 4
    minorVersion = page[1] & 0x0F
    // 6.1.1: any minor version of a known major version can be read, another major version cannot.
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
