/// A chip of a Type 4 tag that is known from its data sheet.
package struct Type4Chip: Hashable, Sendable {
  package let name: String
  /// The size of its NDEF file, with the length at its beginning, bytes.
  package let fileSize: Int

  /// NXP, NTAG 424 DNA (NT4H2421Gx), rev. 3.0, 8.2.3.
  package static let ntag424DNA = Type4Chip(name: "NTAG 424 DNA", fileSize: 256)

  private init(name: String, fileSize: Int) {
    self.name = name
    self.fileSize = fileSize
  }

  /// By the hardware part of its answer to GetVersion, without the status (NT4H2421Gx, rev. 3.0, 10.5.2): vendor 04h (NXP),
  /// type 04h (NTAG), subtype, major and minor version, storage size 11h, protocol 05h (ISO/IEC 14443-4).
  ///
  /// Nil when it is none of the chips above.
  package init?(version: [UInt8]) {
    guard version.count == 7, version[0] == 0x04, version[1] == 0x04, version[3] == 0x30, version[5] == 0x11,
      version[6] == 0x05
    else { return nil }
    self = .ntag424DNA
  }
}
