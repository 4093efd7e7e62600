// A program that is killed while it writes, and a disk that is full. Loaded before the program (LD_PRELOAD).
//
// CUT: of which files, a part of their paths. CUT_AT: at which write(2) or fsync(2) of theirs, from 1. CUT_MODE: "before",
// "half" and "after" kill the program there, with nothing, half or all of it written; "full" has every write from there on
// take half of its bytes and then fail as on a full disk.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int calls;

static int is_due(int descriptor) {
  char link[64], path[4096];
  const char *part = getenv("CUT");
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  return part && strstr(path, part) && atomic_fetch_add(&calls, 1) + 1 >= atoi(getenv("CUT_AT"));
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
  if (!is_due(descriptor)) return syscall(SYS_write, descriptor, bytes, count);
  const char *mode = getenv("CUT_MODE");
  size_t written = strcmp(mode, "before") == 0 ? 0 : strcmp(mode, "after") == 0 ? count : count / 2;
  if (written > 0) syscall(SYS_write, descriptor, bytes, written);
  if (strcmp(mode, "full") != 0) kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return -1;
}

int fsync(int descriptor) {
  if (is_due(descriptor) && strcmp(getenv("CUT_MODE"), "full") != 0) kill(getpid(), SIGKILL);
  return (int)syscall(SYS_fsync, descriptor);
}
