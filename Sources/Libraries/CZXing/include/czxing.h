// QR codes in grey pictures: a C interface to zxing-cpp that hides all C++ types from Swift.
#ifndef CZXING_H
#define CZXING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Receives a code's bytes as they were encoded, in any character set. They are borrowed.
typedef void (*czxing_found)(void *context, const uint8_t *bytes, size_t count);

/// Calls `found` for each code in a picture. The picture has one byte per pixel, row by row.
void czxing_decode(const uint8_t *pixels, int width, int height, czxing_found found, void *context);

#ifdef __cplusplus
}
#endif

#endif
