import CodeDrawing

/// A document (PDF 1.4, as in ISO 32000-1) of pages with lines, filled squares and text.
///
/// Its fonts are two of the 14 that every reader has: F is Courier-Bold, in which all characters have the same width,
/// and H is Helvetica-Bold.
struct PDFDocument {
  /// The width of a character, in multiples of the font size (Adobe's metrics of the 14 standard fonts).
  static let characterWidth = 0.6
  /// PDF units per millimetre: a unit is 1/72 inch.
  private static let unitsPerMillimetre = 72 / 25.4

  /// Millimetres.
  let width: Double
  let height: Double
  private var pages: [String] = []

  init(width: Double, height: Double) {
    self.width = width
    self.height = height
  }

  /// - Parameter content: operators (ISO 32000-1, A) in millimetres from the lower left corner.
  mutating func addPage(_ content: String) { pages.append(content) }

  var bytes: [UInt8] {
    let scale = decimal(Self.unitsPerMillimetre)
    let box = "[0 0 \(decimal(width * Self.unitsPerMillimetre)) \(decimal(height * Self.unitsPerMillimetre))]"
    let kids = pages.indices.map { "\(5 + 2 * $0) 0 R" }.joined(separator: " ")
    var objects = [
      "<</Type/Catalog/Pages 2 0 R>>",
      "<</Type/Pages/Kids[\(kids)]/Count \(pages.count)/MediaBox\(box)/Resources<</Font<</F 3 0 R/H 4 0 R>>>>>>",
      "<</Type/Font/Subtype/Type1/BaseFont/Courier-Bold/Encoding/WinAnsiEncoding>>",
      "<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
    ]
    for (index, page) in pages.enumerated() {
      let content = "\(scale) 0 0 \(scale) 0 0 cm\n\(page)"
      objects.append("<</Type/Page/Parent 2 0 R/Contents \(6 + 2 * index) 0 R>>")
      objects.append("<</Length \(content.utf8.count)>>stream\n\(content)\nendstream")
    }

    // 7.5.2: the second line tells file-transfer programs that this is not text.
    var bytes = Array("%PDF-1.4\n%".utf8) + [0xE2, 0xE3, 0xCF, 0xD3, 0x0A]
    var offsets: [Int] = []
    for (index, object) in objects.enumerated() {
      offsets.append(bytes.count)
      bytes += "\(index + 1) 0 obj\n\(object)\nendobj\n".utf8
    }
    // 7.5.4: entries of 20 bytes.
    let table = offsets.map { String(repeating: "0", count: 10 - String($0).utf8.count) + "\($0) 00000 n \n" }.joined()
    let count = objects.count + 1
    bytes +=
      """
      xref
      0 \(count)
      0000000000 65535 f \n\(table)trailer
      <</Size \(count)/Root 1 0 R>>
      startxref
      \(bytes.count)
      %%EOF

      """.utf8
    return bytes
  }
}
