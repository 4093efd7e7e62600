import NDEF
import TestSupport
import Testing

@testable import Tags

/// Where messages stand on a tag, and what is before and behind them.
struct TagLayout: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let chip: Type2Chip
  /// What stands at the beginning of the data area, before the message's block.
  let before: [UInt8]
  /// Where a control block excepts bytes.
  var hole: Range<Int>?

  /// The address of the message's block.
  var start: Int { 16 + before.count }
  var capacity: Int { Type2Plan.capacity(Int(chip.container[2]) * 8 - before.count - (hole?.count ?? 0)) }

  /// The tag with an NDEF block that holds a message, or nothing when that is nil; both without terminator if it does
  /// not fit.
  func tag(_ message: NDEFMessage?) throws -> SimulatedTag {
    var bytes = factory(chip)
    bytes.replaceSubrange(16..<chip.userPages.upperBound * 4, with: repeatElement(0, count: chip.userPages.count * 4))
    bytes.replaceSubrange(16..<16 + before.count, with: before)
    if let hole { for address in hole { bytes[address] = 0xA5 } }
    var content: [UInt8] = [0x03, 0x00, 0xFE]
    if let message {
      let count = message.bytes.count
      content =
        [0x03] + (count < 255 ? [UInt8(count)] : [0xFF, UInt8(count >> 8), UInt8(count & 0xFF)]) + message.bytes + [
          0xFE
        ]
    }
    var address = 16 + before.count
    for byte in content {
      while hole?.contains(address) == true { address += 1 }
      guard address < 16 + Int(chip.container[2]) * 8 else { break }
      bytes[address] = byte
      address += 1
    }
    return SimulatedTag(chip, bytes)
  }

  static let all: [TagLayout] =
    [
      TagLayout(testDescription: "Ultralight", chip: .ultralight, before: []),
      TagLayout(testDescription: "NTAG213 from the factory", chip: .ntag213, before: hex("0103a00c34")),
      TagLayout(
        testDescription: "NTAG213 with a proprietary block", chip: .ntag213, before: hex("0103a00c34 fd03030200")),
      TagLayout(
        testDescription: "NTAG213 with 13 reserved bytes", chip: .ntag213, before: hex("0203320d04"), hole: 50..<63),
    ]
    + (0..<4).map {
      TagLayout(
        testDescription: "NTAG215 behind \($0) NULL blocks", chip: .ntag215, before: Array(repeating: 0, count: $0))
    }
    + (5..<9).map {
      // The reserved bytes begin in the middle of the length.
      TagLayout(
        testDescription: "NTAG216 with reserved bytes from byte \(16 + $0) on", chip: .ntag216,
        before: [0x02, 0x03, 0x10 | UInt8($0), 0x02, 0x04],
        hole: 16 + $0..<18 + $0)
    }
}
