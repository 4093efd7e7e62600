import CodeDrawing
import Domain
import Testing

@testable import OperatorCommands

@Suite("Sheets of labels") struct LabelSheetTests {
  private let label: LabelSheet.Label

  init() throws {
    label = LabelSheet.Label(
      try QRCode(Array("stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left".utf8), level: .medium), side: .left,
      title: PDFText("Rolling Chassis")!,
      instruction: PDFText("scan to open")!)
  }

  @Test("as many labels as fit are on a page", arguments: [(1, 1), (9, 1), (10, 2), (100, 12)])
  func pages(copies: Int, pages: Int) throws {
    let pdf = try text(LabelSheet([label], size: 40, paper: .a4, copies: copies))
    #expect(pdf.ranges(of: "/Type/Page/").count == pages)
    #expect(pdf.contains("/Count \(pages)"))
    #expect(pdf.ranges(of: "f Q").count == copies)
  }

  @Test(
    "a page is exactly as large as the paper", arguments: zip(LabelSheet.Paper.allCases, ["595.276 841.89", "612 792"]))
  func paper(_ paper: LabelSheet.Paper, size: String) throws {
    #expect(try text(LabelSheet([label], size: 40, paper: paper)).contains("/MediaBox[0 0 \(size)]"))
  }

  @Test("a label that is larger than the page is refused, and what would fit is")
  func large() throws {
    let failure = #expect(throws: LabelSheet.Failure.self) { try LabelSheet([label], size: 200, paper: .a4) }
    guard case .tooLarge(200, let largest)? = failure else {
      Issue.record("another failure")
      return
    }
    #expect(largest > 100)
    _ = try LabelSheet([label], size: largest, paper: .a4)
    #expect(throws: LabelSheet.Failure.self) { try LabelSheet([label], size: largest + 2, paper: .a4) }
  }

  @Test("each code has its quiet zone within its label, whatever the other is like", arguments: [false, true])
  func quietZones(isReversed: Bool) throws {
    let codes = try [1, 400].map { try QRCode([UInt8](repeating: 0x61, count: $0), level: .low) }
    let labels = (isReversed ? codes.reversed() : codes).map {
      LabelSheet.Label($0, side: nil, title: PDFText("a")!, instruction: PDFText("b")!)
    }
    let width = 40 * (1 + 8 / Double(try #require(codes.map(\.side).min())))
    // MODULE 0 0 -MODULE LEFT TOP cm
    let drawn = try text(LabelSheet(labels, size: 40, paper: .a4)).split(separator: "\n").filter { $0.hasSuffix(" cm") }
      .dropFirst().map { $0.split(separator: " ").compactMap { Double($0) } }
    #expect(drawn.count == 2)
    for (index, numbers) in drawn.enumerated() {
      let label = 12 + Double(index) * (width + 8)
      #expect(abs(numbers[0] * Double(labels[index].code.side) - 40) < 0.001)
      #expect(numbers[4] - label >= 4 * numbers[0] - 0.001 && numbers[4] + 40 + 4 * numbers[0] <= label + width + 0.001)
      // The title takes a tenth of the code's size, and a quarter more.
      #expect(297 - 12 - 5 - numbers[5] >= 4 * numbers[0] - 0.001)
    }
  }

  @Test("without a size a code is as large as fits, and each has a page", arguments: LabelSheet.Paper.allCases)
  func largest(paper: LabelSheet.Paper) throws {
    let pdf = try text(LabelSheet([label], size: nil, paper: paper, copies: 3))
    #expect(pdf.ranges(of: "/Type/Page/").count == 3)
    let scale = try #require(pdf.split(separator: "\n").filter { $0.hasSuffix(" cm") }.dropFirst().first)
    let size = try #require(scale.split(separator: " ").compactMap { Double($0) }.first) * Double(label.code.side)
    _ = try LabelSheet([label], size: size, paper: paper)
    #expect(throws: LabelSheet.Failure.self) { try LabelSheet([label], size: size + 1, paper: paper) }
    #expect(size > 130)
  }

  @Test("the side's word is set in Helvetica, large, in the middle")
  func heading() throws {
    for (side, word, width) in [(Side.left, "LEFT", 2.5), (.right, "RIGHT", 3.111)] {
      let label = LabelSheet.Label(label.code, side: side, title: label.title, instruction: label.instruction)
      let pdf = try text(LabelSheet([label], size: 100, paper: .a4))
      let line = try #require(pdf.split(separator: "\n").first { $0.hasPrefix("BT /H ") })
      let numbers = line.split(separator: " ").compactMap { Double($0) }
      #expect(numbers[0] == 30 && line.contains(PDFText(word)!.hexadecimal))
      let labelWidth = 100 * (1 + 8 / Double(label.code.side))
      #expect(abs(numbers[1] + width * 30 / 2 - (12 + labelWidth / 2)) < 0.01)
    }
  }

  @Test("every entry of the table of a document is where its object begins")
  func offsets() throws {
    let pdf = try LabelSheet([label], size: 40, paper: .letter, copies: 20).pdf
    let text = String(decoding: pdf, as: Unicode.ASCII.self)
    let start = try #require(Int(text.split(separator: "startxref\n")[1].split(separator: "\n")[0]))
    let table = String(decoding: pdf[start...], as: UTF8.self).split(separator: "\n")
    #expect(table[0] == "xref")
    let count = try #require(Int(table[1].dropFirst(2)))
    #expect(count > 5)
    #expect(text.contains("trailer\n<</Size \(count)/Root 1 0 R>>"))
    let streams = text.split(separator: "/Length ").dropFirst()
    #expect(streams.count == text.ranges(of: "/Type/Page/").count)
    for stream in streams {
      let parts = stream.split(separator: ">>stream\n", maxSplits: 1)
      let content = try #require(parts[1].split(separator: "\nendstream", maxSplits: 1).first)
      #expect(Int(parts[0]) == content.utf8.count)
    }
    for object in 1..<count {
      let entry = table[2 + object]
      #expect(entry.utf8.count == 19 && entry.hasSuffix(" 00000 n "))
      let offset = try #require(Int(entry.prefix(10)))
      #expect(pdf[offset...].starts(with: "\(object) 0 obj\n".utf8))
    }
  }

  @Test("text is in the encoding of the font, however it is composed")
  func encoding() {
    #expect(PDFText("Wägelchen (2) €")?.hexadecimal == "<57E467656C6368656E202832292080>")
    #expect(PDFText("Wa\u{308}gelchen") == PDFText("Wägelchen"))
    #expect(PDFText("…")?.bytes == [0x85] && PDFText("ÿ")?.bytes == [0xFF])
  }

  @Test("what the font does not have is no text", arguments: ["漢字", "Łódź", "\n", "\u{81}", "a\u{1B}[31m", "🚐"])
  func foreign(text: String) {
    #expect(PDFText(text) == nil)
  }

  @Test("a long line ends with an ellipsis")
  func truncation() {
    #expect(PDFText("abcdef")!.truncated(to: 4).bytes == Array("abc".utf8) + [0x85])
    #expect(PDFText("abcd")!.truncated(to: 4).bytes == Array("abcd".utf8))
  }

  private func text(_ sheet: LabelSheet) -> String { String(decoding: sheet.pdf, as: Unicode.ASCII.self) }
}
