/// The settings of the NDEF file by which each reading gets a message of its own (NT4H2421Gx 10.7.1; AN12196).
///
/// Everyone may read the file, and whoever has key 0 may write it and change the settings. The UID and the counter of
/// readings are mirrored, encrypted with one key, and a MAC over no further input is made with another.
package struct DynamicMessageSettings: Equatable, Sendable {
  /// The keys that the controller has too.
  package static let metaReadKey: UInt8 = 1
  package static let fileReadKey: UInt8 = 2
  /// The NDEF file.
  package static let file: UInt8 = 2

  /// Where in the file the 32 digits of PICCENCData begin.
  package let encryptedOffset: Int
  /// Where in the file the 16 digits of SDMMAC begin.
  package let macOffset: Int

  package init(encryptedOffset: Int, macOffset: Int) {
    self.encryptedOffset = encryptedOffset
    self.macOffset = macOffset
  }

  /// What ChangeFileSettings takes.
  package var bytes: [UInt8] {
    // FileOption: secure dynamic messages, plain. AccessRights: change and both 0; read free (E), write 0.
    // SDMOptions: UID, SDMReadCtr, ASCII. SDMAccessRights: nobody gets the counter by itself (F).
    [0x40, 0x00, 0xE0, 0xC1, 0xFF, Self.metaReadKey << 4 | Self.fileReadKey]
      + Self.number(encryptedOffset) + Self.number(macOffset) + Self.number(macOffset)
  }

  private static func number(_ value: Int) -> [UInt8] { (0..<3).map { UInt8(value >> ($0 * 8) & 0xFF) } }
}
