import CPNG
import CodeReading

extension GrayPicture {
  init(png file: [UInt8]) throws(PictureFlaw) {
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
}
