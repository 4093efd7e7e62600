import CTurboJPEG
import CodeReading

extension GrayPicture {
  init(jpeg file: [UInt8]) throws(PictureFlaw) {
    // https://libjpeg-turbo.org/Documentation/Documentation: the TurboJPEG C API.
    guard let decompressor = tjInitDecompress() else { throw .outOfMemory }
    defer { tjDestroy(decompressor) }
    var (width, height, subsampling, colorspace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
    guard
      tjDecompressHeader3(decompressor, file, UInt(file.count), &width, &height, &subsampling, &colorspace) == 0,
      width > 0, height > 0
    else { throw .damaged }
    // For printing presses: TurboJPEG does not turn it into anything else.
    guard ![Int32(TJCS_CMYK.rawValue), Int32(TJCS_YCCK.rawValue)].contains(colorspace) else { throw .unreadable }
    guard Int(width) * Int(height) <= Self.largest else { throw .tooLarge }
    var pixels = [UInt8](repeating: 0, count: Int(width) * Int(height))
    // A scan takes time, and a file has room for thousands: enough for what cameras write.
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
