import CZBar
import CZXing

extension GrayPicture {
  /// The content of each QR code in the picture, without duplicates.
  ///
  /// Two decoders are used, because each finds codes that the other misses. zxing-cpp finds small codes and, in a
  /// sharpened picture, codes out of focus; zbar finds codes at a steep angle. If there is no code, both look for light
  /// codes on a dark ground. That takes as long again, so a large picture is reduced for it.
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
          // The pointer passed below, which is never nil.
          codes!.assumingMemoryBound(to: [[UInt8]].self).pointee
            .append(Array(UnsafeBufferPointer(start: bytes, count: count)))
        }, codes)
    }
    return codes
  }

  private var zbarCodes: [[UInt8]] {
    let scanner = zbar_image_scanner_create()
    defer { zbar_image_scanner_destroy(scanner) }
    // By default it publishes what it reads on the session's D-Bus.
    zbar_image_scanner_request_dbus(scanner, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_NONE, ZBAR_CFG_ENABLE, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_QRCODE, ZBAR_CFG_ENABLE, 1)
    // By default it treats bytes as text, guesses the character set, and converts them to UTF-8.
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
  /// Halved in both directions until there are at most four million pixels: enough for a code that is out of focus.
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

  /// With steeper edges (unsharp masking): each pixel's distance from the local mean is tripled. This makes codes
  /// readable that are out of focus.
  var sharpened: GrayPicture {
    let radius = 4
    let area = (2 * radius + 1) * (2 * radius + 1)
    // The outermost pixels are repeated beyond the edges. The sums of a window's columns change by two rows per line,
    // and the sum of the window changes by two columns per pixel.
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
