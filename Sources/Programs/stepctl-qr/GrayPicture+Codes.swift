import CZBar
import CZXing

extension GrayPicture {
  /// The content of each QR code in it, each once.
  ///
  /// Two decoders look, because each finds codes that the other does not: zxing-cpp the small ones and, in a sharpened
  /// picture, those out of focus; zbar those seen at a steep angle. Where there is none, they look for light ones on a
  /// dark ground; of a large picture, in fewer pixels, because that takes as long again.
  package var codes: [[UInt8]] {
    let dark = darkCodes
    return dark.isEmpty ? reduced.inverted.darkCodes : dark
  }

  private var inverted: GrayPicture { GrayPicture(width: width, height: height, pixels: pixels.map { ~$0 }) }

  private var darkCodes: [[UInt8]] {
    var codes: [[UInt8]] = []
    for code in zxingCodes + reduced.sharpened.zxingCodes + zbarCodes where !code.isEmpty && !codes.contains(code) {
      codes.append(code)
    }
    return codes
  }

  private var zxingCodes: [[UInt8]] {
    var codes: [[UInt8]] = []
    withUnsafeMutablePointer(to: &codes) { codes in
      czxing_decode(
        pixels, Int32(width), Int32(height),
        { codes, bytes, count in
          // The pointer that is handed over below, and never nil.
          codes!.assumingMemoryBound(to: [[UInt8]].self).pointee
            .append(Array(UnsafeBufferPointer(start: bytes, count: count)))
        }, codes)
    }
    return codes
  }

  private var zbarCodes: [[UInt8]] {
    let scanner = zbar_image_scanner_create()
    defer { zbar_image_scanner_destroy(scanner) }
    // By default it tells the whole session over D-Bus what it reads.
    zbar_image_scanner_request_dbus(scanner, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_NONE, ZBAR_CFG_ENABLE, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_QRCODE, ZBAR_CFG_ENABLE, 1)
    // By default it takes bytes for text, guesses the character set, and turns that into UTF-8.
    zbar_image_scanner_set_config(scanner, ZBAR_QRCODE, ZBAR_CFG_BINARY, 1)

    let image = zbar_image_create()
    defer { zbar_image_destroy(image) }
    zbar_image_set_format(image, zbar_fourcc_parse("Y800"))
    zbar_image_set_size(image, UInt32(width), UInt32(height))
    return pixels.withUnsafeBytes { pixels in
      zbar_image_set_data(image, pixels.baseAddress, UInt(pixels.count), nil)
      zbar_scan_image(scanner, image)
      var codes: [[UInt8]] = []
      var symbol = zbar_image_first_symbol(image)
      while symbol != nil {
        let count = Int(zbar_symbol_get_data_length(symbol))
        codes.append(Array(UnsafeRawBufferPointer(start: zbar_symbol_get_data(symbol), count: count)))
        symbol = zbar_symbol_next(symbol)
      }
      return codes
    }
  }
}

extension GrayPicture {
  /// Half as many pixels each way, until there are at most four million: enough for a code that is out of focus.
  var reduced: GrayPicture {
    guard pixels.count > 4_000_000, width > 1, height > 1 else { return self }
    let (halfWidth, halfHeight) = (width / 2, height / 2)
    let means = [UInt8](unsafeUninitializedCapacity: halfWidth * halfHeight) { means, count in
      pixels.withUnsafeBufferPointer { pixels in
        for y in 0..<halfHeight {
          for x in 0..<halfWidth {
            let place = 2 * y * width + 2 * x
            let upper = Int(pixels[place]) + Int(pixels[place + 1])
            let lower = Int(pixels[place + width]) + Int(pixels[place + width + 1])
            means[y * halfWidth + x] = UInt8((upper + lower + 2) / 4)
          }
        }
      }
      count = halfWidth * halfHeight
    }
    return GrayPicture(width: halfWidth, height: halfHeight, pixels: means).reduced
  }

  /// With edges made steeper (unsharp masking): each pixel is moved away from the mean around it, to three times the
  /// distance. It brings out codes that are out of focus.
  var sharpened: GrayPicture {
    let radius = 4
    let area = (2 * radius + 1) * (2 * radius + 1)
    // Beyond the edges, the outermost pixels are repeated. The sums of a window's columns change by two rows from line
    // to line, and the sum of the window by two columns from pixel to pixel.
    func column(_ x: Int) -> Int { min(max(x, 0), width - 1) }
    func row(_ y: Int) -> Int { min(max(y, 0), height - 1) * width }
    let sharp = [UInt8](unsafeUninitializedCapacity: pixels.count) { sharp, count in
      pixels.withUnsafeBufferPointer { pixels in
        var sums = (0..<width).map { x in (-radius...radius).reduce(0) { $0 + Int(pixels[row($1) + x]) } }
        for y in 0..<height {
          var sum = (-radius...radius).reduce(0) { $0 + sums[column($1)] }
          for x in 0..<width {
            let value = Int(pixels[y * width + x])
            sharp[y * width + x] = UInt8(clamping: value + 2 * (value - sum / area))
            sum += sums[column(x + radius + 1)] - sums[column(x - radius)]
          }
          for x in 0..<width { sums[x] += Int(pixels[row(y + radius + 1) + x]) - Int(pixels[row(y - radius) + x]) }
        }
      }
      count = pixels.count
    }
    return GrayPicture(width: width, height: height, pixels: sharp)
  }
}
