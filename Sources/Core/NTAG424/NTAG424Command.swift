import Domain
import Encoding
package import Tags

/// A native command, wrapped in an APDU (NT4H2421Gx 8.4), and the meaning of its answers.
package struct NTAG424Command: Sendable {
  /// The command's name, for errors.
  let name: String
  let code: UInt8
  /// Never encrypted.
  let header: [UInt8]
  /// Encrypted by secure messaging.
  let data: [UInt8]

  init(_ name: String, _ code: UInt8, header: [UInt8] = [], data: [UInt8] = []) {
    self.name = name
    self.code = code
    self.header = header
    self.data = data
  }

  /// The C-APDU without secure messaging.
  package var bytes: [UInt8] { Self.wrapped(code, header + data) }

  static func wrapped(_ code: UInt8, _ content: [UInt8]) -> [UInt8] {
    let length = content.isEmpty ? [] : [UInt8(content.count)]
    return [0x90, code, 0x00, 0x00] + length + content + [0x00]
  }

  /// The data of an answer, and whether it is complete.
  package func data(of answer: [UInt8]) throws(NTAG424Error) -> (data: [UInt8], isComplete: Bool) {
    guard answer.count >= 2, answer[answer.count - 2] == 0x91 else { throw .notGenuine }
    switch answer[answer.count - 1] {
    case 0x00: return (Array(answer.dropLast(2)), true)
    case 0xAF: return (Array(answer.dropLast(2)), false)
    case let status: throw .refused(name, status: status)
    }
  }

  // MARK: - Commands

  /// 10.5.2. The answer comes in three parts; `more` requests the next one.
  package static let getVersion = NTAG424Command("GetVersion", 0x60)
  package static let more = NTAG424Command("GetVersion", 0xAF)

  /// Whether the version is that of an NTAG 424 DNA (10.5.2, table 55): NXP, NTAG, 416 bytes, ISO 14443-4.
  package static func isNTAG424(hardware: [UInt8]) -> Bool {
    hardware.count == 7 && hardware[0] == 0x04 && hardware[1] == 0x04 && hardware[5] == 0x11 && hardware[6] == 0x05
  }

  /// 10.6.2. The answer is one byte, which is 0 for a factory key.
  package static func getKeyVersion(_ number: UInt8) -> NTAG424Command {
    NTAG424Command("GetKeyVersion", 0x64, header: [number])
  }

  /// 10.6.1. The session must be authenticated with key 0.
  ///
  /// - Parameter old: the present key; nil if the key to change is key 0.
  package static func changeKey(
    _ number: UInt8, to new: [UInt8], from old: [UInt8]?, version: UInt8
  ) -> NTAG424Command {
    let data =
      old.map { old in zip(new, old).map { $0 ^ $1 } + [version] + checksum(new) } ?? new + [version]
    return NTAG424Command("ChangeKey", 0xC4, header: [number], data: data)
  }

  /// 10.7.2
  package static func getFileSettings(file: UInt8) -> NTAG424Command {
    NTAG424Command("GetFileSettings", 0xF5, header: [file])
  }

  /// Whether a file makes dynamic messages (10.7.2, table 73: FileOption, bit 6).
  package static func isDynamic(fileSettings: [UInt8]) -> Bool {
    fileSettings.count >= 7 && fileSettings[1] & 0x40 != 0
  }

  /// Whether everybody may write the file, and key 0 may change its settings (8.2.3.3 and 10.7.2, table 73:
  /// AccessRights, low byte first: ReadWrite and Change, then Read and Write).
  package static func isOpenToSetup(fileSettings: [UInt8]) -> Bool {
    guard fileSettings.count >= 7 else { return false }
    let everybody: UInt8 = 0x0E
    let canWrite = fileSettings[2] >> 4 == everybody || fileSettings[3] & 0x0F == everybody
    return canWrite && fileSettings[2] & 0x0F == 0
  }

  /// 10.7.1
  package static func changeFileSettings(file: UInt8, _ settings: [UInt8]) -> NTAG424Command {
    NTAG424Command("ChangeFileSettings", 0x5F, header: [file], data: settings)
  }

  /// CRC32NK: the CRC of IEEE 802.3 without the final inversion, low byte first.
  private static func checksum(_ key: [UInt8]) -> [UInt8] {
    var sum: UInt32 = 0xFFFF_FFFF
    for byte in key {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
    return (0..<4).map { UInt8(sum >> ($0 * 8) & 0xFF) }
  }
}

/// The settings of the NDEF file for secure dynamic messages, which change at each reading (NT4H2421Gx 10.7.1;
/// AN12196).
///
/// Everyone may read the file. Writing it and changing its settings needs key 0. The tag mirrors two things into the
/// message: its UID and reading counter, encrypted with one key, and a MAC over no further input, made with another.
package struct DynamicMessageSettings: Equatable, Sendable {
  /// The keys that the controller shares with the tag.
  package static let metaReadKey: UInt8 = 1
  package static let fileReadKey: UInt8 = 2
  /// The NDEF file.
  package static let file: UInt8 = 2

  /// The offset in the file at which the 32 digits of PICCENCData begin.
  package let encryptedOffset: Int
  /// The offset in the file at which the 16 digits of SDMMAC begin.
  package let macOffset: Int

  package init(encryptedOffset: Int, macOffset: Int) {
    self.encryptedOffset = encryptedOffset
    self.macOffset = macOffset
  }

  /// The settings in the form of ChangeFileSettings.
  package var bytes: [UInt8] {
    // FileOption: secure dynamic messages, plain. AccessRights: change and both 0; read free (E), write 0. SDMOptions:
    // UID, SDMReadCtr, ASCII. SDMAccessRights: nobody can read the counter alone (F).
    [0x40, 0x00, 0xE0, 0xC1, 0xFF, Self.metaReadKey << 4 | Self.fileReadKey]
      + Self.number(encryptedOffset) + Self.number(macOffset) + Self.number(macOffset)
  }

  private static func number(_ value: Int) -> [UInt8] { (0..<3).map { UInt8(value >> ($0 * 8) & 0xFF) } }
}
