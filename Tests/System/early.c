// A library that sets a variable before Swift's runtime starts, so that `environ` is no longer where the kernel put it.
// Where the runtime is a shared library it is started first, and opens /proc/self/maps. Loaded before the program
// (LD_PRELOAD).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set(void) { setenv("EARLY", "1", 1); }

FILE *fopen(const char *path, const char *mode) {
  set();
  FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen");
  return real(path, mode);
}
