/// A command to a Type 4 tag (NFC Forum, Type 4 Tag Operation 2.0, 5.4; ISO/IEC 7816-4), with one-byte lengths.
enum Type4Command {
  /// 5.4.2: the NDEF tag application, by name; that of mapping version 1.0 ends in 00h (5.5).
  case selectApplication(version1: Bool)
  /// 5.4.3 and 5.4.5: mapping version 1.0 asks for the file's control information and ignores it.
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
      [0x00, 0xA4, 0x00, version1 ? 0x00 : 0x0C, 0x02, UInt8(id >> 8), UInt8(id & 0xFF)]
    case .readBinary(let offset, let count):
      [0x00, 0xB0, UInt8(offset >> 8), UInt8(offset & 0xFF), UInt8(count)]
    case .updateBinary(let offset, let data):
      [0x00, 0xD6, UInt8(offset >> 8), UInt8(offset & 0xFF), UInt8(data.count)] + data
    }
  }

  private var name: String {
    switch self {
    case .selectApplication: "select its NDEF application"
    case .selectFile(let id, _): "select its file \(String(id, radix: 16))"
    case .readBinary(let offset, _): "read at byte \(offset)"
    case .updateBinary(let offset, _): "write at byte \(offset)"
    }
  }

  /// The data of an R-APDU.
  ///
  /// - Throws: `refused` when its status word is not 9000h, or `malformedAnswer`.
  func data(of answer: [UInt8]) throws(NDEFError) -> [UInt8] {
    guard answer.count >= 2 else { throw .malformedAnswer("\(answer.count) bytes without a status word") }
    let status = UInt16(answer[answer.count - 2]) << 8 | UInt16(answer[answer.count - 1])
    guard status == 0x9000 else { throw .refused(name, status: status) }
    let data = Array(answer.dropLast(2))
    if case .readBinary(_, let count) = self, !(1...count).contains(data.count) {
      throw .malformedAnswer("\(data.count) bytes where \(count) were asked for")
    }
    return data
  }
}

/// What comes next with a Type 4 tag.
package enum Type4Step<Value> {
  /// A C-APDU; its answer, with the status word, is what `next(after:)` takes.
  case send([UInt8])
  case done(Value)
}

extension Type4Step: Sendable where Value: Sendable {}
extension Type4Step: Equatable where Value: Equatable {}
