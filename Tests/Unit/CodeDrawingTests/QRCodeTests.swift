import CodeDrawing
import Testing

@Suite("QR codes") struct QRCodeTests {
  static let label = Array("stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left".utf8)

  @Test(
    "a code is as small as its level allows (ISO/IEC 18004, table 7)",
    arguments: zip(QRCode.Level.allCases, [29, 33, 37, 41]))
  func versions(level: QRCode.Level, side: Int) throws {
    #expect(try QRCode(Self.label, level: level).side == side)
  }

  @Test(
    "a code holds what the largest version holds, and a byte more is refused",
    arguments: zip(QRCode.Level.allCases, [2953, 2331, 1663, 1273]))
  func capacity(level: QRCode.Level, bytes: Int) throws {
    let content = [UInt8](repeating: 0xA5, count: bytes)
    #expect(try QRCode(content, level: level).side == 177)
    #expect(throws: QRCode.Failure.tooLong(bytes: bytes + 1, level: level)) {
      try QRCode(content + [0], level: level)
    }
  }

  @Test("nothing is no content")
  func empty() {
    #expect(throws: QRCode.Failure.empty) { try QRCode([], level: .low) }
  }

  @Test("a code has its finder patterns in three corners, and light modules around it")
  func patterns() throws {
    let code = try QRCode(Self.label, level: .medium)
    let last = code.side - 7
    for (row, column) in [(0, 0), (0, last), (last, 0)] {
      for y in 0..<7 {
        for x in 0..<7 {
          let ring = max(abs(y - 3), abs(x - 3))
          #expect(code[row: row + y, column: column + x] == (ring != 2))
        }
      }
    }
    for place in -1...code.side {
      #expect(!code[row: -1, column: place] && !code[row: code.side, column: place])
      #expect(!code[row: place, column: -1] && !code[row: place, column: code.side])
    }
  }
}
