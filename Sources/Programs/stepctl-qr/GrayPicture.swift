import CPNG
import CTurboJPEG
package import CodeReading

/// A picture in shades of grey, one byte a pixel, row by row.
package struct GrayPicture: Equatable, Sendable {
  package let width: Int
  package let height: Int
  package let pixels: [UInt8]

  /// How many pixels a picture may have: twice as many as telephones take, and few enough for several to fit in memory.
  static let largest = 50_000_000

  package init(width: Int, height: Int, pixels: [UInt8]) {
    precondition(pixels.count == width * height)
    self.width = width
    self.height = height
    self.pixels = pixels
  }

  /// A PNG or a JPEG, by its first bytes.
  package init(_ file: [UInt8]) throws(PictureFlaw) {
    if file.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
      try self.init(png: file)
    } else if file.starts(with: [0xFF, 0xD8, 0xFF]) {
      try self.init(jpeg: file)
    } else {
      throw .unknownFormat
    }
  }

  private init(png file: [UInt8]) throws(PictureFlaw) {
    // libpng-manual.txt, section V, "Simplified API".
    var image = png_image()
    image.version = UInt32(PNG_IMAGE_VERSION)
    defer { png_image_free(&image) }
    guard png_image_begin_read_from_memory(&image, file, file.count) != 0 else { throw .damaged }
    let (width, height) = (Int(image.width), Int(image.height))
    guard width * height <= Self.largest else { throw .tooLarge }
    image.format = UInt32(PNG_FORMAT_GRAY)
    var pixels = [UInt8](repeating: 0, count: width * height)
    // What is transparent is white, as on paper.
    var background = png_color(red: 255, green: 255, blue: 255)
    guard png_image_finish_read(&image, &background, &pixels, 0, nil) != 0 else { throw .damaged }
    self.init(width: width, height: height, pixels: pixels)
  }

  init(jpeg file: [UInt8]) throws(PictureFlaw) {
    // https://libjpeg-turbo.org/Documentation/Documentation: the TurboJPEG C API.
    guard let decompressor = tjInitDecompress() else { throw .outOfMemory }
    defer { tjDestroy(decompressor) }
    var (width, height, subsampling, colorspace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
    guard
      tjDecompressHeader3(decompressor, file, UInt(file.count), &width, &height, &subsampling, &colorspace) == 0,
      width > 0, height > 0
    else { throw .damaged }
    // TurboJPEG cannot convert what is meant for printing presses.
    guard ![Int32(TJCS_CMYK.rawValue), Int32(TJCS_YCCK.rawValue)].contains(colorspace) else { throw .unreadable }
    guard Int(width) * Int(height) <= Self.largest else { throw .tooLarge }
    var pixels = [UInt8](repeating: 0, count: Int(width) * Int(height))
    // A scan takes time, and a file has room for thousands. The limit is enough for what cameras write.
    let flags = TJFLAG_LIMITSCANS
    if tjDecompress2(
      decompressor, file, UInt(file.count), &pixels, width, width, height, Int32(TJPF_GRAY.rawValue), flags) != 0,
      tjGetErrorCode(decompressor) != Int32(TJERR_WARNING.rawValue)
    {
      throw .damaged
    }
    self.init(width: Int(width), height: Int(height), pixels: pixels)
  }
}
