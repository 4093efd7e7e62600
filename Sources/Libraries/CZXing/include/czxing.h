// QR codes in grey pictures: a C face on zxing-cpp, so that no C++ type is seen by Swift.
#ifndef CZXING_H
#define CZXING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Gets the bytes of a code as they were encoded, whatever character set they are in; they are lent.
typedef void (*czxing_found)(void *context, const uint8_t *bytes, size_t count);

/// Calls `found` for each code in a picture of one byte a pixel, row by row.
void czxing_decode(const uint8_t *pixels, int width, int height, czxing_found found, void *context);

#ifdef __cplusplus
}
#endif

#endif
