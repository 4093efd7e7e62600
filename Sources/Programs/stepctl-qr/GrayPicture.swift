package import CodeReading

/// A picture in shades of grey, one byte a pixel, row by row.
package struct GrayPicture: Equatable, Sendable {
  package let width: Int
  package let height: Int
  package let pixels: [UInt8]

  /// How many pixels a picture may have: twice what telephones take, and what fits in memory several times.
  static let largest = 50_000_000

  package init(width: Int, height: Int, pixels: [UInt8]) {
    precondition(pixels.count == width * height)
    self.width = width
    self.height = height
    self.pixels = pixels
  }

  /// A PNG or a JPEG: their first bytes tell.
  package init(_ file: [UInt8]) throws(PictureFlaw) {
    if file.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
      try self.init(png: file)
    } else if file.starts(with: [0xFF, 0xD8, 0xFF]) {
      try self.init(jpeg: file)
    } else {
      throw .unknownFormat
    }
  }
}
