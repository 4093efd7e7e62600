// A worn card and a slow bus. Loaded before the program (LD_PRELOAD).
//
// SLOW_SYNC_MS: how long fsync(2) of a file takes. HANGS: as long as this file is there, fsync(2) does not return.
// SLOW_WRITE and SLOW_WRITE_MS: how long write(2) takes to a file whose path has that in it. SLOW_READ, SLOW_READ_MS:
// the same of read(2). WRITES: a file that gets a line for each write to a `duty_cycle` (seconds, path, value), and for
// each slow fsync(2) or write(2) (when it began, `slow`, when it ended).
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

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

static void note(double at, const char *what, size_t count, const char *value) {
  const char *log = getenv("WRITES");
  if (!log) return;
  FILE *file = fopen(log, "a");
  fprintf(file, "%.6f %s %.*s\n", at, what, (int)count, value);
  fclose(file);
}

static void wait_for(const char *time, const char *file) {
  if (!getenv(time) && !file) return;
  double begin = seconds();
  usleep(milliseconds(time) * 1000);
  while (file && access(file, F_OK) == 0) usleep(10000);
  char end[32];
  snprintf(end, sizeof end, "%.6f", seconds());
  note(begin, "slow", sizeof end, end);
}

int fsync(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) wait_for("SLOW_SYNC_MS", getenv("HANGS"));
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
  const char *slow = getenv("SLOW_WRITE");
  if (strstr(path, "/duty_cycle")) note(seconds(), path, count, bytes);
  if (slow && strstr(path, slow)) wait_for("SLOW_WRITE_MS", NULL);
  return syscall(SYS_write, descriptor, bytes, count);
}
