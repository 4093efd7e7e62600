import Testing

@testable import CodeDrawing

@Suite("QR codes as pictures") struct RenderingTests {
  let code: QRCode

  init() throws { code = try QRCode(QRCodeTests.label, level: .medium) }

  @Test("on a terminal every module is half a character", arguments: [true, false])
  func terminal(isColored: Bool) throws {
    let lines = code.lines(isColored: isColored)
    #expect(lines.count == (code.columns + 1) / 2)
    for (index, line) in lines.enumerated() {
      let blocks = Array(line.split(separator: isColored ? "m" : "\n")[isColored ? 1 : 0].prefix { $0 != "\u{1B}" })
      #expect(blocks.count == code.columns)
      for (column, block) in blocks.enumerated() {
        for half in 0...1 {
          let row = 2 * index + half - QRCode.quietZone
          // Below the quiet zone nothing is drawn.
          if row >= code.side + QRCode.quietZone { continue }
          let isDrawn = half == 0 ? block == "█" || block == "▀" : block == "█" || block == "▄"
          #expect(isDrawn == (code[row: row, column: column - QRCode.quietZone] == isColored))
        }
      }
    }
  }

  @Test("colors are set and taken back in every line")
  func colors() {
    for line in code.lines(isColored: true) {
      #expect(line.hasPrefix("\u{1B}[38;5;16;48;5;231m") && line.hasSuffix("\u{1B}[0m"))
    }
    #expect(code.lines(isColored: false).allSatisfy { !$0.contains("\u{1B}") })
  }

  @Test("a drawing has the size that was asked for, and every dark module once")
  func svg() throws {
    let svg = code.svg(size: 33)
    // 33 modules of 1 mm, and 4 of quiet zone at each side.
    #expect(svg.contains(#"width="41mm" height="41mm" viewBox="-4 -4 41 41""#))
    let dark = (0..<code.side).map { row in (0..<code.side).count { code[row: row, column: $0] } }.reduce(0, +)
    #expect(code.runs.map(\.columns.count).reduce(0, +) == dark)
    #expect(svg.count { $0 == "z" } == code.runs.count)
  }

  @Test("a picture says how large it is to be printed", arguments: [10.0, 30, 100])
  func png(size: Double) throws {
    let png = code.png(size: size)
    #expect(png.starts(with: [0x89, 0x50, 0x4E, 0x47]))
    let width = Self.number(png[16..<20])
    let pixelsPerMetre = Self.number(png[41..<45])
    #expect(Array("pHYs".utf8) == Array(png[37..<41]))
    let millimetres = Double(width) / Double(pixelsPerMetre) * 1000
    #expect(abs(millimetres - size * 41 / 33) < 0.01)
    #expect((width % 41, png[24], png[25]) == (0, 1, 0))
  }

  @Test("a size at which a module would be less than a pixel makes it one")
  func tiny() {
    #expect(Self.number(code.png(size: 1)[16..<20]) == 41)
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
