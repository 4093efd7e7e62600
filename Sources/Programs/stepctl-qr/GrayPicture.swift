import CPNG
import CTurboJPEG
package import CodeReading

/// A picture in shades of grey, one byte per pixel, row by row.
package struct GrayPicture: Equatable, Sendable {
  package let width: Int
  package let height: Int
  package let pixels: [UInt8]
  /// Whether a part of the file is missing or wrong, so that a part of the pixels is invented.
  package let isDamaged: Bool

  /// The most pixels of a picture: twice as many as telephones take, but few enough for several pictures in memory.
  static let largest = 50_000_000

  package init(width: Int, height: Int, pixels: [UInt8], isDamaged: Bool = false) {
    precondition(pixels.count == width * height)
    self.isDamaged = isDamaged
    self.width = width
    self.height = height
    self.pixels = pixels
  }

  /// A PNG or a JPEG, recognised by its first bytes.
  package init(_ file: [UInt8]) throws(PictureFlaw) {
    if file.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
      try self.init(png: file)
    } else if file.starts(with: [0xFF, 0xD8, 0xFF]) {
      try self.init(jpeg: file)
    } else {
      throw PictureFlaw(formatOf: file)
    }
  }

  private init(png file: [UInt8]) throws(PictureFlaw) {
    // libpng-manual.txt, section V, "Simplified API". The file has to be there until its last call.
    self = try file.withUnsafeBufferPointer { file throws(PictureFlaw) in
      var image = png_image()
      image.version = UInt32(PNG_IMAGE_VERSION)
      defer { png_image_free(&image) }
      guard png_image_begin_read_from_memory(&image, file.baseAddress, file.count) != 0 else { throw .damaged }
      let (width, height) = (Int(image.width), Int(image.height))
      guard width * height <= Self.largest else { throw .tooLarge }
      image.format = UInt32(PNG_FORMAT_GRAY)
      var pixels = [UInt8](repeating: 0, count: width * height)
      // Transparent pixels become white, as on paper.
      var background = png_color(red: 255, green: 255, blue: 255)
      guard png_image_finish_read(&image, &background, &pixels, 0, nil) != 0 else { throw .damaged }
      return GrayPicture(width: width, height: height, pixels: pixels)
    }
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
    guard Int(width) * Int(height) <= Self.largest else { throw .tooLarge }
    // TurboJPEG delivers pictures for printing presses only as inks.
    let isOfInks = [Int32(TJCS_CMYK.rawValue), Int32(TJCS_YCCK.rawValue)].contains(colorspace)
    let format = isOfInks ? TJPF_CMYK : TJPF_GRAY
    var pixels = [UInt8](repeating: 0, count: Int(width) * Int(height) * (isOfInks ? 4 : 1))
    // Each scan takes time, and a file can contain thousands. The limit is enough for cameras' files.
    let flags = TJFLAG_LIMITSCANS
    let isFlawed =
      tjDecompress2(
        decompressor, file, UInt(file.count), &pixels, width, isOfInks ? 4 * width : width, height,
        Int32(format.rawValue), flags) != 0
    if isFlawed, tjGetErrorCode(decompressor) != Int32(TJERR_WARNING.rawValue) { throw .damaged }
    self.init(
      width: Int(width), height: Int(height), pixels: isOfInks ? Self.gray(inks: pixels) : pixels, isDamaged: isFlawed)
  }

  /// Four bytes a pixel to one: how bright paper with these inks looks.
  ///
  /// 255 is no ink, as Adobe's programs write it, and with them all others (libjpeg-turbo, libjpeg.txt, "Special color
  /// spaces"). Where it is the other way round, the picture is inverted, in which codes are looked for as well.
  private static func gray(inks: [UInt8]) -> [UInt8] {
    stride(from: 0, to: inks.count, by: 4).map { pixel in
      // The weights of red, green and blue in brightness (ITU-R BT.601).
      let color = 299 * Int(inks[pixel]) + 587 * Int(inks[pixel + 1]) + 114 * Int(inks[pixel + 2])
      return UInt8(color * Int(inks[pixel + 3]) / 255_000)
    }
  }
}

extension PictureFlaw {
  /// The format of a file that is neither PNG nor JPEG, guessed from its first bytes.
  init(formatOf file: [UInt8]) {
    func has(_ text: String, at offset: Int = 0) -> Bool { file.dropFirst(offset).starts(with: text.utf8) }
    self =
      if has("ftyp", at: 4) {
        // ISO/IEC 23008-12: telephones' pictures, in a film container.
        .heif
      } else if has("RIFF"), has("WEBP", at: 8) {
        .webp
      } else if has("GIF8") {
        .gif
      } else if has("II*\0") || has("MM\0*") {
        .tiff
      } else if has("BM"), file.count > 26 {
        .bmp
      } else if has("%PDF") {
        .pdf
      } else if has("<svg") {
        .svg
      } else if file.isEmpty {
        .empty
      } else {
        .unknownFormat
      }
  }
}
