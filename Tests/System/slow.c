// A worn card and a slow bus. Loaded before the program (LD_PRELOAD).
//
// SLOW_SYNC_MS: how long fsync(2) of a file takes. SLOW_WRITE and SLOW_WRITE_MS: how long write(2) takes to a file whose
// path has that in it. SLOW_READ and SLOW_READ_MS: the same of read(2). WRITES: a file that gets a line for each write to
// a `duty_cycle`: seconds, path, value.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long milliseconds(const char *name) {
  const char *value = getenv(name);
  return value ? atol(value) : 0;
}

int fsync(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) usleep(milliseconds("SLOW_SYNC_MS") * 1000);
  return (int)syscall(SYS_fsync, descriptor);
}

static void find_path(int descriptor, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, size - 1);
  path[length > 0 ? length : 0] = 0;
}

ssize_t read(int descriptor, void *bytes, size_t count) {
  char path[4096];
  const char *slow = getenv("SLOW_READ");
  if (slow) {
    find_path(descriptor, path, sizeof path);
    if (strstr(path, slow)) usleep(milliseconds("SLOW_READ_MS") * 1000);
  }
  return syscall(SYS_read, descriptor, bytes, count);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  char path[4096];
  find_path(descriptor, path, sizeof path);
  const char *slow = getenv("SLOW_WRITE"), *log = getenv("WRITES");
  if (log && strstr(path, "/duty_cycle")) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    FILE *file = fopen(log, "a");
    fprintf(file, "%ld.%06ld %s %.*s\n", (long)now.tv_sec, now.tv_nsec / 1000, path, (int)count, (const char *)bytes);
    fclose(file);
  }
  if (slow && strstr(path, slow)) usleep(milliseconds("SLOW_WRITE_MS") * 1000);
  return syscall(SYS_write, descriptor, bytes, count);
}
