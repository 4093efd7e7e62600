import Encoding
import NDEF

/// What the capability container file states about a Type 4 tag's NDEF file (NFC Forum, Type 4 Tag Operation 2.0, 5.1).
package struct Type4File: Hashable, Sendable {
  package let majorVersion: UInt8
  package let minorVersion: UInt8
  package let id: UInt16
  /// In bytes, including the length field at the beginning.
  package let size: Int
  /// The size of the length field, bytes: 2, or 4 in an extended file of mapping version 3.
  package let lengthSize: Int
  /// The most bytes that one answer, or one command, can carry.
  let maximumRead: Int
  let maximumWrite: Int
  let readAccess: UInt8
  let writeAccess: UInt8

  /// The longest message that fits and that 15-bit offsets can reach, bytes.
  package var capacity: Int { min(size, 0x8000) - lengthSize }
  package var isWritable: Bool { writeAccess == 0 }

  /// The size that a container file must have, given its first 15 bytes.
  static func containerSize(_ prefix: [UInt8]) -> Int { prefix.count >= 15 && prefix[7] == 0x06 ? 17 : 15 }

  /// - Parameter container: the first `containerSize` bytes of the file.
  /// - Throws: `unsupportedVersion`, `malformedTag` or `unreadable`.
  init(container: [UInt8]) throws(NDEFError) {
    guard container.count >= 15 else { throw .malformedTag("a container of \(container.count) bytes", offset: 0) }
    func number(_ offset: Int, _ count: Int) -> Int { Int(bigEndianBytes: container[offset..<offset + count]) }
    // Table 4: CCLEN 2, mapping version 1, MLe 2, MLc 2, and the NDEF File Control block.
    majorVersion = container[2] >> 4
    minorVersion = container[2] & 0x0F
    // 5.1.1: any minor version of a known major version.
    guard (1...3).contains(majorVersion) else { throw .unsupportedVersion(major: majorVersion, minor: minorVersion) }
    maximumRead = number(3, 2)
    maximumWrite = number(5, 2)
    guard maximumRead >= 0x0F else { throw .malformedTag("answers of at most \(maximumRead) bytes", offset: 3) }
    guard maximumWrite >= 1 else { throw .malformedTag("commands without data", offset: 5) }
    // 5.1.2: 04h with 6 bytes; mapping version 3.0 adds 06h with 8, whose size and length take four bytes each.
    let isExtended = container[7] == 0x06 && majorVersion == 3
    guard container[7] == 0x04 || isExtended, container[8] == (isExtended ? 8 : 6),
      number(0, 2) >= (isExtended ? 17 : 15), container.count >= (isExtended ? 17 : 15)
    else { throw .malformedTag("no NDEF file control block", offset: 7) }
    id = UInt16(number(9, 2))
    // 5.1.2.1: these ids belong to other files.
    guard ![0x0000, 0xE102, 0xE103, 0x3F00, 0x3FFF, 0xFFFF].contains(id) else {
      throw .malformedTag("a reserved file identifier", offset: 9)
    }
    lengthSize = isExtended ? 4 : 2
    size = number(11, lengthSize)
    guard size >= 5 else { throw .malformedTag("a file of \(size) bytes", offset: 11) }
    readAccess = container[11 + lengthSize]
    writeAccess = container[12 + lengthSize]
    guard readAccess == 0 else { throw .unreadable(access: readAccess) }
  }
}

/// The content of a Type 4 tag.
package struct Type4Contents: Hashable, Sendable {
  package let file: Type4File
  /// Empty when its length is 0, or more than the file can hold.
  package let message: [UInt8]
  /// The length that the tag states, bytes, if the file cannot hold that many; otherwise nil.
  package let excessiveLength: Int?

  /// Why there is no message, if the tag states an excessive length.
  package var fault: String? {
    excessiveLength.map { "a message of \($0) bytes where \(file.capacity) fit" }
  }
}

/// A command to a Type 4 tag (NFC Forum, Type 4 Tag Operation 2.0, 5.4; ISO/IEC 7816-4), with one-byte lengths.
enum Type4Command {
  /// 5.4.2: the NDEF tag application, by name. In mapping version 1.0 the name ends in 00h (5.5).
  case selectApplication(version1: Bool)
  /// 5.4.3 and 5.4.5: mapping version 1.0 requests the file's control information and ignores it.
  case selectFile(UInt16, version1: Bool)
  /// 5.4.4 and 5.4.6: offset up to 7FFFh, count 1 to 255.
  case readBinary(offset: Int, count: Int)
  /// 5.4.7
  case updateBinary(offset: Int, [UInt8])

  /// The C-APDU.
  var bytes: [UInt8] {
    switch self {
    case .selectApplication(let version1):
      [0x00, 0xA4, 0x04, 0x00, 0x07, 0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, version1 ? 0x00 : 0x01, 0x00]
    case .selectFile(let id, let version1):
      [0x00, 0xA4, 0x00, version1 ? 0x00 : 0x0C, 0x02] + id.bigEndianBytes
    case .readBinary(let offset, let count):
      [0x00, 0xB0] + UInt16(offset).bigEndianBytes + [UInt8(count)]
    case .updateBinary(let offset, let data):
      [0x00, 0xD6] + UInt16(offset).bigEndianBytes + [UInt8(data.count)] + data
    }
  }

  private var name: String {
    switch self {
    case .selectApplication: "select its NDEF application"
    case .selectFile(let id, _): "select its file \(hexadecimal(id.bigEndianBytes))"
    case .readBinary(let offset, _): "read at byte \(offset)"
    case .updateBinary(let offset, _): "write at byte \(offset)"
    }
  }

  /// The data of an R-APDU.
  ///
  /// - Throws: `refused` if the status word is not 9000h, or `malformedAnswer`.
  func data(of answer: [UInt8]) throws(NDEFError) -> [UInt8] {
    guard answer.count >= 2 else { throw .malformedAnswer("\(answer.count) bytes without a status word") }
    let status = UInt16(bigEndianBytes: answer.suffix(2))
    guard status == 0x9000 else { throw .refused(name, status: status) }
    let data = Array(answer.dropLast(2))
    if case .readBinary(_, let count) = self, !(1...count).contains(data.count) {
      throw .malformedAnswer("\(data.count) bytes where \(count) were asked for")
    }
    return data
  }
}
