import CodeDrawing
import CodeReading
import Testing

@testable import stepctl_qr

@Suite("Pictures with codes") struct GrayPictureTests {
  static let label = Array("stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left".utf8)

  @Test("every code of our own is read back", arguments: QRCode.Level.allCases)
  func roundTrip(level: QRCode.Level) throws {
    for size in [12.0, 30] {
      let png = try QRCode(Self.label, level: level).png(size: size)
      #expect(try GrayPicture(png).codes == [Self.label])
    }
  }

  @Test("a light code on a dark ground is read", arguments: QRCode.Level.allCases)
  func inverted(level: QRCode.Level) throws {
    let dark = try GrayPicture(QRCode(Self.label, level: level).png(size: 30))
    let light = GrayPicture(width: dark.width, height: dark.height, pixels: dark.pixels.map { 255 - $0 })
    #expect(light.codes == [Self.label])
  }

  @Test("bytes that are no text are read back as they are")
  func binary() throws {
    let content = (0...255).map { UInt8($0) }
    #expect(try GrayPicture(QRCode(content, level: .medium).png(size: 60)).codes == [content])
  }

  @Test("the longest code is read back")
  func longest() throws {
    let content = (0..<2953).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
    #expect(try GrayPicture(QRCode(content, level: .low).png(size: 90)).codes == [content])
  }

  @Test("several codes are all read, and two of a kind once")
  func several() throws {
    let contents = ["one", "two", "one"].map { Array($0.utf8) }
    let pictures = try contents.map { try GrayPicture(QRCode($0, level: .medium).png(size: 20)) }
    let codes = beside(pictures).codes
    #expect(codes.count == 2 && Set(codes) == Set(contents))
  }

  @Test("a picture without a code has none")
  func none() {
    let gradient = (0..<200 * 200).map { UInt8(truncatingIfNeeded: $0 / 200) }
    #expect(GrayPicture(width: 200, height: 200, pixels: gradient).codes == [])
  }

  @Test("pictures of a few pixels are no trouble", arguments: [1, 2, 3, 9, 20])
  func small(side: Int) {
    #expect(GrayPicture(width: side, height: side, pixels: .init(repeating: 9, count: side * side)).codes == [])
    #expect(GrayPicture(width: side, height: 1, pixels: .init(repeating: 9, count: side)).codes == [])
    #expect(GrayPicture(width: 1, height: side, pixels: .init(repeating: 9, count: side)).codes == [])
  }

  @Test("a sharper picture moves each pixel away from the mean around it, up to black and white")
  func sharpened() {
    let flat = GrayPicture(width: 31, height: 17, pixels: .init(repeating: 100, count: 31 * 17))
    #expect(flat.sharpened == flat)
    var pixels = flat.pixels
    pixels[8 * 31 + 15] = 181
    let sharp = GrayPicture(width: 31, height: 17, pixels: pixels).sharpened
    // The mean of 9 by 9 pixels, one of which is 81 more than the others, is 1 more.
    #expect(sharp.pixels[8 * 31 + 15] == 255)
    #expect(sharp.pixels[8 * 31 + 14] == 98 && sharp.pixels[4 * 31 + 11] == 98)
    #expect(sharp.pixels[8 * 31 + 10] == 100 && sharp.pixels[3 * 31 + 15] == 100)
    #expect(sharp.pixels.count { $0 != 100 } == 81)
  }

  @Test("a picture of more than four million pixels is halved until it has no more")
  func reduced() {
    let small = GrayPicture(width: 2000, height: 2000, pixels: .init(repeating: 5, count: 4_000_000))
    #expect(small.reduced == small)
    // Lines of 10 and of 13 in turn, of which the mean is 11.5, rounded.
    let row = { (line: Int) in [UInt8](repeating: line % 2 == 0 ? 10 : 13, count: 2001) }
    let large = GrayPicture(width: 2001, height: 2001, pixels: (0..<2001).flatMap(row))
    #expect(large.reduced == GrayPicture(width: 1000, height: 1000, pixels: .init(repeating: 12, count: 1_000_000)))
  }

  @Test(
    "what is neither PNG nor JPEG is told by its name",
    arguments: [
      ("", .empty), ("GIF89a", .gif), ("hello", .unknownFormat), ("RIFF0000WEBP", .webp),
      ("RIFF0000WAVE", .unknownFormat),
      ("\0\0\0\u{1C}ftypheic", .heif), ("II*\0", .tiff), ("MM\0*", .tiff), ("%PDF-1.4", .pdf), ("<svg xmlns", .svg),
      ("BM" + String(repeating: "\0", count: 30), .bmp), ("BMW", .unknownFormat),
    ] as [(String, PictureFlaw)])
  func format(text: String, flaw: PictureFlaw) {
    #expect(throws: flaw) { try GrayPicture(Array(text.utf8)) }
  }

  @Test("a PNG that was cut off anywhere is damaged, or all there")
  func truncated() throws {
    let png = try QRCode(Self.label, level: .medium).png(size: 20)
    for count in stride(from: 8, to: png.count - 12, by: 7) {
      #expect(throws: PictureFlaw.damaged) { try GrayPicture(Array(png[..<count])) }
    }
  }

  private func beside(_ pictures: [GrayPicture]) -> GrayPicture {
    let height = pictures.map(\.height).max()!
    var pixels: [UInt8] = []
    for row in 0..<height {
      for picture in pictures {
        pixels +=
          row < picture.height
          ? picture.pixels[row * picture.width..<(row + 1) * picture.width]
          : .init(repeating: 255, count: picture.width)
      }
    }
    return GrayPicture(width: pictures.map(\.width).reduce(0, +), height: height, pixels: pixels)
  }
}
