// Debian's Swift library for arm64 wants glibc 2.38. These are the functions that Debian 12's glibc 2.36 lacks.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What C23 calls by these names also reads binary numbers ("0b1"), and the library's callers give none.
long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }
unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return strtoul(text, end, base); }
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return strtoull(text, end, base); }

int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int count = vsscanf(text, format, values);
  va_end(values);
  return count;
}

// strlcpy(3) and strlcat(3): `size` is that of the whole target, and the result is the length that was wanted.
size_t strlcpy(char *target, const char *source, size_t size) {
  size_t length = strlen(source);
  if (size > 0) {
    size_t copied = length < size ? length : size - 1;
    memcpy(target, source, copied);
    target[copied] = 0;
  }
  return length;
}

size_t strlcat(char *target, const char *source, size_t size) {
  size_t length = strnlen(target, size);
  return length == size ? length + strlen(source) : length + strlcpy(target + length, source, size - length);
}
