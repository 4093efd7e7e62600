import CZlib
import Encoding

extension QRCode {
  /// A black-and-white picture (PNG, ISO/IEC 15948) with the quiet zone. It states its resolution, so that programs
  /// print it in its true size.
  ///
  /// - Parameters:
  ///   - size: millimetres, of the code without its quiet zone.
  ///   - resolution: approximate pixels per inch; each module is a whole number of pixels, at least one.
  package func png(size: Double, resolution: Double = 300) -> [UInt8] {
    let scale = max(1, Int((size / 25.4 * resolution / Double(side)).rounded()))
    let width = (side + 2 * Self.quietZone) * scale
    let pixelsPerMetre = Double(side * scale) / size * 1000

    // 11.2.2: one bit per pixel, grey, and the only defined methods.
    let header = UInt32(width).bigEndianBytes + UInt32(width).bigEndianBytes + [1, 0, 0, 0, 0]
    let pixels = UInt32(pixelsPerMetre.rounded())
    let density = pixels.bigEndianBytes + pixels.bigEndianBytes + [1]
    var lines: [UInt8] = []
    for row in -Self.quietZone..<side + Self.quietZone {
      // 9.2: each line begins with the number of its filter: 0, no filter.
      lines += Array(repeatElement([0] + line(row, scale: scale, width: width), count: scale).joined())
    }
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", header) + chunk("pHYs", density)
      + chunk("IDAT", deflated(lines)) + chunk("IEND", [])
  }

  /// A line of pixels, eight per byte; light pixels are 1.
  private func line(_ row: Int, scale: Int, width: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: (width + 7) / 8)
    for pixel in 0..<width where !self[row: row, column: pixel / scale - Self.quietZone] {
      bytes[pixel / 8] |= 0x80 >> UInt8(pixel % 8)
    }
    return bytes
  }
}

/// 5.3: the length of the data, the type, the data, and a checksum of type and data.
private func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
  let content = Array(type.utf8) + data
  let checksum = UInt32(crc32(0, content, UInt32(content.count)))
  return UInt32(data.count).bigEndianBytes + content + checksum.bigEndianBytes
}

/// The zlib format (RFC 1950), which PNG uses.
private func deflated(_ bytes: [UInt8]) -> [UInt8] {
  var count = compressBound(uLong(bytes.count))
  return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
    // It fails only for lack of memory or room, and there is enough room.
    precondition(compress(buffer.baseAddress, &count, bytes, uLong(bytes.count)) == Z_OK)
    initialized = Int(count)
  }
}

extension QRCode {
  /// A drawing (SVG 1.1) in true size: one path, on white with the quiet zone.
  ///
  /// - Parameter size: millimetres, of the code without its quiet zone.
  package func svg(size: Double) -> String {
    let all = side + 2 * Self.quietZone
    let millimetres = decimal(size * Double(all) / Double(side))
    let path = runs.map { "M\($0.columns.lowerBound) \($0.row)h\($0.columns.count)v1h-\($0.columns.count)z" }.joined()
    return """
      <svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="\(millimetres)mm" height="\(millimetres)mm" \
      viewBox="\(-Self.quietZone) \(-Self.quietZone) \(all) \(all)" shape-rendering="crispEdges">
      <rect x="\(-Self.quietZone)" y="\(-Self.quietZone)" width="\(all)" height="\(all)" fill="#fff"/>
      <path d="\(path)" fill="#000"/>
      </svg>

      """
  }
}

/// A number with at most three decimals and no exponent, as drawing formats need it.
package func decimal(_ value: Double) -> String {
  let thousandths = Int((value * 1000).rounded())
  let (whole, rest) = abs(thousandths).quotientAndRemainder(dividingBy: 1000)
  var digits = String(1000 + rest).dropFirst()
  while digits.last == "0" { digits.removeLast() }
  return (thousandths < 0 ? "-" : "") + String(whole) + (digits.isEmpty ? "" : "." + digits)
}

extension QRCode {
  /// The number of terminal columns that it takes.
  package var columns: Int { side + 2 * Self.quietZone }

  /// The code in half blocks, two modules above each other per character, with its quiet zone.
  ///
  /// - Parameter isColored: black on white by attributes (ECMA-48, 8.3.117), independent of the terminal's own colors.
  ///   Without attributes the blocks are the light modules, which is right on a dark background.
  package func lines(isColored: Bool) -> [String] {
    let all = -Self.quietZone..<side + Self.quietZone
    return stride(from: all.lowerBound, to: all.upperBound, by: 2).map { row in
      let blocks = all.map { column in
        // Below the last of an odd number of rows there is nothing, which counts as light.
        let isDark = (self[row: row, column: column], self[row: row + 1, column: column])
        return switch isColored ? isDark : (!isDark.0, !isDark.1 && row + 1 < all.upperBound) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
      }.joined()
      // Of the 256 colors, 16 is black and 231 white in every theme.
      return isColored ? "\u{1B}[38;5;16;48;5;231m\(blocks)\u{1B}[0m" : blocks
    }
  }
}
