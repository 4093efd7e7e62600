#include "czxing.h"

// The return type of functions that this file does not use (ZXing/Result.h).
#define ZX_USE_UTF8
#include <ZXing/ReadBarcode.h>

#include <exception>

extern "C" void czxing_decode(const uint8_t *pixels, int width, int height, czxing_found found, void *context) {
  const auto hints = ZXing::DecodeHints().setFormats(ZXing::BarcodeFormat::QRCode);
  try {
    for (const ZXing::Result &result : ZXing::ReadBarcodes({pixels, width, height, ZXing::ImageFormat::Lum}, hints))
      found(context, result.bytes().data(), result.bytes().size());
  } catch (const std::exception &) {
    // If zxing-cpp throws, the picture counts as having no code.
  }
}
