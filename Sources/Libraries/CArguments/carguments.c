#include "carguments.h"

#include <stddef.h>

static int count;
static char **values;

// glibc hands its constructors what it will hand main(). Swift's runtime looks for the arguments below `environ`, and
// finds none if another library has called setenv(3) before it, or if there is no /proc.
__attribute__((constructor)) static void keep(int given, char **arguments) {
  count = given;
  values = arguments;
}

const char *carguments_at(int index) { return index < count ? values[index] : NULL; }
