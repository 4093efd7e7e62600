import CZBar
import CZXing

extension GrayPicture {
  /// The content of each QR code in it, each once.
  ///
  /// Two decoders look, since each finds codes that the other does not: zxing-cpp the small ones and, in a picture that
  /// was made sharper, those out of focus; zbar those seen at a steep angle.
  package var codes: [[UInt8]] {
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
          codes!.assumingMemoryBound(to: [[UInt8]].self).pointee
            .append(Array(UnsafeBufferPointer(start: bytes, count: count)))
        }, codes)
    }
    return codes
  }

  private var zbarCodes: [[UInt8]] {
    let scanner = zbar_image_scanner_create()
    defer { zbar_image_scanner_destroy(scanner) }
    // It would tell all of the session what it reads.
    zbar_image_scanner_request_dbus(scanner, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_NONE, ZBAR_CFG_ENABLE, 0)
    zbar_image_scanner_set_config(scanner, ZBAR_QRCODE, ZBAR_CFG_ENABLE, 1)
    // Else it takes bytes for text in a character set that it guesses, and turns that into UTF-8.
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
